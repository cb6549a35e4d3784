"""Lin et al. 2012: Figures 1 to 6, five random splits, C chosen on rows held out, the same rounds for every method.

Sets of the paper are VOWEL, USPS, PENDIGITS and, as a thousand images of it, digits in place of MNIST; LETTER, SATIMAGE
and SEGMENT replace those that cannot be had. Three quarters of the rows train. Stumps are the weak learners.
"""

import time
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_wine

from benchmarks import sets
from benchmarks.bench_boosting_figures import TEST_SHARE, timed
from benchmarks.bench_boosting_sweeps import descended, solved
from benchmarks.papers import lin_page
from benchmarks.papers.protocol import Size
from benchmarks.papers.store import Found, Run, Store
from solvers.boosting.boosting import split
from solvers.boosting.pairs.pair_loss import PairLoss
from solvers.boosting.weak_learners.stumps import Stumps
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

TITLE = lin_page.TITLE
page = lin_page.page

BUILT_IN = ("digits", "wine")
REAL = ("vowel", "usps", "pendigits", "letter", "satimage", "segment")
ROUNDS = {"full": 500, "quick": 40}
SPLITS = {"full": 5, "quick": 2}
# of larger sets only so many rows, so that the slowest competitor comes to its last round
MOST_ROWS = {"full": 1000, "quick": 400}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "CW": ("multiboost_cw", {"tau_max": 10, "tol": 1e-9}),
    "CW-1": ("multiboost_cw", {"C": 1e8, "tau_max": 1, "tol": 1e-9}),
    "MultiBoost": ("multiboost", {"tol": 1e-9}),
    "AdaBoost.ECC": ("adaboost_ecc", {"tol": 1e-12}),
    "AdaBoost.MH": ("adaboost_mh", {"tol": 1e-12, "sharing": "sign"}),
    "AdaBoost.MO": ("adaboost_mo", {"tol": 1e-12}),
}
# chosen as in the paper, on a fifth of the training rows and with fewer rounds
CHOSEN, GRID = ("CW", "MultiBoost"), {"full": (1e2, 1e3, 1e4, 1e5), "quick": (1e2, 1e4)}
CHOICE_SHARE, CHOICE_ROUNDS = 0.2, {"full": 50, "quick": 30}
SWEEPS = {"full": (1, 2, 5, 20), "quick": (1, 2, 20)}
SWEEP_SETS = {"full": ("vowel", "usps"), "quick": ("wine",)}
SWEEP_ROUNDS = {"full": 200, "quick": 40}


@cache
def data(name: str, size: Size) -> tuple[sp.csr_matrix, NDArray[np.int32]]:
    """All rows of a set, at random as many as the size has."""
    if name in BUILT_IN:
        X, y = {"digits": load_digits, "wine": load_wine}[name](return_X_y=True)
        X = sp.csr_matrix(X)
    else:
        parts = sets.load(name), sets.load_test(name)
        X, y = sp.vstack([part[0] for part in parts], format="csr"), np.concatenate([part[1] for part in parts])
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[: MOST_ROWS[size]])
    return sp.csr_matrix(X[rows]), np.unique(y[rows], return_inverse=True)[1].astype(np.int32)


def names(size: Size) -> list[str]:
    """The sets that are at hand."""
    return [*REAL[:3], "digits", *REAL[3:]] if sets.folder() is not None and size == "full" else list(BUILT_IN)


def measure(store: Store, size: Size) -> None:
    """Run what has not been run."""
    for name in [name for name in SWEEP_SETS[size] if name in (*BUILT_IN, *names(size))]:
        problem = Problem.check(*data(name, size))
        for tau_max in SWEEPS[size]:
            run = Run("figure 6", name, f"FCD {tau_max}")
            store.run(run, partial(_sweeps, problem, tau_max, SWEEP_ROUNDS[size]))
        store.run(Run("figure 6", name, "L-BFGS-B"), partial(_sweeps, problem, 0, SWEEP_ROUNDS[size]))
    for seed in range(SPLITS[size]):
        for name in names(size):
            X, y = data(name, size)
            store.note("data", name, n_rows=X.shape[0], n_features=X.shape[1], n_classes=int(y.max()) + 1)
            kept, held = split(y, TEST_SHARE, seed)
            for who in METHODS:
                C = _choose(store, Run("C", name, who, "", seed), X[kept], y[kept], size)
                run = Run("figures", name, who, "", seed)
                store.run(run, partial(_curves, who, C, (X[kept], y[kept]), (X[held], y[held]), ROUNDS[size]))


def _choose(store: Store, run: Run, X: Any, y: NDArray[np.int32], size: Size) -> float | None:
    """The C with the fewest errors on a fifth of the training rows, the smaller of equals."""
    if run.method not in CHOSEN:
        return None
    kept, held = split(y, CHOICE_SHARE, run.repetition)

    def choose() -> Found:
        errors = {}
        for C in GRID[size]:
            found = _curves(run.method, C, (X[kept], y[kept]), (X[held], y[held]), CHOICE_ROUNDS[size])
            errors[C] = float(found["error"])  # type: ignore[arg-type]
        return {"C": min(errors, key=lambda C: (errors[C], C))}

    return float(store.run(run, choose)["C"])  # type: ignore[arg-type]


def _curves(who: str, C: float | None, train: Any, test: Any, rounds: int) -> Found:
    """Test error, seconds of the solver and of all by round; and the last of each."""
    name, params = METHODS[who]
    given = params | {"max_epochs": rounds} | ({} if C is None else {"C": C})
    method = SOLVERS[name](parse_params(name, given))
    problem = Problem.check(*train)
    next(iter(method.steps(problem)))  # compiles
    solver, total, spent, epoch, state = [], [], 0.0, 0, None
    with timed([(Stumps, "find_and_evaluate"), (PairLoss, "measure")]) as search:
        for step, seconds in _watched(method.steps(problem)):
            spent, state = spent + seconds, step.state
            if step.epoch > epoch and step.primal == step.primal:
                epoch = step.epoch
                solver.append(spent - search[0])
                total.append(spent)
    model: Any = method.model(problem, state)
    errors = [100 * float(np.mean(scores.argmax(axis=1) != test[1])) for scores in model.staged_scores(test[0])]
    shown = np.unique(np.geomspace(1, rounds, 30).round().astype(int)) - 1

    def points(values: list[float]) -> list[tuple[float, float]]:
        # a method that has ended stays where it is
        return [(float(at + 1), values[min(at, len(values) - 1)]) for at in shown.tolist()]

    curves = {"test error": errors, "solver's seconds": solver, "total seconds": total}
    last = {"error": errors[-1], "solver": solver[-1], "total": total[-1], "rounds": len(total)}
    if step.gap == step.gap:
        last["gap"] = step.gap
    return last | {key: points(values) for key, values in curves.items()}


def _watched(steps: Iterator[Any]) -> Iterator[tuple[Any, float]]:
    """Each step with the processor seconds that it took."""
    while True:
        began = time.process_time()
        step = next(steps, None)
        if step is None:
            return
        yield step, time.process_time() - began


def _sweeps(problem: Problem, tau_max: int, rounds: int) -> Found:
    """Objective and seconds of the solver by round, with so many sweeps, or of L-BFGS-B for none."""
    list(descended(problem, tau_max, 2) if tau_max else solved(problem, 2))
    curve = list(descended(problem, tau_max, rounds) if tau_max else solved(problem, rounds))
    thin = np.unique(np.geomspace(1, len(curve), 30).round().astype(int)) - 1
    found = {
        key: [(float(at + 1), curve[at][place]) for at in thin.tolist()]
        for place, key in enumerate(("objective", "seconds"))
    }
    return found | {"last objective": curve[-1][0], "last seconds": curve[-1][1], "rounds": len(curve)}
