"""What does the limit C to infinity gain or lose in held-out error against a tuned C, and what does it cost?

No bias, one thread. C is chosen from the grid by the errors on every fourth training row, and the machine is then
trained on all of them.
"""

import argparse
import time
from typing import Any

import numpy as np

from benchmarks import sets
from benchmarks.results import write
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

GRID = tuple(10.0**power for power in range(-2, 4))
SETS = ("vowel", "satimage", "20news")
LOSSES = ("weston_watkins", "crammer_singer", "lee_lin_wahba")
# processor seconds of a training
MOST_SECONDS = 120.0


def train(name: str, problem: Problem, most_seconds: float, **params: Any) -> tuple[Any, Any, float]:
    """The last step, the model and the processor seconds; of a training that takes longer, the last certificate."""
    method = SOLVERS[name](parse_params(name, params))
    kept, began = None, time.process_time()
    for step in method.steps(problem):
        if not np.isnan(step.gap) and (step.measures or name != "hard_margin"):
            kept = step, {key: np.array(array) for key, array in step.state.items()}
        if time.process_time() - began > most_seconds:
            break
    seconds = time.process_time() - began
    assert kept is not None
    return kept[0], method.model(problem, kept[1]), seconds


def measure(name: str, loss: str, most_seconds: float) -> list[Any]:
    """A row of the table."""
    X, y = sets.load(name)
    X_test, y_test = sets.load_test(name)
    problem = Problem.check(X, y)
    held = np.arange(len(y)) % 4 == 3
    part = Problem.check(X[~held], y[~held])
    errors = []
    for C in GRID:
        _, model, _ = train(loss, part, most_seconds, C=C)
        errors.append(float(np.mean(model.predict(X[held]) != y[held])))
    C = GRID[int(np.argmin(errors))]
    _, tuned, tuned_seconds = train(loss, problem, most_seconds, C=C)
    step, limit, seconds = train("hard_margin", problem, most_seconds, loss=loss)
    wrong = [float(np.mean(each.predict(X_test) != y_test)) for each in (tuned, limit)]
    report = limit.report
    separable = {1.0: "yes", 0.0: "no", None: "?"}[report.get("separable")]
    return [
        name, loss, f"{C:g}", f"{wrong[0]:.2%}", f"{tuned_seconds:.1f}", f"{wrong[1]:.2%}", f"{seconds:.1f}",
        "yes" if step.converged else "no", separable, f"{report['loss']:.6g}",
        f"{report['loss_radius'] / report['norm']:.2g}" if "loss_radius" in report else "-",
        f"{report['norm']:.5g}", f"{report['norm_bound']:.5g}", f"{report['C']:.2g}",
    ]  # fmt: skip


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=SETS)
    arguments.add_argument("--losses", nargs="*", default=LOSSES, choices=LOSSES)
    arguments.add_argument("--seconds", type=float, default=MOST_SECONDS, help="Processor seconds of a training.")
    chosen = arguments.parse_args()
    rows = []
    for name in [name for name in chosen.sets if name in sets.available()]:
        for loss in chosen.losses:
            rows.append(measure(name, loss, chosen.seconds))
            print(rows[-1], flush=True)
    header = [
        "set", "loss", "tuned C", "test error", "s", "test error of the limit", "s to the limit", "certified",
        "separable", "training loss", "radius / norm", "norm", "its bound", "last C",
    ]  # fmt: skip
    note = (
        "Radius / norm: no weights of up to so many times the length have 1 % less loss. A training ends after "
        f"{chosen.seconds:g} processor seconds, with its last certificate. tol = 0.01; "
        f"C from {GRID[0]:g} to {GRID[-1]:g}."
    )
    write("The limit C to infinity beside a tuned C", header, rows, note)


if __name__ == "__main__":
    main()
