"""What machines for vectors share that take kernels through :func:`solvers.kernel_svm.kernel_map.kernel_map`."""

from dataclasses import replace
from typing import Annotated, Literal, TypeVar

import scipy.sparse as sp
from pydantic import Field

from solvers.core.machine import Machine, MachineParams
from solvers.core.problem import Problem
from solvers.kernel_svm.kernel_function import KernelFunction, KernelName, scale_of
from solvers.kernel_svm.kernel_machine import check_gram
from solvers.kernel_svm.kernel_map import kernel_map


class MappedParams(MachineParams):
    """Which kernel a machine takes in place of the inner product."""

    kernel: KernelName = Field(
        default="linear",
        description="linear x.z; poly (gamma x.z + coef0)^degree; rbf exp(-gamma |x - z|^2); precomputed: X is the "
        "Gram matrix of the training examples, and later rows hold kernel values against them.",
    )
    degree: int = Field(default=3, ge=1, le=100, description="Degree of the polynomial kernel.")
    gamma: Literal["scale"] | Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default="scale", description="Of poly and rbf; scale takes 1 / (n_features * variance of X)."
    )
    coef0: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="Constant of the polynomial kernel.")


K = TypeVar("K", bound=MappedParams)


class MappedMachine(Machine[K]):
    """A machine that, with a kernel, trains on vectors whose inner products are the kernel's values.

    The square of ``bias`` is then added to every kernel value; with the linear kernel the bias is one more feature.
    """

    _mapped: tuple[sp.csr_matrix, sp.csr_matrix] | None = None

    def prepared(self, problem: Problem) -> Problem:
        problem = super().prepared(problem)
        if self.params.kernel == "precomputed":
            check_gram(problem)
        return problem

    @property
    def appends_constant(self) -> bool:
        """Whether a bias is one more feature."""
        return self.params.kernel == "linear"

    def mapped(self, problem: Problem) -> Problem:
        """The prepared problem over vectors in the space of the kernel, which are made once for a training."""
        if self.params.kernel == "linear":
            return problem
        if self._mapped is None or self._mapped[0] is not problem.X:
            vectors = kernel_map(problem.X, self.kernel_function(problem), self.params.bias**2)
            self._mapped = problem.X, sp.csr_matrix(vectors)
        return replace(problem, X=self._mapped[1])

    def kernel_function(self, problem: Problem) -> KernelFunction:
        """The kernel with its numbers, on the prepared problem."""
        params = self.params
        gamma = scale_of(problem.X) if params.gamma == "scale" and params.kernel in ("poly", "rbf") else params.gamma
        return KernelFunction(params.kernel, params.degree, 1.0 if gamma == "scale" else float(gamma), params.coef0)
