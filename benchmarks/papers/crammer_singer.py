"""Crammer and Singer 2002: Table 1 counted on our programs, Figure 5, kernels beside an independent solver, designs."""

import statistics
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from benchmarks.bench_quadratic_design import QUADRANTS, by_spoc, quadrants, timed
from benchmarks.papers import crammer_singer_page
from benchmarks.papers.protocol import Size
from benchmarks.papers.store import Found, Run, Store
from benchmarks.processes import within
from benchmarks.quadratic_programs import RIVALS, Design, by_clarabel
from solvers.core.base import Step
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

TITLE = crammer_singer_page.TITLE
page = crammer_singer_page.page

SETS = {"full": ("iris", "wine", "digits"), "quick": ("iris", "wine", "digits")}
ROWS = {"full": 300, "quick": 200}
FIGURE_ROWS = {"full": [10, 50, 100, 250], "quick": [10, 50]}
SAMPLES = {"full": 3, "quick": 3}
CAP = {"full": 5.0, "quick": 2.0}
KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "polynomial, degree 2": {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.1},
    "rbf": {"kernel": "rbf", "gamma": 0.1},
}
MOST_SECONDS = 120.0
KERNEL_ROWS = {"full": 150, "quick": 75}
DESIGNS: dict[str, dict[str, Any]] = {
    "l1": {"norm": "l1"},
    "l1, column by column": {"norm": "l1", "incremental": True},
    "l2": {"norm": "l2"},
    "l2, column by column": {"norm": "l2", "incremental": True},
    "linf": {"norm": "linf"},
    "linf, column by column": {"norm": "linf", "incremental": True},
    # equation 32 follows the norm of the new column alone, which is another program for the largest entry only
    "linf, each column by its own norm": {"norm": "linf", "incremental": True, "column_norm": "column"},
}
PROGRAMS: dict[str, dict[str, Any]] = {
    f"{norm}, {title}": {"norm": norm} | params
    for norm in ("l1", "l2", "linf")
    for title, params in {
        "norm at most 1": {"program": "norm", "radius": 1.0},
        "hard margin": {"program": "hard"},
    }.items()
}
CODES = ("dense_random", "designed")
SHARED: dict[str, Any] = {"C": 1.0, "tol": 1e-4, "bias": 1.0}


def data(name: str, most: int) -> tuple[Problem, sp.csr_matrix, NDArray[np.int32]]:
    """Examples to train on, features of mean 0 and variance 1, and every third one held out."""
    X, y = {"iris": load_iris, "wine": load_wine, "digits": load_digits}[name](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:most]
    X, y = StandardScaler().fit_transform(X[order]), y[order].astype(np.int32)
    held = np.arange(len(y)) % 3 == 2
    return Problem.check(X[~held], y[~held]), sp.csr_matrix(X[held]), y[held]


def measure(store: Store, size: Size) -> None:
    """Run what has not been run."""
    for name in SETS[size]:
        problem, X, y = data(name, ROWS[size])
        store.note("data", name, n_train=problem.n_samples, n_test=len(y), n_classes=problem.n_classes)
        for title, params in DESIGNS.items():
            store.run(Run("designs", name, title), partial(_designed, problem, X, y, params))
        for title, params in PROGRAMS.items():
            store.run(Run("programs", name, title), partial(_designed, problem, X, y, params))
        for code in CODES:
            store.run(Run("codes", name, code), partial(_coded, problem, X, y, code))
        small, *_ = data(name, KERNEL_ROWS[size])
        for title, params in KERNELS.items():
            store.run(Run("kernels", name, title), partial(_beside_clarabel, small, params))
        store.run(Run("bounds", name, "spoc"), partial(_bounds, problem))
    for n in FIGURE_ROWS[size]:
        _figure_5(store, n, size)


def _designed(problem: Problem, X: sp.csr_matrix, y: NDArray[np.int32], params: dict[str, Any]) -> Found:
    """Sizes of the largest program that was solved, objective and errors of a design for one-vs-rest machines."""
    solver = SOLVERS["continuous_code"](parse_params("continuous_code", SHARED | params))
    largest, last = 0, None
    for step in solver.steps(problem):
        working = [len(array) for name, array in step.state.items() if name.endswith("design_working")]
        largest, last = max([largest, *working]), step
    assert isinstance(last, Step)
    model = solver.model(problem, last.state)
    return {
        "objective": last.primal, "gap": last.gap, "largest program": largest,
        "nonzero_duals": model.report.get("nonzero_duals", float("nan")),
        "smallest margin": model.report["smallest_margin"], **_errors(model, problem, X, y),
    }  # fmt: skip


def _coded(problem: Problem, X: sp.csr_matrix, y: NDArray[np.int32], code: str) -> Found:
    """Errors of machines for the columns of a discrete code, and how many columns there are."""
    solver = SOLVERS["output_code"](parse_params("output_code", {"C": 1.0, "bias": 1.0, "code": code}))
    *_, last = solver.steps(problem)
    model = solver.model(problem, last.state)
    return {"columns": model.report["n_columns"], **_errors(model, problem, X, y)}


def _errors(model: Any, problem: Problem, X: sp.csr_matrix, y: NDArray[np.int32]) -> dict[str, float]:
    wrong = [float((model.predict(rows) != labels).mean()) for rows, labels in ((problem.X, problem.y), (X, y))]
    return {"training error": wrong[0], "test error": wrong[1]}


def _gram(problem: Problem, params: dict[str, Any]) -> NDArray[np.float64]:
    X = problem.X.toarray()
    inner = X @ X.T
    if params["kernel"] == "linear":
        return inner
    if params["kernel"] == "poly":
        return np.asarray((params["gamma"] * inner + params["coef0"]) ** params["degree"])
    squares = np.diag(inner)
    return np.asarray(np.exp(-params["gamma"] * (squares[:, None] + squares[None, :] - 2 * inner)))


def _beside_clarabel(problem: Problem, params: dict[str, Any]) -> Found:
    """Dual values of the quadratic design by the block steps and by an interior point solver on the whole program."""
    solver = SOLVERS["spoc"](parse_params("spoc", params | {"tol": 1e-8, "max_epochs": 10**6}))
    *_, last = solver.steps(problem)
    values, vectors = np.linalg.eigh(_gram(problem, params))
    # rows whose inner products are the kernel's values
    rows = vectors * np.sqrt(np.maximum(values, 0.0))
    # apart, as a process that has had its threads cannot be copied for the times of Figure 5
    found = within(MOST_SECONDS, by_clarabel, Design.of(rows, problem.y, problem.n_classes))
    theirs = float("nan") if found is None else -found
    return {"ours": last.dual, "theirs": theirs, "difference": abs(last.dual - theirs) / theirs, "gap": last.gap}


def _bounds(problem: Problem) -> Found:
    """Corollaries 2 and 3 of the machine on the features themselves, at a C so large that it separates its sample."""
    params = {"kernel": "linear", "C": 1e4, "tol": 1e-4, "bias": 1.0, "max_epochs": 20_000}
    solver = SOLVERS["spoc"](parse_params("spoc", params))
    *_, last = solver.steps(problem)
    report = solver.model(problem, last.state).report
    names = (
        "norm", "radius", "smallest_margin", "classes_separated", "error_bound", "class_error_bound_least",
        "class_error_bound_most",
    )  # fmt: skip
    return {name: report[name] for name in names if name in report}


def _figure_5(store: Store, n: int, size: Size) -> None:
    """Seconds of SPOC and of generic solvers on so many points of a square; who was too slow is not tried at more."""
    problems = [quadrants(n, seed) for seed in range(SAMPLES[size])]
    store.run(Run("figure 5", "quadrants", "SPOC", str(n)), partial(_seconds, CAP[size], by_spoc, problems))
    for rival, (solve, _) in RIVALS.items():
        run = Run("figure 5", "quadrants", rival, str(n))
        earlier = [found for other, found in store.found.items() if other[:3] == run[:3] and other != run]
        if all(found["seconds"] == found["seconds"] for found in earlier):
            designs = [Design.of(problem.X.toarray(), problem.y, QUADRANTS) for problem in problems]
            store.run(run, partial(_seconds, CAP[size], solve, designs))


def _seconds(cap: float, solve: Any, tasks: list[Any]) -> Found:
    """The mean over samples; nan where one took too long or ended without a solution."""
    found = [within(cap, timed, solve, (task,)) for task in tasks]
    fine = [each for each in found if each is not None and each[1] == each[1]]
    mean = statistics.mean(each[0] for each in fine) if len(fine) == len(tasks) else float("nan")
    return {"seconds": mean, "value": fine[0][1] if fine else float("nan")}
