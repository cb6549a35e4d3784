"""Softmax regression (multinomial logistic regression), by exact block steps on the dual.

    minimise  1/2 sum_c |w_c|^2 + C sum_i (log sum_c exp(w_c' x_i) - w_{y_i}' x_i)

Its dual variables are a distribution p_i over the classes for every example, and ``w_c = sum_i C_i ([y_i = c] - p_ic)
x_i``; the dual value is ``sum_i C_i H(p_i) - 1/2 |W|^2`` with the entropy H. Every visit takes an example's whole
distribution to the exact maximum (Keerthi et al. 2008, Algorithm 3.1, with the whole example as the block;
Shalev-Shwartz and Zhang 2013). The softmax of a model's scores is the distribution that it predicts.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from solvers.core.base import Handles, State, Step
from solvers.core.certain_answers import Reach, joint_reach
from solvers.core.certified_ascent import Certificate, ascend, bounded, is_due
from solvers.core.dual_variables import filled
from solvers.core.linear_model import LinearModel
from solvers.core.machine import Machine
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.linear.driver.params import AscentParams, precision
from solvers.linear.steps import softmax
from solvers.numerics.array_types import Bools, Floats, Ints, Ints32
from solvers.numerics.orders import shuffled
from solvers.numerics.rows import Rows, arrange, features_by_frequency, square_norm, sure_leads, weights

SLICE_PRODUCTS = 1 << 27
# an exponential and its like, in multiply-adds
CLASS_COST = 64
# a certificate is taken where the gap that the pass has reported is at most so many times the tolerance, as its visits
# leave far less than they met
CERTIFY_BELOW = 10.0


class _Task(NamedTuple):
    """What stays fixed while the method trains."""

    rows: Rows
    features: Ints
    y: Ints32
    bounds: Floats
    examples: Ints32
    constant: float


class Softmax(Machine[AscentParams]):
    """Multinomial logistic regression: the scores are logarithms of probabilities, up to a number an example."""

    name = "softmax"
    title = "Softmax regression"
    formula = r"\tfrac12 \sum_c \|w_c\|^2 + C \sum_i \Big( \log \sum_c \exp(w_c^\top x_i) - w_{y_i}^\top x_i \Big)"
    paper = "Keerthi et al. 2008; Shalev-Shwartz and Zhang 2013"
    handles = Handles(flat=True, probabilities=True)
    Params = AscentParams
    bounds_answers = True

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        task = self._task(problem, precision(self.params))
        return ascend(_Training(self, problem, task, state), self.params.tol)

    def _task(self, problem: Problem, dtype: np.dtype[Any]) -> _Task:
        rows, features = arrange(problem.X, dtype)
        bounds = self.params.C * problem.weights
        filled = rows.squares > 0
        constant = float(bounds[~filled].sum()) * float(np.log(problem.n_classes))
        return _Task(rows, features, problem.y, bounds, np.flatnonzero(filled).astype(np.int32), constant)

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        """The same distributions, at which W is in proportion to C."""
        fresh = {name: np.array(0) for name in ("epoch", "certified", "gap", "losses", "violation")}
        n_filled = int(np.count_nonzero(filled(problem)))
        return {"W": ratio * state["W"], "P": np.array(state["P"]), "position": np.array(n_filled)} | fresh

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        return float("nan")  # no dual variable is ever zero

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        return n_classes * (8 * n_samples + precision(self.params).itemsize * n_features)

    def fitted(self, problem: Problem, state: State) -> LinearModel:
        features = features_by_frequency(problem.X)
        ascending = np.argsort(features)
        W = np.ascontiguousarray(state["W"][ascending][:, : problem.n_classes])
        return LinearModel(problem.classes, problem.n_features, features[ascending], W)

    def reach(self, problem: Problem, state: State, model: Model, primal: float, dual: float) -> Reach:
        return joint_reach(model, primal, dual, self.multiple(problem, state), self.params.bias)

    def multiple(self, problem: Problem, state: State) -> float | None:
        """Every certificate makes W of the dual variables."""
        return 1.0


class _Training:
    """The ascent on one problem."""

    def __init__(self, method: Softmax, problem: Problem, task: _Task, state: State | None) -> None:
        n, k = problem.n_samples, problem.n_classes
        self.params, self.seed, self.task = method.params, method.seed, task
        self.W, self.P = weights(len(task.features), k, precision(method.params)), np.zeros((n, k))
        self.counts = {"epoch": 0, "position": len(task.examples), "certified": 0}
        self.reported = {"gap": 0.0, "losses": 0.0, "violation": 0.0}
        if state is None:
            self.P[np.arange(n), problem.y] = 1.0
            self.P[task.rows.squares == 0] = 1.0 / k  # at their optimum: no weight changes the scores of an empty row
        else:
            self.W[:], self.P[:] = state["W"], state["P"]
            self.counts = {name: int(state[name]) for name in self.counts}
            self.reported = {name: float(state[name]) for name in self.reported}
        self.work = np.cumsum(CLASS_COST + np.diff(task.rows.indptr)[task.examples]) * k

    @property
    def epoch(self) -> int:
        return self.counts["epoch"]

    @property
    def max_epochs(self) -> int:
        return self.params.max_epochs

    @property
    def epoch_over(self) -> bool:
        return self.counts["position"] == len(self.task.examples)

    def begin_epoch(self) -> None:
        self.counts |= {"epoch": self.epoch + 1, "position": 0}
        self.reported = dict.fromkeys(self.reported, 0.0)

    def advance(self) -> None:
        task, begin, reported = self.task, self.counts["position"], self.reported
        order = shuffled(task.examples, self.seed, self.epoch)
        done = self.work[begin - 1] if begin else 0
        stop = min(len(order), max(begin + 1, int(np.searchsorted(self.work, done + SLICE_PRODUCTS))))
        visited = softmax.visit(task.rows, task.y, task.bounds, order[begin:stop], self.W, self.P)
        reported["gap"] += visited[0]
        reported["losses"] += visited[1]
        reported["violation"] = max(reported["violation"], visited[2])
        self.counts["position"] = stop

    def certifies(self) -> bool:
        value = self.reported["losses"] + self.task.constant + 0.5 * square_norm(self.W, self.P.shape[1])
        promising = self.reported["gap"] <= CERTIFY_BELOW * self.params.tol * value
        return promising or is_due(self.epoch, self.max_epochs, self.counts["certified"])

    def certify(self) -> Certificate:
        """Primal and dual value, W made afresh; and the examples whose own class leads for sure."""
        self.counts["certified"] += 1
        task, W, P = self.task, self.W, self.P
        softmax.rebuild(task.rows, task.y, task.bounds, W, P)
        rows, leads = task.rows, np.empty(len(task.y))
        losses, entropies = softmax.certify(rows, task.y, task.bounds, W, P, leads)
        half = 0.5 * square_norm(W, P.shape[1])
        right = sure_leads(leads, np.diff(rows.indptr), rows.squares, 2.0 * half, W.dtype)
        primal = half + losses
        return Certificate(primal, bounded(primal, entropies - half, W.dtype), right)

    def learn(self, primal: float, gap: float) -> None:
        """Nothing: no example is ever left out."""

    def step(self, primal: float, dual: float, *, converged: bool, right: Bools | None = None) -> Step:
        counted = {name: np.array(value) for name, value in (self.counts | self.reported).items()}
        arrays = {"W": self.W, "P": self.P} | counted
        return Step(self.epoch, primal, dual, self.reported["violation"], converged, arrays, right=right)
