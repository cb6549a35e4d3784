"""Measures of ranked lists of labels: from the places of the true labels, all else follows.

Scores come in blocks of rows; what is kept of a row is the place of each of its true labels, and never a score. With k
the length of the list, r the places of a row's m true labels, and 1 for the best place:

    precision@k   #{r <= k} / k                       recall@k   #{r <= k} / m
    accuracy@k    1 if any r <= k, else 0             mrr        1 / min r
    ndcg@k        sum_{r <= k} 1/log2(1+r) / sum_{i <= min(k, m)} 1/log2(1+i)
    f1@k          2 #{r <= k} / (k + m), of rows with sets of labels
    psp@k         sum_{r <= k} 1/p / the most that k labels of each row's could give, both summed over the rows

All are means over the rows that have a true label but psp@k, a ratio of sums: the propensity-scored precision of Jain
et al. 2016, scaled so that 1 is the best there is. A true label that is never listed has no place.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from solvers.metrics.intervals import RowSums
from solvers.numerics.array_types import AnyFloats, Floats, Ints, Ints32

KS = (1, 3, 5, 10)
A, B = 0.55, 1.5


class Ranking(NamedTuple):
    """What a model's answers to some rows are ordered by: the largest first, equal ones by ``ties``, then by class.

    Attributes
    ----------
    values : float array, shape (n_samples, n_classes)
        Minus infinity for a class that is never an answer.
    ties : float array, shape (n_samples, n_classes), or None
        The larger comes first among equal values.
    predicted : int64 array, shape (n_samples,), or None
        The predicted class, where that is found by another way than the order, so that it may differ in the last bits.
    sets : csr_matrix of bool, shape (n_samples, n_classes), or None
        The predicted sets, of models that name sets.
    set_scores : float array, shape (n_samples, n_classes), or None
        Of models that name sets: the scores of the labels in them, where these are not the values.
    tells_probabilities : bool
        The values are logarithms of probabilities.
    """

    values: AnyFloats
    ties: AnyFloats | None = None
    predicted: Ints | None = None
    sets: sp.csr_matrix | None = None
    set_scores: AnyFloats | None = None
    tells_probabilities: bool = False

    def first(self) -> Ints:
        """The predicted class of each row, shape (n_samples,)."""
        return first(self.values, self.ties) if self.predicted is None else self.predicted


def places(
    scores: AnyFloats, indptr: NDArray[np.integer], labels: NDArray[np.integer], ties: AnyFloats | None = None
) -> Ints32:
    """The places of true labels among all classes by falling score; equal scores by ``ties``, then by class.

    Parameters
    ----------
    scores : float array, shape (n_samples, n_classes)
        Minus infinity for a class that is never listed.
    indptr : int array, shape (n_samples + 1,)
    labels : int array
        The true labels of row i from ``indptr[i]`` to ``indptr[i + 1]``; what is not in [0, n_classes) is unknown.
    ties : float array, shape (n_samples, n_classes), optional

    Returns
    -------
    int32 array, shape of ``labels``
        1 for the first; 0 for a label that is never listed.
    """
    found = np.zeros(len(labels), np.int32)
    values = np.ascontiguousarray(scores)
    second = np.empty((0, 0), values.dtype) if ties is None else np.ascontiguousarray(ties)
    _places(values, second, np.asarray(indptr, np.int64), np.asarray(labels, np.int64), found)
    return found


def first(scores: AnyFloats, ties: AnyFloats | None = None) -> Ints:
    """The class in the first place, shape (n_samples,)."""
    if ties is None:
        return np.asarray(scores.argmax(axis=1))
    return np.asarray(np.where(scores == scores.max(axis=1, keepdims=True), ties, -np.inf).argmax(axis=1))


def propensities(n_true: NDArray[np.integer], n_rows: int, a: float = A, b: float = B) -> Floats:
    """How likely a true label is to have been given to a row, by how often it was: the model of Jain et al. 2016.

    ``1 / (1 + c exp(-a log(n + b)))`` with ``c = (log N - 1) (b + 1)^a``.

    Parameters
    ----------
    n_true : int array, shape (n_labels,)
        Training rows that have each label.
    n_rows : int
        N, all training rows; of fewer than three, for which c would be negative, all labels are sure.
    a, b : float
        The paper fits 0.55 and 1.5 where nothing is known of the data, 0.5 and 0.4 for Wikipedia, 0.6 and 2.6 for
        Amazon.
    """
    c = max(0.0, (np.log(max(n_rows, 1)) - 1) * (b + 1) ** a)
    return np.asarray(1 / (1 + c * np.exp(-a * np.log(np.asarray(n_true) + b))))


class RankAccumulator:
    """Collects the places of true labels, block of rows after block of rows.

    Parameters
    ----------
    inverse_propensities : float array, shape (n_classes + 1,), optional
        ``1 / p`` of each label, the last of all that the model has no class for; without it there is no psp@k.
    """

    def __init__(self, inverse_propensities: Floats | None = None) -> None:
        self._inverse, self._sets = inverse_propensities, False
        self._sizes: list[Ints] = []
        self._labels: list[Ints] = []
        self._places: list[Ints32] = []

    def add(self, scores: AnyFloats, true: NDArray[np.integer] | sp.csr_matrix, ties: AnyFloats | None = None) -> None:
        """Take the next rows.

        Parameters
        ----------
        scores : float array, shape (n_samples, n_classes)
        true : int array, shape (n_samples,), or csr_matrix of bool, shape (n_samples, any)
            The true label of each row, -1 where the model has no class for it; or a set of them. Columns from
            ``n_classes`` on are labels that the model has no class for.
        ties : float array, shape (n_samples, n_classes), optional
            As :func:`places` has it.
        """
        if sp.issparse(true):
            self._sets = True
            indptr, labels = np.asarray(true.indptr, np.int64), np.asarray(true.indices, np.int64)
        else:
            indptr, labels = np.arange(len(true) + 1), np.asarray(true, np.int64)
        self._places.append(places(scores, indptr, labels, ties))
        self._sizes.append(np.diff(indptr))
        self._labels.append(np.where((labels < 0) | (labels >= scores.shape[1]), -1, labels))

    def add_placed(self, true: NDArray[np.integer], place: Ints32) -> None:
        """Take the next rows, of one true label each, by its place: 1 for the first, 0 where it is never listed.

        Parameters
        ----------
        true : int array, shape (n_samples,)
            -1 where the model has no class for it.
        place : int32 array, shape (n_samples,)
        """
        self._places.append(place)
        self._sizes.append(np.ones(len(place), np.int64))
        self._labels.append(np.asarray(true, np.int64))

    def placed(self) -> "Placed":
        """All that was taken; raises ValueError where there was nothing."""
        if not self._sizes:
            raise ValueError("no rows to measure; expected at least one")
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(self._sizes))])
        inverse = None if self._inverse is None else self._inverse[np.concatenate(self._labels)]
        return Placed(indptr, np.concatenate(self._places), inverse)

    def measures(self, ks: tuple[int, ...] = KS) -> dict[str, float]:
        """``precision@k``, ``recall@k``, ``f1@k``, ``accuracy@k``, ``ndcg@k``, ``mrr``; with propensities ``psp@k``."""
        sums = RowSums()
        self.placed().add_to(sums, ks=ks, sets=self._sets)
        return dict(zip((measure.name for measure in sums.measures), sums.of_all().tolist(), strict=True))


class Placed(NamedTuple):
    """The places of the true labels of some rows.

    Attributes
    ----------
    indptr : int64 array, shape (n_samples + 1,)
    places : int32 array
        Of the true labels of row i from ``indptr[i]`` to ``indptr[i + 1]``; 0 of one that is never listed.
    inverse : float64 array, shape of ``places``, or None
        ``1 / p`` of the labels.
    """

    indptr: Ints
    places: Ints32
    inverse: Floats | None = None

    def best(self) -> Ints32:
        """The best place of each row, shape (n_samples,); 0 where no true label is listed."""
        never = np.iinfo(np.int32).max
        listed = np.where(self.places > 0, self.places, never)
        found = np.full(len(self.indptr) - 1, never, np.int32)
        held = np.diff(self.indptr) > 0
        if held.any():
            found[held] = np.minimum.reduceat(listed, self.indptr[:-1][held])
        found[found == never] = 0
        return found

    def add_to(
        self, sums: RowSums, level: int = 0, ks: tuple[int, ...] = KS, prefix: str = "", *, sets: bool = False
    ) -> None:
        """Add the measures to others of the same rows, under names that begin with ``prefix``; f1@k of ``sets``."""
        sizes, best = np.diff(self.indptr), self.best()
        single = bool((sizes <= 1).all())
        held = sums.column(sizes > 0)
        row = np.repeat(np.arange(len(sizes)), sizes)
        listed = self.places > 0
        gain = np.zeros(len(self.places))
        gain[listed] = 1 / np.log2(1 + self.places[listed])
        ideal = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, max(ks, default=1) + 2)))])
        for k in ks:
            within = listed & (self.places <= k)
            hit = sums.column((best > 0) & (best <= k))
            sums.measure(f"{prefix}accuracy@{k}", level, hit, held)
            dcg = np.bincount(row, gain * within, minlength=len(sizes))
            sums.measure(
                f"{prefix}ndcg@{k}", level, sums.column(dcg / np.maximum(ideal[np.minimum(sizes, k)], 1.0)), held
            )
            hits = np.bincount(row, within, minlength=len(sizes))
            if sets:
                sums.measure(f"{prefix}f1@{k}", level, sums.column(2 * hits / (k + sizes)), held)
            sums.measure(f"{prefix}precision@{k}", level, hit if single else sums.column(hits), held, 1 / k)
            sums.measure(
                f"{prefix}recall@{k}", level, hit if single else sums.column(hits / np.maximum(sizes, 1)), held
            )
            if self.inverse is not None:
                got = sums.column(np.bincount(row, self.inverse * within, minlength=len(sizes)))
                sums.measure(f"{prefix}psp@{k}", level, got, sums.column(_most(self.indptr, self.inverse, k)))
        sums.measure(f"{prefix}mrr", level, sums.column(1 / np.where(best > 0, best, np.inf)), held)


def _most(indptr: Ints, gains: Floats, k: int) -> Floats:
    """The sum of the k largest gains of each row."""
    sizes = np.diff(indptr)
    row = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((-gains, row))
    rank = np.arange(len(gains)) - np.repeat(indptr[:-1], sizes)
    return np.asarray(np.bincount(row, gains[order] * (rank < k), minlength=len(sizes)), np.float64)


@njit(cache=True, nogil=True)
def _places(values: Any, ties: Any, indptr: Ints, labels: Ints, found: Ints32) -> None:
    """Count, for every true label, the classes that come before it."""
    n_classes, tied = values.shape[1], ties.shape[0] > 0
    for i in range(values.shape[0]):
        for e in range(indptr[i], indptr[i + 1]):
            label = labels[e]
            if label < 0 or label >= n_classes or values[i, label] == -np.inf:
                continue
            score, before, equal = values[i, label], 0, 0
            for c in range(n_classes):
                before += values[i, c] > score
                equal += values[i, c] == score
            for c in range(n_classes if equal > 1 else 0):
                if values[i, c] == score:
                    if not tied or ties[i, c] == ties[i, label]:
                        before += c < label
                    else:
                        before += ties[i, c] > ties[i, label]
            found[e] = before + 1
