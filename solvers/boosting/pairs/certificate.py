"""How far the optimum of a boosting problem is, and how exactly it has to be approached next."""

from collections.abc import Mapping

import numpy as np

from solvers.boosting.pairs.pair_loss import PairLoss
from solvers.boosting.weak_learners.channels import Channels, Found
from solvers.core.base import relative_gap
from solvers.numerics.array_types import Array

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
