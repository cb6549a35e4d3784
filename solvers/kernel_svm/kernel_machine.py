"""Dual block ascent on a Gram matrix: the driver that the kernel machines share.

It minimises ``P(w) = 1/2 sum_c |w_c|^2 + sum_i C_i loss(f(x_i), y_i)``, ``f_c(x) = <w_c, phi(x)>``, over the dual
variables of one example at a time (Crammer and Singer 2002, Figure 4). The scores F of all examples are at hand, so
that one check of all of them gives the primal value, the dual value and every example's violation of the optimality
conditions. The worst fifth of the examples are listed and solved in working sets of 64, worst first, with exact block
steps inside a set, and F is updated once a set. One example a check, the greediest choice, needs a quarter of the block
steps, but each of them then costs a check.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from pydantic import Field

from solvers.core.base import State, Step, imprecise, relative_gap
from solvers.core.dual_variables import best_multiple, share, snapped_to_bounds
from solvers.core.machine import Machine, SingleLabelParams
from solvers.core.problem import Problem, ProblemError
from solvers.kernel_svm.gram import Gram
from solvers.kernel_svm.kernel_function import Coef0, Degree, Gamma, Kernel, KernelFunction, scale_of, square_lengths
from solvers.kernel_svm.kernel_model import KernelModel
from solvers.kernel_svm.working_set import BlockRule, Training
from solvers.kernel_svm.working_set_loop import LOOP, MEASURED, MISSING, LoopSettings, run_working_sets
from solvers.metrics import bounds
from solvers.numerics.array_types import Floats, Ints32

WORKING_SET = 64
LISTED_SHARE = 5
SLICE_PRODUCTS = 1 << 30
ENOUGH = 0.3
STEPS_PER_EXAMPLE = 10
# up to so many examples all columns of the Gram matrix are computed at once, if they may be kept
WHOLE = 512
# a certificate is reported after so many block steps at least: it costs what some dozens of them do
REPORT_EVERY = 1000
# of the loop, what a state keeps
COUNTERS = ("steps", "reported", "place", "length")


class KernelParams(SingleLabelParams):
    """What the kernel machines have in common."""

    tol: float = Field(default=1e-3, gt=0, lt=1, description="Stop at this relative duality gap.")
    max_epochs: int = Field(
        default=10_000,
        ge=1,
        le=10**9,
        description="Stop after this many times n_samples block steps even if training has not converged.",
    )
    kernel: Kernel = "rbf"
    degree: Degree = 3
    gamma: Gamma = "scale"
    coef0: Coef0 = 0.0
    cache_mb: int = Field(
        default=512,
        ge=1,
        description="Size of the cache of kernel columns in megabytes; it always holds at least one working set "
        "of 64 columns.",
    )


class KernelMachine(Machine[KernelParams]):
    """A kernel machine by dual block ascent; a method says which by its block rule.

    ``bias`` is one more coordinate in the space of the kernel: its square is added to every kernel value, those of a
    precomputed matrix included. A positive semidefinite matrix stays one, so that holds for every kernel alike.
    """

    Params: ClassVar[type[KernelParams]] = KernelParams

    @property
    def feature_range(self) -> tuple[float, float]:
        # kernel values and dual variables are kept in float64
        return 1e-60, 1e60

    @property
    def appends_constant(self) -> bool:
        return False

    @abstractmethod
    def block_rule(self, n_classes: int) -> BlockRule:
        """The three numbers in which the methods differ."""

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        params, n, k = self.params, problem.n_samples, problem.n_classes
        gram = Gram(problem.X, self._function(problem), params.cache_mb << 20, WORKING_SET, params.bias**2)
        rule, training = self.block_rule(k), Training(problem.y, params.C * problem.weights, gram.diagonal)
        loop = np.zeros(1, LOOP)[0]
        if state is None:
            F, alpha, listed = np.zeros((k, n)), np.zeros((k, n)), np.empty(0, np.int64)
        else:
            F, alpha, listed = (np.array(state[name]) for name in ("F", "alpha", "listed"))
            for name in COUNTERS:
                loop[name] = state[name]
        listed = np.resize(listed, min(n, max(WORKING_SET, n // LISTED_SHARE)))
        violations, settings = np.zeros(n), self._settings(problem)
        if loop["steps"] >= settings.limit:
            return
        if n <= min(WHOLE, len(gram.store)):
            gram.columns(np.arange(n))

        while True:
            why = run_working_sets(rule, training, settings, gram.cached, F, alpha, listed, violations, loop)
            if why == MISSING:
                gram.columns(listed[loop["place"] : loop["length"]][:WORKING_SET])
                continue
            measured = why == MEASURED
            primal, dual = (
                _certificate(loop["losses"], loop["total"], loop["products"]) if measured else (np.nan, np.nan)
            )
            converged = measured and relative_gap(primal, dual) <= params.tol
            violation = float(violations.max()) if measured else np.nan
            counters = {name: np.array(loop[name]) for name in COUNTERS}
            arrays = {"F": F, "alpha": alpha, "listed": listed[: loop["length"]]} | counters
            epoch = max(1, -(-int(loop["steps"]) // n))
            yield Step(epoch, primal, dual, violation, converged, arrays)
            if measured and (converged or loop["steps"] >= settings.limit or loop["length"] == 0):
                return

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        rule = self.block_rule(problem.n_classes)
        coefficients = _coefficients(rule, problem.y, state["alpha"])
        square = float(np.vdot(coefficients, state["F"]))
        factor = best_multiple(float(state["alpha"].sum()), square, ratio)
        alpha = factor * state["alpha"]
        if not rule.largest:
            alpha = snapped_to_bounds(alpha, self.params.C * problem.weights)
        counters = {name: np.zeros((), np.int64) for name in COUNTERS}
        return {"F": factor * state["F"], "alpha": alpha, "listed": np.empty(0, np.int64)} | counters

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        columns = min(n_samples, max(WORKING_SET, (self.params.cache_mb << 20) // (8 * n_samples)))
        return 8 * n_samples * (2 * n_classes + columns)

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        return share(np.count_nonzero(state["alpha"]), problem.n_samples * (problem.n_classes - 1))

    def fitted(self, problem: Problem, state: State) -> KernelModel:
        function, offset = self._function(problem), self.params.bias**2
        given = function.name == "precomputed"
        diagonal = (problem.X.diagonal() if given else function.self_values(square_lengths(problem.X))) + offset
        coefficients = _coefficients(self.block_rule(problem.n_classes), problem.y, state["alpha"])
        support = np.flatnonzero((coefficients != 0).any(axis=0) & (diagonal > 0))
        model = KernelModel.of_training(
            problem.classes, problem.X, function, support, np.ascontiguousarray(coefficients[:, support].T), offset
        )
        squares = (coefficients * state["F"]).sum(axis=1)
        model.report = bounds.report(state["F"].T, problem.y, squares, float(np.sqrt(diagonal.max())), len(support))
        return model

    def _settings(self, problem: Problem) -> LoopSettings:
        n, k = problem.n_samples, problem.n_classes
        return LoopSettings(
            size=WORKING_SET,
            share=LISTED_SHARE,
            enough=ENOUGH,
            budget=STEPS_PER_EXAMPLE,
            limit=self.params.max_epochs * n,
            every=max(n, REPORT_EVERY),
            tol=self.params.tol,
            cost=WORKING_SET * (problem.X.nnz + n * min(k, 8)) + k * n // LISTED_SHARE,
            slice=SLICE_PRODUCTS,
        )

    def _function(self, problem: Problem) -> KernelFunction:
        params = self.params
        if params.kernel == "precomputed":
            check_gram(problem)
        given = params.gamma if params.kernel in ("poly", "rbf") else 1.0
        gamma = scale_of(problem.X) if given == "scale" else float(given)
        return KernelFunction(params.kernel, params.degree, gamma, params.coef0)


def _certificate(losses: float, total: float, products: float) -> tuple[float, float]:
    """Primal and dual value from the sums of a check of the conditions; ``|w|^2 = sum alpha - alpha' g``."""
    square = total - products
    if square < -1e-9 * total:
        raise ProblemError(f"the kernel is not positive semidefinite: the squared norm of w is {square:.3g}")
    primal, dual = 0.5 * square + losses, total - 0.5 * square
    if dual - primal > 1e-9 * abs(primal):
        raise ProblemError(imprecise("scores", primal, dual))
    return primal, min(dual, primal)


def _coefficients(rule: BlockRule, y: Ints32, alpha: Floats) -> Floats:
    """``w_c = sum_i v_ci phi(x_i)``: v, shape (n_classes, n_samples); Crammer and Singer 2002, equation 26."""
    v, sums = -alpha, alpha.sum(axis=0)
    if rule.own:
        v[y, np.arange(len(y))] = sums
    else:
        v += sums / len(alpha)
    return v


def check_gram(problem: Problem) -> None:
    """Raise ProblemError if X is no Gram matrix: not square, not symmetric, or with a negative diagonal."""
    K, n = problem.X, problem.n_samples
    if K.shape != (n, n):
        raise ProblemError(f"a precomputed kernel must have one row and one column per example; X has shape {K.shape}")
    if K.diagonal().min() < 0:
        raise ProblemError(f"the diagonal of a precomputed kernel must be at least 0; it has {K.diagonal().min():.3g}")
    largest = float(abs(K).max())
    if float(abs(K - K.T).max()) > 1e-10 * largest:
        raise ProblemError("a precomputed kernel must be symmetric")
