"""What do threads gain: steps of a batch at once, whose result does not depend on them, or lock-free visits?

Weston-Watkins and Crammer-Singer at C = 1, epochs and seconds to one gap, relative to the sequential solver of the same
run. Lock-free threads visit disjoint examples on one shared W, each with dual variables of its own; W is rebuilt from
them before each certificate.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import scipy.sparse as sp

from benchmarks import sets
from benchmarks.results import write
from solvers.core.base import relative_gap
from solvers.core.problem import Problem
from solvers.linear.layouts.hybrid_layout import Weights
from solvers.linear.relative_margins import RelativeMargins
from solvers.linear.sharded.score_exchange import ScoreTraining
from solvers.linear.sharded.task import Plan
from solvers.linear.sharded.training import train
from solvers.linear.steps import joint
from solvers.linear.visits import STATISTICS, Progress, Task, Visits
from solvers.numerics import coefficients, scaling_search
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.rows import arrange, square_norm, weights
from solvers.registry import SOLVERS, parse_params
from solvers.sharding.exchange import Hub

GAPS = {"debian-section": 4.5e-3, "debian-maintainer": 4.1e-2, "usps": 1e-2, "letter": 5e-2, "synthetic": 5e-2}
MACHINES = ("weston_watkins", "crammer_singer")
SHRINK_AFTER, INNER_PASSES = 3, 4


def lock_free(machine: str, problem: Problem, tol: float, threads: int) -> Iterator[tuple[int, float]]:
    """Epoch and gap of a machine whose threads write to one W without asking each other."""
    solver = SOLVERS[machine](parse_params(machine, {"tol": tol}))
    assert isinstance(solver, RelativeMargins)
    rows, _ = arrange(problem.X, np.dtype(np.float32))
    n, k, bounds = problem.n_samples, problem.n_classes, problem.weights
    task = Task(rows, problem.y, bounds, k)
    W, unchanged = weights(int(rows.indices.max()) + 1, k, np.dtype(np.float32)), np.zeros(n, np.uint8)
    shared = Weights(W, None)
    pools = [coefficients.empty(n, 1 << 17) for _ in range(threads)]
    parts = [np.arange(t, n, threads, dtype=np.int32) for t in range(threads)]
    parts = [part[rows.squares[part] > 0] for part in parts]
    statistics, gaps, certified = np.zeros((threads, 1), STATISTICS), np.zeros(n), 0
    gains = np.zeros(n, np.float32)

    def work(t: int, epoch: int) -> None:
        rng, active = np.random.default_rng([0, epoch, t]), parts[t][unchanged[parts[t]] < SHRINK_AFTER]
        statistics[t] = 0.0
        progress = Progress(unchanged, gains, statistics[t])
        for turn in range(1 + INNER_PASSES):
            order, at = rng.permutation(active), 0
            while at < len(order):
                pools[t] = coefficients.with_capacity(pools[t], 1 << 16)
                visits = Visits(order, at, len(order), turn == 0, k if turn == 0 else 0)
                at = joint.visit(task, visits, solver.largest_loss, *shared, pools[t], progress, None)

    with ThreadPoolExecutor(threads) as thread_pool:
        for epoch in range(1, 1000):
            list(thread_pool.map(work, range(threads), [epoch] * threads))
            gap, losses = (statistics[name].sum() for name in ("gap", "losses"))
            promising = gap <= tol * (losses + 0.5 * square_norm(W, k))
            if not (promising or 10 * certified < epoch):
                continue
            certified += 1
            whole = _united(pools)
            coefficients.rebuild(rows, whole, W)
            terms = scaling_search.blank()
            loss, total = joint.certify(task, solver.largest_loss, *shared, whole, gaps, terms)
            half = 0.5 * square_norm(W, k)
            primal, _ = scaling_search.best_point(half, loss, terms, scaling_search.ONE)
            yield epoch, relative_gap(primal, total - half)
            unchanged[gaps > 0.1 * tol * primal / n] = 0
            if promising:
                unchanged[:] = 0


def _united(pools: list[Coefficients]) -> Coefficients:
    shifts = np.cumsum([0, *(len(pool.classes) for pool in pools)])
    start = sum(np.where(pool.length > 0, pool.start + shift, 0) for pool, shift in zip(pools, shifts, strict=False))
    return Coefficients(
        np.asarray(start, np.int64),
        np.sum([pool.length for pool in pools], axis=0, dtype=np.int32),
        np.sum([pool.length for pool in pools], axis=0, dtype=np.int32),
        np.concatenate([pool.classes for pool in pools]),
        np.concatenate([pool.values for pool in pools]),
        shifts[-1:].astype(np.int64),
    )


def sequential(machine: str, problem: Problem, tol: float) -> Iterator[tuple[int, float]]:
    for step in SOLVERS[machine](parse_params(machine, {"tol": tol})).steps(problem):
        yield step.epoch, step.gap


def batches(machine: str, problem: Problem, tol: float, threads: int) -> Iterator[tuple[int, float]]:
    largest_loss = machine == "crammer_singer"
    zero = 1.0 if largest_loss else problem.n_classes - 1.0
    plan = Plan(1.0, tol, 1000, np.dtype(np.float32), 0, zero, largest_loss)
    for step in train(partial(ScoreTraining, problem, plan, Hub(1).exchange(0)), threads):
        yield step.epoch, step.gap


def measure(run: Callable[[], Iterator[tuple[int, float]]], tol: float) -> tuple[int, float, float]:
    """Epochs, processor seconds and wall seconds to the gap."""
    cpu, wall = time.process_time(), time.perf_counter()
    for epoch, gap in run():  # noqa: B007
        if gap <= tol:
            break
    return epoch, time.process_time() - cpu, time.perf_counter() - wall


def synthetic(n: int = 8000, d: int = 20_000, k: int = 2000, cells: int = 40) -> Problem:
    """Text-like rows: Zipf-distributed features, a third of them from the words of the row's class."""
    rng = np.random.default_rng(0)
    share = 1.0 / np.arange(1, d + 1) ** 0.9
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    words = rng.integers(0, d, (k, 30))
    columns = np.concatenate([rng.choice(d, (n, cells * 2 // 3), p=share / share.sum()), words[y][:, : cells // 3]], 1)
    X = sp.csr_matrix((rng.random(columns.size) + 0.1, columns.ravel(), np.arange(n + 1) * columns.shape[1]), (n, d))
    return Problem.check(sp.diags(1 / np.sqrt(X.multiply(X).sum(1)).A1) @ X, y)


def prepared(name: str) -> Problem:
    if name == "synthetic":
        return synthetic()
    X, y = sets.load(name)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return Problem.check(sp.diags(1 / np.where(norms > 0, norms, 1)) @ X, y)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=["synthetic", *(s for s in sets.available() if s in GAPS)])
    arguments.add_argument("--machines", nargs="*", default=MACHINES)
    arguments.add_argument("--runs", type=int, default=3)
    chosen = arguments.parse_args()
    if not os.environ.get("POLYMARGIN_BENCH_DATA"):
        print("POLYMARGIN_BENCH_DATA is not set: the synthetic set alone is measured")
    table = []
    for name in chosen.sets:
        task, tol = prepared(name), GAPS[name]
        for machine in chosen.machines:
            runs_of: dict[str, Callable[[], Iterator[tuple[int, float]]]] = {
                "sequential": partial(sequential, machine, task, tol),
                "batches, 1": partial(batches, machine, task, tol, 1),
                "batches, 2": partial(batches, machine, task, tol, 2),
                "lock-free, 1": partial(lock_free, machine, task, tol, 1),
                "lock-free, 2": partial(lock_free, machine, task, tol, 2),
            }
            for run in runs_of.values():
                next(run())
            found = {what: [measure(run, tol) for _ in range(chosen.runs)] for what, run in runs_of.items()}
            middle = {
                what: [statistics.median(column) for column in zip(*runs, strict=True)] for what, runs in found.items()
            }
            _, cpu, wall = middle["sequential"]
            for what, (epochs, own_cpu, own_wall) in middle.items():
                figures = [f"{own_cpu:.2f}", f"{own_wall:.2f}", f"{own_cpu / cpu:.2f}", f"{own_wall / wall:.2f}"]
                table.append([name, machine, f"{100 * tol:g} %", what, f"{epochs:g}", *figures])
                print(*table[-1], flush=True)
    header = ["set", "machine", "gap", "run, threads", "epochs", "cpu s", "wall s", "cpu ratio", "wall ratio"]
    write("Batches and lock-free threads", header, table, f"Medians of {chosen.runs} runs; rows of unit length.")


if __name__ == "__main__":
    main()
