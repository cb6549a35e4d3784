"""What changes while a linear machine trains by dual block ascent, and the steps that it yields."""

from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np

from solvers.core.base import State, Step
from solvers.linear.layouts.layouts import Layout
from solvers.linear.visits import STATISTICS, Progress
from solvers.numerics.array_types import Bools, Ints32


@dataclass
class Counters:
    """Epochs begun, examples of the pass visited, certificates taken, and inner passes of the epoch.

    ``apart`` is 1 where the weights are those of the end game, not those that the dual variables make, and ``in_part``
    where the epoch's pass over all examples looks at a few classes of each.
    """

    epoch: int = 0
    position: int = 0
    certified: int = 0
    inner_passes: int = 0
    apart: int = 0
    in_part: int = 0


@dataclass
class Schedule:
    """What decides when the next inner pass, step of conjugate gradients and certificate are due.

    ``full_rate`` is what the epoch's full pass gained by cost, ``cost`` what the present pass costs, both in vector
    operations; conjugate gradients are next due at ``gradients_epoch``, ``gradients_wait`` epochs after the last;
    ``last_gap`` is the gap that the last epoch reported, ``found_share`` the part of the gap expected that the last
    certificate has found.
    """

    full_rate: float = 0.0
    cost: float = 0.0
    gradients_epoch: float = 0.0
    gradients_wait: float = 0.0
    last_gap: float = 1.0
    found_share: float = 1.0


@dataclass
class Run:
    """The state of a training, beside its layout.

    ``scale`` is what the model's weights are of W: the multiple that the last certificate was of.
    """

    layout: Layout
    W: Any
    duals: Any
    progress: Progress
    order: Ints32
    counters: Counters
    schedule: Schedule
    scale: float = 1.0
    no_change: Any = field(default=None, repr=False)

    @classmethod
    def resumed(cls, layout: Layout, duals: type[Any], state: State) -> "Run":
        """From the state of a step; ``duals`` is the named tuple of the dual variables."""
        unchanged, gains, order = (np.array(state[name]) for name in ("unchanged", "gains", "order"))
        return cls(
            layout,
            layout.restored(state),
            duals_of(duals, state),
            Progress(unchanged, gains, np.array(state["statistics"]).view(STATISTICS)),
            order,
            Counters(*(int(value) for value in state["counters"])),
            Schedule(*(float(value) for value in state["schedule"])),
            float(state["scale"][0]),
        )

    @property
    def statistics(self) -> Any:
        """The record of the present epoch."""
        return self.progress.statistics[0]

    def start(self, order: Ints32, cost: float) -> None:
        """Begin a pass over these examples, at this cost."""
        self.order, self.counters.position, self.schedule.cost = order, 0, cost
        self.statistics["gain"] = 0.0

    @property
    def ended(self) -> bool:
        """Whether the pass is at its end."""
        return self.counters.position == len(self.order)

    @property
    def mean_gain(self) -> float:
        """What a visit of the pass that has just ended gained."""
        return float(self.statistics["gain"]) / max(1, len(self.order))

    @property
    def gain_per_cost(self) -> float:
        """What the pass that has just ended gained, by vector operation."""
        return float(self.statistics["gain"]) / max(self.schedule.cost, 1.0)

    def expected_gap(self) -> float:
        """The relative gap to be expected after the epoch that has ended.

        The visits have reported gaps and losses, each before its step. By how much one more epoch lowers the gap is
        taken from the two last.
        """
        gap, losses = float(self.statistics["gap"]), float(self.statistics["losses"])
        estimate = gap / (losses + 0.5 * self.layout.square_norm(self.W)) if gap > 0.0 else 0.0
        expected, self.schedule.last_gap = extrapolated(estimate, self.schedule.last_gap)
        return expected

    def step(self, primal: float, dual: float, *, converged: bool, right: Bools | None = None) -> Step:
        """The step at this point."""
        arrays = self.layout.state(self.W) | {
            "unchanged": self.progress.unchanged,
            "gains": self.progress.gains,
            "order": self.order,
            "statistics": self.progress.statistics.view(np.float64),
            "counters": np.array(astuple(self.counters)),
            "schedule": np.array(astuple(self.schedule)),
            "scale": np.array([self.scale]),
        }
        arrays |= {f"dual_{name}": array for name, array in self.duals._asdict().items()}
        return Step(
            self.counters.epoch, primal, dual, float(self.statistics["violation"]), converged, arrays, right=right
        )


def duals_of(kind: type[Any], state: State) -> Any:
    """The dual variables of a step, copied."""
    fields: tuple[str, ...] = kind._fields
    return kind(*(np.array(state[f"dual_{name}"]) for name in fields))


def extrapolated(estimate: float, last: float) -> tuple[float, float]:
    """What a gap will be if it falls as much again as since the ``last`` estimate, and the next call's ``last``."""
    return estimate * min(1.0, estimate / last), max(estimate, float(np.finfo(np.float64).tiny))
