"""How far a training in shards has come, and what its visits have measured; in a checkpoint, a plain array each."""

from dataclasses import astuple, dataclass
from enum import IntEnum
from typing import Self

import numpy as np

from solvers.numerics.array_types import Array, Floats, Ints

# of visits, before their steps: the gap, the losses, and the worst violation of the optimality conditions
STATISTICS = np.dtype([("gap", np.float64), ("loss", np.float64), ("violation", np.float64)])


def blank_statistics(*shape: int) -> Array:
    """Statistics of no visit at all, by default one record, for compiled code to add to."""
    return np.zeros(shape or 1, STATISTICS)


class Phase(IntEnum):
    """Of an epoch."""

    PASS = 0
    INNER_PASSES = 1
    ENDED = 2


@dataclass
class Progress:
    """Where the training stands: in which epoch, at which position of it, after how many certificates."""

    epoch: int = 0
    position: int = 0
    certified: int = 0
    inner_passes: int = 0
    phase: int = Phase.ENDED

    def array(self) -> Ints:
        """All fields, for a checkpoint."""
        return np.array(astuple(self), np.int64)

    @classmethod
    def of(cls, array: Array) -> Self:
        """From :meth:`array`."""
        return cls(*array.tolist())


@dataclass
class Schedule:
    """What an exchange of scores decides by.

    Attributes
    ----------
    listed_batch, full_batch : float
        Examples a batch: of visits with listed classes, and with all.
    gain : float
        What the pass under way has gained, or the last one.
    mean_gain, gain_per_cost : float
        What a visit of the last pass gained; what the last pass over all examples gained by its cost.
    cost : float
        Of the last inner pass.
    gap : float
        Estimated after the last epoch.
    certified_share : float
        Of the gap expected, what the last certificate has found.
    """

    listed_batch: float
    full_batch: float
    gain: float = 0.0
    mean_gain: float = 0.0
    gain_per_cost: float = 0.0
    cost: float = 0.0
    gap: float = 1.0
    certified_share: float = 1.0

    def expect(self, gap: float) -> float:
        """What a gap will be if it falls as much again as since the last estimate, which this one replaces."""
        expected = gap * min(1.0, gap / self.gap)
        self.gap = max(gap, float(np.finfo(np.float64).tiny))
        return expected

    def array(self) -> Floats:
        """All fields, for a checkpoint."""
        return np.array(astuple(self), np.float64)

    @classmethod
    def of(cls, array: Array) -> Self:
        """From :meth:`array`."""
        return cls(*array.tolist())
