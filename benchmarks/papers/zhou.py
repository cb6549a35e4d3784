"""Zhou et al. 2011: Tables 2 to 8 over random splits with a paired t-test, and the bounds of their Algorithm 1.

Their C of 1 to 100 is n_samples times ours; K has alpha = 1 and is repaired where it makes the objective not convex.
"""

from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import ttest_rel

from benchmarks import sets
from benchmarks.papers import label_sets, zhou_page
from benchmarks.papers.label_sets import Shape
from benchmarks.papers.protocol import Size
from benchmarks.papers.store import Found, Run, Store
from solvers.core.problem import Problem
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.hierarchical import hierarchical
from solvers.registry import SOLVERS, parse_params

TITLE = zhou_page.TITLE
page = zhou_page.page

REAL = ("imclef07a", "20news", "docstrings")
SPLITS = {"full": 50, "quick": 5}
C_SPLITS = {"full": 50, "quick": 2}
N_TRAIN = {"full": 500, "quick": 300}
MOST_TEST = {"full": 2000, "quick": 1000}
ITERATIONS = {"full": 20_000, "quick": 1_000}
AVERAGING_ROWS = {"full": 200, "quick": 200}
# of text, whose bounds close, and of dense features, where they do not
AVERAGED = ("20news", "imclef07a", "generated")
CS = (1.0, 10.0, 100.0)
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "FLATMULT": ("flat_multiclass", {}),
    "HIERMULT": ("hierarchical_multiclass", {}),
    "TRANSFER": ("transfer", {}),
    "TREELOSS": ("tree_loss", {}),
    "ORTHOGNL": ("orthogonal_transfer", {"alpha": 1.0, "repair": "raise"}),
}
TOL = 1e-2
MEASURES = ("error", "tree_loss")


class Collection(NamedTuple):
    """All rows of a set with one node each, its tree."""

    X: sp.csr_matrix
    nodes: NDArray[np.int32]
    tree: Taxonomy


@cache
def data(name: str, *, branching: bool) -> Collection:
    """A set; with ``branching`` without the first-level nodes that have a single leaf below them."""
    if name == "generated":
        tree, X, labels = label_sets.generated(Shape(40, 3, False), 1400, seed=5)
        # of a path the last node is its label, and the numbers of nodes rise on the way down
        nodes = np.asarray([row.max() for row in np.split(labels.indices, labels.indptr[1:-1])], np.int32)
    else:
        problem, X_test, y_test = sets.load_tree(name)
        tree = problem.tree
        X = sp.vstack([problem.X, X_test], format="csr")
        nodes = np.concatenate([problem.nodes(), y_test]).astype(np.int32)
    if branching:
        top = np.array([int(tree.path(int(node))[0]) for node in range(tree.n_nodes)])
        leaves = np.flatnonzero(np.diff(tree.first_child)[1:] == 0)
        single = np.bincount(top[leaves], minlength=tree.n_nodes) < 2
        rows = ~single[top[nodes]]
        return _without(Collection(X[rows], nodes[rows], tree), np.flatnonzero(~single[top]))
    return Collection(sp.csr_matrix(X), nodes, tree)


def _without(of: Collection, kept: NDArray[np.int64]) -> Collection:
    number = np.full(of.tree.n_nodes + 1, -1)
    number[kept] = np.arange(len(kept))
    tree = Taxonomy(tuple(of.tree.names[j] for j in kept), number[of.tree.parent[kept]].astype(np.int32))
    return Collection(sp.csr_matrix(of.X), number[of.nodes].astype(np.int32), tree)


def measure(store: Store, size: Size) -> None:
    """Run what has not been run."""
    names = REAL if sets.folder() is not None and size == "full" else ("generated",)
    if size == "quick":
        names = ("generated", "docstrings")
    averaged = [name for name in names if name in AVERAGED]
    for name in averaged:
        store.note("averaging data", name, rows=AVERAGING_ROWS[size])
    try:
        for name in averaged:
            _averaging(store, name, size)
        for name in names:
            for title, branching in _parts(name).items():
                _describe(store, f"{name}, {title}", data(name, branching=branching), size)
        for seed in range(SPLITS[size]):
            for name in names:
                for title in _parts(name):
                    _compare(store, name, title, seed, CS[0], size)
        for seed in range(C_SPLITS[size]):
            for name in names:
                for C in CS[1:]:
                    _compare(store, name, "all", seed, C, size)
    finally:
        _tests(store)


def _parts(name: str) -> dict[str, bool]:
    """The set, and its part with branching first-level nodes where that is not the same."""
    same = len(data(name, branching=True).nodes) == len(data(name, branching=False).nodes)
    return {"all": False} if same else {"all": False, "branching": True}


def _describe(store: Store, title: str, of: Collection, size: Size) -> None:
    leaves = int((np.diff(of.tree.first_child)[1:] == 0).sum())
    n_train = min(N_TRAIN[size], len(of.nodes) // 2)
    n_test = min(MOST_TEST[size], len(of.nodes) - n_train)
    store.note("data", title, nodes=of.tree.n_nodes, leaves=leaves, total=len(of.nodes), train=n_train, test=n_test)


def _split(of: Collection, seed: int, size: Size) -> tuple[Problem, Any, Any]:
    order = np.random.default_rng(seed).permutation(len(of.nodes))
    n_train = min(N_TRAIN[size], len(of.nodes) // 2)
    train, test = np.sort(order[:n_train]), np.sort(order[n_train : n_train + MOST_TEST[size]])
    names = np.array(of.tree.names, object)[of.nodes[train]].astype(str)
    classes, y = np.unique(names, return_inverse=True)
    return Problem.check(of.X[train], y, classes.tolist(), taxonomy=of.tree), of.X[test], of.nodes[test]


def _compare(store: Store, name: str, title: str, seed: int, C: float, size: Size) -> None:
    of = data(name, branching=title == "branching")
    split = None
    for who in METHODS:
        run = Run("tables", f"{name}, {title}", who, f"{C:g}", seed)
        if run not in store.found:
            split = split or _split(of, seed, size)
            store.run(run, partial(_trained, who, C, split))


def _trained(who: str, C: float, split: tuple[Problem, Any, Any]) -> Found:
    problem, X, nodes = split
    method, params = METHODS[who]
    solver = SOLVERS[method](parse_params(method, params | {"C": C / problem.n_samples, "tol": TOL}))
    *_, last = solver.steps(problem)
    found = hierarchical(problem.tree, nodes, solver.model(problem, last.state).predict(X))
    return {"error": 100 * found["error"], "tree_loss": 100 * found["tree_loss"], "gap": last.gap}


def _tests(store: Store) -> None:
    """Paired two-sided t-tests of every method against the best one, over the splits that all have."""
    groups: dict[tuple[str, str], dict[str, dict[int, Found]]] = {}
    for run, found in list(store.found.items()):
        if run.part == "tables":
            groups.setdefault((run.set, run.setting), {}).setdefault(run.method, {})[run.repetition] = found
    for (name, C), methods in groups.items():
        common = sorted(set.intersection(*(set(of) for of in methods.values())))
        if len(common) < 2 or len(methods) < len(METHODS):
            continue
        for measure_name in MEASURES:
            values = {who: np.array([float(of[seed][measure_name]) for seed in common]) for who, of in methods.items()}  # type: ignore[arg-type]
            best = min(values, key=lambda who: values[who].mean())
            for who, of in values.items():
                same = bool(np.array_equal(of, values[best]))
                p = 1.0 if same else float(ttest_rel(of, values[best]).pvalue)
                store.found[Run("t-test", name, who, C)] = {
                    **store.found.get(Run("t-test", name, who, C), {}), f"p of {measure_name}": p,
                }  # fmt: skip


def _averaging(store: Store, name: str, size: Size) -> None:
    """Upper and lower bound of their Algorithm 1 by iteration, beside the certified optimum."""
    of = data(name, branching=True)
    order = np.random.default_rng(0).permutation(len(of.nodes))[: AVERAGING_ROWS[size]]
    names = np.array(of.tree.names, object)[of.nodes[order]].astype(str)
    classes, y = np.unique(names, return_inverse=True)
    problem = Problem.check(of.X[order], y, classes.tolist(), taxonomy=of.tree)
    shared = {"alpha": 1.0, "repair": "raise", "C": 1.0 / problem.n_samples}

    def averaged() -> Found:
        given = shared | {"algorithm": "rda", "max_epochs": ITERATIONS[size], "tol": 1e-6}
        solver = SOLVERS["orthogonal_transfer"](parse_params("orthogonal_transfer", given))
        bounds = [(step.epoch, step.primal, step.dual) for step in solver.steps(problem) if step.primal == step.primal]
        few = np.unique(np.geomspace(1, len(bounds), 40).round().astype(int)) - 1
        points = [bounds[at] for at in few.tolist()]
        return {
            "upper bound": [(float(epoch), upper) for epoch, upper, _ in points],
            "lower bound": [(float(epoch), lower) for epoch, _, lower in points],
            "last upper": bounds[-1][1], "last lower": bounds[-1][2], "iterations": bounds[-1][0],
        }  # fmt: skip

    def ascended() -> Found:
        method = SOLVERS["orthogonal_transfer"](parse_params("orthogonal_transfer", shared | {"tol": 1e-5}))
        *_, last = method.steps(problem)
        return {"primal": last.primal, "dual": last.dual, "epochs": last.epoch}

    store.run(Run("averaging", name, "dual averaging"), averaged)
    store.run(Run("averaging", name, "ascent"), ascended)
