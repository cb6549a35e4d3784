"""How far from the optimum is each program, and after how long?

One thread, C = 1, no bias, processor seconds. Ours is looked at while it goes, its certificates in its time; a peer is
trained once at each of a ladder of tolerances. Suboptimality is relative to the least objective that any run here has
found, one of them a longer one of ours, whose certified gap says how far that can be off.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks import pictures, sets
from benchmarks.objectives import primal
from benchmarks.peers import LIBLINEAR, capped, liblinear, linear_svc
from benchmarks.results import write
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

SETS = ["docstrings", "20news", "letter", "debian-section"]
MACHINES = ["weston_watkins", "crammer_singer", "one_vs_rest", "one_vs_rest squared"]
LADDER = [1.0, 0.1, 0.03, 0.01, 1e-3, 1e-4]
CAP, LONGER, LOOK = 8, 2, 1.15
MARKS = (1e-2, 1e-3, 1e-4)
OURS = {"float32": 1e-4, "float64": 1e-7}


class Point(NamedTuple):
    seconds: float
    value: float


class Found(NamedTuple):
    """Objectives by program, the gaps that ours has certified, and the least objective of all."""

    objectives: dict[str, list[Point]]
    gaps: list[Point]
    least: float


def ours(machine: str, task: Problem, dtype: str, most: float) -> tuple[list[Point], list[Point]]:
    """The objectives of the model and the certified gaps of one run."""
    name, _, squared = machine.partition(" ")
    params: dict[str, Any] = {"tol": OURS[dtype], "dtype": dtype, "max_epochs": 10**6}
    solver = SOLVERS[name](parse_params(name, params | ({"loss": "squared_hinge"} if squared else {})))
    values, gaps, seconds, looked = [], [], 0.0, 0.0
    steps = solver.steps(task)
    while seconds < most:
        began = time.process_time()
        step = next(steps, None)
        seconds += time.process_time() - began
        if step is None:
            break
        if not np.isnan(step.gap):
            gaps.append(Point(seconds, step.gap))
        if seconds >= LOOK * looked or step.converged:
            looked = seconds
            W = solver.model(task, step.state).coef.T  # type: ignore[attr-defined]
            values.append(Point(seconds, primal(machine.replace(" ", "_"), W, task.X, task.y)))
    return values, gaps


def ladder(machine: str, task: Problem, run: Callable[..., Any], way: int | str) -> Iterator[Point]:
    """A point for each tolerance, until one takes more than the cap."""
    for tol in LADDER:
        found = capped(run, task.X, task.y, way, tol, seconds=CAP)
        if found is None:
            return
        yield Point(found[0], primal(machine.replace(" ", "_"), found[1], task.X, task.y))


def measure(machine: str, task: Problem) -> Found:
    """All runs of one machine on one set."""
    objectives, gaps = {}, []
    for dtype in OURS:
        ours(machine, task, dtype, 0.1)
        most = CAP * LONGER if dtype == "float64" else CAP
        objectives[f"Polymargin, {dtype}"], gaps = ours(machine, task, dtype, most)
    if machine in LIBLINEAR:
        objectives["LIBLINEAR"] = list(ladder(machine, task, liblinear, LIBLINEAR[machine]))
    if machine in LIBLINEAR and machine != "crammer_singer":  # there LinearSVC is LIBLINEAR's own loop
        objectives["LinearSVC"] = list(ladder(machine, task, linear_svc, machine))
    return Found(objectives, gaps, min(point.value for points in objectives.values() for point in points))


def distances(found: Found) -> dict[str, list[Point]]:
    """Relative suboptimality by program."""
    return {
        who: [Point(seconds, (value - found.least) / found.least) for seconds, value in points]
        for who, points in found.objectives.items()
    }


def drawn(name: str, machine: str, found: Found) -> Iterator[pictures.Curve]:
    """The curves of one panel, and the height below which nothing is known."""
    for who, points in (distances(found) | {"certified gap, float64": found.gaps}).items():
        kept = [(p.seconds, p.value) for p in points if p.value >= pictures.LEAST_SHOWN and p.seconds <= CAP]
        yield pictures.Curve(name, machine, who, kept)
    least = max(pictures.LEAST_SHOWN, found.gaps[-1].value)
    yield pictures.Curve(name, machine, pictures.REFERENCE_GAP, [(0.0, least)])


def table_rows(name: str, machine: str, found: Found) -> Iterator[list[str]]:
    for who, points in distances(found).items():
        firsts = [next((f"{p.seconds:.3g}" for p in points if p.value <= mark), "-") for mark in MARKS]
        yield [name, machine, who, *firsts, f"{found.gaps[-1].value:.1e}"]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=[name for name in SETS if name in sets.available()])
    arguments.add_argument("--machines", nargs="*", default=MACHINES)
    chosen = arguments.parse_args()
    rows: list[list[str]] = []
    curves: list[pictures.Curve] = []
    for name in chosen.sets:
        task = Problem.check(*sets.load(name))
        for machine in chosen.machines:
            found = measure(machine, task)
            curves += drawn(name, machine, found)
            for line in table_rows(name, machine, found):
                rows.append(line)
                print(line, flush=True)
    tols = ", ".join(f"{tol:g}" for tol in LADDER)
    note = (
        f"Seconds to a relative suboptimality; of a peer, those of the first of the tolerances {tols} that gets there "
        f"within {CAP} s. A dash: none did. The last column: the gap that {LONGER * CAP} s of ours have certified, "
        "or fewer where it converged; no suboptimality is known more precisely."
    )
    header = ["set", "machine", "program", *(f"s to {mark:g}" for mark in MARKS), "gap of the reference"]
    write("Time to any accuracy", header, rows, note)
    pictures.write("curves", curves)


if __name__ == "__main__":
    main()
