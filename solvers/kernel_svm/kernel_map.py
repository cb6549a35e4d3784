"""Examples as vectors whose inner products are a kernel's values: machines for vectors then train with the kernel.

A Cholesky factorisation that always takes the largest pivot, ``K = Phi Phi'``, ends where nothing of K is left. The
optimum over vectors in the space of the kernel is one over combinations of the examples (the representer theorem), and
so the same over vectors as long as the rows of Phi.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numba import njit

from solvers.core.machine import MachineParams
from solvers.core.problem import Problem, ProblemError
from solvers.kernel_svm.gram import Gram
from solvers.kernel_svm.kernel_function import Coef0, Degree, Gamma, Kernel, KernelFunction, scale_of
from solvers.kernel_svm.kernel_machine import check_gram
from solvers.kernel_svm.kernel_model import KernelModel
from solvers.numerics.array_types import Floats

LEFT = 1e-12


class KernelMapParams(MachineParams):
    """Which kernel a machine for vectors takes in place of the inner product."""

    kernel: Kernel = "linear"
    degree: Degree = 3
    gamma: Gamma = "scale"
    coef0: Coef0 = 0.0


class KernelMap:
    """The vectors on which a machine with these parameters trains, and the model of what they come to.

    The square of ``bias`` is added to every kernel value; with the linear kernel, where vectors are the examples
    themselves, the bias is one more feature, and not of this class.
    """

    def __init__(self, params: KernelMapParams) -> None:
        self._params = params
        self._mapped: tuple[sp.csr_matrix, sp.csr_matrix] | None = None

    @property
    def is_linear(self) -> bool:
        return self._params.kernel == "linear"

    def check(self, problem: Problem) -> None:
        """Raise ProblemError if a precomputed kernel is no Gram matrix."""
        if self._params.kernel == "precomputed":
            check_gram(problem)

    def mapped(self, problem: Problem) -> Problem:
        """The prepared problem over vectors in the space of the kernel, which are made once for a training."""
        if self.is_linear:
            return problem
        if self._mapped is None or self._mapped[0] is not problem.X:
            vectors = kernel_map(problem.X, self._function(problem), self._params.bias**2)
            self._mapped = problem.X, sp.csr_matrix(vectors)
        return replace(problem, X=self._mapped[1])

    def model(self, problem: Problem, classes: Sequence[str], coefficients: Floats) -> KernelModel:
        """The model of what each example of the prepared problem adds, shape (n_samples, n_classes)."""
        support = np.flatnonzero((coefficients != 0).any(axis=1))
        function, offset = self._function(problem), self._params.bias**2
        return KernelModel.of_training(classes, problem.X, function, support, coefficients[support], offset)

    def _function(self, problem: Problem) -> KernelFunction:
        """The kernel with its numbers, on the prepared problem."""
        params = self._params
        gamma = scale_of(problem.X) if params.gamma == "scale" and params.kernel in ("poly", "rbf") else params.gamma
        return KernelFunction(params.kernel, params.degree, 1.0 if gamma == "scale" else float(gamma), params.coef0)


def kernel_map(X: sp.csr_matrix, function: KernelFunction, offset: float = 0.0) -> Floats:
    """Phi, shape (n_samples, rank): its inner products are the kernel's values plus ``offset``.

    It takes n_samples^2 rank operations, half a minute for 3,000 examples, and has the same bits whatever
    the number of threads.

    Parameters
    ----------
    X : csr_matrix of float64, shape (n_samples, n_features)
        The kernel's values themselves, symmetric, if the kernel is ``precomputed``.

    Raises
    ------
    ProblemError
        The kernel is not positive semidefinite.
    """
    gram = Gram(X, function, 0, 1, offset)
    n, left = X.shape[0], gram.diagonal.copy()
    scale = float(left.max())
    parts = np.zeros((n, n))
    for rank in range(n):
        pivot = int(left.argmax())
        if left[pivot] <= LEFT * scale:
            break
        column = gram.store[gram.columns(np.array([pivot]))[0]].copy()
        _take_off(parts, rank, pivot, column)
        parts[rank] = column / np.sqrt(left[pivot])
        left -= parts[rank] ** 2
        left[pivot] = 0.0
    else:
        rank = n
    if left.min() < -1e-9 * scale:
        raise ProblemError(f"the kernel is not positive semidefinite: {left.min():.3g} is left of its diagonal")
    return np.ascontiguousarray(parts[:rank].T)


@njit(cache=True, nogil=True)
def _take_off(parts: Floats, rank: int, pivot: int, column: Floats) -> None:
    """column -= the part of K's column that the first rows of ``parts`` make."""
    for r in range(rank):
        share, part = parts[r, pivot], parts[r]
        for i in range(column.shape[0]):
            column[i] -= share * part[i]
