"""The passes of a block ascent: which blocks an epoch visits, in which order, and how far it has come."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.core.base import State
from solvers.numerics.array_types import Bytes, Floats, Ints32
from solvers.numerics.orders import active

# of a slice of an epoch, after which the solver hands out a step
SLICE_OPERATIONS = 1 << 27


@dataclass
class Epoch:
    """One pass over the blocks in a random order; each block may be left out while visits change nothing.

    Attributes
    ----------
    number : int
        Epochs begun so far.
    position : int
        How many blocks of this epoch's order have been visited.
    order : int32 array
    unchanged : uint8 array, shape (n_blocks,)
        How many visits of each block in a row have changed nothing.
    """

    number: int
    position: int
    order: Ints32
    unchanged: Bytes

    @classmethod
    def zeroth(cls, n_blocks: int) -> "Epoch":
        """Before the first epoch."""
        return cls(0, 0, np.empty(0, np.int32), np.zeros(n_blocks, np.uint8))

    @classmethod
    def from_state(cls, state: State) -> "Epoch":
        """The epoch of a step's state, copied."""
        return cls(int(state["epoch"]), int(state["position"]), np.array(state["order"]), np.array(state["unchanged"]))

    def state(self) -> dict[str, NDArray[np.generic]]:
        """The arrays of a step's state that :meth:`from_state` takes."""
        return {
            "epoch": np.array(self.number),
            "position": np.array(self.position),
            "order": self.order,
            "unchanged": self.unchanged,
        }

    @property
    def is_over(self) -> bool:
        return self.position == len(self.order)

    def begin_next(self, blocks: Ints32, seed: int) -> None:
        """Begin the next epoch on some of these blocks, in an order of its own."""
        self.number += 1
        rng = np.random.default_rng([seed, self.number])
        self.order = rng.permutation(active(blocks, self.unchanged, self.number))
        self.position = 0

    def end_of_slice(self, costs: Floats, operations: float) -> int:
        """Up to which position the blocks from this one on cost about so many operations; at least one block."""
        work = np.cumsum(costs[self.order[self.position :]])
        return self.position + min(len(work), 1 + int(np.searchsorted(work, operations)))
