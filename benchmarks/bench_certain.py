"""Which share of test rows has a certain answer at which gap, and how much sooner can training end?

C = 1, no bias, one thread; one training goes on from gap to gap. Beside the share that the gap proves is the share of
rows that are answered as at the smallest gap: the difference is what the bound misses.
"""

import argparse
import math
import time
from typing import Any

import numpy as np

from benchmarks import sets
from benchmarks.results import write
from solvers.core.certain_answers import certain
from solvers.core.certain_training import certified_model
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

GAPS = (1e-1, 1e-2, 1e-3, 1e-4)
SETS = ("segment", "satimage", "usps", "20news", "debian-section")
METHODS = ("one_vs_rest", "crammer_singer", "weston_watkins", "lee_lin_wahba", "softmax")
# processor seconds of a training; smaller gaps than it has reached then are left out
MOST_SECONDS = 60.0
# that only the seconds end a training
MOST_EPOCHS = 1_000_000


def measure(name: str, method: str, most_seconds: float, until: float) -> list[Any]:
    """A row of the table; no gap is begun after ``until`` by the monotonic clock."""
    X, y = sets.load(name)
    X_test, _ = sets.load_test(name)
    problem = Problem.check(X, y)
    solver = SOLVERS[method](parse_params(method, {"tol": GAPS[-1], "max_epochs": MOST_EPOCHS}))
    # what has to be loaded is before
    next(solver.steps(problem))
    state, seconds, found, answers = None, 0.0, [], []
    for gap in GAPS:
        began, last = time.process_time(), None
        for step in solver.at_tol(gap).steps(problem, state):
            last = step
            if seconds + time.process_time() - began > most_seconds or time.monotonic() > until:
                break
        seconds += time.process_time() - began
        if last is None or not last.converged:
            break
        state = {key: np.array(array) for key, array in last.state.items()}
        model = certified_model(solver, problem, state, last.primal, last.dual)
        found.append((float(certain(model, X_test).mean()), last.epoch, seconds))
        answers.append(model.predict(X_test))
    same = [float(np.mean(each == answers[-1])) for each in answers]
    cells = [f"{share:.1%} / {alike:.1%}" for (share, _, _), alike in zip(found, same, strict=True)]
    times = [f"{epochs} / {spent:.2f}" for _, epochs, spent in found]
    missing = ["-"] * (len(GAPS) - len(found))
    return [name, problem.n_classes, X_test.shape[0], method, *cells, *missing, *times, *missing]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=SETS)
    arguments.add_argument("--methods", nargs="*", default=METHODS, choices=METHODS)
    arguments.add_argument("--seconds", type=float, default=MOST_SECONDS, help="Processor seconds of a training.")
    arguments.add_argument("--minutes", type=float, default=math.inf, help="Of the whole run; then rows are short.")
    chosen = arguments.parse_args()
    rows, until = [], time.monotonic() + 60.0 * chosen.minutes
    for name in [name for name in chosen.sets if name in sets.available()]:
        for method in chosen.methods:
            if time.monotonic() > until:
                break
            rows.append(measure(name, method, chosen.seconds, until))
            print(rows[-1], flush=True)
    header = ["set", "classes", "test rows", "method", *(f"at {gap:g}" for gap in GAPS)]
    header += [f"epochs / s to {gap:g}" for gap in GAPS]
    note = (
        "Test rows with a certain answer / test rows answered as at the smallest gap that the training has reached. "
        "Epochs and processor seconds count from the start. C = 1, no bias; a training ends after "
        f"{chosen.seconds:g} s: smaller gaps are not measured."
    )
    if math.isfinite(chosen.minutes):
        note += f" The run ends after {chosen.minutes:g} minutes: rows beyond are short or missing."
    write("Certain answers by gap", header, rows, note)


if __name__ == "__main__":
    main()
