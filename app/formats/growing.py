"""An array that grows in place while a file is read."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)


class Growing(Generic[Scalar]):
    """Append blocks of one dtype without ever holding two copies of what was read.

    A list of blocks joined at the end needs twice the memory; `ndarray.resize` reallocates, and for large arrays
    the system moves pages instead of copying them.
    """

    def __init__(self, dtype: type[Scalar]) -> None:
        self._array: npt.NDArray[Scalar] = np.empty(0, dtype=dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def extend(self, block: npt.NDArray[Scalar]) -> None:
        """Append one block, shape (k,)."""
        needed = self._length + len(block)
        if needed > len(self._array):
            self._array.resize(max(needed, len(self._array) * 5 // 4), refcheck=False)
        self._array[self._length : needed] = block
        self._length = needed

    def build(self) -> npt.NDArray[Scalar]:
        """Everything appended, shape (len(self),); nothing may be appended afterwards."""
        self._array.resize(self._length, refcheck=False)
        return self._array
