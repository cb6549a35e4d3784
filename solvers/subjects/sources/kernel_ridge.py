"""Kernel ridge regression of all concepts over all rows."""

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


class KernelScorer:
    """``s(x) = A' (X x)``.

    Parameters
    ----------
    X : csr_matrix of float32, shape (n_rows, n_terms)
        Rows of length one.
    A : float16 array, shape (n_rows, n_learnt)
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
    A, scores = ridge.fit(task.terms, task.Y, task.regularization, task.fold, task.weights)
    scorer = KernelScorer(sp.csr_matrix(task.terms, dtype=np.float32), A.astype(np.float16))
    return Learnt(scorer, lambda _, rows: scores[rows])
