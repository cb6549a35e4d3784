"""How long do the all-in-one machines take to small gaps, on few examples and on dense ones, and what does a bias cost?

One thread, processor seconds of the whole training, certificates included; ways that are compared take turns.
"""

import argparse
import statistics
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import sets
from benchmarks.results import write
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

MACHINES = ("weston_watkins", "crammer_singer")
# rows, features, classes
FEW = ((45, 6, 5), (45, 6, 3), (90, 12, 10), (200, 20, 10))
LARGE = ("letter", "satimage")
BIASED = ("naics", "20news")
RUNS = 3
PARTS = ("few", "large", "bias")
MOST_SECONDS = 60.0


def noisy(n: int, d: int, k: int) -> Problem:
    """Rows around a centre for each class, as far from it as centres are from each other."""
    rng, y = np.random.default_rng(0), (np.arange(n) % k).astype(np.int32)
    return Problem.check(sp.csr_matrix(rng.normal(size=(n, d)) + rng.normal(size=(k, d))[y]), y)


def train(machine: str, problem: Problem, **params: Any) -> tuple[float, Any]:
    """Processor seconds and the last step with bounds; ended at a step after ``MOST_SECONDS``."""
    solver, last = SOLVERS[machine](parse_params(machine, params)), None
    began = time.process_time()
    for step in solver.steps(problem):
        last = step if last is None or np.isfinite(step.primal) else last
        if time.process_time() - began > MOST_SECONDS:
            break
    return time.process_time() - began, last


def in_turns(machine: str, problem: Problem, ways: list[dict[str, Any]], runs: int) -> list[tuple[float, Any]]:
    """Median seconds and the last step of each way; what has to be compiled is before."""
    for way in ways:
        train(machine, problem, **way, max_epochs=30)
    found = [[train(machine, problem, **way) for way in ways] for _ in range(runs)]
    return [(statistics.median(run[0] for run in column), column[0][1]) for column in zip(*found, strict=True)]


def few(runs: int) -> None:
    rows = []
    for n, d, k in FEW:
        for machine in MACHINES:
            for C in (1.0, 20.0):
                ((seconds, last),) = in_turns(machine, noisy(n, d, k), [{"C": C, "tol": 1e-7}], runs)
                rows.append([n, d, k, machine, f"{C:g}", last.epoch, f"{seconds:.3g}", f"{last.gap:.1e}"])
                print(rows[-1], flush=True)
    header = ["n", "d", "k", "machine", "C", "epochs", "s", "gap"]
    write("To a gap of 1e-7 on few rows", header, rows, f"Made rows in noisy clusters; medians of {runs} runs.")


def large(runs: int) -> None:
    rows = []
    for name in LARGE:
        problem = Problem.check(*sets.load(name))
        for machine in MACHINES:
            ways = [{"tol": tol} for tol in (1e-2, 1e-3, 1e-6)]
            found = in_turns(machine, problem, ways, runs)
            times = [f"{seconds:.3g}" for seconds, _ in found]
            last = found[-1][1]
            ratio = f"{found[2][0] / found[1][0]:.2f}"
            rows.append([name, machine, *times, ratio, last.epoch, f"{last.gap:.1e}"])
            print(rows[-1], flush=True)
    header = ["set", "machine", "s to 1e-2", "s to 1e-3", "s to 1e-6", "1e-6 by 1e-3", "epochs", "gap"]
    note = f"C = 1, no bias; medians of {runs} runs; ended after {MOST_SECONDS:g} s."
    write("To small gaps on dense rows", header, rows, note)


def bias(runs: int) -> None:
    rows = []
    for name in BIASED:
        problem = Problem.check(*sets.load(name))
        for machine in (*MACHINES, "one_vs_rest"):
            (without, first), (with_one, second) = in_turns(machine, problem, [{}, {"bias": 1.0}], runs)
            ratio = f"{with_one / without:.2f}"
            epochs = [first.epoch, second.epoch]
            rows.append([name, machine, f"{without:.3g}", f"{with_one:.3g}", ratio, *epochs])
            print(rows[-1], flush=True)
    header = ["set", "machine", "s without", "s with bias 1", "ratio", "epochs without", "epochs with"]
    write("What a bias costs", header, rows, f"C = 1, to a gap of 1 %; medians of {runs} runs in turns.")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    arguments.add_argument("--runs", type=int, default=RUNS)
    chosen = arguments.parse_args()
    for part in chosen.parts:
        {"few": few, "large": large, "bias": bias}[part](chosen.runs)


if __name__ == "__main__":
    main()
