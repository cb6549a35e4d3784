"""AdaBoost on outputs that are right or wrong each by themselves: what AdaBoost.MH and AdaBoost.MO share.

    sum_i omega_i sum_l exp(-M[y_i, l] f_l(x_i)),   f_l = sum_h w_lh h,

over the outputs l of a code M, +1 or -1 for each class. A round takes a step for every output, along a weak learner of
its own or one that all share.
"""

from collections.abc import Mapping
from functools import partial
from typing import Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from solvers.boosting import adaboost_steps
from solvers.boosting.adaboost_steps import LossPlateau, half_log_odds
from solvers.boosting.params import BoostingParams
from solvers.boosting.rounds import Report, Run, Task
from solvers.boosting.simd import LANES
from solvers.boosting.weak_learners.channels import Channels
from solvers.boosting.weak_learners.votes import decoded
from solvers.numerics.array_types import Array, Floats, Ints, Ints8
from solvers.numerics.thread_pool import ThreadPool

REFRESH = 100
HALF = LANES // 2
PIECE = 1 << 18
CHUNK_BYTES = 16 << 20

Sharing = Literal["own", "sign", "real"]


class OutputParams(BoostingParams):
    """What methods on separate outputs have in common."""

    tol: float = Field(
        default=1e-5,
        gt=0,
        lt=1,
        description="Stop when ten rounds in a row have each lowered the loss by less than this share.",
    )
    sharing: Sharing = Field(
        default="own",
        description="own: one weak learner per output; sign: one stump for all outputs, with a sign for each; "
        "real: one stump for all outputs, with two votes for each.",
    )

    @field_validator("sharing")
    @classmethod
    def _only_stumps_are_shared(cls, value: Sharing, info: ValidationInfo) -> Sharing:
        if value != "own" and (info.data.get("depth") != 1 or info.data.get("weak_learner") != "tree"):
            raise ValueError("shared stumps need depth 1 and weak_learner tree")
        return value


def estimate_bytes(n_samples: int, n_outputs: int) -> int:
    """What outputs, losses and whole-number weights of n_samples rows take, beside the binned features."""
    return n_samples * (17 * n_outputs + 4 * 16 * -(-2 * n_outputs // 16) + 64)


class OutputRun(Run):
    """Outputs f and their losses w, shape (n_outputs, n).

    Parameters
    ----------
    code : int8 array, shape (n_classes, n_outputs)
        M; 0 leaves the examples of a class out of an output.
    decodes : bool
        Whether the code decodes the outputs, or these are the classes' scores.
    """

    def __init__(self, task: Task, code: Ints8, decodes: bool, params: OutputParams, seed: int) -> None:
        super().__init__(task, code.shape[1], params, seed)
        self.params: OutputParams = params
        self.code = code if decodes else None
        self.Y = np.ascontiguousarray(code.T[:, task.y])
        counted = task.omega * np.count_nonzero(code, axis=1)[task.y]
        self.omega = task.omega / counted.sum()
        self.f, self.w = np.zeros(self.Y.shape), np.empty(self.Y.shape)
        self.plateau = LossPlateau(params.tol)
        adaboost_steps.restart(self.omega, self.Y, self.f, self.w)

    def classify(self, scores: Floats) -> Ints:
        if self.code is None:
            return super().classify(scores)
        n, size = scores.shape[1], max(1, CHUNK_BYTES // (8 * len(self.code)))
        parts = [decoded(scores[:, at : at + size].T, self.code).argmax(axis=1) for at in range(0, n, size)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def advance(self, thread_pool: ThreadPool) -> Report | None:
        changes = {"own": self._own, "sign": self._shared, "real": self._shared}[self.params.sharing](thread_pool)
        if changes is None:
            return None
        self.epoch += 1
        self.vote(*changes)
        if self.epoch % REFRESH == 0:
            adaboost_steps.restart(self.omega, self.Y, self.f, self.w)
        primal = float(self.w.sum())
        if self.code is None:
            wrong = adaboost_steps.count_wrong(self.f, self.task.y)
        else:
            wrong = int(np.count_nonzero(self.classify(self.f) != self.task.y))
        return Report(primal, np.nan, np.nan, wrong, self.plateau.reached(primal))

    def _own(self, thread_pool: ThreadPool) -> tuple[Array, Array, Floats] | None:
        """A step for every output along a learner of its own; learners, outputs and weights."""
        m = len(self.f)
        found = self.find(
            self._channels(thread_pool, np.arange(m), np.zeros(m, np.int8), self.w.sum(axis=1)), thread_pool
        )
        if found is None:
            return None
        alpha, total = np.zeros(m), float(self.w.sum())
        for l, response in enumerate(self.task.learners.responses(found.learners)):
            pp, pm, mp, mm = adaboost_steps.split_mass(response, self.Y[l], self.w[l])
            alpha[l] = half_log_odds(pp + mm, pm + mp, total)
            adaboost_steps.move(response, alpha[l], -alpha[l], self.Y[l], self.f[l], self.w[l])
        moved = np.flatnonzero(alpha)
        return found.learners[moved], moved, alpha[moved]

    def _shared(self, thread_pool: ThreadPool) -> tuple[Array, Array, Floats]:
        """A step for every output along one stump."""
        m, real = len(self.f), self.params.sharing == "real"
        learner = np.array([self._best_for_all(thread_pool, real)])
        response = self.task.learners.responses(learner)[0]
        votes, total = np.zeros((2, m)), float(self.w.sum())
        masses = np.array([adaboost_steps.split_mass(response, self.Y[l], self.w[l]) for l in range(m)])
        if real:
            votes[0] = [half_log_odds(pp, pm, total) for pp, pm, _, _ in masses]
            votes[1] = [half_log_odds(mp, mm, total) for _, _, mp, mm in masses]
        else:
            gains = masses[:, 0] - masses[:, 1] - masses[:, 2] + masses[:, 3]
            right = 0.5 * (masses.sum() + np.abs(gains).sum())
            votes[0] = np.sign(gains) * half_log_odds(right, masses.sum() - right, total)
            votes[1] = -votes[0]
        for l in range(m):
            adaboost_steps.move(response, votes[0, l], votes[1, l], self.Y[l], self.f[l], self.w[l])
        weights = np.concatenate([0.5 * (votes[0] - votes[1]), 0.5 * (votes[0] + votes[1])])
        learners, outputs = np.repeat([learner[0], -1], m), np.tile(np.arange(m), 2)
        moved = np.flatnonzero(weights)
        return learners[moved], outputs[moved], weights[moved]

    def _best_for_all(self, thread_pool: ThreadPool, real: bool) -> int:
        m = len(self.f)
        if real:
            channel = np.arange(LANES * -(-m // HALF))
            outputs = channel // LANES * HALF + channel % HALF
            outputs[outputs >= m] = -1
            signs = np.where(channel % LANES < HALF, 1, -1).astype(np.int8)
        else:
            outputs, signs = np.arange(m), np.zeros(m, np.int8)
        channels = self._channels(thread_pool, outputs, signs, np.full(len(outputs), self.w.sum(axis=1).max()))
        self.draw_bag(channels)
        return self.task.learners.find_shared(channels, thread_pool, real=real)

    def _channels(self, thread_pool: ThreadPool, outputs: Ints, signs: Ints8, masses: Floats) -> Channels:
        n = len(self.task.y)
        channels = Channels(len(outputs), n)
        channels.fit(masses)
        many = min(thread_pool.size, 1 + len(outputs) * n // PIECE)
        rows = np.arange(many + 1) * n // many
        totals = np.zeros((many, channels.totals.size), np.int64)
        thread_pool.run(
            partial(
                adaboost_steps.fill_channels, *rows[j : j + 2].tolist(), self.Y, self.w, outputs, signs,
                channels.scales, channels.U, totals[j],
            )
            for j in range(many)
        )  # fmt: skip
        channels.totals.reshape(-1)[:] = totals.sum(axis=0)
        return channels

    def arrays(self) -> dict[str, Array]:
        return {"f": self.f, "w": self.w} | self.plateau.arrays()

    def restore(self, arrays: Mapping[str, Array]) -> None:
        self.f[:], self.w[:] = arrays["f"], arrays["w"]
        self.plateau.restore(arrays)
