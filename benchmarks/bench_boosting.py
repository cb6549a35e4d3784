"""How long does boosting take from a float array to a model, with one thread and two, and how does a round grow?

First 500 stage-wise rounds of ``multiboost_cw`` with stumps, the whole of ``PolymarginClassifier.fit``: checks, sparse
copy, bins, rounds, model. Wall seconds, compiled before; beside them those of the prototype, which began with the bins
and had no certificate. Then what a round takes on synthetic data with one size varied, and the exponent of its power
that fits best: 1 is linear growth.
"""

import argparse
import statistics
import time
from typing import Any

import numpy as np

from benchmarks import sets
from benchmarks.results import write
from solvers.core.problem import Problem
from solvers.estimator import PolymarginClassifier
from solvers.registry import SOLVERS, parse_params

PROTOTYPE = {"pendigits": 0.35, "letter": 1.3, "usps": 3.1, "satimage": 0.5}
PARTS = ["rounds", "growth"]
ROUNDS = 500
BASE = {"n": 16_000, "d": 64, "k": 32}
VARIED = {"n": [8_000, 16_000, 32_000, 64_000, 128_000], "d": [32, 64, 128, 256, 512], "k": [16, 32, 64, 128, 256]}
MEASURED = 30


def seconds_of(X: Any, y: Any, threads: int, rounds: int, runs: int, **params: Any) -> float:
    """Median wall seconds of a fit."""
    found = []
    for _ in range(runs):
        began = time.perf_counter()
        PolymarginClassifier("multiboost_cw", threads=threads, max_epochs=rounds, **params).fit(X, y)
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def rounds_of_real_sets(names: list[str], runs: int) -> None:
    rows = []
    for name in [name for name in names if name in sets.available()]:
        X, y = sets.load(name)
        dense = X.toarray()
        seconds_of(dense, y, 2, 3, 1)
        one, two = (seconds_of(dense, y, threads, ROUNDS, runs) for threads in (1, 2))
        seconds = (f"{s:.2f}" for s in (PROTOTYPE[name], one, two))
        rows.append([name, *dense.shape, y.max() + 1, *seconds, f"{one / two:.2f}"])
        print(*rows[-1], flush=True)
    header = ["set", "n", "d", "k", "prototype, s", "one thread, s", "two threads, s", "gain"]
    write("Boosting: 500 stage-wise rounds", header, rows, f"Medians of {runs} runs.")


def round_of(X: Any, y: Any) -> float:
    """Median processor seconds of a round."""
    problem, found = Problem.check(X, y), []
    steps = SOLVERS["multiboost_cw"](parse_params("multiboost_cw", {"max_epochs": MEASURED})).steps(problem)
    next(steps)
    while True:
        began = time.process_time()
        if next(steps, None) is None:
            return statistics.median(found)
        found.append(time.process_time() - began)


def growth() -> None:
    rng, rows = np.random.default_rng(0), []
    for varied, sizes in VARIED.items():
        found = []
        for size in sizes:
            n, d, k = (BASE | {varied: size}).values()
            X = rng.standard_normal((n, d))
            y = np.argsort(np.argsort(X[:, :4] @ rng.standard_normal(4) + rng.standard_normal(n))) * k // n
            found.append(round_of(X, y))
            rows.append([varied, n, d, k, f"{1e3 * found[-1]:.2f}", ""])
            print(*rows[-1], flush=True)
        rows[-1][-1] = f"{np.polyfit(np.log(sizes), np.log(found), 1)[0]:.2f}"
    note = f"Medians of {MEASURED - 1} rounds, processor milliseconds, one thread."
    write("Boosting: growth of a round", ["varied", "n", "d", "k", "ms a round", "exponent"], rows, note)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    arguments.add_argument("--sets", nargs="*", choices=PROTOTYPE, default=list(PROTOTYPE))
    arguments.add_argument("--runs", type=int, default=3)
    chosen = arguments.parse_args()
    if "rounds" in chosen.parts:
        rounds_of_real_sets(chosen.sets, chosen.runs)
    if "growth" in chosen.parts:
        growth()


if __name__ == "__main__":
    main()
