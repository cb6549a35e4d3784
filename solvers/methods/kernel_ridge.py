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
from pydantic import Field

from solvers.core.base import Handles, Params, Solver, State, Step
from solvers.core.memory import refuse
from solvers.core.model import Model
from solvers.core.problem import Problem, ProblemError
from solvers.hierarchical.set_machine import nodes_with_rows
from solvers.hierarchical.subtree_model import SubtreeModel
from solvers.kernel_svm.kernel_function import KernelFunction, scale_of, square_lengths
from solvers.kernel_svm.kernel_model import KernelModel
from solvers.numerics import cholesky
from solvers.numerics.array_types import Floats
from solvers.numerics.row_products import gram

# rows whose kernel values are made at once, and products after which a solution is asked whether to stop
_ROWS, _PRODUCTS = 512, 1 << 34


class KernelRidgeParams(Params):
    """Parameters of :class:`KernelRidge`."""

    C: float = Field(
        default=1.0, ge=1e-9, le=1e9, description="Weight of the squared errors relative to the norm: 1 / lambda."
    )
    kernel: Literal["linear", "rbf"] = Field(default="rbf", description="linear x.z; rbf exp(-gamma |x - z|^2).")
    gamma: Literal["scale"] | Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)] = Field(
        default="scale", description="Positive parameter of rbf; scale uses 1 / (n_features * variance of X)."
    )
    memory_mb: int | None = Field(
        default=None,
        ge=1,
        description="Refuse problems that need more than this many megabytes; the default is the machine's memory.",
    )


class KernelRidge(Solver[KernelRidgeParams]):
    """Kernel ridge regression a node."""

    name = "kernel_ridge"
    title = "Kernel ridge regression at every node of a label tree"
    formula = r"\tfrac12 \sum_j \|f_j\|^2 + \tfrac{C}{2} \sum_i \sum_j (s_{ij} - m_j - f_j(x_i))^2"
    paper = "Saunders, Gammerman and Vovk 1998"
    handles = Handles(flat=False, tree=True, multilabel=True, graph=True, certified=False, closed_form=True)
    Params = KernelRidgeParams

    @property
    def feature_range(self) -> tuple[float, float]:
        return 1e-60, 1e60

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        """One step with the solution; before it one without a state after each ten seconds or so of work.

        Raises
        ------
        TooLargeError
            The kernel matrix and the targets need more memory than ``memory_mb`` allows.
        """
        self.admit(problem)
        self.check_features(problem)
        labels = problem.label_sets().tocsc()
        (n, k), unmeasured = labels.shape, (np.nan,) * 3
        self.check_memory(n, problem.n_features, k)
        roots = np.sqrt(problem.weights)[:, None]
        mean = 2.0 * np.asarray(problem.weights @ labels) / problem.weights.sum() - 1.0
        factor = self._factor(problem, roots)
        coefficients, at_once = np.empty((n, k)), max(64, _PRODUCTS // (n * n))
        for begin in range(0, k, at_once):
            if begin:
                yield Step(0, *unmeasured, False, {})
            nodes = slice(begin, begin + at_once)
            targets = roots * (2.0 * labels[:, nodes].toarray() - 1.0 - mean[nodes])
            targets = np.asfortranarray(targets)
            cholesky.solve(factor, targets)
            coefficients[:, nodes] = roots * targets
        yield Step(1, *unmeasured, True, {"coefficients": coefficients, "mean": mean})

    def model(self, problem: Problem, state: State) -> Model:
        names, support = problem.tree.names, np.arange(problem.n_samples)
        coefficients, mean = np.array(state["coefficients"]), np.array(state["mean"])
        parts = KernelModel.of_training(names, problem.X, self._function(problem), support, coefficients)
        parts.intercept = mean
        return SubtreeModel(problem.tree, parts, "path", nodes_with_rows(problem))

    def check_memory(self, n_samples: int, n_features: int, n_classes: int) -> None:
        needed = self.bytes_needed(n_samples, n_features, n_classes)
        refuse(f"{self.name} with {n_samples:,} examples and {n_classes:,} nodes", needed, self.params.memory_mb)

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        # the matrix, and the coefficients once more as the model has them
        return 8 * n_samples * (n_samples + 2 * n_classes)

    def _factor(self, problem: Problem, roots: Floats) -> Floats:
        """Of ``S K S + I / C``, S having the square roots of the weights w.

        ``(S K S + I / C) b = S (s - m)`` and ``a = S b``.
        """
        squares, function = square_lengths(problem.X), self._function(problem)
        A = gram(problem.X)
        for begin in range(0, len(A), _ROWS):
            rows = slice(begin, begin + _ROWS)
            A[rows] = function.of_products(A[rows], squares[rows], squares)
            A[rows] *= roots[rows] * roots.T
        A[np.diag_indices_from(A)] += 1.0 / self.params.C
        # symmetric: the transpose is in the order that LAPACK overwrites
        factor = A.T
        try:
            cholesky.factorize(factor)
        except cholesky.NotPositiveDefiniteError:
            raise ProblemError(
                "1 / C is too small compared with the kernel's values, so there is no solution: "
                "scale the columns, or lower C"
            ) from None
        return factor

    def _function(self, problem: Problem) -> KernelFunction:
        given = self.params.gamma
        return KernelFunction(self.params.kernel, gamma=scale_of(problem.X) if given == "scale" else float(given))
