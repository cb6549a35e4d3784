"""The primitives of linear machines beside plain loops, on a named set: see :mod:`benchmarks.bench_primitives`."""

from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from benchmarks import sets
from benchmarks.primitives_timing import Row, seconds
from solvers.linear.driver.ascent import FIRST_CANDIDATES
from solvers.linear.layouts import dense_simd
from solvers.linear.layouts.layouts import DenseLayout
from solvers.linear.steps import binary, block_step, joint
from solvers.linear.visits import Task, Visits, no_progress
from solvers.numerics import coefficients, row_sums
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import ALIGNMENT, Rows, arrange, weights
from solvers.numerics.simd import bit_length, equal_mask, largest, lowest_bit, sum_narrow_rows

# entries of a list that is searched through; numbers of a vector of float32
ENTRIES, LANES = 24, ALIGNMENT // 4


@njit(nogil=True)
def _narrow_sums(W: NDArray[Any], indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any], f: Any) -> None:
    for i in range(len(indptr) - 1):
        sum_narrow_rows(W, indices, data, indptr[i], indptr[i + 1], f)


@njit(nogil=True, fastmath={"contract"})
def _sums(W: NDArray[Any], indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any], f: NDArray[Any]) -> None:
    for i in range(len(indptr) - 1):
        f[:] = 0
        for p in range(indptr[i], indptr[i + 1]):
            w, x = W[indices[p]], data[p]
            for c in range(len(f)):
                f[c] += x * w[c]


def sums_of_rows(name: str) -> list[Row]:
    """Scores of all classes."""
    X, y = sets.load(name)
    rng, table, k = np.random.default_rng(0), [], int(y.max()) + 1
    for kind in (np.float32, np.float64):
        rows, features = arrange(X, np.dtype(kind))
        W = weights(len(features), k, np.dtype(kind))
        W[:, :k] = rng.standard_normal((len(features), k))
        f = np.zeros(W.shape[1], kind)
        arguments: tuple[Any, ...] = (W, rows.indptr, rows.indices, rows.data, f)
        table.append((f"sum_narrow_rows, {kind.__name__}", *seconds(_narrow_sums, _sums, arguments=arguments)))
    return table


@njit(inline="always")
def _nothing(array: NDArray[Any], i: int) -> None:
    pass


@njit(nogil=True)
def _above_mask(f: NDArray[Any], c: int, threshold: float) -> np.uint32:
    mask = np.uint32(0)
    for j in range(ALIGNMENT // f.itemsize):
        mask |= np.uint32(f[c + j] > threshold) << np.uint32(j)
    return mask


def _with(loop: Any, inline: str = "never", **names: Any) -> Any:
    """The same compiled loop, with other objects under these names."""
    function = loop.py_func
    return njit(nogil=True, inline=inline)(FunctionType(function.__code__, {**function.__globals__, **names}))


def steps_ahead(name: str) -> list[Row]:
    """Two passes of Crammer and Singer's machine, one over all classes and one over those listed, from nothing."""
    X, y = sets.load(name)
    n, k, table = len(y), int(y.max()) + 1, []
    long_rows = _with(row_sums._sum_long_rows, prefetch=_nothing)
    plain_sums = _with(row_sums.sum_rows, _sum_long_rows=long_rows)
    listed = _with(joint._prefetch_listed, prefetch=_nothing)
    masked = _with(block_step.candidates, "always", above_mask=_above_mask)
    plain = {
        "prefetch": _with(joint.visit, prefetch=_nothing, _prefetch_listed=listed, sum_rows=plain_sums),
        "above_mask": _with(joint.visit, candidates=masked),
    }
    order = np.random.default_rng(0).permutation(np.flatnonzero(np.diff(X.indptr))).astype(np.int32)
    for kind in (np.float32, np.float64):
        rows, features = arrange(X, np.dtype(kind))
        task, W = Task(rows, y, np.ones(n), k), weights(len(features), k, np.dtype(kind))

        def passes(visit: Any, W: NDArray[Any] = W, task: Task = task) -> None:
            W[:] = 0
            pool, progress = coefficients.empty(n, 64 * n + 2 * k), no_progress(n)
            for full in (True, False):
                visits = Visits(order, 0, len(order), full, FIRST_CANDIDATES if full else 0)
                assert visit(task, visits, True, W, None, pool, progress) == len(order)

        for part, other in plain.items():
            times = seconds(partial(passes, joint.visit), partial(passes, other), arguments=())
            table.append((f"{part}, {kind.__name__}", *times))
    return table


@njit(nogil=True)
def _lowest_bit(mask: int) -> int:
    bit = 0
    while not mask & np.uint32(1):
        mask >>= np.uint32(1)
        bit += 1
    return bit


@njit(nogil=True)
def _bits_by_instruction(masks: NDArray[np.uint32]) -> int:
    total = 0
    for mask in masks:
        while mask:
            total += lowest_bit(mask)
            mask &= mask - np.uint32(1)
    return total


@njit(nogil=True)
def _bits(masks: NDArray[np.uint32]) -> int:
    total = 0
    for mask in masks:
        while mask:
            total += _lowest_bit(mask)
            mask &= mask - np.uint32(1)
    return total


@njit(nogil=True)
def _largest_by_vectors(F: NDArray[Any], out: NDArray[Any]) -> None:
    for i in range(len(F)):
        out[i] = largest(F[i])


@njit(nogil=True, fastmath={"nnan", "nsz"})
def _largest(F: NDArray[Any], out: NDArray[Any]) -> None:
    for i in range(len(F)):
        top = -np.inf
        for value in F[i]:
            top = max(top, value)
        out[i] = top


def candidates(name: str) -> list[Row]:
    """The highest score of each example by the centroids of the classes, and which scores are high."""
    X, y = sets.load(name)
    k, table = int(y.max()) + 1, []
    sides = sp.csr_matrix((np.ones(len(y)), (y, np.arange(len(y)))), (k, len(y)))
    scores = (X @ (sides @ X).T).toarray()
    for kind in (np.float32, np.float64):
        F = weights(len(y), k, np.dtype(kind))
        F[:] = -np.inf
        F[:, :k] = scores
        out = np.empty(len(y), kind)
        table.append((f"largest, {kind.__name__}", *seconds(_largest_by_vectors, _largest, arguments=(F, out))))
    # a few classes are above, as in training
    high = np.packbits(F[:, :k] > np.sort(F[:, :k], axis=1)[:, max(k - 4, 0), None], axis=1, bitorder="little")
    masks = high.astype(np.uint32).ravel()
    return [*table, ("lowest_bit", *seconds(_bits_by_instruction, _bits, arguments=(masks,)))]


@njit(nogil=True)
def _products_by_vectors(W: NDArray[Any], X: NDArray[Any], f: NDArray[Any]) -> None:
    for i in range(len(X)):
        dense_simd.dots(W, X, i, f)


@njit(nogil=True, fastmath={"contract", "reassoc"})
def _products(W: NDArray[Any], X: NDArray[Any], f: NDArray[Any]) -> None:
    for i in range(len(X)):
        x = X[i]
        for c in range(len(W)):
            w, total = W[c], W.dtype.type(0)
            for j in range(len(x)):
                total += w[j] * x[j]
            f[c] = total


@njit(nogil=True)
def _product_by_vectors(W: NDArray[Any], X: NDArray[Any], f: NDArray[Any]) -> None:
    for i in range(len(X)):
        c = i % len(W)
        f[c] = dense_simd.dot(W, c, X, i)


@njit(nogil=True, fastmath={"contract", "reassoc"})
def _product(W: NDArray[Any], X: NDArray[Any], f: NDArray[Any]) -> None:
    for i in range(len(X)):
        c = i % len(W)
        w, x, total = W[c], X[i], W.dtype.type(0)
        for j in range(len(x)):
            total += w[j] * x[j]
        f[c] = total


@njit(nogil=True)
def _additions_by_vectors(W: NDArray[Any], X: NDArray[Any], f: NDArray[Any]) -> None:
    for i in range(len(X)):
        dense_simd.add(W, i % len(W), f[0], X, i)


@njit(nogil=True, fastmath={"contract"})
def _additions(W: NDArray[Any], X: NDArray[Any], f: NDArray[Any]) -> None:
    for i in range(len(X)):
        w, x, s = W[i % len(W)], X[i], f[0]
        for j in range(len(x)):
            w[j] += s * x[j]


def dense_rows(name: str) -> list[Row]:
    """Products of dense rows with weights of one row a class; none where rows are too sparse for that."""
    X, y = sets.load(name)
    if not DenseLayout.suits(X):
        return []
    table = []
    for kind in (np.float32, np.float64):
        layout = DenseLayout.from_matrix(X, int(y.max()) + 1, np.dtype(kind))
        W, f = layout.weights(), np.zeros(LANES + int(y.max()) + 1, kind)
        loops = {"dots": (_products_by_vectors, _products), "dot": (_product_by_vectors, _product),
                 "add": (_additions_by_vectors, _additions)}  # fmt: skip
        for part, (fast, plain) in loops.items():
            times = seconds(fast, plain, arguments=(W, layout.rows.data, f))
            table.append((f"{part}, {kind.__name__}", *times))
    return table


@njit(nogil=True)
def _find_by_vectors(raw: NDArray[np.int32], begin: NDArray[Any], wanted: NDArray[np.int32], out: NDArray[Any]) -> None:
    for q in range(len(wanted)):
        found, e = np.int64(-1), begin[q]
        while e < begin[q] + ENTRIES:
            mask = equal_mask(raw, 2 * e, wanted[q]) & np.uint32(0x5555)
            if mask:
                found = e + (lowest_bit(mask) >> 1)
                break
            e += 8
        out[q] = found


@njit(nogil=True)
def _find(raw: NDArray[np.int32], begin: NDArray[Any], wanted: NDArray[np.int32], out: NDArray[Any]) -> None:
    for q in range(len(wanted)):
        found = np.int64(-1)
        for e in range(begin[q], begin[q] + ENTRIES):
            if raw[2 * e] == wanted[q]:
                found = e
                break
        out[q] = found


@njit(nogil=True)
def _lengths_by_instruction(numbers: NDArray[np.int64]) -> int:
    total = 0
    for number in numbers:
        total += bit_length(number)
    return total


@njit(nogil=True)
def _lengths(numbers: NDArray[np.int64]) -> int:
    total = 0
    for number in numbers:
        while number > 0:
            number >>= 1
            total += 1
    return total


def lists(name: str) -> list[Row]:
    """A class sought among the entries of a list, which are float32; and the bits of lists' lengths."""
    X, y = sets.load(name)
    rng, table = np.random.default_rng(0), []
    classes = rng.integers(0, 1 << 14, len(y) * ENTRIES).astype(np.int32)
    raw = np.zeros(2 * len(classes) + LANES, np.int32)
    raw[: 2 * len(classes) : 2] = classes
    begin = ENTRIES * rng.permutation(len(y))
    wanted = classes[begin + rng.integers(0, ENTRIES, len(y))]
    times = seconds(_find_by_vectors, _find, arguments=(raw, begin, wanted, np.empty(len(y), np.int64)))
    table.append((f"equal_mask, lists of {ENTRIES}", *times))
    counts = np.bincount(X.indices).astype(np.int64)
    table.append(("bit_length", *seconds(_lengths_by_instruction, _lengths, arguments=(np.resize(counts, 10_000),))))
    return table


@njit(nogil=True, fastmath={"contract"})
def _visit(
    rows: Rows, kinds: NDArray[Any], signs: NDArray[Any], inverse: NDArray[Any], ridge: NDArray[Any],
    top: NDArray[Any], order: NDArray[Any], W: NDArray[Any], beta: NDArray[Any],
) -> None:  # fmt: skip
    f, moves = np.empty(W.shape[1], W.dtype), np.empty(W.shape[1], W.dtype)
    zero = W.dtype.type(0)
    for i in order:
        sum_rows(W, rows.indices, rows.data, rows.indptr[i], rows.indptr[i + 1], f)
        side, old, total = signs[kinds[i]], beta[i], zero
        for c in range(len(f)):
            lowest, highest = (-top[i] if side[c] < 0 else zero), (top[i] if side[c] > 0 else zero)
            value = (side[c] - f[c] - old[c] * ridge[i]) * inverse[i] + old[c]
            value = min(max(value, lowest), highest)
            moves[c] = value - old[c]
            total += moves[c] * moves[c]
            old[c] = value
        if total > 0:
            for p in range(rows.indptr[i], rows.indptr[i + 1]):
                w, x = W[rows.indices[p]], rows.data[p]
                for c in range(len(moves)):
                    w[c] += x * moves[c]


def binary_steps(name: str) -> list[Row]:
    """An epoch of one-vs-rest on a block of columns, from nothing; both ask for the rows ahead, or neither."""
    X, y = sets.load(name)
    k, table = int(y.max()) + 1, []
    for kind in (np.float32, np.float64):
        rows, features = arrange(X, np.dtype(kind))
        width = binary.block_width(k, np.dtype(kind))
        signs = np.full((k, width), -1, kind)
        signs[np.arange(min(k, width)), np.arange(min(k, width))] = 1
        inverse = (1.0 / np.maximum(rows.squares, 1e-9)).astype(kind)
        ridge, top, order = np.zeros(len(y), kind), np.full(len(y), 1.0, kind), np.arange(len(y), dtype=np.int32)
        W, beta = weights(len(features), width, np.dtype(kind)), weights(len(y), width, np.dtype(kind))
        gains = np.empty(len(y), np.float32)

        def fast(W: NDArray[Any], beta: NDArray[Any], fixed: Any = (rows, y, signs, inverse, ridge, top, order),
                 gains: Any = gains) -> None:  # fmt: skip
            W[:], beta[:] = 0, 0
            binary.visit(*fixed, 0.0, W, beta, gains)

        def plain(
            W: NDArray[Any], beta: NDArray[Any], fixed: Any = (rows, y, signs, inverse, ridge, top, order)
        ) -> None:
            W[:], beta[:] = 0, 0
            _visit(*fixed, W, beta)

        table.append((f"step, {width} columns, {kind.__name__}", *seconds(fast, plain, arguments=(W, beta))))
    return table
