"""AdaBoost.ECC: a code whose columns are drawn while boosting, one weak learner a column.

    minimise  sum_i omega_i sum_{q != y_i} exp((F_q(x_i) - F_{y_i}(x_i)) / 2),   F_c = sum_t m_tc alpha_t h_t,

stage by stage, over weights alpha_t of weak learners h_t, functions of an example to +1 or -1; each round colours half
of the classes, drawn at random, +1 and the others -1: m_tc. Guruswami and Sahai 1999; the learner of a round separates
the colours, and an example weighs what it and the classes of the other colour add to the loss.
"""

from collections.abc import Mapping

import numpy as np
from pydantic import Field

from solvers.boosting import adaboost_steps
from solvers.boosting.adaboost_steps import LossPlateau, half_log_odds
from solvers.boosting.boosting import Boosting
from solvers.boosting.params import BoostingParams
from solvers.boosting.rounds import Report, Run, Task
from solvers.boosting.weak_learners.channels import Channels
from solvers.core.base import Handles
from solvers.numerics.array_types import Array
from solvers.numerics.thread_pool import ThreadPool

COLOURS = 1 << 20
REFRESH = 100


class AdaboostEccParams(BoostingParams):
    """Parameters of :class:`AdaboostEcc`."""

    tol: float = Field(
        default=1e-5,
        gt=0,
        lt=1,
        description="Stop when ten rounds in a row have each lowered the loss by less than this share.",
    )


class AdaboostEcc(Boosting[AdaboostEccParams]):
    """AdaBoost on random colourings of the classes; no certified gap."""

    name = "adaboost_ecc"
    title = "AdaBoost.ECC"
    formula = (
        r"\sum_i \omega_i \sum_{q \ne y_i} \exp \tfrac12 (F_q(x_i) - F_{y_i}(x_i)), \quad F_c = \sum_t m_{tc} "
        r"\alpha_t h_t"
    )
    paper = "Guruswami and Sahai 1999"
    handles = Handles(flat=True, certified=False)
    Params = AdaboostEccParams

    def run(self, task: Task) -> "_Run":
        return _Run(task, self.params, self.seed)

    def training_bytes(self, n_samples: int, n_classes: int) -> int:
        return n_samples * (16 * n_classes + 128)


class _Run(Run):
    """Scores F and losses D of all pairs, shape (n_classes, n)."""

    def __init__(self, task: Task, params: AdaboostEccParams, seed: int) -> None:
        super().__init__(task, task.n_classes, params, seed)
        n, k = len(task.y), task.n_classes
        self.starts = np.searchsorted(task.y, np.arange(k + 1)).astype(np.int64)
        self.omega = task.omega / ((k - 1) * task.omega.sum())
        self.F, self.D = np.zeros((k, n)), np.empty((k, n))
        self.plateau = LossPlateau(params.tol)
        adaboost_steps.restart_pairs(self.omega, task.y, self.F, self.D)

    def advance(self, thread_pool: ThreadPool) -> Report | None:
        n, k = len(self.task.y), self.task.n_classes
        rng = np.random.default_rng([self.seed, self.epoch + 1, COLOURS])
        colours = np.where(rng.permutation(k) < k // 2, 1, -1).astype(np.int8)
        u = np.empty(n)
        adaboost_steps.weigh_colouring(self.starts, colours, self.D, u)
        channels = Channels(1, n)
        channels.fit(np.array([np.abs(u).sum()]))
        sign = np.where(u < 0, -1, 1).astype(np.int8)[None]
        sums = np.zeros(channels.totals.size, np.int64)
        adaboost_steps.fill_channels(
            0, n, sign, np.abs(u)[None], np.zeros(1, np.int64), np.zeros(1, np.int8), channels.scales, channels.U, sums
        )
        channels.totals.reshape(-1)[:] = sums
        found = self.find(channels, thread_pool)
        if found is None:
            return None
        self.epoch += 1
        response = self.task.learners.responses(found.learners)[0]
        pp, pm, mp, mm = adaboost_steps.split_mass(response, sign[0], np.abs(u))
        alpha = half_log_odds(pp + mm, pm + mp, pp + pm + mp + mm)
        adaboost_steps.move_colours(response, alpha, self.starts, colours, self.F, self.D)
        if self.epoch % REFRESH == 0:
            adaboost_steps.restart_pairs(self.omega, self.task.y, self.F, self.D)
        self.vote(np.repeat(found.learners, k), np.arange(k), np.asarray(alpha * colours, np.float64))
        primal = float(self.D.sum())
        wrong = adaboost_steps.count_wrong(self.F, self.task.y)
        return Report(primal, np.nan, np.nan, wrong, self.plateau.reached(primal))

    def arrays(self) -> dict[str, Array]:
        return {"F": self.F, "D": self.D} | self.plateau.arrays()

    def restore(self, arrays: Mapping[str, Array]) -> None:
        self.F[:], self.D[:] = arrays["F"], arrays["D"]
        self.plateau.restore(arrays)
