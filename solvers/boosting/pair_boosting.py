"""What the methods share that minimise the loss of all pairs, with a certified gap over all weak learners.

    minimise  sum_c |w_c|_1 + (C / p) sum_i sum_{q != y_i} exp(F_q(x_i) - F_{y_i}(x_i)),   F_c = sum_h w_ch h,

over weights w_ch >= 0 of all weak learners h, functions of an example to +1 or -1; p is the sum of the examples'
weights times (n_classes - 1).
"""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from pydantic import Field

from solvers.boosting.boosting import Boosting
from solvers.boosting.pairs import pair_loss
from solvers.boosting.pairs.pair_loss import PairLoss
from solvers.boosting.params import BoostingParams
from solvers.boosting.rounds import Report, Run, Task
from solvers.boosting.weak_learners.channels import Channels, Found
from solvers.core.base import Handles, relative_gap
from solvers.numerics.array_types import Array
from solvers.numerics.thread_pool import ThreadPool

LEAST_EPS = 1e-12


class PairParams(BoostingParams):
    """What these methods have in common."""

    C: float = Field(default=1e8, ge=1e-12, le=1e30, description="Weight of the losses relative to the norm.")
    tol: float = Field(
        default=1e-3, gt=0, lt=1, description="Stop at this relative duality gap over all weak learners."
    )
    eps: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="Largest violation of the optimality conditions that a round may leave; it tightens with "
        "the duality gap.",
    )


P = TypeVar("P", bound=PairParams)


class PairBoosting(Boosting[P]):
    """A method that minimises the loss of all pairs."""

    formula = (
        r"\sum_c \|w_c\|_1 + \tfrac{C}{p} \sum_i \sum_{q \ne y_i} \exp(F_q(x_i) - F_{y_i}(x_i)), \quad F_c = "
        r"\sum_h w_{ch} h"
    )
    handles = Handles(flat=True)

    def training_bytes(self, n_samples: int, n_classes: int) -> int:
        return pair_loss.estimate_bytes(n_samples, n_classes)


class PairRun(Run):
    """The loss and its certificate."""

    params: PairParams

    def __init__(self, task: Task, params: PairParams, seed: int) -> None:
        super().__init__(task, task.n_classes, params, seed)
        self.loss = PairLoss(task.y, task.omega, task.n_classes, params.C)
        self.certificate = Certificate(params.eps)

    def channels(self, thread_pool: ThreadPool) -> Channels:
        """Weights of the examples for the next weak learners, from the current loss, as precise as its gap needs."""
        fine = self.certificate.wants_fine(len(self.task.y), self.params.tol)
        return self.loss.measure(thread_pool, fine=fine)

    def sought(self, channels: Channels, found: Found | None, thread_pool: ThreadPool) -> Found | None:
        """The learners of a round: the best of all where these are known, unless a bag is to be searched."""
        return (found if self.params.bag == 1 else None) or self.find(channels, thread_pool)

    def violation_of(self, found: Found) -> float:
        """The largest violation of the optimality conditions by any learner."""
        return max(0.0, self.loss.rate * found.largest - 1.0)

    def ended(
        self, bounds: tuple[float, float], violation: float, n_moved: int, *, only: bool, **more: float
    ) -> Report:
        """The report of a round that has moved so many weights; where ``only`` these could move, none ends training.

        The next round has to be more exact where the gap is smaller, or where nothing has moved.
        """
        still = n_moved == 0 and self.params.bag == 1
        exhausted = still and self.certificate.eps < LEAST_EPS
        self.certificate.tighten(still=still)
        converged = relative_gap(*bounds) <= self.params.tol or (still and only)
        return Report(*bounds, violation, self.loss.n_wrong, converged, exhausted, more)


FINE_SHARE = 0.01
CLOSER = 0.3
NAMES = ("dual", "primal", "eps", "edge")


class Certificate:
    """Bounds of the optimum over all weak learners, found or not.

    Parameters
    ----------
    eps : float
        The first violation of the optimality conditions that may be left alone.

    Attributes
    ----------
    dual, primal : float
        The best lower bound, and the last primal value.
    eps : float
        The violation that may be left alone now.
    edge : float
        The share of its class's mass that the best learner gains.
    """

    def __init__(self, eps: float) -> None:
        self.dual, self.primal, self.eps, self.edge = 0.0, np.inf, eps, 1.0

    @property
    def gap(self) -> float:
        """Relative duality gap; 1 where it is not known."""
        return relative_gap(self.primal, self.dual) if self.primal < np.inf else 1.0

    def wants_fine(self, n: int, tol: float) -> bool:
        """Whether the rounding of 31 bits could be seen in a gap as small as the last one."""
        return n / (1 << 32) / max(self.edge, 1e-12) > FINE_SHARE * max(tol, self.gap)

    def update(self, loss: PairLoss, norm: float, channels: Channels, found: Found | None) -> tuple[float, float]:
        """Primal value and best lower bound, nan unless the best of all learners were found, as last measured."""
        self.primal = float(loss.primal(norm))
        if found is None:
            return self.primal, float("nan")
        mass = float(channels.masses[int(found.sizes.argmax())])
        self.edge = found.largest / mass if mass > 0 else 1.0
        bound = loss.bound(float((found.sizes + channels.slack).max()))
        self.dual = min(max(self.dual, bound), self.primal)
        return self.primal, self.dual

    def tighten(self, *, still: bool) -> None:
        """Let violations be smaller where the gap is smaller, or where nothing has moved."""
        gap = self.gap
        self.eps = min(self.eps, CLOSER * gap if gap > 0 else np.inf) * (0.1 if still else 1.0)

    def arrays(self) -> dict[str, Array]:
        """What has to be kept, by names that begin with ``certificate_``."""
        return {f"certificate_{name}": np.array(getattr(self, name)) for name in NAMES}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Take back what :meth:`arrays` gave."""
        for name in NAMES:
            setattr(self, name, float(arrays[f"certificate_{name}"]))
