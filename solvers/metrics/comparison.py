"""Paired tests between two models that answered the same rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from solvers.metrics.intervals import CONFIDENCE, RESAMPLES
from solvers.numerics.array_types import Array, Bools, Floats, Ints

_TAG = 0xA1B2
_MOST_VALUES = 512


class McNemar(NamedTuple):
    """McNemar's test that two models are wrong equally often.

    Attributes
    ----------
    only_a, only_b : int
        Rows that the first model alone has right, and the second alone.
    exact : float
        Two-sided p-value of the binomial test of these two counts.
    mid_p : float
        The same with half the probability of what was seen: less conservative, and by Fagerland et al. 2013 the better
        choice. 1 would say nothing, below 0.05 is called significant by habit.
    """

    only_a: int
    only_b: int
    exact: float
    mid_p: float


class PairedDifference(NamedTuple):
    """The difference of a measure's means, first less second, with its bootstrap.

    Attributes
    ----------
    difference : float
    low, high : float
        Percentile interval.
    p_value : float
        Two-sided: twice the smaller share of the resamples with a difference not above, or not below, zero; counted
        with the sample itself as one more resample, so that it is never 0.
    """

    difference: float
    low: float
    high: float
    p_value: float


def mcnemar(correct_a: Bools, correct_b: Bools) -> McNemar:
    """McNemar's test, exact and mid-p.

    Parameters
    ----------
    correct_a, correct_b : bool arrays, shape (n_samples,)
        Whether each model has each row right.

    Raises
    ------
    ValueError
        The shapes differ, or there are no rows.
    """
    a, b = _pair(np.asarray(correct_a, bool), np.asarray(correct_b, bool))
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    n, least = only_a + only_b, min(only_a, only_b)
    tail = float(bdtr(least, n, 0.5))
    at = tail - float(bdtr(least - 1, n, 0.5)) if least else tail
    exact = min(1.0, 2 * tail)
    # half of what was seen goes; with equal counts it is at once the middle of both tails
    mid = 1 - at / 2 if only_a == only_b else 2 * (tail - at / 2)
    return McNemar(only_a, only_b, exact, mid if n else 1.0)


def paired_bootstrap(
    a: NDArray[np.floating],
    b: NDArray[np.floating],
    *,
    resamples: int = 10 * RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> PairedDifference:
    """The bootstrap of the mean of ``a - b`` over rows drawn in pairs; Efron and Tibshirani 1993, chapters 13 and 16.

    Rows of one difference are interchangeable, so what is drawn is how often each of the distinct differences
    occurs: the same distribution, at a cost that hardly depends on the number of rows. Where there are more than 512,
    those within 1/512 of their range are merged, with their mean.

    Parameters
    ----------
    a, b : float arrays, shape (n_samples,)
        A measure of each row's answer, of two models.
    resamples : int
    confidence : float
    seed : int

    Raises
    ------
    ValueError
        The shapes differ, or there are no rows.
    """
    first, second = _pair(np.asarray(a, np.float64), np.asarray(b, np.float64))
    values, counts = _distinct(first - second)
    n = len(first)
    random = np.random.default_rng([seed, _TAG])
    means = np.empty(resamples)
    step = max(1, (8 << 20) // len(values))
    for begin in range(0, resamples, step):
        drawn = random.multinomial(n, counts / n, size=min(step, resamples - begin))
        means[begin : begin + step] = drawn @ values / n
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    # sums of opposite differences are zero but for rounding
    zero = 1e-12 * np.abs(values).max()
    tail = min(int((means <= zero).sum()), int((means >= -zero).sum()))
    p_value = min(1.0, 2 * (tail + 1) / (resamples + 1))
    return PairedDifference(float(values @ counts / n), float(low), float(high), p_value)


def _distinct(differences: Floats) -> tuple[Floats, Ints]:
    """The differences that occur, and how often; of many nearly the same their mean."""
    values, counts = np.unique(differences, return_counts=True)
    if len(values) > _MOST_VALUES:
        place = ((values - values[0]) / (values[-1] - values[0]) * _MOST_VALUES).astype(np.int64)
        sizes = np.bincount(place, counts)
        held = sizes > 0
        values, counts = np.bincount(place, values * counts)[held] / sizes[held], sizes[held].astype(np.int64)
    return values, counts


def _pair(a: Array, b: Array) -> tuple[Array, Array]:
    if a.ndim != 1 or a.shape != b.shape or len(a) == 0:
        raise ValueError(f"expected two arrays of one shape (n_samples,); got {a.shape} and {b.shape}")
    return a, b
