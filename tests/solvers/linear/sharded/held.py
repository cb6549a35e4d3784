"""What a shard's process holds of memory, measured within that process."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params
from solvers.sharding.exchange import Hub
from solvers.sharding.shardable import shardable

PARAMS = {"dtype": "float32", "max_epochs": 1}


def most_held(machine: str, n: int, d: int, k: int) -> tuple[int, int]:
    """The most bytes that training an epoch in one shard takes in a process of its own, and the bytes forecast.

    What the interpreter and the compiled code take is not counted. Linux only.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measured, machine, n, d, k).result()


def _measured(machine: str, n: int, d: int, k: int) -> tuple[int, int]:
    solver = SOLVERS[machine](parse_params(machine, PARAMS))
    for _ in shardable(solver).sharded(_text(60, 200, 5), Hub(1).exchange(0)):
        pass
    before = _resident("VmRSS")
    problem = _text(n, d, k)
    # from here on the peak of resident memory counts again: making the data took more
    Path("/proc/self/clear_refs").write_text("5")
    for _ in shardable(solver).sharded(problem, Hub(1).exchange(0)):
        pass
    counts, n_features = np.bincount(problem.y), int(np.count_nonzero(np.bincount(problem.X.indices)))
    (share,) = shardable(solver).forecast(counts, n_features, problem.X.nnz, 1).shares
    return _resident("VmHWM") - before, share.memory_bytes


def _resident(which: str) -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith(which)).split()[1])


def _text(n: int, d: int, k: int) -> Problem:
    """Rows of some words that all classes share and some of their own."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % k).astype(np.int32)
    columns = np.hstack([rng.integers(0, d, (n, 10)), (31 * y[:, None] + rng.integers(0, 30, (n, 10))) % d])
    X = sp.csr_matrix((np.full(20 * n, 20**-0.5), columns.ravel(), 20 * np.arange(n + 1)), shape=(n, d))
    X.sum_duplicates()
    return Problem.check(X, y)
