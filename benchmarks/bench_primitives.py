"""What do loops written as vectors in LLVM's own language gain on plain numba?

Each primitive beside a plain loop of the same result, on data of a named set, one thread: the median of the seconds of
several calls. A primitive that gains less than 1.3 times is not worth its keep.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks import sets
from benchmarks.results import write
from solvers.boosting.simd import LANES, add_vector, interleave, scan_bins
from solvers.boosting.weak_learners.binning import Bins

REPETITIONS = 15
Row = tuple[str, float, float]


def seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """The median of several calls, after one that compiles."""
    function(*arguments)
    times = []
    for _ in range(REPETITIONS):
        began = time.process_time()
        function(*arguments)
        times.append(time.process_time() - began)
    return statistics.median(times)


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
    bins, rng, rows = Bins.of(X, 255), np.random.default_rng(0), []
    n, k = X.shape[0], int(y.max()) + 1
    n_bins = int(bins.n_bins.max())
    for kind in (np.int32, np.int64):
        U = rng.integers(-1000, 1000, n * LANES).astype(kind)
        H = np.zeros(n_bins * LANES, kind)
        codes = bins.dense[:16]
        fast, plain = (seconds(loop, codes, U, H) for loop in (_histogram_by_vectors, _histogram))
        rows.append((f"add_vector, {kind.__name__}", fast, plain))
        kept = np.full(LANES, 1 << 20, kind), *(np.zeros(LANES, kind) for _ in range(3))
        fast, plain = (seconds(loop, H, 2000, *kept) for loop in (_scan_by_vectors, _scan))
        rows.append((f"scan_bins, {kind.__name__}", fast, plain))
        q = rng.integers(-1000, 1000, (k, n)).astype(kind)
        laid_out = np.zeros((-(-k // LANES), n * LANES), kind)
        fast, plain = (seconds(loop, q, 0, n, laid_out) for loop in (interleave, _interleave))
        rows.append((f"interleave, {kind.__name__}", fast, plain))
    return rows


FAMILIES = {"boosting": boosting}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--set", default="digits")
    name = arguments.parse_args().set
    table = []
    for family, measure in FAMILIES.items():
        for primitive, fast, plain in measure(name):
            table.append([family, primitive, f"{1e6 * fast:.0f}", f"{1e6 * plain:.0f}", f"{plain / fast:.2f}"])
    header = ["family", "primitive", "vectors, us", "plain numba, us", "gain"]
    write(f"Primitives on {name}", header, table, "Processor time of one thread; the gain is that of the vectors.")


if __name__ == "__main__":
    main()
