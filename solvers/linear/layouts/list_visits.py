"""What the visit of an example does with sorted lists of classes: scores, places of entries, and their changes."""

import numpy as np
from numba import njit

from solvers.linear.layouts.class_lists import LONG, Lists, capacity, directory, groups, insert
from solvers.numerics.array_types import Array, Ints, Ints32
from solvers.numerics.simd import equal_mask, lowest_bit, prefetch

AHEAD = 3


@njit(cache=True, nogil=True, fastmath={"contract"})
def add_scores(
    indices: Ints32, data: Array, low: int, high: int, n_hot: int, start: Ints, length: Ints32, cells: Array, f: Array
) -> None:
    """f += sum of data[p] times the list of feature indices[p] over low <= p < high.

    Each product is rounded with its addition, as in the sums of dense rows.
    """
    raw, scale, two = cells.view(np.int32), np.uint64(cells.itemsize // 4), np.uint64(2)
    for p in range(low, high):
        if p + 4 * AHEAD < high:
            prefetch(start, indices[p + 4 * AHEAD] - n_hot)
            prefetch(length, indices[p + 4 * AHEAD] - n_hot)
        if p + 2 * AHEAD < high:
            prefetch(cells, 2 * start[indices[p + 2 * AHEAD] - n_hot])
        j, x = indices[p] - n_hot, data[p]
        at = two * np.uint64(start[j])
        for _ in range(length[j]):
            c = np.uint64(raw[at * scale])
            f[c] = x * cells[at + np.uint64(1)] + f[c]
            at += two


@njit(cache=True, nogil=True)
def place(
    indices: Ints32,
    low: int,
    high: int,
    n_hot: int,
    start: Ints,
    length: Ints32,
    cells: Array,
    bits: int,
    wanted: Ints32,
    n: int,
    slots: Ints,
) -> bool:
    """slots[t + n (p - low)] is the entry of class wanted[t] in the list of feature indices[p], -1 if there is none.

    False if any is -1. What it takes to find an entry is asked for some features ahead, one thing after the other.
    """
    raw, step, complete = cells.view(np.int32), cells.itemsize // 2, True
    every, double, stride = np.uint32(0x5555), 1, 8
    if step == 4:
        every, double, stride = np.uint32(0x1111), 2, 4
    for p in range(low, min(low + 2 * AHEAD, high)):
        _prefetch_list(indices[p] - n_hot, start, length, raw, step, bits, wanted, n, False)
    for p in range(low, min(low + AHEAD, high)):
        _prefetch_list(indices[p] - n_hot, start, length, raw, step, bits, wanted, n, True)
    for p in range(low, high):
        if p + 4 * AHEAD < high:
            prefetch(start, indices[p + 4 * AHEAD] - n_hot)
            prefetch(length, indices[p + 4 * AHEAD] - n_hot)
        if p + 2 * AHEAD < high:
            _prefetch_list(indices[p + 2 * AHEAD] - n_hot, start, length, raw, step, bits, wanted, n, False)
        if p + AHEAD < high:
            _prefetch_list(indices[p + AHEAD] - n_hot, start, length, raw, step, bits, wanted, n, True)
        j, slot = indices[p] - n_hot, (p - low) * n
        begin, m = start[j], length[j]
        at, top = begin, begin + m
        base, shift = groups(begin, m, step, bits)
        for t in range(n):
            c = wanted[t]
            if m > LONG:
                at = begin + raw[base + (c >> shift)]
                top = begin + raw[base + (c >> shift) + 1]
            found, e = np.int64(-1), at
            while e < top:
                mask = equal_mask(raw, e << double, c) & every
                if mask:
                    found = e + (lowest_bit(mask) >> double)
                    break
                e += stride
            if found >= top:
                found = np.int64(-1)
            slots[slot + t] = found
            if found < 0:
                complete = False
    return complete


@njit(cache=True, nogil=True)
def score_placed(data: Array, low: int, high: int, cells: Array, slots: Ints, n: int, f: Array) -> None:
    """f[t] += sum of data[p] times the value of entry slots[t + n (p - low)] over low <= p < high."""
    for p in range(low, high):
        x, slot = data[p], (p - low) * n
        for t in range(n):
            if slots[slot + t] >= 0:
                f[t] += x * cells[2 * slots[slot + t] + 1]


@njit(cache=True, nogil=True)
def update_placed(
    data: Array, low: int, high: int, cells: Array, slots: Ints, n_listed: int, which: Ints32, steps: Array, n: int
) -> None:
    """Add steps[t] data[p] to the entry of number which[t] among the n_listed that :func:`place` has found."""
    for p in range(low, high):
        x, slot = data[p], (p - low) * n_listed
        for t in range(n):
            cells[2 * slots[slot + which[t]] + 1] += steps[t] * x


@njit(cache=True, nogil=True)
def update(
    indices: Ints32,
    data: Array,
    low: int,
    high: int,
    n_hot: int,
    lists: Lists,
    moved: Ints32,
    steps: Array,
    n: int,
    slots: Ints,
) -> None:
    """Add steps[t] data[p] for the rising classes moved[t], which :func:`place` has looked for, to the lists."""
    cells = lists.cells
    for p in range(low, high):
        x, slot, missing = data[p], (p - low) * n, 0
        for t in range(n):
            at = slots[slot + t]
            if at >= 0:
                cells[2 * at + 1] += steps[t] * x
            else:
                missing += 1
        if missing > 0:
            insert(indices[p] - n_hot, lists, moved, steps, n, slots, slot, missing, x)


@njit(cache=True, nogil=True)
def lacking(indices: Ints32, low: int, high: int, n_hot: int, length: Ints32, n: int) -> int:
    """Entries of the pool that n more classes may take in the lists of the features indices[low:high], or more."""
    total = 0
    for p in range(low, high):
        m = length[indices[p] - n_hot]
        if m + n > capacity(m):
            total += directory(m + n, 4) + capacity(m + n)
    return total


@njit(cache=True, nogil=True)
def sort_steps(moved: Ints32, steps: Array, n: int) -> None:
    """Order the first n changes by class."""
    for t in range(1, n):
        c, s, to = moved[t], steps[t], t
        while to > 0 and moved[to - 1] > c:
            moved[to], steps[to] = moved[to - 1], steps[to - 1]
            to -= 1
        moved[to], steps[to] = c, s


@njit(inline="always")
def _prefetch_list(
    j: int, start: Ints, length: Ints32, raw: Ints32, step: int, bits: int, wanted: Ints32, n: int, entries: bool
) -> None:
    """Ask for list j, or of a long one for its directory and, once that is there, the ``entries`` that it leads to."""
    if length[j] > LONG:
        base, shift = groups(start[j], length[j], step, bits)
        for t in range(n):
            at = base + (wanted[t] >> shift)
            if entries:
                at = step * (start[j] + raw[at])
                prefetch(raw, at + 15)
            prefetch(raw, at)
    elif not entries:
        for e in range(start[j] * step, (start[j] + length[j]) * step, 16):
            prefetch(raw, e)
