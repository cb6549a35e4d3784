"""What does training in class shards cost: epochs, rounds and bytes by the number of shards, and time in two processes?

``counts`` trains all shards as threads of one process, by each exchange that the method and the papers have, which
shows epochs and what travels, not speed. ``alternation`` does so for Lee-Lin-Wahba, by sums and by the mean, beside the
alternation of Alber et al. 2017 as :mod:`benchmarks.bench_lee_lin_wahba` has it: its classes need nothing of each other
but their mean after each tenth of an epoch, so that it takes the same epochs in any number of shards.

``paper`` trains nothing: it plans 64 shards of a set as large as LSHTC-2011. ``pools`` trains in processes of their own
that exchange over the Redis at POLYMARGIN_TEST_REDIS_URL, in turns with one shard alone and the method as it is without
shards. All stop at the same relative duality gap; compiling is left out.
"""

import argparse
import itertools
import multiprocessing
import os
import statistics
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from benchmarks import sets
from benchmarks.bench_lee_lin_wahba import MOST_EPOCHS, MOST_SECONDS, PARTS, Point, reference, until
from benchmarks.bench_lock_free import prepared, synthetic
from benchmarks.bench_precise import noisy
from benchmarks.papers.exchanges import Kind, kinds, sharded
from benchmarks.papers.exchanges.forecast import forecast
from benchmarks.results import write
from solvers.core.base import Step
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params
from solvers.sharding.exchange import Exchange, Hub, gather
from solvers.sharding.plan import LEAST, MOST

MACHINES = ("weston_watkins", "crammer_singer", "lee_lin_wahba")
GAPS = {"debian-section": 1e-2, "debian-maintainer": 4.1e-2, "synthetic": 5e-2}
COUNTED = (1, 2, 3, 4, 8)
ALTERNATION_GAP, ALTERNATION_SETS = 1e-2, ("20news", "debian-section")
TIMEOUT = 300.0
# rows, features, classes, C and gap of little data
LITTLE = ((90, 10, 5, 1.0, 1e-3), (90, 10, 5, 10.0, 1e-3), (400, 12, 6, 3.0, 1e-4))
MOST_LITTLE = 3000
LARGE = {"n": 394_754, "d": 594_158, "k": 27_875, "nnz": 130}
LARGE_SHARDS, NETWORK, ROUND_TRIP = 64, 1.25e9, 5e-4


def problem_of(name: str) -> Problem:
    return synthetic(n=50_000, d=50_000, k=5_000) if name == "synthetic" else prepared(name)


def steps(
    problem: Problem, machine: str, tol: float, exchange: Exchange, kind: Kind | None = None, **params: Any
) -> Iterable[Step]:
    solver = SOLVERS[machine](parse_params(machine, {"tol": tol, "dtype": "float32"} | params))
    return sharded(solver, problem, exchange, None, kind)


def count(problem: Problem, machine: str, tol: float, size: int, kind: Kind, **params: Any) -> list[Any]:
    """Epochs, objective, gap, and rounds and bytes an epoch."""
    hub, ends = Hub(size, TIMEOUT), {}

    def work(rank: int) -> None:
        for step in steps(problem, machine, tol, hub.exchange(rank), kind, **params):
            ends[rank] = (step.epoch, step.primal, step.gap)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    epochs, primal, gap = ends[0]
    return [epochs, f"{primal:.6g}", f"{gap:.2g}", round(hub.rounds / epochs), f"{hub.bytes / epochs / 1e6:.2f}"]


def shard(url: str, gang: str, rank: int, size: int, name: str, machine: str, tol: float, pipe: Connection) -> None:
    """One shard in a process of its own; it trains as often as the parent opens gangs, and reports its figures."""
    from workers.running.cpu_affinity import current, separated
    from workers.sharding.exchange import RedisExchange
    from workers.sharding.gang import decode, encode

    problem = problem_of(name)
    pipe.send(None)
    for number in iter(pipe.recv, None):
        exchange: Any = Hub(1).exchange(0)
        if size > 1:
            exchange = RedisExchange(url, f"{gang}{number}", rank, size, timeout=TIMEOUT)
        affinities = [decode(part[0]) for part in gather(exchange, [encode(current())])]
        exchange.waited = 0.0
        with separated(affinities, rank):
            began = time.perf_counter()
            for step in steps(problem, machine, tol, exchange):  # noqa: B007
                pass
            wall = time.perf_counter() - began
        pipe.send((wall, step.epoch, step.gap, getattr(exchange, "waited", 0.0) / wall))


class Gang:
    """Shards in processes of their own, with everything loaded, which train as often as they are asked to."""

    def __init__(self, name: str, machine: str, tol: float, size: int) -> None:
        self._url = os.environ.get("POLYMARGIN_TEST_REDIS_URL", "")
        self._name, context = f"bench-{uuid.uuid4().hex[:8]}-", multiprocessing.get_context("spawn")
        self._pipes = [context.Pipe() for _ in range(size)]
        args = [(self._url, self._name, rank, size, name, machine, tol) for rank in range(size)]
        self._members = [
            context.Process(target=shard, args=(*some, pipe)) for some, (_, pipe) in zip(args, self._pipes, strict=True)
        ]
        self._runs = itertools.count()
        for member in self._members:
            member.start()
        for pipe, _ in self._pipes:
            pipe.recv()

    def train(self) -> list[float]:
        """Wall-clock seconds, epochs, gap and share of time waited."""
        from workers.sharding.gang_keys import close_gang, open_gang

        number = next(self._runs)
        if len(self._members) > 1:
            open_gang(self._url, f"{self._name}{number}")
        for pipe, _ in self._pipes:
            pipe.send(number)
        first, *_ = [pipe.recv() for pipe, _ in self._pipes]
        if len(self._members) > 1:
            close_gang(self._url, f"{self._name}{number}")
        return list(first)

    def end(self) -> None:
        for pipe, _ in self._pipes:
            pipe.send(None)
        for member in self._members:
            member.join(TIMEOUT)


def alone(problem: Problem, machine: str, tol: float) -> list[float]:
    """The same figures of the method without shards."""
    began = time.perf_counter()
    for step in SOLVERS[machine](parse_params(machine, {"tol": tol, "dtype": "float32"})).steps(problem):  # noqa: B007
        pass
    return [time.perf_counter() - began, step.epoch, step.gap, 0.0]


def in_turns(name: str, machine: str, tol: float, runs: int) -> dict[str, list[list[float]]]:
    """Figures of each run of each way, one after the other, and again: the speed of a machine comes and goes."""
    problem, gangs = problem_of(name), {size: Gang(name, machine, tol, size) for size in (1, 2)}
    ways: dict[str, Callable[[], list[float]]] = {"no shards": partial(alone, problem, machine, tol)}
    ways |= {f"{size} shard{'s' * (size > 1)}": gang.train for size, gang in gangs.items()}
    try:
        found = [{what: way() for what, way in ways.items()} for _ in range(runs + 1)]
        # the first run compiles
        return {what: [run[what] for run in found[1:]] for what in ways}
    finally:
        for gang in gangs.values():
            gang.end()


def alternation(names: Iterable[str], sizes: Iterable[int]) -> None:
    """Epochs of Lee-Lin-Wahba to a gap in shards, and of the alternation."""
    rows: list[list[Any]] = []
    for name in names:
        problem = problem_of(name)
        for kind, size in itertools.product(kinds(SOLVERS["lee_lin_wahba"]), sizes):
            figures = count(problem, "lee_lin_wahba", ALTERNATION_GAP, size, kind)
            rows.append([name, problem.n_samples, problem.n_classes, kind, size, *figures])
            print(rows[-1], flush=True)
        for shrink in (False, True):
            end = until(reference(problem, shrink=shrink), ALTERNATION_GAP)[-1]
            way = "alternation, shrinking" if shrink else "alternation"
            rows.append([name, problem.n_samples, problem.n_classes, way, "any", *_figures(end, problem)])
            print(rows[-1], flush=True)
    header = ["set", "n", "k", "way", "shards", "epochs", "objective", "gap", "rounds an epoch", "MB an epoch"]
    note = (
        f"C = 1, to a gap of {ALTERNATION_GAP:g}; the alternation is stopped after {MOST_EPOCHS} epochs or "
        f"{MOST_SECONDS:g} s of one process. Its bytes are those of 2 shards, each of which sends the sum of its "
        "weights, float32, in every round."
    )
    write("Class shards: Lee-Lin-Wahba beside the alternation of Alber et al.", header, rows, note)


def _figures(end: Point, problem: Problem) -> list[Any]:
    sent = 2 * PARTS * 4 * problem.n_features / 1e6
    reached = end.epoch if end.gap <= ALTERNATION_GAP else f"> {end.epoch}"
    return [reached, "", f"{end.gap:.2g}", PARTS, f"{sent:.2f}"]


def little() -> None:
    """Epochs of little data without shards and in shards."""
    rows: list[list[Any]] = []
    for (n, d, k, C, gap), machine in itertools.product(LITTLE, ("weston_watkins", "crammer_singer")):
        problem = noisy(n, d, k)
        solver = SOLVERS[machine](parse_params(machine, {"tol": gap, "C": C, "max_epochs": MOST_LITTLE}))
        *_, last = solver.steps(problem)
        alone = last.epoch
        rows.append([n, d, k, machine, f"{C:g}", f"{gap:g}", "no shards", alone, f"{last.gap:.2g}", "1.0"])
        print(rows[-1], flush=True)
        for kind, size in itertools.product(kinds(SOLVERS[machine]), (1, 2)):
            epochs, _, reached, *_ = count(problem, machine, gap, size, kind, C=C, max_epochs=MOST_LITTLE)
            way = f"{size} shard{'s' * (size > 1)}, {kind}"
            rows.append([n, d, k, machine, f"{C:g}", f"{gap:g}", way, epochs, reached, f"{epochs / alone:.1f}"])
            print(rows[-1], flush=True)
    header = ["n", "d", "k", "machine", "C", "to gap", "way", "epochs", "gap", "epochs by those without"]
    note = f"Made rows in noisy clusters; ended after {MOST_LITTLE:,} epochs."
    write("Class shards: epochs on little data", header, rows, note)


def large() -> None:
    """What an epoch of Weston-Watkins and of Lee-Lin-Wahba would take where no single machine has the memory."""
    n, d, k = LARGE["n"], LARGE["d"], LARGE["k"]
    # as unequal as the classes of a web directory are: a few of a thousand rows, most of a few
    shares = 1.0 / np.arange(1.0, k + 1.0) ** 0.75
    counts = np.maximum(np.floor((n - k) * shares / shares.sum()).astype(np.int64) + 1, 1)
    counts[0] += n - counts.sum()
    rows = []
    for machine in ("weston_watkins", "lee_lin_wahba"):
        for kind in kinds(SOLVERS[machine]):
            for rates in (LEAST, MOST) if kind == "scores" else (MOST,):
                rates = rates._replace(bandwidth=NETWORK, round_trip=ROUND_TRIP)
                found = forecast(counts, d, n * LARGE["nnz"], LARGE_SHARDS, 4, 1, rates, kind)
                most = max(share.memory_bytes for share in found.shares)
                figures = [found.rounds, f"{found.bytes / 1e9:.3g}", f"{most / 1e9:.2f}", f"{found.seconds:.3g}"]
                taken = f"{rates.batch:g} examples a round, {rates.once:g} and {rates.message:g} bytes"
                taken = taken if kind == "scores" else ""
                rows.append([machine, kind, taken, *figures])
    header = ["machine", "exchange", "taken for granted", "rounds", "GB sent", "GB a shard", "s"]
    note = (
        f"By the plan, not measured: one epoch over n = {n:,}, d = {d:,}, k = {k:,}, {LARGE['nnz']} entries a row in "
        f"{LARGE_SHARDS} shards of one thread, float32, over one Redis whose link carries {NETWORK:.3g} bytes a "
        f"second, {1e3 * ROUND_TRIP:g} ms a round. What all shards read leaves Redis once for each."
    )
    write("Class shards: 64 of them at the size of LSHTC-2011, by the plan", header, rows, note)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    parts = ["counts", "alternation", "paper", "pools", "little"]
    arguments.add_argument("--parts", nargs="*", default=parts, choices=parts)
    arguments.add_argument(
        "--sets", nargs="*", default=[name for name in GAPS if name in (*sets.available(), "synthetic")]
    )
    arguments.add_argument("--machines", nargs="*", default=["weston_watkins"], choices=MACHINES)
    arguments.add_argument("--sizes", nargs="*", type=int, default=COUNTED)
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--gap", type=float, help="of counts and pools, in place of each set's own")
    chosen = arguments.parse_args()
    gaps = {name: chosen.gap or gap for name, gap in GAPS.items()}
    if "counts" in chosen.parts:
        rows = []
        for name in (name for name in chosen.sets if name != "synthetic"):
            problem = problem_of(name)
            for machine in chosen.machines:
                for kind, size in itertools.product(kinds(SOLVERS[machine]), chosen.sizes):
                    figures = count(problem, machine, gaps[name], size, kind)
                    shape = [problem.n_samples, problem.n_classes]
                    rows.append([name, machine, *shape, f"{gaps[name]:g}", kind, size, *figures])
                    print(rows[-1], flush=True)
        header = [
            "set",
            "machine",
            "n",
            "k",
            "to gap",
            "exchange",
            "shards",
            "epochs",
            "objective",
            "gap",
            "rounds an epoch",
            "MB an epoch",
        ]
        write("Class shards: epochs and what travels", header, rows, "C = 1; MB: of all shards together.")
    if "alternation" in chosen.parts:
        alternation([name for name in ALTERNATION_SETS if name in sets.available()], chosen.sizes)
    if "paper" in chosen.parts:
        large()
    if "little" in chosen.parts:
        little()
    if "pools" in chosen.parts:
        for name in chosen.sets:
            rows = []
            for machine in chosen.machines:
                tried = in_turns(name, machine, gaps[name], chosen.runs)
                for what, found in tried.items():
                    wall, epochs, gap, waited = (statistics.median(column) for column in zip(*found, strict=True))
                    figures = [
                        f"{wall:.2f}",
                        f"{epochs:g}",
                        f"{gap:.2g}",
                        f"{wall / epochs:.2f}",
                        f"{100 * waited:.0f} %",
                    ]
                    rows.append([name, machine, f"{gaps[name]:g}", what, *figures, f"{os.getloadavg()[0]:.1f}"])
                    print(rows[-1], flush=True)
            header = ["set", "machine", "to gap", "way", "wall s", "epochs", "gap", "s an epoch", "waited", "load"]
            title = f"Class shards: time in processes of their own: {name}"
            write(title, header, rows, f"C = 1; medians of {chosen.runs} runs, in turns.")


if __name__ == "__main__":
    main()
