"""The two ends of every block step: taking up an example's dual variables, and writing back what became of them."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.kernels.coefficients import Coefficients, put
from solvers.kernels.rows import Rows, update

NEGLIGIBLE = 1e-12


class Block(NamedTuple):
    """Scratch for one example: all scores; class, linear term, old and new value of each candidate; the changes."""

    f: NDArray[Any]
    classes: NDArray[np.int32]
    b: NDArray[np.float64]
    old: NDArray[np.float64]
    new: NDArray[np.float64]
    moved: NDArray[np.int32]
    moves: NDArray[np.float64]


@njit(cache=True, nogil=True)
def scratch(W: NDArray[Any], n_classes: int) -> Block:
    """A block for weights of this width."""
    return Block(
        np.empty(W.shape[1], W.dtype),
        np.empty(n_classes, np.int32),
        np.empty(n_classes),
        np.empty(n_classes),
        np.empty(n_classes),
        np.empty(n_classes, np.int32),
        np.empty(n_classes),
    )


@njit(cache=True, nogil=True)
def take(pool: Coefficients, i: int, f_y: float, K: float, block: Block) -> tuple[int, float]:
    """Candidates from the non-zero variables of example i: how many, and their sum S0.

    b = (1 - f_y + f_c) / K + alpha_c + S0; the classes taken leave f, so that no scan finds them again. The entry of
    the example's own class leads its list and is passed over.
    """
    begin, end = pool.start[i] + 1, pool.start[i] + pool.length[i]
    total = 0.0
    for t in range(begin, end):
        total -= pool.values[t]
    m = 0
    for t in range(begin, end):
        c = pool.classes[t]
        block.classes[m] = c
        block.old[m] = -pool.values[t]
        block.b[m] = (1.0 - f_y + block.f[c]) / K - pool.values[t] + total
        block.f[c] = -np.inf
        m += 1
    return m, total


@njit(cache=True, nogil=True)
def give(rows: Rows, i: int, y: int, W: NDArray[Any], pool: Coefficients, block: Block, n: int) -> float:
    """Write the n new values to W and to the list of example i; returns the least that the step gains, or 0.

    w_y += (sum of the changes) x, w_c -= change x.
    """
    moved, own, kept, total, squares = 0, 0.0, 0, 0.0, 0.0
    for t in range(n):
        change = block.new[t] - block.old[t]
        if abs(change) > NEGLIGIBLE * max(block.new[t], block.old[t]):
            block.moved[moved], block.moves[moved] = block.classes[t], -change
            moved += 1
            own += change
            squares += change * change
        else:
            block.new[t] = block.old[t]
    if moved == 0:
        return 0.0
    block.moved[moved], block.moves[moved] = y, own
    update(rows, i, W, block.moved, block.moves, moved + 1)
    for t in range(n):
        if block.new[t] > 0.0:
            kept += 1
            block.moved[kept], block.moves[kept] = block.classes[t], -block.new[t]
            total += block.new[t]
    block.moved[0], block.moves[0] = y, total
    put(pool, i, block.moved, block.moves, kept + 1 if kept else 0)
    gain: float = 0.5 * rows.squares[i] * (squares + own * own)
    return gain
