"""Models that add up votes of decision stumps: a table of scores for every feature."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp
from numba import njit

from solvers.boosting.weak_learners import bin_codes
from solvers.boosting.weak_learners.boosted_model import BoostedModel, Ensemble, shares
from solvers.core.model import Contributions
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints, Ints32
from solvers.numerics.copies import copy
from solvers.output_codes.decoding import loss_secants


@dataclass(frozen=True, eq=False)
class Table:
    """A step function of every feature, with one value an output, less what it gives at zero.

    Attributes
    ----------
    features : int64 array, shape (n_used,)
        Ascending.
    first : int64 array, shape (n_used + 1,)
        Where the thresholds of each feature begin; it has one interval more.
    thresholds : float64 array, shape (first[-1],)
        Ascending within a feature.
    values : float64 array, shape (first[-1] + n_used, n_outputs)
        The intervals of one feature after those of another.
    base : float64 array, shape (n_outputs,)
        What all features together give at zero.
    """

    features: Ints
    first: Ints
    thresholds: Floats
    values: Floats
    base: Floats

    @classmethod
    def of_stumps(cls, features: Ints, thresholds: Floats, weights: Floats) -> "Table":
        """The sum of the stumps ``w h(x)``, h(x) = +1 where x_j <= threshold, else -1; constant where j is -1.

        Weights have the shape (n_stumps, n_outputs).
        """
        real = features >= 0
        order = np.flatnonzero(real)[np.lexsort((thresholds[real], features[real]))]
        used, counts = np.unique(features[order], return_counts=True)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        # below all its thresholds a feature gives the sum of its weights; each threshold passed takes away two weights
        values = np.zeros((len(order) + len(used), weights.shape[1]))
        owner = np.repeat(np.arange(len(used)), counts)
        begin = first[:-1] + np.arange(len(used))
        values[np.arange(len(order)) + owner + 1] = -2.0 * weights[order]
        np.add.at(values, begin[owner], weights[order])
        zero = np.zeros(len(used), np.int32)
        bin_codes.encode_sparse(np.arange(len(used) + 1), np.zeros(len(used)), first, thresholds[order], zero)
        base = weights[~real].sum(axis=0)
        for f, at in enumerate(begin.tolist()):
            part = values[at : at + counts[f] + 1]
            np.cumsum(part, axis=0, out=part)
            base += part[zero[f]]
            part -= part[zero[f]].copy()
        return cls(used, first, thresholds[order], values, base)


class StumpsModel(BoostedModel):
    """The sum of decision stumps, each with its weights.

    All stumps of a feature together are a step function of it, so prediction costs the same however many there are:
    a search among the feature's thresholds and one row of the table.

    Parameters
    ----------
    features, thresholds : arrays, shape (n_stumps,)
        The single stumps: j, or -1 for the constant +1, and the threshold.
    """

    kind = "stumps"

    def __init__(self, table: Table, features: Ints, thresholds: Floats, ensemble: Ensemble) -> None:
        super().__init__(ensemble)
        self.table, self.features, self.thresholds = table, features, thresholds
        self._place = np.full(self.n_features, -1, np.int32)
        self._place[table.features] = np.arange(len(table.features), dtype=np.int32)

    @classmethod
    def of_stumps(cls, features: Ints, thresholds: Floats, ensemble: Ensemble) -> "StumpsModel":
        """The model with each stump once, and its votes numbered accordingly."""
        table = Table.of_stumps(features, thresholds, ensemble.weights(len(features)))
        return cls(table, features, thresholds, ensemble)

    @property
    def importances(self) -> Floats:
        weights = np.abs(self.ensemble.weights(len(self.features))).sum(axis=1)
        real = self.features >= 0
        return shares(np.bincount(self.features[real], weights[real], self.n_features))

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        self.check_width(X)
        return self._look_up(X.indptr, X.indices, X.data.astype(np.float64, copy=False))

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        return np.asarray(self._look_up(np.array([0, len(indices)], np.int32), indices, values)[0])

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions:
        """What each feature's steps bring, less those at zero; by a code the secants of its loss."""
        empty = self.table.base
        alone = np.empty((len(indices), self.ensemble.n_outputs))
        self._add(np.arange(len(indices) + 1), indices, values, np.zeros_like(empty), alone)
        after = empty + alone.sum(axis=0)

        def of_class(class_: int) -> Contributions:
            if self.code is None:
                return Contributions(alone[:, class_], float(empty[class_]), additive=False)
            slopes = loss_secants(after, empty, self.code[class_], "exponential")
            return Contributions(alone @ slopes, float(self.decode(empty[None])[0, class_]), additive=False)

        found = of_class(best)
        if rival is None:
            return found
        other = of_class(rival)
        return Contributions(found.parts - other.parts, found.intercept - other.intercept, additive=False)

    def staged_scores(self, X: sp.csr_matrix) -> Iterator[AnyFloats]:
        """Scores after each round of training, shape (n_samples, n_classes); those of the last are :meth:`scores`."""
        self.check_width(X)
        return self.staged(X.shape[0], partial(self._response, X.tocsc()))

    def _response(self, columns: sp.csc_matrix, t: int) -> Floats:
        """What stump t says of every row."""
        j, threshold = int(self.features[t]), self.thresholds[t]
        response = np.full(columns.shape[0], 1.0 if j < 0 or threshold >= 0.0 else -1.0)
        if j >= 0:
            begin, end = columns.indptr[j], columns.indptr[j + 1]
            response[columns.indices[begin:end]] = np.where(columns.data[begin:end] <= threshold, 1.0, -1.0)
        return response

    def _look_up(self, indptr: Array, indices: Array, data: Floats) -> AnyFloats:
        out = np.empty((len(indptr) - 1, self.ensemble.n_outputs))
        self._add(indptr, indices, data, self.table.base, out)
        return self.decode(out)

    def _add(self, indptr: Array, indices: Array, data: Floats, base: Floats, out: Floats) -> None:
        table = self.table
        _look_up(indptr, indices, data, self._place, table.first, table.thresholds, table.values, base, out)

    def arrays(self) -> dict[str, Array]:
        arrays = {f"table_{name}": array for name, array in vars(self.table).items()}
        return arrays | {"features": self.features, "thresholds": self.thresholds} | self.ensemble.arrays()

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "StumpsModel":
        table = Table(*(arrays[f"table_{name}"] for name in ("features", "first", "thresholds", "values", "base")))
        ensemble = Ensemble.of_arrays(classes, n_features, arrays)
        n_used, n_thresholds = len(table.features), len(table.thresholds)
        stored_arrays.require_ascending("table_features", table.features, n_features)
        stored_arrays.require_starts("table_first", table.first, n_used, n_thresholds)
        stored_arrays.require_floats("table_thresholds", table.thresholds, n_thresholds)
        stored_arrays.require_floats("table_values", table.values, n_thresholds + n_used, ensemble.n_outputs)
        stored_arrays.require_floats("table_base", table.base, ensemble.n_outputs)
        features, thresholds = arrays["features"], arrays["thresholds"]
        stored_arrays.require_within("features", features, -1, n_features)
        stored_arrays.require_floats("thresholds", thresholds, len(features))
        ensemble.require_learners(len(features))
        return cls(table, features, thresholds, ensemble)


@njit(cache=True, nogil=True)
def _look_up(
    indptr: Array,
    indices: Array,
    data: Floats,
    place: Ints32,
    first: Ints,
    thresholds: Floats,
    table: Floats,
    base: Floats,
    out: Floats,
) -> None:
    """out[i] = base + the rows of the table for the entries of row i.

    Feature j has the thresholds ``first[f] : first[f + 1]`` with ``f = place[j]``, none if that is -1, and one interval
    more; the intervals of all features follow one another in the table.
    """
    for i in range(len(out)):
        row = out[i]
        copy(base, row)
        for p in range(indptr[i], indptr[i + 1]):
            f = place[indices[p]]
            if f >= 0:
                more = table[first[f] + f + bin_codes.bin_of(data[p], thresholds, first[f], first[f + 1])]
                for c in range(len(row)):
                    row[c] += more[c]
