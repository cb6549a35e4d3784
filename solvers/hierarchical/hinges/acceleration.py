"""Outer steps of the ascent, and the mean of the weights, for hinges on which single steps creep.

Once the gap stalls, ``kappa / 2`` times the squared distance of the weights from a point V is added to the objective,
and V runs ahead of the weights by Nesterov's rule after every epoch (Catalyst: Lin, Mairal and Harchaoui 2015,
Algorithm 1). The weights of the dual variables are then ``(A + kappa V) / (1 + kappa)``, A being their
vectors, and curvatures are ``1 / (1 + kappa)`` of what they were, so that dual variables move further at a step. The
lower bound is that of A, for which there is no V.

The upper bound is the objective of the mean of the weights at the ends of an epoch's passes. A visit meets the margins
of its own example exactly, and those of others by chance: this noise, to which the losses of all examples are added
up, keeps the objective of the weights far above the optimum when the dual is long right; in the mean it is gone.
Passes of few visits change little of large weights: they are counted together, with the weights after the last of them.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.core.base import State
from solvers.numerics.array_types import Array, Floats, Floats32

KAPPA = 4.0
# passes are counted together until they have a visit for every so many weights: it takes longer than averaging these
WEIGHTS_A_VISIT = 1024
# outer steps begin when an epoch leaves more than this share of the gap, and what epochs take off it grows by less
STALLED, GROWTH = 0.5, 1.2
NUMBERS = ("n_averaged", "fall", "stalled", "n_passes", "n_visits")


@dataclass
class Acceleration:
    """What changes of it; all arrays have the shape of R.

    Attributes
    ----------
    mean : array
        Of the weights at the ends of this epoch's passes, of which ``n_averaged`` are counted; while there are none, of
        the last epoch's.
    V, before : array, optional
        The point that runs ahead, and the weights at the last outer step; None before the first.
    fall : float
        What share of the gap the last epoch has taken off.
    stalled : bool
        Whether outer steps are to begin with the next epoch.
    n_passes, n_visits : int
        The passes that have ended and are not counted yet, and their visits.
    """

    mean: Array
    n_averaged: int = 0
    V: Array | None = None
    before: Array | None = None
    fall: float = 0.0
    stalled: bool = False
    n_passes: int = 0
    n_visits: int = 0

    @classmethod
    def from_state(cls, state: State) -> "Acceleration":
        """That of a step, copied."""
        if "mean" not in state:
            # of a version that had no outer steps
            return cls(np.array(state["R"]))
        V, before = (np.array(state[name]) if name in state else None for name in ("V", "before"))
        fall, stalled = float(state["fall"]), bool(state["stalled"])
        # an older version counted every pass by itself
        n_passes, n_visits = (int(state[name]) if name in state else 0 for name in ("n_passes", "n_visits"))
        return cls(np.array(state["mean"]), int(state["n_averaged"]), V, before, fall, stalled, n_passes, n_visits)

    def state(self) -> dict[str, NDArray[np.generic]]:
        """The arrays of a step's state that :meth:`from_state` takes."""
        arrays: dict[str, NDArray[np.generic]] = {"mean": self.mean}
        arrays |= {name: np.array(getattr(self, name)) for name in NUMBERS}
        if self.V is not None and self.before is not None:
            arrays |= {"V": self.V, "before": self.before}
        return arrays

    @property
    def share(self) -> float:
        """Of the vectors of the dual variables in the weights: ``1 / (1 + kappa)``."""
        return 1.0 if self.V is None else 1.0 / (1.0 + KAPPA)

    def average(self, R: Array, n_visits: int, *, is_last: bool) -> None:
        """Count the weights R at the end of a pass of so many visits, which may be the last of its epoch."""
        self.n_passes, self.n_visits = self.n_passes + 1, self.n_visits + n_visits
        if is_last or WEIGHTS_A_VISIT * self.n_visits >= R.size:
            self.n_averaged += self.n_passes
            _blend(R.reshape(-1), self.n_passes / self.n_averaged, self.mean.reshape(-1))
            self.n_passes = self.n_visits = 0

    def note(self, left: float) -> None:
        """Note what share of the gap the epoch that has ended has left."""
        self.stalled = left > STALLED and 1.0 - left < GROWTH * self.fall
        self.fall = 1.0 - left

    def weigh(self, A: Array) -> None:
        """Make weights of the vectors of the dual variables, in place."""
        if self.V is not None:
            _blend(self.V.reshape(-1), 1.0 - self.share, A.reshape(-1))

    def begin_epoch(self, R: Array) -> None:
        """Take an outer step from the weights R, which are changed, if it is time; begin a new mean."""
        self.n_averaged = 0
        if self.V is not None and self.before is not None:
            root = np.sqrt(self.share)
            ahead = (1.0 - root) / (1.0 + root)
            _step_ahead(R.reshape(-1), ahead, 1.0 - self.share, self.V.reshape(-1), self.before.reshape(-1))
        elif self.stalled:
            self.V, self.before = R.copy(), R.copy()


@njit(cache=True, nogil=True)
def _blend(values: Floats | Floats32, share: float, into: Floats | Floats32) -> None:
    """Move ``into`` by this share of the way to the values."""
    part = into.dtype.type(share)
    for t in range(into.shape[0]):
        into[t] += part * (values[t] - into[t])


@njit(cache=True, nogil=True)
def _step_ahead(
    R: Floats | Floats32, ahead: float, rest: float, V: Floats | Floats32, before: Floats | Floats32
) -> None:
    """V = R + ahead (R - before), before = R, and R with the new V in place of the old one."""
    a, b = R.dtype.type(ahead), R.dtype.type(rest)
    for t in range(R.shape[0]):
        r = R[t]
        v = r + a * (r - before[t])
        before[t] = r
        R[t] = r + b * (v - V[t])
        V[t] = v
