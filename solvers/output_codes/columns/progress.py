"""Progress of training a code's columns one by one, and its division among shards."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from solvers.core.base import State, Step
from solvers.numerics.array_types import Array, Bools, Floats, Ints, Ints8, Ints32
from solvers.output_codes.columns.builder import ColumnModelBuilder
from solvers.sharding.reshard import OWN
from solvers.sharding.shardable import Arrays

PREFIX = "progress_"
# progress of a column; one that is trained elsewhere belongs to another shard
UNTOUCHED, BEGUN, ENDED, ELSEWHERE = range(4)


@dataclass
class Progress:
    """Progress of every column, its last values, and the share of its dual variables that are not zero."""

    status: Ints8
    epoch: Ints
    primal: Floats
    dual: Floats
    violation: Floats
    converged: Bools
    nonzero: Floats

    @classmethod
    def begin(cls, n: int) -> "Progress":
        primal, dual, violation, nonzero = np.full((4, n), np.nan)
        return cls(np.zeros(n, np.int8), np.zeros(n, np.int64), primal, dual, violation, np.zeros(n, np.bool_), nonzero)

    @classmethod
    def from_state(cls, state: State) -> "Progress":
        return cls(**{name: np.array(state[f"{PREFIX}{name}"]) for name in cls.names()})

    @classmethod
    def names(cls) -> list[str]:
        """The names of the arrays."""
        return [field.name for field in fields(cls)]

    def arrays(self) -> dict[str, Array]:
        """What :meth:`from_state` takes back."""
        return {f"{PREFIX}{name}": getattr(self, name) for name in self.names()}

    def update(self, t: int, last: Step | None, bounds: tuple[float, float], *, ended: bool) -> None:
        """Store the progress of column t: its last step, and its last primal and dual value."""
        self.status[t] = ENDED if ended else BEGUN
        if last is not None:
            self.epoch[t], self.converged[t] = last.epoch, last.converged
            self.violation[t] = last.violation
        if not np.isnan(bounds[0]):
            self.primal[t], self.dual[t] = bounds

    def step(self, state: State) -> Step:
        """The sums over all columns that are trained here: nan until every one has been measured."""
        here = self.status != ELSEWHERE
        return Step(
            int(self.epoch.max()),
            float(self.primal[here].sum()),
            float(self.dual[here].sum()),
            float(np.fmax.reduce(self.violation)),
            bool(self.converged[here].all()),
            state,
        )


def is_one_by_one(state: State) -> bool:
    """Whether a state is of columns that are trained one by one."""
    return f"{PREFIX}status" in state


def gathered(parts: Sequence[Arrays], own: Ints32) -> dict[str, Array]:
    """The state of a shard with the columns ``own``, one by one, from those of shards that together have them.

    Raises
    ------
    ValueError
        A column is in no part.
    """
    found = {name: np.array(parts[0][f"{PREFIX}{name}"]) for name in Progress.names()}
    found["status"][:] = ELSEWHERE
    running: dict[str, Array] = {}
    for part in parts:
        mine = np.intersect1d(own, part[OWN])
        for name, array in found.items():
            array[mine] = part[f"{PREFIX}{name}"][mine]
        for t in mine[found["status"][mine] == BEGUN].tolist():
            running |= {name: np.array(array) for name, array in part.items() if name.startswith(f"column{t}_")}
    lost = own[found["status"][own] == ELSEWHERE]
    if len(lost):
        raise ValueError(f"column {lost[0]} is missing from all parts")
    progress = {f"{PREFIX}{name}": array for name, array in found.items()}
    return {OWN: own} | progress | running | ColumnModelBuilder.joined(parts, own)
