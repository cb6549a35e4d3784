"""Prints the compiled loops that trainings, answers and measures call after ``app.operation.warm``, one per line.

A process of its own, so that no loop is compiled before.
"""

import threading
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba.core.dispatcher import _DispatcherBase

from app.operation import warm
from solvers.core.problem import Problem
from solvers.labels.taxonomy import Taxonomy
from solvers.registry import SOLVERS
from workers.phases.scoring import measures
from workers.phases.splitting import Rows

called: set[str] = set()
_compile = _DispatcherBase._compile_for_args


def noted(self: Any, *arguments: Any, **keywords: Any) -> Any:
    types = ", ".join(str(self.typeof_pyval(each)) for each in arguments)
    called.add(f"{self.py_func.__module__}.{self.py_func.__name__}({types})")
    return _compile(self, *arguments, **keywords)


def problem(n: int, d: int, k: int, *, dense: bool) -> Problem:
    rng = np.random.default_rng(1)
    y, names = rng.permutation(np.arange(n) % k), tuple(f"c{c}" for c in range(k))
    if dense:
        X = sp.csr_matrix(rng.standard_normal((n, d)) + np.eye(k, d)[y])
    else:
        X = sp.csr_matrix(sp.random(n, d, density=0.05, random_state=rng, data_rvs=rng.random) + np.eye(k, d)[y])
    groups = [("root", "g0"), ("root", "g1")]
    tree = Taxonomy.from_edges(groups + [(f"g{c % 2}", name) for c, name in enumerate(names)])
    return Problem.check(X, y, names, taxonomy=tree)


def measure(solver: Any, each: Problem) -> None:
    """Measure the model on its own rows, without a label tree and along one."""
    try:
        *_, last = solver.steps(each)
    except ValueError:  # options that do not fit such a problem
        return
    model, rows, tree = solver.model(each, last.state), np.arange(each.n_samples), each.taxonomy
    assert tree is not None
    names, truth = list(each.classes), np.asarray(each.y, np.int32)
    nodes = tree.find(names)[truth].astype(np.int32)
    if model.tree is None:
        measures(model, Rows(rows, rows, names, truth, truth, truth, None, None), each.X, each.X)
    measures(model, Rows(rows, rows, names, truth, nodes, nodes, tree, None), each.X, each.X)


def main() -> None:
    _DispatcherBase._compile_for_args = noted
    warm.main()
    known = set(called)
    for each in (problem(60, 8, 4, dense=True), problem(150, 400, 6, dense=False), problem(300, 20, 12, dense=True)):
        for kind in SOLVERS.values():
            if kind.chooses:
                continue
            for params in ({"max_epochs": 40}, {**warm.PRECISE, "max_epochs": 40}):
                solver = kind(kind.Params(**warm.known(kind, params)))
                warm.train(solver, each)
                if each.n_samples < 100:
                    measure(solver, each)
                if kind.handles.shards and each.n_samples < 300:
                    warm.train_in_shards(solver, each)
    assert threading.active_count() == 1
    for loop in sorted(called - known):
        print(f"NEW {loop}")


if __name__ == "__main__":
    main()
