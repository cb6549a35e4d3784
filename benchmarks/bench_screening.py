"""How many dual variables does the duality gap prove to be zero, and how much time would a training without them save?

C = 1, no bias, one thread. A row's dual variable of a class is zero at the optimum if the margin exceeds 1 by more than
the ball around W allows; a row without others can be dropped. The time is that from a gap to 1e-4, from the same dual
variables: on all rows, without the dropped ones, and without all rows whose dual variables are zero at the end, which
no safe rule can know before. The last is what a perfect rule would save beside the active sets, which pass over most
of these rows. One against the rest starts from no dual variables, so only its pairs and rows are counted.
"""

import argparse
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import sets
from benchmarks.results import write
from solvers.core.base import Solver, State, Step
from solvers.core.certain_training import certified_model
from solvers.core.dual_variables import DualShares
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.numerics.array_types import Bools
from solvers.registry import SOLVERS, parse_params

GAPS, LAST = (1e-1, 1e-2, 1e-3), 1e-4
SETS = ("usps", "20news", "debian-section")
METHODS = ("one_vs_rest", "crammer_singer", "weston_watkins")
RUNS, MOST_EPOCHS = 5, 1_000_000


def ended(solver: Solver[Any], problem: Problem, state: State | None = None) -> Step:
    """The last step of a training."""
    *_, last = solver.steps(problem, state)
    return last


def zero(problem: Problem, model: Model, gap: float) -> Bools:
    """Which dual variables are proven to be zero, shape (n_samples, n_classes).

    One against the rest has a ball for each class. The others have one of radius ``sqrt(2 gap)``, and a lead changes by
    ``sqrt(2)`` times as much; the variable of a row's own class follows from the others.
    """
    assert model.reach is not None
    X, y, of_classes = problem.X, problem.y, model.reach.of_classes
    rows, length = np.arange(len(y)), np.sqrt(np.asarray(X.multiply(X).sum(axis=1)))
    scores = model.scores(X).astype(np.float64)
    if len(of_classes) > 1:
        margins = -scores
        margins[rows, y] *= -1.0
        return np.asarray(margins > 1.0 + length.reshape(-1, 1) * of_classes)
    found = np.asarray(scores[rows, y][:, None] - scores > 1.0 + 2.0 * math.sqrt(gap) * length.reshape(-1, 1))
    found[rows, y] = True
    return found


def onward(solver: Solver[Any], problem: Problem, shares: DualShares, choices: Sequence[Bools]) -> list[float]:
    """Processor seconds from these dual variables to the last gap, on each choice of rows: the least of some runs."""
    begun = []
    for kept in choices:
        rows = np.flatnonzero(kept)
        some = Problem.check(sp.csr_matrix(problem.X[rows]), problem.y[rows], problem.classes)
        begun.append((some, solver.warm(some, shares.onto(some, rows))))
    seconds = np.full((RUNS, len(begun)), np.inf)
    # in turns, so that what else the machine does slows all of them
    for run in range(RUNS):
        for at, (some, state) in enumerate(begun):
            began = time.process_time()
            ended(solver, some, state)
            seconds[run, at] = time.process_time() - began
    return [float(least) for least in seconds.min(axis=0)]


def measure(name: str, method: str) -> list[list[Any]]:
    """The rows of a set and a method, one for each gap."""
    problem = Problem.check(*sets.load(name))
    solver = SOLVERS[method](parse_params(method, {"tol": LAST, "max_epochs": MOST_EPOCHS}))
    used = None
    if solver.starts_warm:
        used = np.asarray(solver.dual_shares(problem, ended(solver, problem).state).sum(axis=1)).ravel() > 0
    found = []
    for gap in GAPS:
        step = ended(solver.at_tol(gap), problem)
        model = certified_model(solver, problem, step.state, step.primal, step.dual)
        proven = zero(problem, model, step.primal - step.dual)
        kept = ~proven.all(axis=1)
        own = 0 if used is None else problem.n_samples
        pairs = (proven.sum() - own) / (proven.size - own)
        row = [name, method, f"{gap:g}", f"{pairs:.1%}", f"{1 - kept.mean():.1%}"]
        if used is None:
            found.append([*row, *["-"] * 4])
            continue
        assert not (used & ~kept).any(), "a dual variable that is proven to be zero is not"
        shares = DualShares(solver.dual_shares(problem, step.state), problem.y, tuple(problem.classes))
        times = onward(solver, problem, shares, (np.ones_like(kept), kept, used))
        found.append([*row, f"{1 - used.mean():.1%}", *(f"{seconds:.2f}" for seconds in times)])
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=SETS)
    arguments.add_argument("--methods", nargs="*", default=METHODS, choices=METHODS)
    chosen, rows = arguments.parse_args(), list[list[Any]]()
    for name in [name for name in chosen.sets if name in sets.available()]:
        for method in chosen.methods:
            rows += measure(name, method)
            print(*rows[-len(GAPS) :], sep="\n", flush=True)
    header = ["set", "method", "gap", "pairs proven", "rows proven", "rows without dual variables at the end"]
    header += ["s to 1e-4, all rows", "without proven rows", "without all such rows"]
    note = (
        "Pairs of a row and a class, and rows, whose dual variables the gap proves to be zero at the optimum. "
        f"Processor seconds from the gap to 1e-4, the least of {RUNS} runs in turns, without those of the proof. "
        "C = 1, no bias."
    )
    write("Safe screening by gap", header, rows, note)


if __name__ == "__main__":
    main()
