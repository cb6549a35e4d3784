"""Kernel ridge regression over the training rows that are nearest to a row, solved again for each row.

    s(x) = Y_N' (K_NN + diag(lambda / w_N))^-1 k_N(x),

N being the rows that are most like x (local ridge regression; Zhang, Berg, Maire and Malik 2006 do the same with
machines of hinges). Nothing is trained, there is no matrix of all rows, and labels stay sparse: what a row costs grows
with the number of rows by their products with it alone. Scores of training rows leave out the rows of their fold.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numba import njit

from solvers.labels import stored_arrays
from solvers.numerics.array_types import Array, Bools, Floats, Ints
from solvers.numerics.lazy_arrays import Parts, part_of
from solvers.numerics.row_products import gram
from solvers.subjects.sources.source import Floats32, Learnt, Task

N_NEAREST = 50
_ROWS = 64


class NeighbourScorer:
    """The rows, their labels and ridges.

    Parameters
    ----------
    X : csr_matrix of float32, shape (n_rows, n_terms)
        Rows of length one.
    Y : csr_matrix of float32, shape (n_rows, n_learnt)
        How many of a row's labels are each concept.
    ridge : float32 array, shape (n_rows,)
        Lambda divided by the weight of the row.
    """

    kind: ClassVar[str] = "neighbours"

    def __init__(self, X: sp.csr_matrix, Y: sp.csr_matrix, ridge: Floats32) -> None:
        self.X, self.Y, self.ridge = X, Y, ridge

    @cached_property
    def _columns(self) -> sp.csr_matrix:
        return self.X.T.tocsr()

    def scores(self, terms: sp.csr_matrix) -> Floats32:
        return self.scores_without(terms, None)

    def scores_without(self, terms: sp.csr_matrix, out: Ints | None) -> Floats32:
        """Scores as if some of the rows were not there, shape (n_rows, n_learnt)."""
        found = np.zeros((terms.shape[0], self.Y.shape[1]), np.float32)
        X, Y = self.X, self.Y
        for begin in range(0, terms.shape[0], _ROWS):
            products, nearest = self._nearest(terms[begin : begin + _ROWS], out)
            _score(
                products, nearest, X.indptr, X.indices, X.data, self.ridge, Y.indptr, Y.indices, Y.data,
                np.zeros(X.shape[1]), found[begin : begin + _ROWS],
            )  # fmt: skip
        return found

    def parts(self, terms: sp.csr_matrix, concept: int) -> Floats:
        _, nearest = self._nearest(terms, None)
        near = self.X[nearest[0]]
        labels = np.asarray(self.Y[nearest[0]][:, [concept]].toarray(), np.float64).ravel()
        K = gram(near) + np.diag(self.ridge[nearest[0]].astype(np.float64))
        weights = near[:, terms.indices].T @ np.linalg.solve(K, labels)
        return np.asarray(weights * terms.data)

    def merged(self, kept: Bools, of: Ints) -> NeighbourScorer:
        """The machine is linear in the labels of its rows: a concept that was several has the labels of all."""
        shape = (int(kept.sum()), int(of.max(initial=-1)) + 1)
        into = sp.csr_matrix((np.ones(len(of), np.float32), (np.arange(len(of)), of)), shape=shape)
        return NeighbourScorer(self.X, sp.csr_matrix(self.Y[:, kept] @ into), self.ridge)

    def arrays(self) -> Mapping[str, Array]:
        stored = {
            name: {"data": each.data, "indices": each.indices, "indptr": each.indptr}
            for name, each in (("rows", self.X), ("labels", self.Y))
        }
        return dict(Parts(stored)) | {"ridge": self.ridge}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], n_learnt: int, n_terms: int) -> NeighbourScorer:
        ridge = np.asarray(arrays["ridge"])
        stored_arrays.require_floats("ridge", ridge, len(ridge))
        X = stored_arrays.sparse(part_of(arrays, "rows"), len(ridge), n_terms)
        Y = stored_arrays.sparse(part_of(arrays, "labels"), len(ridge), n_learnt)
        if not len(ridge) or ridge.min() <= 0:
            raise ValueError("the array ridge is out of range")
        if not np.array_equal(np.unique(Y.indices), np.arange(n_learnt)):
            raise ValueError("the array labels is out of range")
        return cls(X, Y, ridge)

    def _nearest(self, terms: sp.csr_matrix, out: Ints | None) -> tuple[Floats32, Ints]:
        """Products with all rows, and the most similar ones, ascending, shape (n_rows, n_nearest)."""
        products = np.asarray((sp.csr_matrix(terms, dtype=np.float32) @ self._columns).toarray())
        if out is not None:
            products[:, out] = -1.0
        left = products.shape[1] - (0 if out is None else len(out))
        k = min(N_NEAREST, left)
        nearest = np.argpartition(-products, k - 1, axis=1)[:, :k] if k else np.empty((len(products), 0), np.int64)
        return products, np.sort(nearest, axis=1)


def learn(task: Task) -> Learnt:
    """Nothing is trained but for what is kept of the rows."""
    ridge = (task.regularization / task.weights).astype(np.float32)
    scorer = NeighbourScorer(
        sp.csr_matrix(task.terms, dtype=np.float32), sp.csr_matrix(task.Y, dtype=np.float32), ridge
    )

    def without(number: int, rows: Ints) -> Floats32:
        return scorer.scores_without(task.terms[rows], np.flatnonzero(task.fold == number))

    return Learnt(scorer, without)


@njit(cache=True, nogil=True)
def _score(
    products: Floats32, nearest: Ints, indptr: Array, indices: Array, data: Array, ridge: Floats32, label_start: Array,
    labels: Array, counts: Array, dense: Floats, found: Floats32,
) -> None:  # fmt: skip
    """Add the scores of rows to ``found``; ``dense`` is zero, and is again afterwards."""
    k = nearest.shape[1]
    G, b = np.empty((k, k)), np.empty(k)
    for i in range(nearest.shape[0]):
        near = nearest[i]
        for s in range(k):
            row = near[s]
            b[s] = products[i, row]
            for t in range(indptr[row], indptr[row + 1]):
                dense[indices[t]] = data[t]
            for other in range(s + 1):
                total = 0.0
                for t in range(indptr[near[other]], indptr[near[other] + 1]):
                    total += dense[indices[t]] * data[t]
                G[s, other] = total
            G[s, s] += ridge[row]
            for t in range(indptr[row], indptr[row + 1]):
                dense[indices[t]] = 0.0
        _solve(G, b)
        for s in range(k):
            for t in range(label_start[near[s]], label_start[near[s] + 1]):
                found[i, labels[t]] += b[s] * counts[t]


@njit(cache=True, nogil=True)
def _solve(G: Floats, b: Floats) -> None:
    """Solve ``G x = b`` by Cholesky's factors, both in place; the lower triangle of G counts."""
    n = len(b)
    for j in range(n):
        for s in range(j):
            for i in range(j, n):
                G[i, j] -= G[i, s] * G[j, s]
        root = np.sqrt(G[j, j])
        for i in range(j, n):
            G[i, j] /= root
    for i in range(n):
        for s in range(i):
            b[i] -= G[i, s] * b[s]
        b[i] /= G[i, i]
    for i in range(n - 1, -1, -1):
        for s in range(i + 1, n):
            b[i] -= G[s, i] * b[s]
        b[i] /= G[i, i]
