"""How do error and time of boosting compare with scikit-learn's AdaBoost and HistGradientBoosting and with LightGBM?

Stumps and trees of depth 2 and 3, 500 rounds each, on the sets' own parts for testing; one thread, processor seconds
of ``fit`` from dense floats, compiled before. The peers have their defaults but for depth and rounds, and no early
stopping; AdaBoost is left out where its first rounds say that all would take more than a minute. Ours with depth 1 has
its defaults as well; with trees its step length and rounds were chosen on a quarter of the training rows, held out, and
are the same for all sets.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from numpy.typing import NDArray
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

from benchmarks import sets
from benchmarks.results import write
from solvers.estimator import PolymarginClassifier

SETS = ["pendigits", "satimage", "usps", "letter"]
DEPTHS = [1, 2, 3]
ROUNDS = 500
TRIAL, CAP = 10, 60.0
OURS: dict[int, dict[str, Any]] = {
    1: {"max_epochs": ROUNDS},
    2: {"max_epochs": ROUNDS, "shrinkage": 0.25},
    3: {"max_epochs": ROUNDS, "shrinkage": 0.25},
}


def ours(method: str) -> Callable[[int], Any]:
    return lambda depth: PolymarginClassifier(method, depth=depth, **OURS[depth])


def adaboost(depth: int, rounds: int = ROUNDS) -> Any:
    return AdaBoostClassifier(DecisionTreeClassifier(max_depth=depth), n_estimators=rounds, random_state=0)


def gradient(depth: int) -> Any:
    return HistGradientBoostingClassifier(
        max_iter=ROUNDS, max_depth=depth, max_leaf_nodes=1 << depth, early_stopping=False, random_state=0
    )


def lightgbm(depth: int) -> Any:
    return LGBMClassifier(
        n_estimators=ROUNDS, max_depth=depth, num_leaves=1 << depth, n_jobs=1, verbose=-1, random_state=0
    )


PROGRAMS: dict[str, Callable[[int], Any]] = {
    "multiboost_cw": ours("multiboost_cw"),
    "AdaBoost": adaboost,
    "HistGradientBoosting": gradient,
    "LightGBM": lightgbm,
}


def measure(make: Callable[[], Any], train: tuple[Any, Any], test: tuple[Any, Any], runs: int) -> tuple[float, float]:
    """Median seconds of training, and the error on the test part in percent."""
    seconds = []
    for _ in range(runs):
        model = make()
        began = time.process_time()
        model.fit(*train)
        seconds.append(time.process_time() - began)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        predicted: NDArray[Any] = model.predict(test[0])
    return statistics.median(seconds), 100 * float(np.mean(predicted != test[1]))


def takes_long(train: tuple[Any, Any], depth: int) -> bool:
    """Whether AdaBoost would take more than the cap."""
    began = time.process_time()
    adaboost(depth, TRIAL).fit(*train)
    return (time.process_time() - began) * ROUNDS / TRIAL > CAP


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=SETS)
    arguments.add_argument("--depths", nargs="*", type=int, default=DEPTHS)
    arguments.add_argument("--programs", nargs="*", default=list(PROGRAMS))
    arguments.add_argument("--runs", type=int, default=1)
    chosen = arguments.parse_args()
    header = ["depth", *(f"{program}: {what}" for program in chosen.programs for what in ("error %", "s"))]
    given = "; ".join(f"depth {depth}: {', '.join(f'{k} {v}' for k, v in OURS[depth].items())}" for depth in OURS)
    for name in [name for name in chosen.sets if name in sets.available()]:
        train, test = ((X.toarray(), y) for X, y in (sets.load(name), sets.load_test(name)))
        rows = []
        for depth in chosen.depths:
            PolymarginClassifier("multiboost_cw", depth=depth, max_epochs=3).fit(*train)
            row: list[object] = [depth]
            for program in chosen.programs:
                if program == "AdaBoost" and takes_long(train, depth):
                    row += ["-", f">{CAP:g}"]
                    continue
                make = partial(PROGRAMS[program], depth)
                seconds, error = measure(make, train, test, chosen.runs)
                row += [f"{error:.1f}", f"{seconds:.2f}"]
            rows.append(row)
            print(name, *row, flush=True)
        write(f"Boosting beside other programs: {name}", header, rows, f"Ours: {given}.")


if __name__ == "__main__":
    main()
