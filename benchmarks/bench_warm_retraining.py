"""How long does a training take that begins at the dual variables of the version before, when rows have been appended?

The rows of a set are put in random order; the first of them are trained on, then all of them, once from the start and
once from the dual variables of the first training. One thread, processor seconds, to the same certified gap. Features
and order are the same in both; the objectives must agree within the gap.
"""

import statistics
import sys
import time
from itertools import product
from typing import Any

import numpy as np

from benchmarks import sets
from benchmarks.results import write
from solvers.core.base import State, Step
from solvers.core.dual_variables import DualShares
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

SETS = ("naics", "20news", "debian-section", "letter", "satimage", "usps")
MACHINES = ("weston_watkins", "crammer_singer")
GAPS, NEW, RUNS = (1e-2, 1e-3), 1.0 / 11.0, 3  # a tenth of the former rows is an eleventh of all


def trained(solver: Any, task: Problem, state: State | None) -> tuple[float, Step]:
    began = time.process_time()
    *_, last = solver.steps(task, state)
    return time.process_time() - began, last


def main() -> None:
    rows = []
    asked = sys.argv[1:] or SETS
    for name in [name for name in asked if name in sets.available()]:
        X, y = sets.load(name)
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], np.asarray(y)[order]
        n_former = round((1.0 - NEW) * len(y))
        known, index = np.unique(y[:n_former], return_inverse=True)
        former = Problem.check(X[:n_former], index, [str(c) for c in known])
        names, index = np.unique(y, return_inverse=True)
        task = Problem.check(X, index, [str(c) for c in names])
        place = np.where(np.arange(len(y)) < n_former, np.arange(len(y)), -1)
        for machine, tol in product(MACHINES, GAPS):
            solver = SOLVERS[machine](parse_params(machine, {"tol": tol}))
            _, before = trained(solver, former, None)
            shares = DualShares(solver.dual_shares(former, before.state), former.y, former.classes)
            cold, warm = [], []
            for _ in range(RUNS):
                seconds, first = trained(solver, task, None)
                cold.append(seconds)
                began = time.process_time()
                start = solver.warm(task, shares.onto(task, place))
                made = time.process_time() - began
                seconds, second = trained(solver, task, start)
                warm.append(made + seconds)
            slow, fast = statistics.median(cold), statistics.median(warm)
            low, high = max(first.dual, second.dual), min(first.primal, second.primal)
            assert low <= high, "two certificates of one optimum contradict each other"
            rows.append(
                [
                    name, machine, f"{len(y):,}", len(names), tol, f"{slow:.3g}", f"{fast:.3g}", f"{fast / slow:.2f}",
                    f"{first.epoch} / {second.epoch}", f"{first.gap:.4f} / {second.gap:.4f}",
                ]
            )  # fmt: skip
            print(rows[-1], flush=True)
    header = [
        "set",
        "machine",
        "rows",
        "classes",
        "gap asked for",
        "cold, s",
        "warm, s",
        "warm / cold",
        "epochs",
        "gaps",
    ]
    note = (
        f"A tenth of rows appended; medians of {RUNS} runs, one thread; making the start is counted. The training "
        "before had the same gap. A start spares the first passes; all others work in "
        "what the new rows change."
    )
    write("Retraining from the dual variables of the version before", header, rows, note)


if __name__ == "__main__":
    main()
