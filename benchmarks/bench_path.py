"""How many trainings certify every C, in which time beside a grid, and how much is certain of the errors in between?

All of it on the training rows of each set, a fifth of which is held out; no bias, one thread. The last training, on all
rows to a gap of 1 %, counts everywhere. The grid has nine values of C, each trained alone to 5 %, as a tuning does it;
the short grid has the five values of ``auto``, each from the solution before.
"""

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import sets
from benchmarks.results import write
from solvers.core.base import Solver, State, Step
from solvers.core.problem import Problem
from solvers.registry import make
from solvers.selection.whole_path import WholePath

LOW, HIGH = 1e-2, 1e2
GRID = tuple(np.geomspace(LOW, HIGH, 9).tolist())
SHORT_GRID = (0.03, 0.1, 0.3, 1.0, 3.0)
TRIAL_TOL = 0.05
SETS, EPS = ("segment", "usps", "20news", "naics", "debian-section", "digits"), (0.05, 0.01, 0.001)
METHODS = ("crammer_singer", "weston_watkins")


def last_of(solver: Solver[Any], problem: Problem, state: State | None = None) -> Step:
    *_, last = solver.steps(problem, state)
    return last


def grid_seconds(name: str, problem: Problem, Cs: tuple[float, ...], *, warm: bool) -> tuple[float, int]:
    """Processor seconds of a grid and of the training of its best on all rows; and the fewest errors."""
    began, fold = time.process_time(), WholePath(make(name, {})).split(problem)
    part, X, y = fold.problem(problem), problem.X[fold.held_out], problem.y[fold.held_out]
    errors, state, before = {}, None, 0.0
    for C in Cs:
        solver = make(name, {"C": C, "tol": TRIAL_TOL})
        last = last_of(solver, part, solver.rescaled(part, state, before) if warm and state is not None else None)
        state, before = last.state, C
        errors[C] = int((solver.model(part, state).scores(X).argmax(axis=1) != y).sum())
    last_of(make(name, {"C": min(errors, key=lambda C: errors[C])}), problem)
    return time.process_time() - began, min(errors.values())


def measure(name: str, method: str, every_eps: Sequence[float]) -> list[list[Any]]:
    """Rows of the table."""
    X, y = sets.load(name)
    problem = Problem.check(X, y)
    # what has to be loaded is before
    next(make(method, {}).steps(problem))
    rows = []
    grid, least = grid_seconds(method, problem, GRID, warm=False)
    short, short_least = grid_seconds(method, problem, SHORT_GRID, warm=True)
    for eps in every_eps:
        began, path = time.process_time(), WholePath(make(method, {}), eps=eps, low=LOW, high=HIGH)
        state = last_of(path, problem).state
        seconds = time.process_time() - began
        found = path.model(problem, state).record["path"]
        undecided = np.array(found["most_errors"]) - np.array(found["least_errors"])
        widths = np.diff(np.log(found["edges"]))
        decided = max(0.0, 1.0 - float(widths @ undecided / widths.sum()) / found["n_held_out"])
        outcome = f"{found['chosen']['errors']} / {found['n_held_out']}"
        times = [f"{each:.1f}" for each in (seconds, grid, short)]
        certain = [f"{found['largest_gap']:.2%}", f"{decided:.1%}", found["bound"]]
        rows.append([name, method, f"{eps:g}", len(found["models"]), *times, *certain, outcome, least, short_least])
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=SETS[:3], choices=SETS)
    arguments.add_argument("--methods", nargs="*", default=METHODS, choices=(*METHODS, "one_vs_rest"))
    arguments.add_argument("--eps", nargs="*", type=float, default=EPS)
    chosen = arguments.parse_args()
    header = ["set", "method", "eps", "solutions", "path s", "grid of 9 s", "short grid of 5 s", "largest gap"]
    header += ["decided", "bound", "errors / held-out rows", "of the grid", "of the short grid"]
    note = (
        f"C from {LOW:g} to {HIGH:g}. Processor seconds, the last training on all rows included. Decided: held-out "
        "rows of which it is certain that the exact optimum is right, or wrong, averaged over log C. Bound: no C of "
        "the range has an optimum with fewer errors on the held-out rows."
    )
    rows = []
    for name in SETS:
        if name in chosen.sets and name in sets.available():
            found = [row for method in chosen.methods for row in measure(name, method, chosen.eps)]
            if "one_vs_rest" in chosen.methods:
                write(f"Every C at once, with a ball for each class: {name}", header, found, note)
            else:
                rows += found
    if rows:
        write("Every C at once", header, rows, note)


if __name__ == "__main__":
    main()
