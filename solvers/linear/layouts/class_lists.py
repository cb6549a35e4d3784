"""Sorted lists of classes for rare features, all in one pool.

A feature can weigh something only for classes of dual variables of examples that have it: for a rare one these are few
of many thousands.

An entry is a class and a value, in one cache line, each in the room of a float. A long list is headed by a directory,
``1 << q`` groups of as many classes each, which says how many entries are in groups below: so a class is found by
reading one number of the directory and one vector of entries, whatever the length.

What the visit of an example does with sorted lists of classes: scores, places of entries, and their changes.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.numerics.array_types import Array, Ints, Ints32
from solvers.numerics.rows import Rows
from solvers.numerics.simd import bit_length, equal_mask, lowest_bit, prefetch

# of the pool: the end of the part that is used, the end of that which may be, the entries that a visit lacked, and the
# bits that a class takes
COUNTERS = np.dtype([("end", "i8"), ("limit", "i8"), ("lacking", "i8"), ("bits", "i8")])
LONG = 32
LANES = 16


class Lists(NamedTuple):
    """The weights of all features but the first ``n_hot``, which are dense.

    Attributes
    ----------
    middle : int64 array, shape (n_samples,)
        Where in ``rows.indices`` the features of each example begin that have lists.
    start, length : int64 and int32 arrays, shape (n_features - n_hot,)
        The list of feature ``n_hot + j`` is the entries ``start[j]`` to ``start[j] + length[j]`` of the pool, by rising
        class.
    cells : float array
        The pool: ``cells[2 e + 1]`` is the value of entry e, ``cells[2 e]`` its class, as an int32 in the first bytes.
    counters : array of COUNTERS, shape (1,)
    """

    middle: Ints
    start: Ints
    length: Ints32
    cells: Array
    counters: Array

    @property
    def n_entries(self) -> int:
        """Entries that the pool has room for."""
        return len(self.cells) // 2 - LANES


def empty(rows: Rows, n_features: int, n_hot: int, n_classes: int, n_entries: int) -> Lists:
    """Lists without an entry, in a pool of ``n_entries``, of which only those cost memory that come to be used."""
    middle = np.empty(len(rows.squares), np.int64)
    _split(rows.indptr, rows.indices, n_hot, middle)
    return Lists(
        middle,
        np.zeros(n_features - n_hot, np.int64),
        np.zeros(n_features - n_hot, np.int32),
        np.zeros(2 * (n_entries + LANES), rows.data.dtype),
        np.array([(0, 0, 0, (n_classes - 1).bit_length())], COUNTERS),
    )


def room_needed(lists: Lists, room: int) -> int:
    """Entries that the pool has to hold before the next visit: as now, or what the last visit lacked and more.

    Lists that have grown leave holes behind; where these are many, all lists first move together to the start. When
    that is does not depend on the size of the pool, so that a run resumed in another one repeats every bit.
    """
    end, limit, lacking, _ = lists.counters[0].item()
    if end + lacking > limit:
        _compact(lists, np.argsort(lists.start, kind="stable"))
        end = int(lists.counters["end"][0])
        lists.counters["limit"] = max(limit, end + end // 3 + lacking + room)
    lists.counters["lacking"] = 0
    return int(lists.counters["limit"][0])


@njit(cache=True, nogil=True)
def square_norm(lists: Lists, total: float) -> float:
    """The total and the squares of all lists' values, summed in float64."""
    for j in range(lists.start.shape[0]):
        part = 0.0
        for at in range(lists.start[j], lists.start[j] + lists.length[j]):
            part += np.float64(lists.cells[2 * at + 1]) * np.float64(lists.cells[2 * at + 1])
        total += part
    return total


@njit(cache=True, nogil=True)
def multiply(lists: Lists, factor: float) -> None:
    """Multiply the values of all lists, in place."""
    by = lists.cells.dtype.type(factor)
    for j in range(lists.start.shape[0]):
        for at in range(lists.start[j], lists.start[j] + lists.length[j]):
            lists.cells[2 * at + 1] *= by


@njit(cache=True, nogil=True)
def capacity(n: int) -> int:
    """Entries that a list of n has room for: the next of 0, 4, 6, 8, 12, 16, 24, ..."""
    if n <= 4:
        return 4 if n > 0 else 0
    size: int = 1 << bit_length(n - 1)
    return size - (size >> 2) if n <= size - (size >> 2) else size


@njit(inline="always")
def directory(n: int, itemsize: int) -> int:
    """Entries that the directory of a list of n takes the room of; it grows only where the list's room does."""
    return ((1 << (bit_length(n - 1) - 3)) + itemsize // 2) // (itemsize // 2) if n > LONG else 0


@njit(inline="always")
def groups(begin: int, n: int, step: int, bits: int) -> tuple[int, int]:
    """Where the directory of n entries from ``begin`` on begins, in int32s, and by what to shift a class for its group.

    There are 4 to 8 entries a group on average.
    """
    q = bit_length(n - 1) - 3
    return begin * step - (1 << q) - 1, bits - q


@njit(cache=True, nogil=True)
def insert(
    j: int, lists: Lists, moved: Ints32, steps: Array, n: int, slots: Ints, slot: int, missing: int, x: float
) -> None:
    """Put steps[t] x for those of the n rising classes that have no slot into list j, which moves if it is full."""
    _, start, length, cells, counters = lists
    pool = counters[0]
    raw, step, zero = cells.view(np.int32), cells.itemsize // 2, cells.dtype.type(0)
    begin, m, total = start[j], length[j], length[j] + missing
    to = begin
    if total > capacity(m):
        to = pool.end + directory(total, cells.itemsize)
        pool.end = to + capacity(total)
        start[j] = to
    length[j] = total
    read, write, t = begin + m - 1, to + total - 1, n - 1
    while t >= 0:
        if slots[slot + t] >= 0:
            t -= 1
            continue
        if read >= begin and raw[step * read] > moved[t]:
            raw[step * write], cells[2 * write + 1] = raw[step * read], cells[2 * read + 1]
            read -= 1
        else:
            raw[step * write], cells[2 * write + 1] = moved[t], zero + steps[t] * x
            t -= 1
        write -= 1
    if to != begin:
        while read >= begin:
            raw[step * write], cells[2 * write + 1] = raw[step * read], cells[2 * read + 1]
            read -= 1
            write -= 1
        index(cells, to, total, pool.bits)
    elif total > LONG:
        base, shift = groups(to, total, step, pool.bits)
        g, more = 0, 0
        for t in range(n):
            if slots[slot + t] < 0:
                below = (moved[t] >> shift) + 1
                while g < below:
                    raw[base + g] += more
                    g += 1
                more += 1
        for above in range(base + g, begin * step):
            raw[above] += more


@njit(cache=True, nogil=True)
def index(cells: Array, begin: int, n: int, bits: int) -> None:
    """Make the directory of the n entries from ``begin`` on."""
    if n > LONG:
        raw, step = cells.view(np.int32), cells.itemsize // 2
        base, shift = groups(begin, n, step, bits)
        at = begin
        for g in range(begin * step - base):
            while at < begin + n and raw[step * at] >> shift < g:
                at += 1
            raw[base + g] = at - begin


@njit(cache=True, nogil=True)
def _split(indptr: Ints, indices: Ints32, n_hot: int, middle: Ints) -> None:
    """Where the features from n_hot on begin in every row."""
    for i in range(middle.shape[0]):
        low, high = indptr[i], indptr[i + 1]
        while low < high:
            half = (low + high) >> 1
            if indices[half] < n_hot:
                low = half + 1
            else:
                high = half
        middle[i] = low


@njit(cache=True, nogil=True)
def _compact(lists: Lists, order: Ints) -> None:
    """Move all lists towards the start of the pool, in their order there."""
    _, start, length, cells, counters = lists
    end = 0
    for j in order:
        n = length[j]
        if n > 0:
            head = directory(n, cells.itemsize)
            begin = start[j] - head
            for e in range(2 * (head + n)):
                cells[2 * end + e] = cells[2 * begin + e]
            start[j] = end + head
            end += head + capacity(n)
    end_at(cells, counters, end)


@njit(inline="always")
def end_at(cells: Array, counters: Array, end: int) -> None:
    """End the used part of the pool here; what is behind it is zero, as in a pool that has been written and read."""
    for e in range(2 * end, 2 * counters[0].end):
        cells[e] = 0
    counters[0].end = end


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
