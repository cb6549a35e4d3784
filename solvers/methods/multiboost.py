"""Multi-class boosting with weak learners that all classes share, by column generation and L-BFGS-B.

    minimise  sum_c |w_c|_1 + (C / p) sum_i sum_{q != y_i} exp(F_q(x_i) - F_{y_i}(x_i)),   F_c = sum_h w_ch h,

over weights w_ch >= 0 of all weak learners h, functions of an example to +1 or -1; p is the sum of the examples'
weights times (n_classes - 1). Shen and Hao 2011 with the exponential loss, as Lin et al. 2012 compare with it: a round
adds the one weak learner that violates the optimality conditions most for any class (Lin et al. 2012, equation 6), with
a weight for every class, and then solves for all weights afresh. Over all weak learners the optimum is that of
``multiboost_cw``, and so is the lower bound.
"""

from collections.abc import Mapping

import numpy as np
from pydantic import Field

from solvers.boosting.pair_boosting import PairBoosting, PairParams, PairRun
from solvers.boosting.rounds import Report, Task
from solvers.boosting.weak_learners.channels import Channels, Found
from solvers.numerics.array_types import Array, Floats, Ints, Ints8
from solvers.numerics.thread_pool import ThreadPool

CHUNK = 1024
LARGEST = 500.0
ITERATIONS, PROGRESS = 300, 1e-7


class MultiboostParams(PairParams):
    """Parameters of :class:`Multiboost`."""

    C: float = Field(default=1e4, ge=1e-12, le=1e30, description="Weight of the losses relative to the norm.")


class Multiboost(PairBoosting[MultiboostParams]):
    """One set of weak learners for all classes, all weights in one convex problem."""

    name = "multiboost"
    title = "MultiBoost with shared weak learners"
    paper = "Shen and Hao 2011; Lin, Shen, van den Hengel and Suter 2012"
    Params = MultiboostParams

    def run(self, task: Task) -> "_Run":
        return _Run(task, self.params, self.seed)


class _Run(PairRun):
    """Learners with their signs, and weights of shape (n_learners, n_classes)."""

    def __init__(self, task: Task, params: MultiboostParams, seed: int) -> None:
        super().__init__(task, params, seed)
        self.learners, self.signs = np.empty(0, np.int64), np.empty(0, np.int8)
        self.weights = np.empty((0, task.n_classes))
        self._responses = np.empty((0, len(task.y)), np.int8)
        self._measured: tuple[Channels, Found | None] | None = None

    def advance(self, thread_pool: ThreadPool) -> Report | None:
        channels, found = self._measure(thread_pool)
        found = self.sought(channels, found, thread_pool)
        if found is None:
            return None
        self.epoch += 1
        c = int(np.abs(found.values).argmax())
        violation = max(0.0, self.loss.rate * abs(float(found.values[c])) - 1.0)
        before = self.weights
        if violation > 0:
            self._admit(int(found.learners[c]), 1 if found.values[c] > 0 else -1)
        left = self._solve()
        self._measured = None
        channels, found = self._measure(thread_pool)
        bounds = self.certificate.update(self.loss, float(self.weights.sum()), channels, found)
        if found is not None:
            violation = self.violation_of(found)
        deltas = self.weights.copy()
        deltas[: len(before)] -= before
        rows, classes = np.nonzero(deltas)
        self.vote(self.learners[rows], classes, deltas[rows, classes] * self.signs[rows])
        learners = float(np.count_nonzero(self.weights.any(axis=1)))
        return self.ended(bounds, max(violation, left), len(rows), only=found is None, learners=learners)

    def _measure(self, thread_pool: ThreadPool) -> tuple[Channels, Found | None]:
        if self._measured is None:
            channels, learners = self.channels(thread_pool), self.task.learners
            self._measured = channels, learners.find(channels, thread_pool, []) if learners.exact else None
        return self._measured

    def _admit(self, learner: int, sign: int) -> None:
        if ((self.learners == learner) & (self.signs == sign)).any():
            return
        self.learners, self.signs = np.append(self.learners, learner), np.append(self.signs, np.int8(sign))
        self.weights = np.append(self.weights, np.zeros((1, self.weights.shape[1])), axis=0)
        self._add_responses(self.learners[-1:], self.signs[-1:])

    def _add_responses(self, learners: Ints, signs: Ints8) -> None:
        responses = self.task.learners.responses(learners) * signs[:, None]
        known = len(self._responses)
        wanted = known + len(responses)
        if self._responses.base is None or wanted > len(self._responses.base):
            room = np.empty((max(64, 2 * wanted), self._responses.shape[1]), np.int8)
            room[:known] = self._responses
            self._responses = room[:known]
        base = self._responses.base
        assert base is not None
        base[known:wanted] = responses
        self._responses = base[:wanted]

    def _solve(self) -> float:
        """Solve for all weights, from where they are; returns the largest violation left."""
        if len(self.weights) == 0:
            return 0.0
        shape = self.weights.shape
        # imported here: every process that knows the methods would wait for it
        from scipy.optimize import fmin_l_bfgs_b

        best, _, _ = fmin_l_bfgs_b(
            lambda w: self._objective(w.reshape(shape)), self.weights.ravel(), bounds=[(0.0, None)] * self.weights.size,
            pgtol=self.certificate.eps, maxiter=ITERATIONS, maxls=50,
            factr=PROGRESS * self.certificate.gap / np.finfo(np.float64).eps,
        )  # fmt: skip
        value, gradient = self._objective(best.reshape(shape))
        before, at_start = self._objective(self.weights)
        if value > before:
            best, gradient = self.weights.ravel(), at_start
        else:
            self.weights = best.reshape(shape)
            self.loss.F[:] = self.weights.T @ self._responses
            self.loss.refresh()
        return float(np.abs(np.where(best == 0, np.minimum(gradient, 0.0), gradient)).max())

    def _objective(self, weights: Floats) -> tuple[float, Floats]:
        loss, total = self.loss, 0.0
        gain = np.zeros_like(weights)
        for at in range(0, len(loss.y), CHUNK):
            H = self._responses[:, at : at + CHUNK].astype(np.float64)
            y, rows = loss.y[at : at + CHUNK], np.arange(H.shape[1])
            F = weights.T @ H
            mu = loss.omega[at : at + CHUNK] * np.exp(np.minimum(F - F[y, rows], LARGEST))
            mu[y, rows] = 0.0
            total += float(mu.sum())
            u = -mu
            u[y, rows] = mu.sum(axis=0)
            gain += H @ u.T
        return float(weights.sum()) + loss.rate * total, (1.0 - loss.rate * gain).ravel()

    def arrays(self) -> dict[str, Array]:
        own: dict[str, Array] = {"learners": self.learners, "signs": self.signs, "weights": self.weights}
        return own | self.loss.arrays() | self.certificate.arrays()

    def restore(self, arrays: Mapping[str, Array]) -> None:
        self.learners, self.signs, self.weights = (np.array(arrays[name]) for name in ("learners", "signs", "weights"))
        self._add_responses(self.learners, self.signs)
        self.loss.restore(arrays)
        self.certificate.restore(arrays)
