"""The dual variables of all classes as every shard holds them: sparse lists in a pool that grows."""

from collections.abc import Mapping

import numpy as np

from solvers.numerics import coefficients
from solvers.numerics.array_types import Array
from solvers.numerics.coefficients import Coefficients


class DualLists:
    """The pool of all lists, which another one replaces where more room is needed."""

    def __init__(self, n_samples: int, n_entries: int) -> None:
        self.pool = coefficients.empty(n_samples, n_entries)

    def reserve(self, room: int) -> Coefficients:
        """The pool, with room for so many more entries."""
        self.pool = coefficients.with_room(self.pool, room)
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
