"""Which output code has the smallest test error, and what do codes of 26 classes take for 100,000 examples?

A table of the test errors of all codes and decodings for each set, one of the large problem, and one of what a second
thread gains. Processor seconds of one thread, those of linear programs' own processes among them, where nothing else is
said; compiled beforehand, on a small part. What takes more than five minutes is given up, and has the gap and the
errors that it has by then.
"""

import argparse
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks import sets
from benchmarks.results import write
from solvers.core.problem import Problem
from solvers.output_codes.code_families import FAMILIES
from solvers.output_codes.decoding import decode
from solvers.registry import SOLVERS, parse_params

SHARED: dict[str, Any] = {"bias": 1.0, "tol": 1e-2}


LIMIT = 300.0


def train(problem: Problem, name: str, **params: Any) -> tuple[float, Any, float]:
    """The last reported gap, the model, and the seconds that both took."""
    began, until, gap = processor_seconds(), time.perf_counter() + LIMIT, float("nan")
    solver = SOLVERS[name](parse_params(name, params))
    for step in solver.steps(problem):
        gap = step.gap if step.gap == step.gap else gap
        if time.perf_counter() > until:
            break
    model = solver.model(problem, step.state)
    return gap, model, processor_seconds() - began


def processor_seconds() -> float:
    """Of this process and all children that it has waited for."""
    return sum(os.times()[:4])


def split(name: str) -> tuple[Problem, sp.csr_matrix, NDArray[np.int32]]:
    """Training problem and test rows; of a set without a test part every fifth row is held out."""
    X, y = sets.load(name)
    if name in ("digits", "docstrings"):
        held = np.arange(len(y)) % 5 == 0
        return Problem.check(X[~held], y[~held]), X[held], y[held]
    return Problem.check(X, y), *sets.load_test(name)


def error(scores: NDArray[Any], y: NDArray[np.int32]) -> str:
    return f"{100 * float((scores.argmax(axis=1) != y).mean()):.2f}"


def errors(name: str, most: int | None = None) -> Iterator[list[object]]:
    """A row a code: columns, seconds, gap, and the test error by inner product, Hamming distance and loss.

    Of about ``most`` rows only, where given, and without linear programs, which have nothing to compile.
    """
    problem, X, y = split(name)
    if most is not None:
        few = slice(None, None, max(1, problem.n_samples // most))
        problem = Problem.check(problem.X[few], np.unique(problem.y[few], return_inverse=True)[1])
    for family in FAMILIES:
        if family == "exhaustive" and problem.n_classes > 11:
            continue
        gap, model, seconds = train(problem, "output_code", code=family, decoding="hamming", **SHARED)
        h = model.margins(X)
        by = [error(decode(h, model.code, how), y) for how in ("inner_product", "hamming", "loss")]
        yield [family, model.code.shape[1], f"{seconds:.2f}", f"{gap:.1e}", *by]
    designs: dict[str, dict[str, Any]] = {
        "continuous, l1": {"norm": "l1"},
        "continuous, l2": {},
        "continuous, linf": {"norm": "linf"},
        "continuous, l2, rbf": {"kernel": "rbf"},
        "continuous, l2, column by column": {"incremental": True},
        "continuous, l2, three rounds": {"rounds": 3},
        "continuous, l2, over dense_random": {"code": "dense_random"},
    }
    for title, params in designs.items():
        if most is not None and "norm" in params:
            continue
        gap, model, seconds = train(problem, "continuous_code", **SHARED | params)
        n_columns = model.report.get("n_columns", model.code.shape[1])
        yield [title, int(n_columns), f"{seconds:.2f}", f"{gap:.1e}", error(model.scores(X), y), "", ""]
    gap, model, seconds = train(problem, "crammer_singer", **SHARED)
    yield ["none: crammer_singer", "", f"{seconds:.2f}", f"{gap:.1e}", error(model.scores(X), y), "", ""]


def many(n: int = 100_000, k: int = 26, d: int = 16) -> Problem:
    """Three overlapping clouds of points a class."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((k, 3, d))
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    return Problem.check(centres[y, rng.integers(0, 3, n)] + 0.6 * rng.standard_normal((n, d)), y)


def large() -> Iterator[list[object]]:
    """A row a method: seconds, the gap of the whole, and the training error."""
    problem = many()
    runs: dict[str, tuple[str, dict[str, Any]]] = {
        "one_vs_rest, 26 columns": ("output_code", {}),
        "dense_random, 48 columns": ("output_code", {"code": "dense_random"}),
        "all_pairs, 325 columns": ("output_code", {"code": "all_pairs"}),
        "continuous, l2": ("continuous_code", {}),
        "continuous, l2, 1e-3": ("continuous_code", {"tol": 1e-3}),
        "continuous, l1": ("continuous_code", {"norm": "l1"}),
    }
    for title, (name, params) in runs.items():
        gap, model, seconds = train(problem, name, **SHARED | params)
        wrong = error(model.scores(problem.X), problem.y)
        yield [title, f"{seconds:.1f}", f"{gap:.1e}", wrong]


def threads() -> Iterator[list[object]]:
    """A row a way to train columns: seconds by the clock on the wall with one thread and with two."""
    runs: list[tuple[str, str, dict[str, Any]]] = [
        ("letter", "48 columns at once", {"code": "dense_random"}),
        ("satimage", "15 pairs, one by one, kernel machines", {"code": "all_pairs", "base": "spoc"}),
        ("letter", "48 columns, one by one", {"code": "dense_random", "base": "crammer_singer"}),
        ("docstrings", "6,328 pairs, one by one", {"code": "all_pairs"}),
    ]
    for name, what, params in [run for run in runs if run[0] in sets.available()]:
        problem, *_ = split(name)
        seconds = []
        for number in (1, 2):
            solver = SOLVERS["output_code"](parse_params("output_code", SHARED | params), threads=number)
            began = time.perf_counter()
            for _ in solver.steps(problem):
                pass
            seconds.append(time.perf_counter() - began)
        yield [name, what, *(f"{each:.2f}" for each in seconds), f"{seconds[0] / seconds[1]:.2f}"]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tables", nargs="*", default=["errors", "large", "threads"])
    arguments.add_argument(
        "--sets", nargs="*", default=[s for s in ("satimage", "letter", "docstrings") if s in sets.available()]
    )
    chosen = arguments.parse_args()
    list(errors("digits", 300))
    for name in chosen.sets if "errors" in chosen.tables else []:
        rows = []
        list(errors(name, 300))
        header = ["code", "columns", "seconds", "gap", "inner product", "Hamming", "loss"]
        note = "Test errors in per cent; linear machines with C = 1, a constant feature, gap 1e-2."
        for row in errors(name):
            rows.append(row)
            write(f"Test errors of output codes: {name}", header, rows, note)
    if "large" in chosen.tables:
        rows = []
        header = ["code", "seconds", "gap", "training error %"]
        for row in large():
            rows.append(row)
            write(
                "Codes of 26 classes for 100,000 examples", header, rows, "16 features, machines and design together."
            )
    if "threads" in chosen.tables:
        rows = []
        for row in threads():
            print(*row, flush=True)
            rows.append(row)
        header = ["set", "columns", "s, one thread", "s, two threads", "times as fast"]
        write("Columns of output codes in threads", header, rows, "Seconds of training, by the clock on the wall.")


if __name__ == "__main__":
    main()
