"""Candidates of rows, and what is known of each pair of a row and a candidate.

A row's candidates are the concepts that the learnt machine scores best, those whose names occur in the text, and those
whose names are like the names of concepts that score well. Whatever is counted for a pair of a training row - how many
rows have the concept, how often a name that occurred in a text was right - leaves the row's fold out: a count with the
row in it would reveal its labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.labels.name_block import MATCH_COLUMNS, N_COLUMNS
from solvers.labels.tree_paths import Adjacency

Ints = NDArray[np.int64]
Floats32 = NDArray[np.float32]

FEATURES = (
    "score", "rank", "relative score", "score of the parent", "score of the children", "alike", "relative alike",
    *(f"name: {each}" for each in MATCH_COLUMNS),
    "named", "seen", "frequency", "keyphraseness", "matches", "words of the text", "names in the text",
)  # fmt: skip
_SCORE, _RANK, _RELATIVE, _PARENT, _CHILDREN, _ALIKE, _RELATIVE_ALIKE, _FIRST_MATCH = range(8)
NAMED = _FIRST_MATCH + N_COLUMNS
SEEN, FREQUENCY, KEYPHRASENESS, MATCHES, N_WORDS, N_NAMES = range(NAMED + 1, NAMED + 7)
# of each source of learnt scores after the first
_MORE = ("score", "rank", "score below the best")
# numbers whose hat functions are taken once more times a flag
_CROSSED = (
    *((number, NAMED) for number in (_ALIKE, _RELATIVE_ALIKE, FREQUENCY, KEYPHRASENESS)),
    *((number, SEEN) for number in (_SCORE, _RANK, _FIRST_MATCH, _FIRST_MATCH + 1, _FIRST_MATCH + 3, _FIRST_MATCH + 5)),
    *((number, SEEN) for number in (_FIRST_MATCH + 6, _FIRST_MATCH + 7, KEYPHRASENESS)),
    (NAMED, SEEN),
)
# what names contribute; what learnt scores do says ``learnt_numbers``, and the rest belongs to the concept or the text
BY_NAME = frozenset({*range(_FIRST_MATCH, NAMED + 1), KEYPHRASENESS})
_LOWEST_RANK, _STRONG, _PRIOR = 500, 60, 5.0
_LEAST_SCORE = 0.01


def crossed(n_sources: int) -> tuple[tuple[int, int], ...]:
    """Numbers whose hat functions are taken once more, each with the number of the flag that they are multiplied by."""
    more = (_first_of(source) + number for source in range(1, n_sources) for number in (0, 1))
    return *_CROSSED, *((number, SEEN) for number in more)


def learnt_numbers(source: int) -> list[int]:
    """The numbers that the scores of a source are in."""
    if source == 0:
        return [_SCORE, _RANK, _RELATIVE, _PARENT, _CHILDREN, _ALIKE, _RELATIVE_ALIKE]
    return [_first_of(source) + number for number in range(len(_MORE))]


def _first_of(source: int) -> int:
    return len(FEATURES) + (source - 1) * len(_MORE)


@dataclass(frozen=True, eq=False)
class Counts:
    """How often training rows have each concept, name it, and both; of each fold, shape (n_folds, n_concepts).

    Once rows are answered that are in no fold, the counts of all folds are one.
    """

    has: NDArray[np.int32]
    names: NDArray[np.int32]
    both: NDArray[np.int32]

    @classmethod
    def from_labels(cls, Y: sp.csr_matrix, named: sp.csr_matrix, fold: Ints) -> Counts:
        """Count labels and names of training rows by fold; both matrices are bool, shape (n_rows, n_concepts)."""
        n_folds = int(fold.max()) + 1
        into = sp.csr_matrix((np.ones(len(fold), np.int32), (fold, np.arange(len(fold)))), shape=(n_folds, len(fold)))
        counted = [(into @ each.astype(np.int32)).toarray() for each in (Y, named, Y.multiply(named).tocsr())]
        return cls(*(np.asarray(each, np.int32) for each in counted))

    def moved(self, new_of_old: Ints, n_concepts: int) -> Counts:
        """The counts by other numbers of concepts; those of concepts with one new number are added up.

        Parameters
        ----------
        new_of_old : int64 array, shape (n_old_concepts,)
            -1 of concepts whose counts are left out.
        n_concepts : int
        """
        kept, found = new_of_old >= 0, []
        for each in (self.has, self.names, self.both):
            moved = np.zeros((len(each), n_concepts), np.int32)
            for fold, counts in enumerate(each):
                np.add.at(moved[fold], new_of_old[kept], counts[kept])
            found.append(moved)
        return Counts(*found)

    def without(self, fold: int | None) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The three counts over all folds but one."""
        left = [each.sum(axis=0, dtype=np.int64) for each in (self.has, self.names, self.both)]
        if fold is not None:
            left = [total - each[fold] for total, each in zip(left, (self.has, self.names, self.both), strict=True)]
        return left[0], left[1], left[2]


class Row(NamedTuple):
    """The candidates of one row, and their numbers, shape (n_candidates, n_features)."""

    concepts: Ints
    numbers: Floats32


@dataclass(frozen=True, eq=False)
class Candidates:
    """Finds the candidates of rows.

    Parameters
    ----------
    learnt : int64 array, shape (n_learnt,)
        The concepts that the machine scores, ascending.
    parents : Adjacency
        Of the label tree or graph.
    alike : csr_matrix, shape (n_learnt, n_concepts)
        The concepts whose names are like the name of a learnt one.
    n_best : int
        How many of the best by score.
    n_alike : int
        How many of the best by likeness.
    """

    learnt: Ints
    parents: Adjacency
    alike: sp.csr_matrix
    n_best: int
    n_alike: int

    def row(
        self,
        scores: Floats32,
        match_columns: NDArray[np.int32],
        match_values: NDArray[np.float64],
        counts: tuple[Ints, Ints, Ints],
    ) -> Row:
        """The candidates of one row.

        Parameters
        ----------
        scores : float32 array, shape (n_sources, n_learnt)
        match_columns, match_values : arrays, shape (n,)
            The columns of the names in the row, from 0, and the last, of the number of words.
        counts : three int64 arrays, shape (n_concepts,)
            As :meth:`Counts.without` gives them.
        """
        has, names, both = counts
        first = scores[0]
        k = len(self.parents.start) - 1
        log_words = float(match_values[-1]) if len(match_columns) and match_columns[-1] == N_COLUMNS * k else 0.0
        in_block = match_columns < N_COLUMNS * k
        owner, column = np.divmod(match_columns[in_block].astype(np.int64), N_COLUMNS)
        named = np.unique(owner)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :_LOWEST_RANK]
        strong = best[0, :_STRONG]
        strong = strong[first[strong] > _LEAST_SCORE]
        near, likeness = self._alike(strong, first)
        order = np.argsort(-likeness, kind="stable")[: self.n_alike]
        concepts = np.unique(np.concatenate([self.learnt[best[:, : self.n_best].ravel()], named, near[order]]))
        x = np.zeros((len(concepts), _first_of(len(scores))), np.float32)
        place = np.searchsorted(self.learnt, concepts)
        place[place == len(self.learnt)] = 0
        # a concept of no other fold scores nothing but rounding errors
        known = (self.learnt[place] == concepts) & (has[concepts] > 0)
        highest = max(0.05, float(first[best[0, 0]])) if best.size else 1.0
        for source, of_source in enumerate(scores):
            number = _SCORE if source == 0 else _first_of(source)
            x[known, number] = of_source[place[known]]
            ranks = np.full(len(of_source), _LOWEST_RANK - 1)
            ranks[best[source]] = np.arange(best.shape[1])
            x[:, number + 1] = -np.log(_LOWEST_RANK)
            x[known, number + 1] = -np.log1p(ranks[place[known]])
            if source > 0 and best.size:
                x[known, number + 2] = x[known, number] - of_source[best[source, 0]]
        x[:, _RELATIVE] = x[:, _SCORE] / highest
        self._family(concepts, first, x)
        if len(near):
            at = np.searchsorted(near, concepts)
            at[at == len(near)] = 0
            x[:, _ALIKE] = np.where(near[at] == concepts, likeness[at], 0.0)
            x[:, _RELATIVE_ALIKE] = x[:, _ALIKE] / max(0.05, float(likeness.max()))
        x[np.searchsorted(concepts, owner), _FIRST_MATCH + column] = match_values[in_block]
        inside = np.zeros(len(concepts), bool)
        inside[np.searchsorted(concepts, named)] = True
        x[:, NAMED] = inside
        x[:, SEEN] = has[concepts] > 0
        x[:, FREQUENCY] = np.log1p(has[concepts])
        share = both.sum() / max(1, names.sum())
        right = np.log((both[concepts] + _PRIOR * share + 1e-9) / (names[concepts] + _PRIOR))
        x[:, KEYPHRASENESS] = np.where(inside, right, 0.0)
        x[:, MATCHES] = np.log1p(names[concepts])
        x[:, N_WORDS] = log_words
        x[:, N_NAMES] = len(named) / 100
        return Row(concepts, x)

    def _alike(self, strong: Ints, scores: Floats32) -> tuple[Ints, Floats32]:
        """Concepts whose names are like those of the best ones, ascending, and the sums of cosines times scores."""
        parts = self.alike[strong]
        if parts.nnz == 0:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        gains = parts.data * np.repeat(scores[strong], np.diff(parts.indptr))
        near, of = np.unique(parts.indices.astype(np.int64), return_inverse=True)
        return near, np.bincount(of, gains).astype(np.float32)

    def _family(self, concepts: Ints, scores: Floats32, x: Floats32) -> None:
        """The best score among the concepts above a candidate, and the best below it among the candidates."""
        start, nodes = self.parents
        n_above = np.diff(start)[concepts]
        child, first = np.repeat(np.arange(len(concepts)), n_above), np.cumsum(n_above) - n_above
        above = nodes[np.arange(len(child)) - first[child] + start[concepts][child]]
        place = np.searchsorted(self.learnt, above)
        place[place == len(self.learnt)] = 0
        there = self.learnt[place] == above
        best = np.full(len(concepts), -np.inf, np.float32)
        np.maximum.at(best, child[there], scores[place[there]])
        x[:, _PARENT] = np.where(best > -np.inf, best, 0.0)
        at = np.searchsorted(concepts, above)
        at[at == len(concepts)] = 0
        among = concepts[at] == above
        np.maximum.at(x[:, _CHILDREN], at[among], x[child[among], _SCORE])
