"""Which output code has the smallest test error; how much faster is SPOC than generic solvers of its quadratic program?

Three tables: test errors of all codes and decodings; the paper's Figure 5 (Crammer and Singer 2002: four quadrants of
a square, n = 10 to 250) against an interior point, an operator splitting and an active set solver, all stopped at an
accuracy of about 1e-6; and codes of 26 classes for 100,000 examples. One thread, processor seconds, nothing compiled.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import clarabel
import numpy as np
import osqp
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks import sets
from benchmarks.results import write
from solvers import codes
from solvers.code_families import FAMILIES
from solvers.problem import Problem
from solvers.registry import SOLVERS, parse_params

RUNS = 5
QUADRANTS, ACCURACY = 4, 1e-6
PATIENCE = 100.0
SHARED: dict[str, Any] = {"bias": 1.0, "tol": 1e-2}


def train(problem: Problem, name: str, **params: Any) -> tuple[Any, Any, float]:
    """The last step, the model, and the seconds that both took."""
    began = time.process_time()
    solver = SOLVERS[name](parse_params(name, params))
    *_, last = solver.steps(problem)
    model = solver.model(problem, last.state)
    return last, model, time.process_time() - began


def split(name: str) -> tuple[Problem, sp.csr_matrix, NDArray[np.int32]]:
    """Training problem and test rows; of a set without a test part every fifth row is held out."""
    X, y = sets.load(name)
    if name in ("digits", "docstrings"):
        held = np.arange(len(y)) % 5 == 0
        return Problem.check(X[~held], y[~held]), X[held], y[held]
    return Problem.check(X, y), *sets.load_test(name)


def error(scores: NDArray[Any], y: NDArray[np.int32]) -> str:
    return f"{100 * float((scores.argmax(axis=1) != y).mean()):.2f}"


def errors(name: str) -> Iterator[list[object]]:
    """A row a code: columns, seconds, gap, and the test error by inner product, Hamming distance and loss."""
    problem, X, y = split(name)
    for family in FAMILIES:
        if family == "exhaustive" and problem.n_classes > 11:
            continue
        last, model, seconds = train(problem, "output_code", code=family, decoding="hamming", **SHARED)
        h = model.margins(X)
        by = [error(codes.decode(h, model.code, how), y) for how in ("inner_product", "hamming", "loss")]
        yield [name, family, model.code.shape[1], f"{seconds:.2f}", f"{last.gap:.1e}", *by]
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
        last, model, seconds = train(problem, "continuous_code", **SHARED | params)
        n_columns = model.report.get("n_columns", model.code.shape[1])
        yield [name, title, int(n_columns), f"{seconds:.2f}", f"{last.gap:.1e}", error(model.scores(X), y), "", ""]
    last, model, seconds = train(problem, "crammer_singer", **SHARED)
    yield [name, "none: crammer_singer", "", f"{seconds:.2f}", f"{last.gap:.1e}", error(model.scores(X), y), "", ""]


def quadrants(n: int, seed: int) -> Problem:
    """Points of a square, labelled by its quarters."""
    rng = np.random.default_rng([n, seed])
    while True:
        X = rng.uniform(-1, 1, (n, 2))
        y = 2 * (X[:, 0] > 0) + (X[:, 1] > 0)
        if len(np.unique(y)) == QUADRANTS:
            return Problem.check(X, y)


def program(problem: Problem) -> tuple[NDArray[Any], NDArray[Any], sp.csr_matrix, NDArray[Any]]:
    """The dual of equation 27 at beta = 1: 1/2 t' P t + q' t, the sums E t = 0, and the upper bounds of t."""
    X, n = problem.X.toarray(), problem.n_samples
    own = np.eye(QUADRANTS)[problem.y]
    P = np.kron(X @ X.T, np.eye(QUADRANTS))
    E = sp.csr_matrix(sp.kron(sp.identity(n), np.ones((1, QUADRANTS))))
    return P, (1.0 - own).ravel(), E, own.ravel()


def by_interior_point(P: Any, q: Any, E: Any, top: Any) -> float:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    n, size = E.shape
    A = sp.csc_matrix(sp.vstack([E, sp.identity(size)]))
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(size)]
    upper = sp.csc_matrix(sp.triu(sp.csc_matrix(P)))
    return -clarabel.DefaultSolver(upper, q, A, np.append(np.zeros(n), top), cones, settings).solve().obj_val


def by_splitting(P: Any, q: Any, E: Any, top: Any) -> float:
    n, size = E.shape
    A = sp.csc_matrix(sp.vstack([E, sp.identity(size)]))
    low, high = np.append(np.zeros(n), np.full(size, -np.inf)), np.append(np.zeros(n), top)
    model = osqp.OSQP()
    limits = {"eps_abs": ACCURACY, "eps_rel": ACCURACY, "max_iter": 100_000}
    model.setup(sp.csc_matrix(sp.triu(sp.csc_matrix(P))), q, A, low, high, verbose=False, **limits)
    return -model.solve().info.obj_val


def by_active_set(P: Any, q: Any, E: Any, top: Any) -> float:
    """Nan where it was given up after ``PATIENCE`` seconds."""
    dense, end = E.toarray(), time.process_time() + PATIENCE

    def watch(_: Any) -> None:
        if time.process_time() > end:
            raise StopIteration

    found = minimize(
        lambda t: 0.5 * t @ P @ t + q @ t,
        np.zeros(len(q)),
        jac=lambda t: P @ t + q,
        bounds=[(None, bound) for bound in top],
        constraints=[{"type": "eq", "fun": lambda t: dense @ t, "jac": lambda t: dense}],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-9},
        callback=watch,
    )
    return -float(found.fun) if found.success else float("nan")


def clocked(run: Callable[[], float], times: int) -> tuple[float, float]:
    """The median of the processor seconds, and the last value."""
    seconds, value = [], 0.0
    for _ in range(times):
        began = time.process_time()
        value = run()
        seconds.append(time.process_time() - began)
    return statistics.median(seconds), value


def figure_five(sizes: list[int]) -> Iterator[list[object]]:
    """A row a size: seconds of SPOC, those of each rival as a multiple, and how far apart the optima are."""
    rivals = {"interior point": by_interior_point, "splitting": by_splitting, "active set": by_active_set}
    for n in sizes:
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ("SPOC", *rivals)}
        for seed in range(3):
            problem = quadrants(n, seed)
            solver = SOLVERS["spoc"](parse_params("spoc", {"kernel": "linear", "tol": ACCURACY, "max_epochs": 10**6}))

            def spoc(solver: Any = solver, problem: Problem = problem) -> float:
                *_, last = solver.steps(problem)
                return float(last.dual)

            spoc()
            found["SPOC"].append(clocked(spoc, RUNS))
            task = program(problem)
            for name, solve in rivals.items():
                if name != "active set":
                    found[name].append(clocked(partial(solve, *task), RUNS))
                elif seed == 0:
                    # minutes at the largest size: one sample, one run
                    found[name].append(clocked(partial(solve, *task), 1))
        mean = {name: statistics.mean(seconds for seconds, _ in each) for name, each in found.items()}
        own = [value for _, value in found["SPOC"]]
        values = [(value, own[r]) for name in rivals for r, (_, value) in enumerate(found[name])]
        apart = max(abs(value / mine - 1) for value, mine in values if not np.isnan(value))
        given_up = {name for name in rivals if any(np.isnan(value) for _, value in found[name])}
        more = {name: "> " if name in given_up else "" for name in rivals}
        times = [f"{more[name]}{mean[name]:.3g} ({more[name]}{mean[name] / mean['SPOC']:,.0f}x)" for name in rivals]
        yield [n, QUADRANTS * n, f"{mean['SPOC']:.2g}", *times, f"{apart:.0e}"]


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
        last, model, seconds = train(problem, name, **SHARED | params)
        wrong = error(model.scores(problem.X), problem.y)
        yield [title, f"{seconds:.1f}", f"{last.gap:.1e}", wrong]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tables", nargs="*", default=["errors", "figure", "large"])
    arguments.add_argument(
        "--sets", nargs="*", default=[s for s in ("letter", "satimage", "docstrings") if s in sets.available()]
    )
    arguments.add_argument("--sizes", nargs="*", type=int, default=[10, 50, 100, 250])
    chosen = arguments.parse_args()
    if "errors" in chosen.tables:
        rows = []
        for name in chosen.sets:
            for row in errors(name):
                print(*row, flush=True)
                rows.append(row)
        header = ["set", "code", "columns", "seconds", "gap", "inner product", "Hamming", "loss"]
        note = "Test errors in per cent; linear machines with C = 1, a constant feature, gap 1e-2."
        write("Test errors of output codes", header, rows, note)
    if "figure" in chosen.tables:
        rows = []
        for row in figure_five(chosen.sizes):
            print(*row, flush=True)
            rows.append(row)
        header = ["n", "dual variables", "SPOC s", "interior point s", "splitting s", "active set s", "optima apart"]
        note = f"Means over 3 samples of medians of {RUNS} runs (active set: one run of one); Clarabel, OSQP and SLSQP."
        write("Quadratic code design against generic solvers", header, rows, note)
    if "large" in chosen.tables:
        rows = []
        for row in large():
            print(*row, flush=True)
            rows.append(row)
        header = ["code", "seconds", "gap", "training error %"]
        write("Codes of 26 classes for 100,000 examples", header, rows, "16 features, machines and design together.")


if __name__ == "__main__":
    main()
