"""Synthetic text with the shape of long-tailed collections: Zipf-distributed words and classes, topics, label noise."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

CHUNK = 4096
BACKGROUND, OF_CLASS = 0.5, 0.35
TOPIC_WORDS = 200
GROUP = 16
STOP_WORDS = 50
NOISE = 0.05


class Shape(NamedTuple):
    """How many examples, features and classes, and distinct features a row on average."""

    n: int
    d: int
    k: int
    per_row: int = 130


LSHTC_2011 = Shape(394_754, 594_158, 27_875)


def text(shape: Shape, seed: int = 0) -> tuple[sp.csr_matrix, NDArray[np.int32]]:
    """TF-IDF rows of unit length, X (n, d) CSR float64, and labels y (n,), every class with an example.

    A token is drawn from a background, from the words of its class, or from those of a group of 16 classes, each time
    with probability in inverse proportion to the rank; the words of a class are spread over all ranks of the background
    behind the stop words. One label in twenty is drawn again. Memory is little more than that of the result.
    """
    n, d, k, per_row = shape
    rng = np.random.default_rng(seed)
    y = _labels(n, k, rng)
    topic = np.where(rng.random(n) < NOISE, y[rng.integers(n, size=n)], y)
    tokens = np.maximum(1, rng.lognormal(np.log(1.35 * per_row) - 0.125, 0.5, n)).astype(np.int64)
    counts, parts = np.zeros(n + 1, np.int64), []
    for begin in range(0, n, CHUNK):
        lengths = tokens[begin : begin + CHUNK]
        row = np.repeat(np.arange(len(lengths)), lengths)
        word = _words(np.repeat(topic[begin : begin + CHUNK], lengths), d, rng)
        keys, times = np.unique(row * d + word, return_counts=True)
        counts[begin + 1 : begin + 1 + len(lengths)] = np.bincount(keys // d, minlength=len(lengths))
        parts.append(((keys % d).astype(np.int32), times.astype(np.uint16)))
    indptr = np.cumsum(counts)
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
    df, at = np.zeros(d), 0
    for i, (word, times) in enumerate(parts):
        indices[at : at + len(word)], data[at : at + len(word)] = word, times
        df += np.bincount(word, minlength=d)
        at += len(word)
        parts[i] = (word[:0], times[:0])
    idf = np.log((1 + n) / (1 + df)) + 1
    for begin in range(0, n, CHUNK):
        stop = min(begin + CHUNK, n)
        low, high = indptr[begin], indptr[stop]
        values = (1 + np.log(data[low:high])) * idf[indices[low:high]]
        lengths = np.sqrt(np.add.reduceat(values**2, indptr[begin:stop] - low))
        data[low:high] = values / np.repeat(lengths, np.diff(indptr[begin : stop + 1]))
    return sp.csr_matrix((data, indices, indptr), shape=(n, d)), y


def _labels(n: int, k: int, rng: np.random.Generator) -> NDArray[np.int32]:
    share = 1.0 / (np.arange(k) + 10.0)
    y = rng.choice(k, size=n, p=share / share.sum()).astype(np.int32)
    y[:k] = np.arange(k)
    return rng.permutation(y)


def _words(topic: NDArray[np.int32], d: int, rng: np.random.Generator) -> NDArray[np.int64]:
    source, u = rng.random(len(topic)), rng.random(len(topic))
    owner = np.where(source < BACKGROUND + OF_CLASS, topic, -1 - topic // GROUP).astype(np.int64)
    place = np.floor(TOPIC_WORDS**u)
    first = min(STOP_WORDS, d // 2)
    own = first * (d / first) ** _scatter(owner * (TOPIC_WORDS + 1) + place.astype(np.int64))
    rank = np.where(source < BACKGROUND, float(d) ** u, own)
    return np.minimum(rank.astype(np.int64), d) - 1


def _scatter(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """A fixed pseudo-random number in [0, 1) for each key (the finaliser of splitmix64)."""
    z = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) / float(1 << 53)
