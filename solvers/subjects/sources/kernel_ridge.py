"""Kernel ridge regression of all concepts, over all rows or over some of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.labels import stored_arrays
from solvers.numerics.array_types import Array, Bools, Floats, Ints
from solvers.numerics.lazy_arrays import Parts, part_of
from solvers.subjects.sources import ridge
from solvers.subjects.sources.source import Floats32, Learnt, Task

_LANDMARKS_TAG = 1


class KernelScorer:
    """``s(x) = A' (X x)``.

    Parameters
    ----------
    X : csr_matrix of float32, shape (n_support, n_terms)
        Rows of length one.
    A : float16 array, shape (n_support, n_learnt)
    """

    kind: ClassVar[str] = "kernel"

    def __init__(self, X: sp.csr_matrix, A: NDArray[np.float16]) -> None:
        self.X, self.A = X, A

    @cached_property
    def _coefficients(self) -> Floats32:
        return np.asarray(self.A, np.float32)

    def scores(self, terms: sp.csr_matrix) -> Floats32:
        products = np.asarray((self.X @ terms.toarray().astype(np.float32).T).T)
        return products @ self._coefficients

    def parts(self, terms: sp.csr_matrix, concept: int) -> Floats:
        weights = self.X[:, terms.indices].T @ self._coefficients[:, concept]
        return np.asarray(weights.astype(np.float64) * terms.data)

    def merged(self, kept: Bools, of: Ints) -> KernelScorer:
        """The machine is linear in the labels of its rows: concepts that become one have the sum of coefficients."""
        shape = (int(kept.sum()), int(of.max(initial=-1)) + 1)
        into = sp.csr_matrix((np.ones(len(of), np.float32), (np.arange(len(of)), of)), shape=shape)
        return KernelScorer(self.X, np.asarray(self._coefficients[:, kept] @ into).astype(np.float16))

    def arrays(self) -> Mapping[str, Array]:
        support = {"data": self.X.data, "indices": self.X.indices, "indptr": self.X.indptr}
        return dict(Parts({"support": support})) | {"A": self.A}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], n_learnt: int, n_terms: int) -> KernelScorer:
        A = np.asarray(arrays["A"])
        X = stored_arrays.sparse(part_of(arrays, "support"), A.shape[0], n_terms)
        if A.shape[1] != n_learnt:
            raise ValueError("the array A is out of range")
        return cls(X, A)


def learn(task: Task) -> Learnt:
    """Both the machine and the scores of rows are in closed form."""
    terms, Y, fold, m = task.terms, task.Y, task.fold, task.n_landmarks
    if m is None:
        A, scores = ridge.fit(terms, Y, task.regularization, fold, task.weights)
        return Learnt(_scorer(terms, A), lambda _, rows: scores[rows])
    chosen = np.sort(np.random.default_rng([task.seed, _LANDMARKS_TAG]).permutation(terms.shape[0])[:m])
    machine = ridge.Landmarks(terms, Y, task.regularization, task.weights, chosen)

    def without(number: int, rows: Ints) -> Floats32:
        return machine.without(np.flatnonzero(fold == number), rows)

    return Learnt(_scorer(terms[chosen], machine.coefficients()), without)


def _scorer(support: sp.csr_matrix, coefficients: Floats32) -> KernelScorer:
    return KernelScorer(sp.csr_matrix(support, dtype=np.float32), coefficients.astype(np.float16))
