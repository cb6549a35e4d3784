"""Alber et al. 2017: Figures 2 and 3, and Tables 1 and 3 to 5 in form, on sets that fit one small machine."""

import os
import time
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler, normalize

from benchmarks import sets
from benchmarks.papers import alber_page
from benchmarks.papers.exchanges import Kind
from benchmarks.papers.exchanges.forecast import forecast
from benchmarks.papers.protocol import Size
from benchmarks.papers.store import Found, Run, Store
from solvers.core.problem import Problem
from solvers.metrics.flat import flat
from solvers.registry import SOLVERS, parse_params
from solvers.sharding.plan import Rates

TITLE = alber_page.TITLE
page = alber_page.page

MACHINES = ("weston_watkins", "lee_lin_wahba", "crammer_singer", "one_vs_rest")
LIBLINEAR = {"LIBLINEAR -s 4": 4, "LIBLINEAR -s 3": 3}
CS = {"full": [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 1e2, 1e3, 1e4], "quick": [1e-2, 1.0, 1e2]}
# Table 5: Lee-Lin-Wahba where it is hardly constrained
MORE_C = {"full": [1e6], "quick": []}
CAP = {"full": 3.0, "quick": 3.0}
TOL = 1e-2
EXACT_ROWS = {"full": alber_page.MOST_ROWS, "quick": 90}
EXACT_SETS = {"full": ("iris", "wine", "digits"), "quick": ("iris", "wine", "digits")}
EXACT_CS = (0.1, 1.0)
# 10 Gbit/s and half a millisecond a round, as between the paper's machines
NETWORK = Rates(bandwidth=1.25e9, round_trip=5e-4)
SHARDS = (1, 2, 4, 8, 16, 32, 64)
# rows, features, classes, entries a row of the paper's largest set, LSHTC-2011
LARGE = {"n": 394_754, "d": 594_158, "k": 27_875, "nnz": 130}
# two processes, over the Redis at POLYMARGIN_TEST_REDIS_URL
IN_PROCESSES, PROCESS_RUNS = "20news", 5


@cache
def data(name: str) -> tuple[Problem, sp.csr_matrix, NDArray[np.int32]]:
    """Examples to train on, and those for testing; every fourth row of a set without a split of its own."""
    X, y = sets.load(name)
    if name in sets.TEXT:
        return Problem.check(X, y), *sets.load_test(name)
    held = np.arange(len(y)) % 4 == 3
    classes, index = np.unique(y[~held], return_inverse=True)
    known = np.isin(y[held], classes)
    return Problem.check(X[~held], index), X[held][known], np.searchsorted(classes, y[held][known]).astype(np.int32)


def texts(size: Size) -> list[str]:
    """The sets of texts at hand."""
    return ["docstrings", "20news", "naics"] if sets.folder() is not None and size == "full" else ["docstrings"]


def measure(store: Store, size: Size) -> None:
    """Run what has not been run."""
    for name in EXACT_SETS[size]:
        for C in EXACT_CS:
            for machine in ("weston_watkins", "lee_lin_wahba"):
                run = Run("table 1", name, machine, f"{C:g}")
                store.run(run, partial(_beside_exact, machine, C, *_small(name, EXACT_ROWS[size])))
    _speed_up(store, size)
    for name in texts(size):
        problem, X, y = data(name)
        k, d = problem.n_classes, problem.n_features
        store.note("data", name, n_train=problem.n_samples, n_test=len(y), n_features=d, n_classes=k)
        for C in CS[size] + MORE_C[size]:
            for machine in MACHINES if C in CS[size] else ("lee_lin_wahba",):
                run = Run("tables", name, machine, f"{C:g}")
                store.run(run, partial(_trained, machine, C, (problem, X, y), CAP[size]))
            for title, number in LIBLINEAR.items() if find_spec("liblinear") and C in CS[size] else ():
                run = Run("tables", name, title, f"{C:g}")
                store.run(run, partial(_by_liblinear, number, C, (problem, X, y), CAP[size]))


def _small(name: str, most: int) -> tuple[Problem, sp.csr_matrix, NDArray[np.int32]]:
    """A set of Table 1's kind: rows of length 1 of iris, unit variance of the others; a tenth is held out."""
    X, y = {"iris": load_iris, "wine": load_wine, "digits": load_digits}[name](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = (normalize(X) if name == "iris" else StandardScaler().fit_transform(X))[order], y[order].astype(np.int32)
    n = min(most, len(y) - len(y) // 10)
    return Problem.check(X[:n], y[:n]), sp.csr_matrix(X[n:]), y[n:]


def _beside_exact(machine: str, C: float, problem: Problem, X: sp.csr_matrix, y: NDArray[np.int32]) -> Found:
    """Objective, error and sparsity of ours, and of an interior point solver given the whole program."""
    solver = SOLVERS[machine](parse_params(machine, {"C": C, "tol": 1e-6, "max_epochs": 10**6, "dtype": "float64"}))
    *_, last = solver.steps(problem)
    model = solver.model(problem, last.state)
    W = cp.Variable((problem.n_classes, problem.n_features))
    own = np.eye(problem.n_classes)[problem.y]
    F = problem.X.toarray() @ W.T
    if machine == "weston_watkins":
        right = cp.sum(cp.multiply(F, own), axis=1, keepdims=True) @ np.ones((1, problem.n_classes))
        losses, limits = cp.multiply(cp.pos(1 - right + F), 1 - own), []
    else:
        losses, limits = cp.multiply(cp.pos(1 + F), 1 - own), [cp.sum(W, axis=0) == 0]
    task = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + C * cp.sum(losses)), limits)
    accuracy = {"tol_gap_rel": 1e-9, "tol_gap_abs": 1e-9, "tol_feas": 1e-9}
    theirs = float(task.solve(solver="CLARABEL", **accuracy))
    exact = np.asarray(X @ np.asarray(W.value).T).argmax(axis=1)
    return {
        "ours": last.primal, "theirs": theirs, "difference": abs(last.primal - theirs) / theirs,
        "our error": 100 * float((model.predict(X) != y).mean()), "their error": 100 * float((exact != y).mean()),
        "nonzero_duals": 100 * model.report["nonzero_duals"],
    }  # fmt: skip


def _trained(machine: str, C: float, task: tuple[Problem, Any, Any], cap: float) -> Found:
    """Seconds to a gap of a hundredth, or the gap when the seconds are over; measures on the part for testing."""
    problem, X, y = task
    solver = SOLVERS[machine](parse_params(machine, {"C": C, "tol": TOL, "max_epochs": 10**6}))
    spent, gap, began = 0.0, float("nan"), time.process_time()
    for step in solver.steps(problem):
        spent = time.process_time() - began
        gap = step.gap if step.gap == step.gap else gap
        if spent > cap:
            break
    model = solver.model(problem, step.state)
    report = {name: 100 * model.report[name] for name in ("nonzero_weights", "nonzero_duals")}
    return {"seconds": spent, "gap": gap} | report | _measures(y, model.predict(X), problem.n_classes)


def _measures(y: Any, predicted: Any, n_classes: int) -> dict[str, float]:
    found = flat(y, predicted, n_classes)
    return {name: 100 * found[name] for name in ("error", "micro_f1", "macro_f1")}


def _by_liblinear(number: int, C: float, task: tuple[Problem, Any, Any], cap: float) -> Found:
    """The same of LIBLINEAR with its default stop; nan where it took more seconds."""
    from benchmarks.peers import capped, liblinear

    problem, X, y = task
    found = capped(liblinear, problem.X, problem.y, number, None, C, seconds=int(np.ceil(cap)))
    if found is None:
        return {"seconds": float("nan")}
    seconds, W = found
    predicted = np.asarray(X @ W).argmax(axis=1)
    return {"seconds": seconds, "nonzero_weights": 100 * float(np.mean(W != 0))} | _measures(y, predicted, W.shape[1])


def _speed_up(store: Store, size: Size) -> None:
    """Processes by the clock on the wall, in turns; shards by the clock of the forecast."""
    name = texts(size)[0]
    problem, *_ = data(name)
    for machine in ("weston_watkins", "lee_lin_wahba"):
        if IN_PROCESSES in texts(size) and os.environ.get("POLYMARGIN_TEST_REDIS_URL"):
            run = Run("figure 2", IN_PROCESSES, machine, "processes")
            store.run(run, partial(_processes, machine, IN_PROCESSES))
        for where, shape in {name: _shape(problem), "LSHTC-2011": _zipf()}.items():
            kinds: dict[str, Kind] = (
                {"tournament": "weights", "scores": "scores"}
                if machine == "weston_watkins"
                else {"mean": "mean", "sums": "sums"}
            )
            for title, kind in kinds.items():
                compute = partial(_modelled, shape, kind)
                store.run(Run("figure 2", where, machine, f"shards, {title}"), compute)


def _processes(machine: str, name: str) -> Found:
    """How many times as fast an epoch is in two shards, each a process, the median of pairs of trainings in turns."""
    from benchmarks.bench_shards import in_turns

    runs = in_turns(name, machine, TOL, PROCESS_RUNS)
    pairs = [
        (one[0] / one[1]) / (two[0] / two[1]) for one, two in zip(runs["no shards"], runs["2 shards"], strict=True)
    ]
    return {"times": float(np.median(pairs)), "least": min(pairs), "most": max(pairs)}


Shaped = tuple[NDArray[np.int64], int, int]


def _shape(problem: Problem) -> Shaped:
    counts = np.bincount(problem.y, minlength=problem.n_classes).astype(np.int64)
    return counts, problem.n_features, problem.X.nnz


def _zipf() -> Shaped:
    """Examples a class of a set as large as LSHTC-2011, in inverse proportion to the rank."""
    share = 1.0 / (np.arange(LARGE["k"]) + 10.0)
    counts = 1 + np.floor((LARGE["n"] - LARGE["k"]) * share / share.sum()).astype(np.int64)
    return counts, LARGE["d"], LARGE["n"] * LARGE["nnz"]


def _modelled(shape: Shaped, kind: Kind) -> Found:
    """Times as fast at one epoch each, by the clock of the forecast."""
    counts, n_features, nnz = shape
    fit = [size for size in SHARDS if size <= len(counts) // 2]
    seconds = [forecast(counts, n_features, nnz, size, 4, 1, NETWORK, kind).seconds for size in fit]
    return {"speed-up": [(float(size), seconds[0] / each) for size, each in zip(fit, seconds, strict=True)]}
