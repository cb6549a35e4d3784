"""Names of concepts found in texts: an index of names by their rarest word, and the compiled search.

A name is a set of words, which may occur in any order within a sentence of the text; longer names are found first, and
take their words with them (Medelyan 2009, section 5.2; Suominen et al. 2022, "Maui-like lexical matching"). A text's
words are given as numbers: the caller decides what a word is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.numerics.copies import fixed

Ints32 = NDArray[np.int32]

# words of a name: longer ones are not looked for
MOST_WORDS = 12
# ways in which a name is found
EXACT, REORDERED, PARTS = 0, 1, 2


class Name(NamedTuple):
    """One name of a concept: its words as tokens, in their order."""

    concept: int
    words: Sequence[str]


class Matches(NamedTuple):
    """Names found in one text.

    Attributes
    ----------
    name : int32 array, shape (n,)
    how : int32 array, shape (n,)
        ``EXACT`` in one piece and order, ``REORDERED`` in any order within a sentence, ``PARTS`` with a part of a
        compound.
    first, last : int32 array, shape (n,)
        The places of the first and the last word, among the words of the text.
    """

    name: Ints32
    how: Ints32
    first: Ints32
    last: Ints32


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The names of a vocabulary.

    Attributes
    ----------
    tokens : mapping of str to int
        The number of each word of a name.
    concept : int32 array, shape (n_names,)
        Whose name it is.
    begin : int64 array, shape (n_names + 1,)
        Where the words of each name begin in ``words``.
    words : int32 array
        The words of the names, each in the order of the name.
    bucket : int64 array, shape (n_tokens + 1,)
        Where the names begin that have this as their rarest word, in ``members``.
    members : int32 array, shape (n_names,)
        Names by their rarest word, those with most words first.
    frequency : int32 array, shape (n_tokens,)
        In how many names each word is.
    """

    tokens: Mapping[str, int]
    concept: Ints32
    begin: NDArray[np.int64]
    words: Ints32
    bucket: NDArray[np.int64]
    members: Ints32
    frequency: Ints32

    @classmethod
    def build(cls, names: Iterable[Name]) -> Lexicon:
        """Index names; those without words, of more than 12 words, or that a concept has twice are left out."""
        tokens: dict[str, int] = {}
        seen: set[tuple[int, tuple[int, ...]]] = set()
        concept: list[int] = []
        lengths: list[int] = []
        words: list[int] = []
        for name in names:
            if not 0 < len(name.words) <= MOST_WORDS:
                continue
            ids = tuple(tokens.setdefault(word, len(tokens)) for word in name.words)
            if (name.concept, ids) in seen:
                continue
            seen.add((name.concept, ids))
            concept.append(name.concept)
            lengths.append(len(ids))
            words.extend(ids)
        begin = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=begin[1:])
        return cls._indexed(tokens, np.array(concept, np.int32), begin, np.array(words, np.int32))

    @classmethod
    def _indexed(cls, tokens: Mapping[str, int], concept: Ints32, begin: NDArray[np.int64], words: Ints32) -> Lexicon:
        begin, words = fixed(begin), fixed(words)
        n_names, n_tokens = len(concept), len(tokens)
        of_name = np.repeat(np.arange(n_names), np.diff(begin))
        distinct = np.unique(of_name * max(1, n_tokens) + words)
        frequency = np.bincount(distinct % max(1, n_tokens), minlength=n_tokens).astype(np.int32)
        # the rarest word of each name; of equally rare ones the first
        order = np.lexsort((np.arange(len(words)), frequency[words], of_name))
        rarest = words[order[begin[:-1]]] if n_names else words
        members = np.lexsort((np.arange(n_names), -np.diff(begin), rarest)).astype(np.int32)
        bucket = np.zeros(n_tokens + 1, np.int64)
        np.cumsum(np.bincount(rarest, minlength=n_tokens), out=bucket[1:])
        return cls(tokens, concept, begin, words, bucket, members, frequency)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The names without their words, which :meth:`from_arrays` takes beside them."""
        return {"concept": self.concept, "begin": self.begin, "words": self.words}

    @classmethod
    def from_arrays(cls, tokens: Mapping[str, int], arrays: Mapping[str, NDArray[np.generic]]) -> Lexicon:
        """The lexicon whose :meth:`arrays` these are."""
        concept, words = np.asarray(arrays["concept"], np.int32), np.asarray(arrays["words"], np.int32)
        return cls._indexed(tokens, concept, np.asarray(arrays["begin"], np.int64), words)

    @property
    def n_names(self) -> int:
        """How many names there are."""
        return len(self.concept)

    def number(self, words: Iterable[str]) -> Ints32:
        """The numbers of words; -1 of those that no name has."""
        find = self.tokens.get
        return np.array([find(word, -1) for word in words], np.int32)

    def match(self, words: Ints32, sentence: Ints32, part: NDArray[np.bool_], place: Ints32) -> Matches:
        """The names that occur in a text.

        Parameters
        ----------
        words : int32 array, shape (n,)
            Numbers of the text's words and of the parts of its compounds, in the order of the text; -1 of unknown ones.
        sentence : int32 array, shape (n,)
            The number of the sentence of each, ascending.
        part : bool array, shape (n,)
            Which are parts of compounds.
        place : int32 array, shape (n,)
            The number of the word among the words of the text; parts have that of their compound.
        """
        found = _match(
            words, sentence, part, place, self.begin, self.words, self.bucket, self.members, len(self.tokens)
        )
        return Matches(*found)


@njit(cache=True, nogil=True)
def _match(words, sentence, part, place, begin, of_names, bucket, members, n_tokens):  # type: ignore[no-untyped-def]
    n = len(words)
    most = 16
    name = np.empty(most, np.int32)
    how = np.empty(most, np.int32)
    first = np.empty(most, np.int32)
    last = np.empty(most, np.int32)
    n_found = 0
    # where the sentence has each word: a short open-addressing table a sentence
    start = 0
    while start < n:
        stop = start
        while stop < n and sentence[stop] == sentence[start]:
            stop += 1
        size = 16
        while size < 2 * (stop - start):
            size *= 2
        keys = np.full(size, -1, np.int32)
        heads = np.full(size, -1, np.int32)
        following = np.full(stop - start, -1, np.int32)
        for at in range(stop - 1, start - 1, -1):
            word = words[at]
            if word < 0:
                continue
            slot = (word * 2654435761) & (size - 1)
            while keys[slot] != -1 and keys[slot] != word:
                slot = (slot + 1) & (size - 1)
            keys[slot] = word
            following[at - start] = heads[slot]
            heads[slot] = at - start
        # all names that are there, then by falling number of words
        hits = np.empty(16, np.int32)
        n_hits = 0
        for slot in range(size):
            word = keys[slot]
            if word < 0:
                continue
            for member in range(bucket[word], bucket[word + 1]):
                candidate = members[member]
                there = True
                for at in range(begin[candidate], begin[candidate + 1]):
                    wanted = of_names[at]
                    probe = (wanted * 2654435761) & (size - 1)
                    while keys[probe] != -1 and keys[probe] != wanted:
                        probe = (probe + 1) & (size - 1)
                    if keys[probe] == -1:
                        there = False
                        break
                if there:
                    if n_hits == len(hits):
                        grown = np.empty(2 * n_hits, np.int32)
                        grown[:n_hits] = hits
                        hits = grown
                    hits[n_hits] = candidate
                    n_hits += 1
        lengths = np.empty(n_hits, np.int64)
        for k in range(n_hits):
            lengths[k] = begin[hits[k] + 1] - begin[hits[k]]
        order = np.argsort(-lengths, kind="mergesort")
        taken = np.zeros(stop - start, np.int32)  # by names of how many words
        for k in range(n_hits):
            candidate = hits[order[k]]
            length = lengths[order[k]]
            # every place of its first word begins a match, if some word of it is not taken by a longer name
            opening = of_names[begin[candidate]]
            slot = (opening * 2654435761) & (size - 1)
            while keys[slot] != opening:
                slot = (slot + 1) & (size - 1)
            at = heads[slot]
            chosen = np.empty(length, np.int32)
            in_any_order, found_one = False, False
            while at >= 0:
                lowest, highest = place[start + at], place[start + at]
                compound, in_order, free = part[start + at], True, taken[at] <= length
                previous = at
                chosen[0] = at
                for w in range(1, length):
                    wanted = of_names[begin[candidate] + w]
                    probe = (wanted * 2654435761) & (size - 1)
                    while keys[probe] != wanted:
                        probe = (probe + 1) & (size - 1)
                    # the occurrence nearest to the first word
                    best = heads[probe]
                    other = heads[probe]
                    while other >= 0:
                        expected = place[start + at] + w
                        if abs(place[start + other] - expected) < abs(place[start + best] - expected):
                            best = other
                        other = following[other]
                    chosen[w] = best
                    spot = place[start + best]
                    lowest, highest = min(lowest, spot), max(highest, spot)
                    compound = compound or part[start + best]
                    in_order = in_order and spot == place[start + previous] + 1
                    free = free or taken[best] <= length
                    previous = best
                # in one piece wherever it occurs so; otherwise once, at the first place of its first word
                if free and (in_order or in_any_order):
                    if n_found == most:
                        most *= 2
                        name, how = _grown(name, most), _grown(how, most)
                        first, last = _grown(first, most), _grown(last, most)
                    name[n_found] = candidate
                    how[n_found] = 2 if compound else 0 if in_order else 1
                    first[n_found] = lowest
                    last[n_found] = highest
                    n_found += 1
                    for w in range(length):
                        if length > taken[chosen[w]]:
                            taken[chosen[w]] = length
                    found_one = True
                    if in_any_order:
                        break
                at = following[at]
                if at < 0 and not found_one and not in_any_order:
                    at, in_any_order = heads[slot], True
        start = stop
    return name[:n_found], how[:n_found], first[:n_found], last[:n_found]


@njit(cache=True, nogil=True)
def _grown(array, size):  # type: ignore[no-untyped-def]
    grown = np.empty(size, array.dtype)
    grown[: len(array)] = array
    return grown
