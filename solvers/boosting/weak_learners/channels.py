"""Weights for which weak learners are sought, and the best learners for them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from solvers.boosting.simd import LANES
from solvers.numerics.array_types import Array, Bools, Floats, Ints

ALIGNMENT = 64
LEAST = 1e-280


class ChannelArrays(NamedTuple):
    """Channels as compiled loops take them."""

    U: Array
    totals: Array
    scales: Floats
    masses: Floats
    slack: Floats


class Channels:
    """Weights for which weak learners are sought, one channel a learner: u[j, i] of channel j and row i.

    They are kept as whole numbers, ``scales[j]`` times as large and rounded, in blocks of 16 channels.

    Parameters
    ----------
    m, n : int
        Channels and rows.
    fine : bool
        Take 62 bits in place of 31, at more than twice the cost.

    Attributes
    ----------
    U : int array, shape (n_blocks, 16 n)
    totals : int array, shape (n_blocks, 16)
        Sums over the rows.
    scales : float64 array, shape (m,)
    masses : float64 array, shape (m,)
        The sum of \\|u[j, i]\\| over the rows.
    slack : float64 array, shape (m,)
        What rounding may have taken from the value of any learner.
    """

    def __init__(self, m: int, n: int, *, fine: bool = False) -> None:
        self.m, self.n, self.fine = m, n, fine
        dtype = np.dtype(np.int64 if fine else np.int32)
        blocks = -(-m // LANES)
        self.U = aligned((blocks, n * LANES), dtype)
        self.totals = np.zeros((blocks, LANES), dtype)
        self.scales, self.masses, self.slack = np.ones(m), np.zeros(m), np.zeros(m)
        self.top = float((1 << 62) if fine else (1 << 31) - 1 - n)

    @property
    def arrays(self) -> ChannelArrays:
        """What compiled loops take of it, to change in place."""
        return ChannelArrays(self.U, self.totals, self.scales, self.masses, self.slack)

    def fit(self, masses: Floats) -> None:
        """Choose the scales so that channels of these masses make full use of the whole numbers' range."""
        self.masses[:] = masses
        choose_scales(self.masses, self.n, self.top, self.scales, self.slack)

    def keep_rows(self, rows: Bools) -> None:
        """Set the weights of all other rows to zero."""
        self.U.reshape(len(self.U), self.n, LANES)[:, ~rows] = 0
        self.totals[:] = self.U.reshape(len(self.U), self.n, LANES).sum(axis=1, dtype=self.totals.dtype)

    def weights(self, j: int) -> Floats:
        """u of one channel, as it was rounded."""
        return np.asarray(self.U[j // LANES, j % LANES :: LANES] / self.scales[j])


@dataclass(frozen=True, eq=False)
class Found:
    """The best learner of every channel.

    Attributes
    ----------
    learners : int64 array, shape (m,)
        Their numbers.
    values : float64 array, shape (m,)
        ``sum_i u_i h(x_i)``, up to rounding.
    """

    learners: Ints
    values: Floats

    @cached_property
    def sizes(self) -> Floats:
        """Absolute values."""
        return np.abs(self.values)

    @cached_property
    def largest(self) -> float:
        """The largest of all sizes."""
        return float(self.sizes.max())


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Zeros that begin at a cache line."""
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    shift = -raw.ctypes.data % ALIGNMENT
    return raw[shift : shift + size].view(dtype).reshape(shape)


@njit(cache=True, nogil=True)
def choose_scales(masses: Floats, n: int, top: float, scales: Floats, slack: Floats) -> None:
    """Scales so that lanes of these masses make full use of whole numbers up to ``top``.

    ``slack`` becomes what rounding may take from the value of any stump: half a unit in each of the n rows.
    """
    for j in range(len(masses)):
        scales[j] = top / masses[j] if masses[j] > LEAST else 1.0
        slack[j] = min(0.5 * n / scales[j] + 1e-15 * n * masses[j], masses[j])
