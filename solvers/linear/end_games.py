"""End games of the machines with relative margins: what raises the dual value where passes over the examples creep."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from solvers.core.memory import limit_bytes
from solvers.linear import active_set, augmented_lagrangian
from solvers.linear.driver.params import AscentParams, precision
from solvers.linear.driver.run import Run
from solvers.linear.layouts.dense_simd import DenseRows
from solvers.linear.visits import Task
from solvers.numerics import coefficients
from solvers.numerics.array_types import Floats
from solvers.numerics.row_products import gram

PRECISE_BELOW = 1e-4
# proximal steps: from which epoch on, and, of larger tolerances, at a gap above how many of them
PROXIMAL_FROM, FAR = 10, 10.0


@dataclass(frozen=True)
class ProximalSteps:
    """Proximal steps on all dual variables, where rows are dense and weights few."""

    largest: bool
    params: AscentParams

    def suits(self, n_samples: int, n_features: int, n_classes: int, *, dense: bool) -> bool:
        """Whether a problem of this size ends so."""
        most = limit_bytes(self.params.memory_mb)
        return dense and augmented_lagrangian.suits(n_samples, n_features, n_classes, most)

    def play(self, task: Task, run: Run) -> Floats | None:
        """Take steps, but in the first epochs or near the end; returns the weights at which they end."""
        tol = self.params.tol
        far = tol < PRECISE_BELOW or run.schedule.last_gap > FAR * tol
        if not far or run.counters.epoch < PROXIMAL_FROM:
            return None
        X = np.ascontiguousarray(task.rows.data[:, : len(run.layout.features)], np.float64)
        given = X, task.y, _bounds(task), coefficients.duals(run.duals, task.n_classes), tol
        alpha, W = augmented_lagrangian.ascend(*given, largest=self.largest)
        _enter(alpha, task, run, self.largest)
        return W


@dataclass(frozen=True)
class NewtonSteps:
    """Newton's steps on the dual variables that are free, where examples are few and the violations summed."""

    largest: bool
    params: AscentParams

    def suits(self, n_samples: int, n_features: int, n_classes: int, *, dense: bool) -> bool:
        """As above."""
        precise = self.params.tol < PRECISE_BELOW and precision(self.params) == np.float64
        return precise and not self.largest and n_samples * n_classes <= active_set.MOST_VARIABLES

    def play(self, task: Task, run: Run) -> None:
        """Take steps; the weights are those that the dual variables make."""
        rows = task.rows
        X = rows.data if isinstance(rows, DenseRows) else sp.csr_matrix((rows.data, rows.indices, rows.indptr))
        G = X @ X.T if isinstance(X, np.ndarray) else gram(X)
        alpha = coefficients.duals(run.duals, task.n_classes)
        _enter(active_set.ascend(G, task.y, _bounds(task), alpha, self.params.tol), task, run, self.largest)


def _bounds(task: Task) -> Floats:
    # empty rows have no dual variables: their loss is a constant
    return np.where(task.rows.squares > 0.0, task.bounds, 0.0)


def _enter(alpha: Floats, task: Task, run: Run, largest: bool) -> None:
    shares = sp.csr_matrix(alpha / task.bounds[:, None])
    run.duals = coefficients.of_shares(shares, task.y, task.bounds, largest)
