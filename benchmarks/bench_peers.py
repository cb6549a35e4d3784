"""How long do we take to the peers' own objectives at their own stops, as a share of their time?

The peers are LIBLINEAR and scikit-learn's LinearSVC, which stops a thousand times later. One thread each, C = 1, no
bias, processor seconds; the order alternates. Our time runs until the first step that is seen to be no worse than the
peer, everything included but compiling and the reading of that objective.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks import sets
from benchmarks.objectives import primal
from benchmarks.peers import LIBLINEAR, capped, liblinear, linear_svc
from benchmarks.results import write
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

MOST_EPOCHS, LOOK = 20_000, 1.02
ENOUGH, SVC_CAP, PATIENCE = 20.0, 120, 10


def ours(
    machine: str,
    task: Problem,
    target: float,
    *,
    dtype: str = "float32",
    threads: int = 1,
    clock: Callable[[], float] = time.process_time,
    most_seconds: float = np.inf,
) -> tuple[float, int, float]:
    """Seconds, epochs and objective at the first step seen to be at the target; all nan or at their limit if none is.

    A step is looked at where a fiftieth more time has passed than at the last look: reading takes longer than stepping.
    """
    name, _, squared = machine.partition(" ")
    params = {"tol": 1e-9, "dtype": dtype, "max_epochs": MOST_EPOCHS} | ({"loss": "squared_hinge"} if squared else {})
    solver = SOLVERS[name](parse_params(name, params), threads=threads)
    seconds, looked, steps = 0.0, 0.0, solver.steps(task)
    while True:
        began = clock()
        step = next(steps, None)
        seconds += clock() - began
        if step is None or seconds > most_seconds:
            return np.nan, MOST_EPOCHS, np.nan
        if seconds < LOOK * looked and not step.converged:
            continue
        looked = seconds
        model = solver.model(task, step.state)
        W = np.zeros((task.n_features, task.n_classes), model.W.dtype)
        W[model.features] = model.W
        value = primal(machine.replace(" ", "_"), W, task.X, task.y)
        if value <= target:
            return seconds, step.epoch, value


def against_svc(machine: str, task: Problem, runs: int) -> list[str]:
    """LinearSVC's seconds, ours to its objective and their ratio; one run where one is long, and none beyond a cap."""
    name, found = machine.replace(" ", "_"), []
    while len(found) < runs and (not found or found[0][0] < ENOUGH):
        peer = capped(linear_svc, task.X, task.y, machine, seconds=SVC_CAP)
        if peer is None:
            return [f"> {SVC_CAP}", "-", "-"]
        target = primal(name, peer[1], task.X, task.y)
        found.append((peer[0], ours(machine, task, target, dtype="float64", most_seconds=PATIENCE * peer[0])[0]))
    if np.isnan([mine for _, mine in found]).any():
        return [f"{statistics.median(peer for peer, _ in found):.3g}", "not reached", f"> {PATIENCE}"]
    columns = zip(*((peer, mine, mine / peer) for peer, mine in found), strict=True)
    return [f"{statistics.median(column):.3g}" for column in columns]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=sets.available())
    arguments.add_argument("--machines", nargs="*", default=list(LIBLINEAR))
    arguments.add_argument("--eps", type=float, default=None, help="LIBLINEAR's tolerance; its default when left out")
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--without-svc", action="store_true", help="leave LinearSVC out, which takes the longest")
    chosen = arguments.parse_args()
    rows = []
    for name in chosen.sets:
        X, y = sets.load(name)
        task = Problem.check(X, y)
        for machine in chosen.machines:
            for dtype in ("float32", "float64"):
                ours(machine, task, np.inf, dtype=dtype)
            ratios, ours_seconds, peer_seconds = [], [], []
            for number in range(chosen.runs):
                peer, W = liblinear(X, y, LIBLINEAR[machine], chosen.eps)
                target = primal(machine.replace(" ", "_"), W, X, y)
                if number == 0 and chosen.eps is not None:
                    # what only long runs come to is compiled here
                    ours(machine, task, target)
                mine, epochs, value = ours(machine, task, target)
                ratios.append(mine / peer)
                ours_seconds.append(mine)
                peer_seconds.append(peer)
            times = [f"{statistics.median(values):.3g}" for values in (peer_seconds, ours_seconds, ratios)]
            second = ["-"] * 3 if chosen.without_svc else against_svc(machine, task, chosen.runs)
            figures = [*times, f"{target:.6g}", f"{value:.6g}", epochs, *second]
            rows.append([name, machine, *X.shape, task.n_classes, *figures])
            print(rows[-1], flush=True)
    header = ["set", "machine", "n", "d", "k", "LIBLINEAR s", "ours s", "ratio", "its objective", "ours", "epochs"]
    title = "Time to LIBLINEAR's objective" + (f" at eps {chosen.eps}" if chosen.eps else " at its default stop")
    note = (
        f"Medians of {chosen.runs} runs; ratio is the median of the runs' ratios. Last three columns: scikit-learn's "
        "LinearSVC at its default stop (tol 1e-4, at most 1,000 iterations), ours to its objective in float64, and the "
        f"ratio; one run where it takes more than {ENOUGH:g} s, ended after {SVC_CAP} s."
    )
    write(title, [*header, "LinearSVC s", "ours to it, s", "ratio"], rows, note)


if __name__ == "__main__":
    main()
