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
from matplotlib.axes import Axes

from benchmarks import pictures, sets
from benchmarks.objectives import primal
from benchmarks.peers import LIBLINEAR, capped, liblinear, linear_svc
from benchmarks.results import write
from solvers.problem import Problem
from solvers.registry import SOLVERS, parse_params

SETS = ["debian-section", "20news", "letter", "docstrings"]
MACHINES = ["weston_watkins", "crammer_singer", "one_vs_rest", "one_vs_rest squared"]
LADDER = [1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4]
CAP, LONGER, LOOK = 12, 2, 1.15
MARKS = (1e-2, 1e-3, 1e-4)
OURS = {"float32": 1e-4, "float64": 1e-7}
LEAST_SHOWN = 1e-7
LOOKS = {
    "Polymargin, float32": {"color": pictures.BLUE, "marker": ""},
    "Polymargin, float64": {"color": pictures.BLUE, "marker": "", "linestyle": "--"},
    "LIBLINEAR": {"color": pictures.VERMILION, "marker": "s"},
    "LinearSVC": {"color": pictures.ORANGE, "marker": "^"},
    "certified gap, float64": {"color": pictures.BLACK, "marker": ".", "linestyle": ":"},
}


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
        objectives["LinearSVC"] = list(ladder(machine, task, linear_svc, machine))
    return Found(objectives, gaps, min(point.value for points in objectives.values() for point in points))


def distances(found: Found) -> dict[str, list[Point]]:
    """Relative suboptimality by program."""
    return {
        who: [Point(seconds, (value - found.least) / found.least) for seconds, value in points]
        for who, points in found.objectives.items()
    }


def draw(panel: Axes, found: Found) -> None:
    for who, points in (distances(found) | {"certified gap, float64": found.gaps}).items():
        kept = [point for point in points if point.value >= LEAST_SHOWN and point.seconds <= CAP]
        panel.loglog(*zip(*kept, strict=True) if kept else ([], []), label=who, **LOOKS[who])
    panel.axhspan(LEAST_SHOWN, max(LEAST_SHOWN, found.gaps[-1].value), color="#EEEEEE", linewidth=0)
    panel.set_ylim(LEAST_SHOWN, 1)


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
    picture = pictures.figure(2.5 * len(chosen.sets) + 0.6, 2.1 * len(chosen.machines) + 0.6)
    panels = picture.subplots(len(chosen.machines), len(chosen.sets), squeeze=False, sharey=True, sharex="col")
    for column, name in enumerate(chosen.sets):
        task = Problem.check(*sets.load(name))
        panels[0, column].set_title(name)
        panels[-1, column].set_xlabel("processor seconds")
        for row, machine in enumerate(chosen.machines):
            found = measure(machine, task)
            draw(panels[row, column], found)
            panels[row, 0].set_ylabel(machine)
            for line in table_rows(name, machine, found):
                rows.append(line)
                print(line, flush=True)
    by_label = {
        label: line for panel in panels.flat for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    picture.legend(list(by_label.values()), list(by_label), loc="outside lower center", ncols=3)
    picture.supylabel("relative suboptimality", fontsize=9)
    note = (
        "Seconds to a relative suboptimality; of a peer, those of the first of the tolerances "
        f"{', '.join(f'{tol:g}' for tol in LADDER)} that gets there within {CAP} s. A dash: none did. The least "
        f"objective is certified to the last column by {LONGER * CAP} s of ours, or to {OURS['float64']:g}."
    )
    header = ["set", "machine", "program", *(f"s to {mark:g}" for mark in MARKS), "gap of the reference"]
    write("Time to any accuracy", header, rows, note)
    pictures.save(picture, "curves")


if __name__ == "__main__":
    main()
