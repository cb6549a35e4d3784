"""What do loops written as vectors in LLVM's own language gain on plain numba?

Each primitive beside a plain loop of the same result, on data of a named set, one thread: the medians of the seconds of
several calls, of one and the other in turn. A primitive that gains less than 1.3 times on every set is not worth its
keep. ``prefetch`` and ``above_mask`` are measured in two passes of block steps, beside nothing and a loop instead,
and ``parallel_for`` on two threads, beside the same pieces as calls that threads of ``concurrent.futures`` take.
"""

import argparse
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks import sets
from benchmarks.primitives_linear import binary_steps, candidates, dense_rows, lists, steps_ahead, sums_of_rows
from benchmarks.primitives_timing import Row, seconds
from benchmarks.results import write
from solvers.boosting.simd import LANES, add_vector, interleave, scan_bins
from solvers.boosting.weak_learners.binning import Bins
from solvers.numerics.parallel_for import parallel_for
from solvers.numerics.thread_pool import ThreadPool

PHASES = 100


@njit(nogil=True)
def _histogram_by_vectors(codes: NDArray[Any], U: NDArray[Any], H: NDArray[Any]) -> None:
    for f in range(len(codes)):
        H[:] = 0
        for i in range(codes.shape[1]):
            add_vector(H, np.int64(codes[f, i]) * LANES, U, np.int64(i) * LANES)


@njit(nogil=True)
def _histogram(codes: NDArray[Any], U: NDArray[Any], H: NDArray[Any]) -> None:
    for f in range(len(codes)):
        H[:] = 0
        for i in range(codes.shape[1]):
            at, u = np.int64(codes[f, i]) * LANES, U[i * LANES : (i + 1) * LANES]
            h = H[at : at + LANES]
            for lane in range(LANES):
                h[lane] += u[lane]


@njit(nogil=True)
def _scan_by_vectors(
    H: NDArray[Any], times: int, total: NDArray[Any], best: NDArray[Any], where: NDArray[Any], value: NDArray[Any]
) -> None:
    for _ in range(times):
        scan_bins(H, 0, len(H) // LANES, total, 0, best, where, value)


@njit(nogil=True)
def _scan(
    H: NDArray[Any], times: int, total: NDArray[Any], best: NDArray[Any], where: NDArray[Any], value: NDArray[Any]
) -> None:
    for _ in range(times):
        for lane in range(LANES):
            left = H.dtype.type(0)
            for b in range(len(H) // LANES):
                left += H[b * LANES + lane]
                H[b * LANES + lane] = left
                difference = left + left - total[lane]
                if abs(difference) > best[lane]:
                    best[lane], where[lane], value[lane] = abs(difference), b, difference


@njit(nogil=True)
def _interleave(q: NDArray[Any], first: int, many: int, U: NDArray[Any]) -> None:
    for block in range(U.shape[0]):
        u = U[block]
        for lane in range(min(LANES, q.shape[0] - block * LANES)):
            row = q[block * LANES + lane]
            for i in range(many):
                u[(first + i) * LANES + lane] = row[i]


def boosting(name: str) -> list[Row]:
    """Histograms, their search and the layout of weights, of all classes at once."""
    X, y = sets.load(name)
    bins, rng, rows = Bins.from_matrix(X, 255), np.random.default_rng(0), []
    n, k = X.shape[0], int(y.max()) + 1
    n_bins = int(bins.n_bins.max())
    for kind in (np.int32, np.int64):
        U = rng.integers(-1000, 1000, n * LANES).astype(kind)
        H = np.zeros(n_bins * LANES, kind)
        codes = bins.dense[:16]
        fast, plain = seconds(_histogram_by_vectors, _histogram, arguments=(codes, U, H))
        rows.append((f"add_vector, {kind.__name__}", fast, plain))
        kept = np.full(LANES, 1 << 20, kind), *(np.zeros(LANES, kind) for _ in range(3))
        fast, plain = seconds(_scan_by_vectors, _scan, arguments=(H, 2000, *kept))
        rows.append((f"scan_bins, {kind.__name__}", fast, plain))
        q = rng.integers(-1000, 1000, (k, n)).astype(kind)
        laid_out = np.zeros((-(-k // LANES), n * LANES), kind)
        fast, plain = seconds(interleave, _interleave, arguments=(q, 0, n, laid_out))
        rows.append((f"interleave, {kind.__name__}", fast, plain))
    return rows


@njit(nogil=True)
def _add_up(piece: int, length: int, x: NDArray[Any], sums: NDArray[Any]) -> None:
    total = 0.0
    for i in range(piece * length, (piece + 1) * length):
        total += np.sqrt(x[i])
    sums[piece] = total


@njit(nogil=True)
def _phases(work_queue: NDArray[Any], length: int, x: NDArray[Any], sums: NDArray[Any]) -> None:
    for _ in range(PHASES):
        parallel_for(work_queue, _add_up, len(sums), (length, x, sums))


def _phases_of_calls(thread_pool: ThreadPool, length: int, x: NDArray[Any], sums: NDArray[Any]) -> None:
    for _ in range(PHASES):
        thread_pool.run(partial(_add_up, piece, length, x, sums) for piece in range(len(sums)))


def shared_loops(name: str) -> list[Row]:
    """Phases of sixteen pieces on two threads: a loop shared in compiled code, and calls from a thread pool's queue."""
    X, _ = sets.load(name)
    entries, sums, rows = np.abs(X[:2000].toarray().ravel()), np.zeros(16), []
    for length in (256, 1024):
        x = np.resize(entries, len(sums) * length)
        with ThreadPool(2) as thread_pool:
            loops = partial(_phases, thread_pool.work_queue), partial(_phases_of_calls, thread_pool)
            shared, calls = seconds(*loops, arguments=(length, x, sums))
        rows.append((f"parallel_for, {PHASES} phases of 16 x {length} entries", shared, calls))
    return rows


FAMILIES = {
    "boosting": boosting,
    "threads": shared_loops,
    "scores": sums_of_rows,
    "steps": steps_ahead,
    "classes": candidates,
    "dense rows": dense_rows,
    "lists": lists,
    "binary": binary_steps,
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--set", default="digits")
    arguments.add_argument("--families", nargs="*", default=list(FAMILIES), choices=list(FAMILIES))
    chosen = arguments.parse_args()
    name, table = chosen.set, []
    for family in chosen.families:
        for primitive, fast, plain in FAMILIES[family](name):
            table.append([family, primitive, f"{1e6 * fast:.0f}", f"{1e6 * plain:.0f}", f"{plain / fast:.2f}"])
    header = ["family", "primitive", "primitive, us", "beside it, us", "gain"]
    write(
        f"Primitives on {name}",
        header,
        table,
        "Processor time of all threads, medians of calls in turn; the gain is that of the primitive.",
    )


if __name__ == "__main__":
    main()
