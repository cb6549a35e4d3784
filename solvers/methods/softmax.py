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

from solvers.core.base import Handles, State, Step, relative_gap
from solvers.core.dual_variables import filled
from solvers.core.linear_model import LinearModel
from solvers.core.machine import Machine
from solvers.core.problem import Problem
from solvers.linear.driver.ascent import bounded
from solvers.linear.driver.params import AscentParams, precision
from solvers.linear.steps import softmax
from solvers.numerics.array_types import Array, Bools, Floats, Ints, Ints32
from solvers.numerics.orders import shuffled
from solvers.numerics.rows import Rows, arrange, square_norm, sure_leads, weights

SLICE_PRODUCTS = 1 << 27
# an exponential and its like, in multiply-adds
CLASS_COST = 64
# a certificate is taken where the gap that the pass has reported is at most so many times the tolerance, as its visits
# leave far less than they met; and in any case for one epoch in ten
CERTIFY_BELOW, CERTIFY_SHARE = 10.0, 0.1


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

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        params, dtype = self.params, precision(self.params)
        n, k = problem.n_samples, problem.n_classes
        task = self._task(problem, dtype)
        W, P = weights(len(task.features), k, dtype), np.zeros((n, k))
        counts = {"epoch": 0, "position": len(task.examples), "certified": 0}
        reported = {"gap": 0.0, "losses": 0.0, "violation": 0.0}
        if state is None:
            P[np.arange(n), problem.y] = 1.0
            P[task.rows.squares == 0] = 1.0 / k  # at their optimum: no weight changes the scores of an empty row
        else:
            W[:], P[:] = state["W"], state["P"]
            counts = {name: int(state[name]) for name in counts}
            reported = {name: float(state[name]) for name in reported}
        work = np.cumsum(CLASS_COST + np.diff(task.rows.indptr)[task.examples]) * k

        def step(primal: float, dual: float, converged: bool, right: Bools | None = None) -> Step:
            arrays = {"W": W, "P": P} | {name: np.array(value) for name, value in (counts | reported).items()}
            return Step(counts["epoch"], primal, dual, reported["violation"], converged, arrays, right=right)

        while True:
            if counts["position"] == len(task.examples):
                if counts["epoch"] == params.max_epochs:
                    return
                counts |= {"epoch": counts["epoch"] + 1, "position": 0}
                reported = dict.fromkeys(reported, 0.0)
            order = shuffled(task.examples, self.seed, counts["epoch"])
            begin = counts["position"]
            done = work[begin - 1] if begin else 0
            stop = min(len(order), max(begin + 1, int(np.searchsorted(work, done + SLICE_PRODUCTS))))
            gap, losses, violation = softmax.visit(task.rows, task.y, task.bounds, order[begin:stop], W, P)
            reported["gap"] += gap
            reported["losses"] += losses
            reported["violation"] = max(reported["violation"], violation)
            counts["position"] = stop
            if stop < len(order):
                yield step(np.nan, np.nan, False)
                continue
            value = reported["losses"] + task.constant + 0.5 * square_norm(W, k)
            promising = reported["gap"] <= CERTIFY_BELOW * params.tol * value
            due = CERTIFY_SHARE * counts["epoch"] >= 1 + counts["certified"] or counts["epoch"] == params.max_epochs
            if not (promising or due):
                yield step(np.nan, np.nan, False)
                continue
            counts["certified"] += 1
            primal, dual, right = self._certificate(task, W, P)
            converged = relative_gap(primal, dual) <= params.tol
            yield step(primal, dual, converged, right)
            if converged:
                return

    def _certificate(self, task: _Task, W: Array, P: Floats) -> tuple[float, float, Bools]:
        """Primal and dual value, W made afresh; and the examples whose own class leads for sure."""
        softmax.rebuild(task.rows, task.y, task.bounds, W, P)
        rows, leads = task.rows, np.empty(len(task.y))
        losses, entropies = softmax.certify(rows, task.y, task.bounds, W, P, leads)
        half = 0.5 * square_norm(W, P.shape[1])
        right = sure_leads(leads, np.diff(rows.indptr), rows.squares, 2.0 * half, W.dtype)
        primal = half + losses
        return primal, bounded(primal, entropies - half, W.dtype), right

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
        _, features = arrange(problem.X, precision(self.params))
        ascending = np.argsort(features)
        W = np.ascontiguousarray(state["W"][ascending][:, : problem.n_classes])
        return LinearModel(problem.classes, problem.n_features, features[ascending], W)
