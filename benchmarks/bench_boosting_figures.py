"""Lin et al. 2012, Figures 1 and 2, from our own runs: test error, solver's time and total time against iterations.

Sets of the paper, each split at random into three quarters for training and one for testing, stumps, one
thread, processor seconds. CW is ``multiboost_cw`` with up to ten sweeps a round and CW-1 the stage-wise one; the
paper's C, chosen from 1e2 to 1e5, is 1e4 for CW and MultiBoost, and 1e8 for CW-1. A method stops after so many seconds.
Solver's time is all that is not spent on the search for weak learners.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import pictures, sets
from benchmarks.results import write
from solvers.boosting.boosting import split
from solvers.boosting.pairs.pair_loss import PairLoss
from solvers.boosting.weak_learners.stumps import Stumps
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

SETS = ["vowel", "pendigits", "usps"]
ROUNDS, CAP = 500, 4.0
TEST_SHARE = 0.25
MARKS = (50, 500)
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "CW": ("multiboost_cw", {"C": 1e4, "tau_max": 10, "tol": 1e-9}),
    "CW-1": ("multiboost_cw", {"C": 1e8}),
    "MultiBoost": ("multiboost", {"C": 1e4, "tol": 1e-9}),
    "AdaBoost.ECC": ("adaboost_ecc", {"tol": 1e-12}),
    "AdaBoost.MH": ("adaboost_mh", {"tol": 1e-12, "sharing": "sign"}),
    "AdaBoost.MO": ("adaboost_mo", {"tol": 1e-12}),
}
PANELS = ("test error, %", "solver's time, s", "total time, s")


class Curve(NamedTuple):
    """After each round: test error in percent, processor seconds of the solver, and of everything."""

    errors: NDArray[np.float64]
    solver: NDArray[np.float64]
    total: NDArray[np.float64]


@contextmanager
def timed(places: list[tuple[type, str]]) -> Iterator[list[float]]:
    """Processor seconds spent in methods of classes; the first number of the list."""
    spent = [0.0]
    originals = [getattr(owner, name) for owner, name in places]

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            began = time.process_time()
            found = function(*arguments, **named)
            spent[0] += time.process_time() - began
            return found

        return run

    for (owner, name), original in zip(places, originals, strict=True):
        setattr(owner, name, wrap(original))
    try:
        yield spent
    finally:
        for (owner, name), original in zip(places, originals, strict=True):
            setattr(owner, name, original)


def run(who: str, train: Problem, test: tuple[Any, NDArray[Any]], rounds: int) -> Curve:
    name, params = METHODS[who]
    method = SOLVERS[name](parse_params(name, params | {"max_epochs": rounds}))
    solver, total, spent, epoch, state = [], [], 0.0, 0, None
    with timed([(Stumps, "find_and_evaluate"), (PairLoss, "measure")]) as search:
        steps = method.steps(train)
        while spent < CAP:
            began = time.process_time()
            step = next(steps, None)
            spent += time.process_time() - began
            if step is None:
                break
            state = step.state
            if step.epoch > epoch and step.primal == step.primal:
                epoch = step.epoch
                solver.append(spent - search[0])
                total.append(spent)
    assert state is not None
    stages = method.model(train, state).staged_scores(test[0])  # type: ignore[attr-defined]
    errors = [100 * float(np.mean(scores.argmax(axis=1) != test[1])) for scores in stages]
    return Curve(np.array(errors), np.array(solver), np.array(total))


def mean(curves: list[Curve]) -> Curve:
    """Over as many rounds as all have come to."""
    least = min(len(curve.total) for curve in curves)
    return Curve(*(np.mean([part[:least] for part in parts], axis=0) for parts in zip(*curves, strict=True)))


def drawn(name: str, who: str, curve: Curve) -> Iterator[pictures.Curve]:
    """The lines of one method in the panels of a set."""
    thin = np.unique(np.geomspace(1, len(curve.total), pictures.MOST_POINTS).astype(int)) - 1
    for panel, values in zip(PANELS, curve, strict=True):
        yield pictures.Curve(name, panel, who, [(float(at + 1), float(values[at])) for at in thin])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=SETS)
    arguments.add_argument("--splits", type=int, default=3)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = arguments.parse_args()
    names = [name for name in chosen.sets if name in sets.available()]
    rows = []
    lines: list[pictures.Curve] = []
    for name in names:
        X, y = sets.load(name)
        for who in METHODS:
            curves = []
            for seed in range(chosen.splits):
                kept, held = split(y, TEST_SHARE, seed)
                train = Problem.check(X[kept], y[kept])
                if seed == 0:
                    run(who, train, (X[held], y[held]), 2)
                curves.append(run(who, train, (X[held], y[held]), chosen.rounds))
            curve = mean(curves)
            lines += drawn(name, who, curve)
            early, late = (min(mark, len(curve.total)) - 1 for mark in MARKS)
            rows.append(
                [name, who, len(curve.total), f"{curve.errors[early]:.1f}", f"{curve.errors[late]:.1f}"]
                + [f"{seconds[-1]:.2f}" for seconds in (curve.solver, curve.total)]
            )
            print(*rows[-1], flush=True)
    header = ["set", "method", "iterations", *(f"error % at {mark}" for mark in MARKS), "solver, s", "total, s"]
    note = f"Splits: {chosen.splits}. A method with fewer iterations than {ROUNDS} took {CAP:g} s, or ended."
    write("Boosting: the figures of Lin et al.", header, rows, note)
    pictures.write("boosting", lines)


if __name__ == "__main__":
    main()
