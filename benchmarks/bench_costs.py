"""What do cost margins, losses times costs and decisions by expected cost save, in the unit of the costs?

Costs are the distances of the label tree, or a random table that is not symmetric: pairs below the same top-level node
cost from 0.1 to 10, log-uniform, and all others 1. Each way has its own C, the best for itself on a fifth of
the training rows, which also fit the temperature of its probabilities; it is then trained on all of them.
"""

import argparse
import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks import sets
from benchmarks.results import write
from solvers.core.problem import Problem
from solvers.labels.costs import Costs
from solvers.metrics.comparison import paired_bootstrap
from solvers.metrics.hierarchical import ancestry
from solvers.registry import SOLVERS, parse_params
from solvers.selection.pooling import fit_temperature, log_softmax, pooled

CS = (0.5, 2.0, 8.0, 32.0)
METHODS = ("crammer_singer", "weston_watkins")
HELD_OUT, MOST_EPOCHS = 0.2, 100


class Way(NamedTuple):
    """How the training takes costs, if it does, and how answers are decided."""

    title: str
    scaling: str | None
    decides: bool


WAYS = (
    Way("unit margins", None, decides=False),
    Way("unit, decisions", None, decides=True),
    Way("cost margins", "margin", decides=False),
    Way("margins, decisions", "margin", decides=True),
    Way("losses times costs", "slack", decides=False),
    Way("losses, decisions", "slack", decides=True),
)


def random_table(problem: Problem, seed: int = 0) -> dict[str, dict[str, float]]:
    """Costs of pairs below the same top-level node."""
    tree = problem.tree
    top = ancestry(tree, tree.find(problem.classes))[:, 0]
    random, names = np.random.default_rng(seed), problem.classes
    pairs = [(y, c) for y in range(len(names)) for c in range(len(names)) if y != c and top[y] == top[c]]
    values = np.round(10.0 ** random.uniform(-1.0, 1.0, len(pairs)), 3).tolist()
    table: dict[str, dict[str, float]] = {}
    for (y, c), value in zip(pairs, values, strict=True):
        table.setdefault(names[y], {})[names[c]] = value
    return table


class Scores:
    """Scores of some rows by machines that are trained on others, each once."""

    def __init__(self, method: str, problem: Problem, X: sp.csr_matrix) -> None:
        self.method, self.problem, self.X = method, problem, X
        self._kept: dict[tuple[float, str], Any] = {}

    def of(self, C: float, params: dict[str, Any], title: str) -> NDArray[np.float32]:
        """The scores of the machine of these parameters, whose costs have this title."""
        if (C, title) not in self._kept:
            solver = SOLVERS[self.method](parse_params(self.method, {"C": C, "max_epochs": MOST_EPOCHS, **params}))
            *_, last = solver.steps(self.problem)
            scores = solver.model(self.problem, last.state).scores(self.X)
            self._kept[C, title] = np.asarray(scores, np.float32)
        return self._kept[C, title]


def answered(scores: NDArray[np.float32], way: Way, costs: Costs, temperature: NDArray[np.float64]) -> Any:
    """The class of each answer."""
    if not way.decides:
        return scores.argmax(axis=1)
    return costs.expected(np.exp(log_softmax(pooled([scores], temperature)))).argmin(axis=1)


def held_out(problem: Problem) -> tuple[Problem, sp.csr_matrix, Any]:
    """The rows that are trained on to choose C, and those held out."""
    held = np.random.default_rng(0).random(problem.n_samples) < HELD_OUT
    # every class keeps a row
    held[np.unique(problem.y, return_index=True)[1]] = False
    inner = Problem.check(problem.X[~held], problem.y[~held], problem.classes, taxonomy=problem.taxonomy)
    return inner, problem.X[held], problem.y[held]


def measure(inner: Scores, outer: Scores, y_held: Any, y_test: Any, title: str, params: dict[str, Any]) -> list[Any]:
    """Cells of the ways: mean cost, the difference to the first with its interval, and errors."""
    costs = parse_params(outer.method, params).costs_of(outer.problem)
    found: dict[Way, tuple[float, float, Any]] = {}

    def trained(scaling: str | None) -> tuple[dict[str, Any], str]:
        return ({}, "") if scaling is None else ({**params, "cost_scaling": scaling}, f"{title} {scaling}")

    for C in CS:
        for scaling in (None, "margin", "slack"):
            scores = inner.of(C, *trained(scaling))
            temperature = fit_temperature(scores, y_held).coefficients
            for way in (way for way in WAYS if way.scaling == scaling):
                cost = float(costs.between(y_held, answered(scores, way, costs, temperature)).mean())
                if way not in found or cost < found[way][0]:
                    found[way] = cost, C, temperature
    spent, errors, cells = {}, [], []
    for way in WAYS:
        _, C, temperature = found[way]
        scores = outer.of(C, *trained(way.scaling))
        answers = answered(scores, way, costs, temperature)
        spent[way] = costs.between(y_test, answers)
        errors.append(f"{np.mean(answers != y_test):.1%}")
        if way is WAYS[0]:
            cells.append(f"{spent[way].mean():.4f}")
        else:
            test = paired_bootstrap(spent[way], spent[WAYS[0]])
            cells.append(f"{spent[way].mean():.4f} ({test.low:+.4f} to {test.high:+.4f})")
    return [*cells, " / ".join(errors), " / ".join(f"{found[way][1]:g}" for way in WAYS)]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=sets.TREE)
    arguments.add_argument("--methods", nargs="*", default=METHODS, choices=METHODS)
    chosen = arguments.parse_args()
    rows: list[list[Any]] = []
    for name in chosen.sets:
        problem, X_test, nodes = sets.load_tree(name)
        class_of = np.full(problem.tree.n_nodes, -1)
        class_of[problem.tree.find(problem.classes)] = np.arange(problem.n_classes)
        y_test = class_of[nodes]
        train, X_held, y_held = held_out(problem)
        for method in chosen.methods:
            inner, outer = Scores(method, train, X_held), Scores(method, problem, X_test)
            for title, params in (("tree", {"costs": "tree"}), ("table", {"costs": random_table(problem)})):
                began = time.process_time()
                cells = measure(inner, outer, y_held, y_test, title, params)
                rows.append([name, problem.n_classes, len(y_test), method, title, *cells])
                print(rows[-1], f"{time.process_time() - began:.1f} s", flush=True)
    header = ["set", "classes", "test rows", "method", "costs", *(way.title for way in WAYS), "errors", "C"]
    note = (
        "Mean cost of a test row; in brackets the 95 % interval of the difference to unit margins, paired bootstrap. "
        "Errors and C are of the ways in order. Each way has the C of the least held-out cost among "
        f"{', '.join(f'{C:g}' for C in CS)}. A label without training rows costs 1 by the table, and the way from the "
        "root by the tree. Decisions are by probabilities of one temperature. Trainings end at a gap of 1 %, or after "
        f"{MOST_EPOCHS} epochs."
    )
    write("Cost of wrong answers", header, rows, note)


if __name__ == "__main__":
    main()
