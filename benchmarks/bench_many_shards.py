"""How near does the plan's forecast come to the rounds and bytes of many shards?

All shards of Weston-Watkins train as threads of one process and exchange scores there, which counts rounds and bytes.
What the data does not determine is measured with few shards: the bytes that travel once from one shard, those that
further shards add, the examples a round and the certificates an epoch from eight. The plan then predicts 16, 32 and 64.

An epoch of 64 machines is modelled beside it: the processor seconds of the busiest shard, and rounds and bytes by the
plan's rates of a network. The plan's own seconds count scores alone.
"""

import argparse
import threading
import time
from typing import NamedTuple

import numpy as np

from benchmarks import sets
from benchmarks.bench_lock_free import prepared, synthetic
from benchmarks.results import write
from solvers.core.problem import Problem
from solvers.linear.sharded.linear_shards import forecast, score_bytes
from solvers.registry import SOLVERS, parse_params
from solvers.sharding.exchange import Hub
from solvers.sharding.plan import Rates
from solvers.sharding.shardable import shardable

SETS = ("naics", "docstrings", "synthetic")
SIZES = (1, 2, 4, 8, 16, 32, 64)
FEW, KNOWN = 1, 8
ROWS, EPOCHS, ITEMSIZE, TIMEOUT = 3000, 4, 4, 3600.0
MACHINE = "weston_watkins"


class Epoch(NamedTuple):
    """Means of an epoch: rounds, bytes of all shards, processor seconds of the busiest, and certificates."""

    rounds: float
    bytes: float
    seconds: float
    certificates: float


def problem_of(name: str, n: int) -> Problem:
    """Rows of length 1, n of them at random where there are more."""
    if name == "synthetic":
        return synthetic(n=n, k=n // 4)
    whole = prepared(name)
    rows = np.random.default_rng(0).permutation(whole.n_samples)[:n]
    return Problem.check(whole.X[rows], np.unique(whole.y[rows], return_inverse=True)[1].astype(np.int32))


def measure(problem: Problem, size: int, epochs: int) -> Epoch:
    """Train in so many shards, and count."""
    hub, seconds, certificates = Hub(size, TIMEOUT), np.zeros(size), np.zeros(size)

    def work(rank: int) -> None:
        solver = SOLVERS[MACHINE](parse_params(MACHINE, {"tol": 1e-9, "dtype": "float32", "max_epochs": epochs}))
        began = time.thread_time()
        for step in shardable(solver).sharded(problem, hub.exchange(rank)):
            certificates[rank] += np.isfinite(step.gap)
        seconds[rank] = time.thread_time() - began

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Epoch(*(value / epochs for value in (hub.rounds, hub.bytes, float(seconds.max()), certificates[0])))


def rates_of(problem: Problem, few: Epoch, known: Epoch) -> Rates:
    """The rates that give what one shard and ``KNOWN`` were measured to take."""
    n, k = problem.n_samples, problem.n_classes
    batch = n / max(1.0, known.rounds - 3)
    rates = Rates(batch=batch, once=0.0, message=0.0, certificates=known.certificates)
    rates = rates._replace(once=(few.bytes - score_bytes(n, k, FEW, ITEMSIZE, rates)) / n)
    # it grows with the message, up to all classes of a shard
    tried = np.geomspace(1e-2, 1e5, 4000)
    made = [score_bytes(n, k, KNOWN, ITEMSIZE, rates._replace(message=float(message))) for message in tried]
    return rates._replace(message=float(tried[min(np.searchsorted(made, known.bytes), len(tried) - 1)]))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--sets", nargs="*", default=[name for name in SETS if name in (*sets.available(), SETS[-1])]
    )
    arguments.add_argument("--sizes", nargs="*", type=int, default=SIZES, help="of one shard and eight in any case")
    arguments.add_argument("--rows", type=int, default=ROWS)
    arguments.add_argument("--epochs", type=int, default=EPOCHS)
    chosen = arguments.parse_args()
    rows: list[list[object]] = []
    for name in chosen.sets:
        problem = problem_of(name, chosen.rows)
        n, k = problem.n_samples, problem.n_classes
        counts, d = np.bincount(problem.y), int(np.count_nonzero(np.bincount(problem.X.indices)))
        measure(problem, 2, 1)
        found = {
            size: measure(problem, size, chosen.epochs) for size in sorted({FEW, KNOWN, *chosen.sizes}) if size <= k
        }
        rates = rates_of(problem, found[FEW], found[KNOWN])
        for size, epoch in found.items():
            plan = forecast(counts, d, problem.X.nnz, size, ITEMSIZE, rates=rates)
            travel = epoch.rounds * rates.round_trip + size * epoch.bytes / rates.bandwidth
            off = [
                f"{100 * (planned / true - 1):+.0f} %"
                for planned, true in zip((plan.rounds, plan.bytes), epoch, strict=False)
            ]
            figures = [
                f"{epoch.rounds:.0f}",
                plan.rounds,
                off[0],
                f"{epoch.bytes / n:.0f}",
                f"{plan.bytes / n:.0f}",
                off[1],
            ]
            clock = [f"{epoch.seconds:.2f}", f"{epoch.seconds + travel:.2f}", f"{plan.seconds:.2f}"]
            rows.append([name, n, k, size, *figures, *clock])
            print(rows[-1], flush=True)
    header = ["set", "n", "k", "shards", "rounds an epoch", "planned", "off", "bytes a row and epoch", "planned", "off"]
    header += ["busiest shard's s", "modelled s", "planned s"]
    note = (
        f"Weston-Watkins, C = 1, float32, the first {chosen.epochs} epochs. Rates: from {FEW} shard what travels once, "
        f"from {KNOWN} what a shard adds and the examples a round; only the other rows test the plan. Modelled: the "
        "busiest shard's processor seconds with 1 ms a round and 1 Gbit/s, by which each shard is sent what all send."
    )
    write("Class shards: 16 to 64 of them beside the plan", header, rows, note)


if __name__ == "__main__":
    main()
