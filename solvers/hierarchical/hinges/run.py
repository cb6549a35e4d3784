"""What changes while a machine over a label tree trains by block ascent."""

from dataclasses import astuple, dataclass, field

import numpy as np
from numpy.typing import NDArray

from solvers.core.base import State, Step
from solvers.hierarchical.epochs import Epoch
from solvers.hierarchical.hinges.acceleration import Acceleration
from solvers.linear.driver.ascent import FIRST_SHARE
from solvers.linear.driver.run import Schedule
from solvers.numerics.array_types import Floats, Floats32
from solvers.numerics.coefficients import Coefficients


@dataclass
class HingeRun:
    """What changes while a machine trains: the state of a step."""

    R: Floats
    S: Floats
    B: Floats
    pool: Coefficients
    epoch: Epoch
    gains: Floats32
    visited: NDArray[np.void]
    best_dual: float = -np.inf
    n_certificates: int = 0
    inner_passes: int = 0
    schedule: Schedule = field(default_factory=lambda: Schedule(found_share=FIRST_SHARE))
    # the multiple of W that the last certificate was of
    scale: float = 1.0
    acceleration: Acceleration | None = None
    products: Floats | None = None

    @property
    def point(self) -> Floats:
        """What certificates and models are of, in the shape of R."""
        return self.R if self.acceleration is None else self.acceleration.mean

    def step(self, primal: float, dual: float, *, converged: bool) -> Step:
        """The step at this point."""
        arrays = self.epoch.state() | {f"dual_{name}": array for name, array in self.pool._asdict().items()}
        arrays |= {
            "R": self.R,
            "S": self.S,
            "gains": self.gains,
            "visited": self.visited.view(np.float64),
            "best_dual": np.array(self.best_dual),
            "n_certificates": np.array(self.n_certificates),
            "inner_passes": np.array(self.inner_passes),
            "schedule": np.array(astuple(self.schedule)),
            "scale": np.array(self.scale),
        }
        if self.acceleration is not None:
            arrays |= self.acceleration.state()
        return Step(self.epoch.number, primal, dual, float(self.visited["violation"][0]), converged, arrays)


def pool_of(state: State) -> Coefficients:
    """A copy of the dual variables of a state."""
    return Coefficients(*(np.array(state[f"dual_{name}"]) for name in Coefficients._fields))
