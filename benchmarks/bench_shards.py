"""What does training in class shards cost: epochs, rounds and bytes by the number of shards, and time in two processes?

``counts`` trains all shards as threads of one process, which tells epochs and what travels, not speed. ``pools`` trains
in processes of their own that exchange over the Redis at POLYMARGIN_TEST_REDIS_URL, beside one shard alone and the
method as it is without shards. Both stop at the same relative duality gap; compiling is left out.
"""

import argparse
import multiprocessing
import os
import statistics
import threading
import time
import uuid
from collections.abc import Iterable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from benchmarks import sets
from benchmarks.bench_lock_free import prepared, synthetic
from benchmarks.results import write
from solvers.base import Step
from solvers.problem import Problem
from solvers.registry import SOLVERS, parse_params
from solvers.sharding.exchange import Exchange, Hub
from solvers.sharding.shard import Plan, train
from solvers.sharding.subproblem import BOX, SIMPLEX

KINDS = {"weston_watkins": BOX, "crammer_singer": SIMPLEX}
GAPS = {"debian-section": 1e-2, "debian-maintainer": 4.1e-2, "synthetic": 5e-2}
COUNTED = (1, 2, 3, 4, 8)
TIMEOUT = 300.0


def problem_of(name: str) -> Problem:
    return synthetic(n=50_000, d=50_000, k=5_000) if name == "synthetic" else prepared(name)


def steps(problem: Problem, machine: str, tol: float, exchange: Exchange) -> Iterable[Step]:
    zero = problem.n_classes - 1.0 if machine == "weston_watkins" else 1.0
    return train(problem, Plan(KINDS[machine], 1.0, tol, 1000, np.dtype(np.float32), 0, zero), exchange)


def count(problem: Problem, machine: str, tol: float, size: int) -> list[Any]:
    """Epochs, objective, gap, and rounds and bytes an epoch."""
    hub, ends = Hub(size, TIMEOUT), {}

    def work(rank: int) -> None:
        for step in steps(problem, machine, tol, hub.seat(rank)):
            ends[rank] = (step.epoch, step.primal, step.gap)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    epochs, primal, gap = ends[0]
    return [epochs, f"{primal:.6g}", f"{gap:.2g}", round(hub.rounds / epochs), f"{hub.bytes / epochs / 1e6:.2f}"]


def shard(url: str, gang: str, rank: int, size: int, name: str, machine: str, tol: float, pipe: Connection) -> None:
    """One shard in a process of its own; it trains as often as the parent opens gangs, and tells its figures."""
    from workers.exchange import RedisExchange

    problem = problem_of(name)
    pipe.send(None)
    for number in iter(pipe.recv, None):
        exchange: Any = Hub(1).seat(0)
        if size > 1:
            exchange = RedisExchange(url, f"{gang}{number}", rank, size, timeout=TIMEOUT)
            exchange.barrier()
            exchange.waited = 0.0
        began = time.perf_counter()
        for step in steps(problem, machine, tol, exchange):  # noqa: B007
            pass
        wall = time.perf_counter() - began
        pipe.send((wall, step.epoch, step.gap, getattr(exchange, "waited", 0.0) / wall))


def in_processes(name: str, machine: str, tol: float, size: int, runs: int) -> list[list[float]]:
    """Wall-clock seconds, epochs, gap and share of time waited of each run after a first that compiles."""
    from workers.exchange import close_gang, open_gang

    url = os.environ.get("POLYMARGIN_TEST_REDIS_URL", "")
    gang, context = f"bench-{uuid.uuid4().hex[:8]}-", multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(size)]
    members = [
        context.Process(target=shard, args=(url, gang, rank, size, name, machine, tol, pipes[rank][1]))
        for rank in range(size)
    ]
    for member in members:
        member.start()
    try:
        for pipe, _ in pipes:
            pipe.recv()
        found = []
        for number in range(runs + 1):
            if size > 1:
                open_gang(url, f"{gang}{number}")
            for pipe, _ in pipes:
                pipe.send(number)
            first, *_ = [pipe.recv() for pipe, _ in pipes]
            found.append(first)
            if size > 1:
                close_gang(url, f"{gang}{number}")
        for pipe, _ in pipes:
            pipe.send(None)
        return found[1:]
    finally:
        for member in members:
            member.join(TIMEOUT)


def alone(name: str, machine: str, tol: float, runs: int) -> list[list[float]]:
    """The same figures of the method without shards."""
    problem, found = problem_of(name), []
    for _ in range(runs + 1):
        began = time.perf_counter()
        for step in SOLVERS[machine](parse_params(machine, {"tol": tol, "dtype": "float32"})).steps(problem):  # noqa: B007
            pass
        found.append([time.perf_counter() - began, step.epoch, step.gap, 0.0])
    return found[1:]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--parts", nargs="*", default=["counts", "pools"], choices=["counts", "pools"])
    arguments.add_argument(
        "--sets", nargs="*", default=[name for name in GAPS if name in (*sets.available(), "synthetic")]
    )
    arguments.add_argument("--machines", nargs="*", default=["weston_watkins"], choices=list(KINDS))
    arguments.add_argument("--runs", type=int, default=3)
    chosen = arguments.parse_args()
    if "counts" in chosen.parts:
        rows = []
        for name in (name for name in chosen.sets if name != "synthetic"):
            problem = problem_of(name)
            for machine in chosen.machines:
                for size in COUNTED:
                    figures = count(problem, machine, GAPS[name], size)
                    rows.append(
                        [name, machine, problem.n_samples, problem.n_classes, f"{GAPS[name]:g}", size, *figures]
                    )
                    print(rows[-1], flush=True)
        header = [
            "set",
            "machine",
            "n",
            "k",
            "to gap",
            "shards",
            "epochs",
            "objective",
            "gap",
            "rounds an epoch",
            "MB an epoch",
        ]
        write("Class shards: epochs and what travels", header, rows, "C = 1; MB: of all shards together.")
    if "pools" in chosen.parts:
        rows = []
        for name in chosen.sets:
            for machine in chosen.machines:
                args = (name, machine, GAPS[name])
                ways = {"no shards": alone(*args, chosen.runs)}
                ways |= {f"{size} shards": in_processes(*args, size, chosen.runs) for size in (1, 2)}
                for way, found in ways.items():
                    wall, epochs, gap, waited = (statistics.median(column) for column in zip(*found, strict=True))
                    figures = [
                        f"{wall:.2f}",
                        f"{epochs:g}",
                        f"{gap:.2g}",
                        f"{wall / epochs:.2f}",
                        f"{100 * waited:.0f} %",
                    ]
                    rows.append([name, machine, f"{GAPS[name]:g}", way, *figures, f"{os.getloadavg()[0]:.1f}"])
                    print(rows[-1], flush=True)
        header = ["set", "machine", "to gap", "way", "wall s", "epochs", "gap", "s an epoch", "waited", "load"]
        write("Class shards: time in processes of their own", header, rows, f"C = 1; medians of {chosen.runs} runs.")


if __name__ == "__main__":
    main()
