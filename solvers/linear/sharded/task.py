"""What a training of a linear machine in shards is given, and how a shard holds it.

The dual variables of all classes as every shard holds them: sparse lists in a pool that grows.

How far a training in shards has come, and what its visits have measured; in a checkpoint, a plain array each.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from enum import IntEnum
from typing import Any, NamedTuple, Self

import numpy as np

from solvers.labels.costs import Costs
from solvers.numerics import coefficients
from solvers.numerics.array_types import Array, Floats, Ints, Ints32
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.rows import Rows

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
    """The state of the training: in which epoch, at which position of it, after how many certificates."""

    epoch: int = 0
    position: int = 0
    certified: int = 0
    inner_passes: int = 0
    phase: int = Phase.ENDED

    def array(self) -> Ints:
        """All fields, for a checkpoint."""
        return np.array(astuple(self), np.int64)

    @classmethod
    def from_array(cls, array: Array) -> Self:
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
    def from_array(cls, array: Array) -> Self:
        """From :meth:`array`."""
        return cls(*array.tolist())


class DualLists:
    """The pool of all lists, which another one replaces where more room is needed."""

    def __init__(self, n_samples: int, n_entries: int) -> None:
        self.pool = coefficients.empty(n_samples, n_entries)

    def reserve(self, room: int) -> Coefficients:
        """The pool, with room for so many more entries."""
        self.pool = coefficients.with_capacity(self.pool, room)
        return self.pool

    def total(self) -> float:
        """The sum of all dual variables, which the first entries of the lists have."""
        return float(self.pool.values[self.pool.start[self.pool.length > 0]].sum())

    def state(self) -> dict[str, Array]:
        """The arrays of the pool, for a checkpoint."""
        return {f"pool_{name}": array for name, array in self.pool._asdict().items()}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up the arrays of :meth:`state`."""
        self.pool = Coefficients(*(np.array(state[f"pool_{name}"]) for name in Coefficients._fields))


class Plan(NamedTuple):
    """How to train.

    Attributes
    ----------
    dtype : dtype
        Of the weights and the scores.
    loss_at_zero : float
        The loss of an example without features.
    largest_loss : bool
        The variables of an example share one bound, as its loss is the largest violation; else each has its own.
    batch : int, optional
        Examples a batch at first; it grows and shrinks as the steps of its examples agree.
    inner_passes : bool
        Visit, between the passes over all examples, those that gain most.
    width : int
        Candidates of an example beside the held classes, at most.
    memory_mb : int, optional
        The megabytes that the weights of a shard may take; None: those that its machine has.
    costs : Costs, optional
        Among all classes: the margins of the answers, or with ``slack`` the factors of their losses.
    """

    C: float
    tol: float
    max_epochs: int
    dtype: np.dtype[Any]
    seed: int
    loss_at_zero: float
    largest_loss: bool = False
    batch: int | None = None
    inner_passes: bool = True
    width: int = 128
    memory_mb: int | None = None
    costs: Costs | None = None


class Examples(NamedTuple):
    """The examples as every shard holds them; ``owner[c]`` is the rank of the shard that owns class c."""

    rows: Rows
    y: Ints32
    bounds: Floats
    owner: Ints32


class Shard(NamedTuple):
    """What a shard owns: ``own`` lists its classes in rising order, ``local[c]`` is the column of class c or -1.

    ``W`` has the weights of its classes, one row a feature: all features, or the most frequent ones.
    """

    own: Ints32
    local: Ints32
    W: Array
