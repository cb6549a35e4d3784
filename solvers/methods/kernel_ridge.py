"""Kernel ridge regression at every node of a label tree, all nodes from one factorisation.

    minimise  1/2 sum_j |f_j|^2 + C/2 sum_i sum_j (s_ij - m_j - f_j(x_i))^2,   s_ij as for ``node_svm``

over functions f_j of the kernel's space, m_j being the weighted mean of the s_ij. With the representer theorem
``f_j(x) = sum_i a_ij K(x_i, x)`` and ``(K + I / C) a_j = s_j - m_j`` (Saunders, Gammerman and Vovk 1998), so that one
Cholesky factorisation solves all nodes. The solution is in closed form, up to rounding: there is no gap to measure.
Prediction goes down the tree as long as scores ``m_j + f_j(x)`` are positive.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
import scipy.linalg
from pydantic import Field

from solvers.core.base import Handles, Params, Solver, State, Step
from solvers.core.memory import refuse
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.hierarchical.subtree_model import SubtreeModel
from solvers.kernel_svm.kernel_function import KernelFunction, scale_of, square_lengths
from solvers.kernel_svm.kernel_model import KernelModel
from solvers.numerics.array_types import Floats


class KernelRidgeParams(Params):
    """Parameters of :class:`KernelRidge`."""

    C: float = Field(
        default=1.0, ge=1e-9, le=1e9, description="Weight of the squared errors against the norm: 1 / lambda."
    )
    kernel: Literal["linear", "rbf"] = Field(default="rbf", description="linear x.z; rbf exp(-gamma |x - z|^2).")
    gamma: Literal["scale"] | Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)] = Field(
        default="scale", description="Of rbf, positive; scale takes 1 / (n_features * variance of X)."
    )
    memory_mb: int | None = Field(
        default=None, ge=1, description="Refuse problems that need more megabytes; by default, more than there are."
    )


class KernelRidge(Solver[KernelRidgeParams]):
    """Kernel ridge regression a node."""

    name = "kernel_ridge"
    title = "Kernel ridge regression at every node of a label tree"
    formula = r"\tfrac12 \sum_j \|f_j\|^2 + \tfrac{C}{2} \sum_i \sum_j (s_{ij} - m_j - f_j(x_i))^2"
    paper = "Saunders, Gammerman and Vovk 1998"
    handles = Handles(flat=False, tree=True, multilabel=True, certified=False, closed_form=True)
    Params = KernelRidgeParams

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        """One step, as there is nothing to go on from.

        Raises
        ------
        TooLargeError
            The kernel matrix and the targets need more memory than ``memory_mb`` allows.
        """
        self.admit(problem)
        sides = problem.label_sets().astype(np.float64).toarray() * 2.0 - 1.0
        self.check_memory(problem.n_samples, problem.n_features, sides.shape[1])
        yield Step(1, np.nan, np.nan, np.nan, True, self._solved(problem, sides))

    def model(self, problem: Problem, state: State) -> Model:
        names, support = problem.tree.names, np.arange(problem.n_samples)
        coefficients, mean = np.array(state["coefficients"]), np.array(state["mean"])
        parts = KernelModel.of_training(names, problem.X, self._function(problem), support, coefficients)
        parts.intercept = mean
        return SubtreeModel(problem.tree, parts, "path")

    def check_memory(self, n_samples: int, n_features: int, n_classes: int) -> None:
        needed = self.bytes_needed(n_samples, n_features, n_classes)
        refuse(f"{self.name} with {n_samples:,} examples and {n_classes:,} nodes", needed, self.params.memory_mb)

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        return 16 * n_samples * (n_samples + n_classes)

    def _solved(self, problem: Problem, sides: Floats) -> State:
        """Of rows with weights w: ``(S K S + I / C) b = S (s - m)`` and ``a = S b``, S having their square roots."""
        X, roots = problem.X, np.sqrt(problem.weights)[:, None]
        mean = problem.weights @ sides / problem.weights.sum()
        products = np.asarray((X @ X.T).toarray())
        squares = square_lengths(X)
        A = self._function(problem).of_products(products, squares, squares)
        A *= roots
        A *= roots.T
        A[np.diag_indices_from(A)] += 1.0 / self.params.C
        factor = scipy.linalg.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        coefficients = scipy.linalg.cho_solve(factor, roots * (sides - mean), overwrite_b=True, check_finite=False)
        return {"coefficients": np.ascontiguousarray(roots * coefficients), "mean": mean}

    def _function(self, problem: Problem) -> KernelFunction:
        given = self.params.gamma
        return KernelFunction(self.params.kernel, gamma=scale_of(problem.X) if given == "scale" else float(given))
