"""Measures of a model on the rows of its training: those that it is known to answer rightly are not scored again."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.core.certain_answers import Reach, certain
from solvers.core.linear_model import LinearModel
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.labels.costs import Costs
from solvers.labels.taxonomy import Taxonomy
from solvers.registry import SOLVERS, parse_params
from workers.phases.scoring import measures
from workers.phases.splitting import Rows

TREE = Taxonomy.from_edges([("root", "a"), ("root", "4"), *(("a", str(c)) for c in range(4))])


def _trained() -> tuple[Model, sp.csr_matrix, Any, Any]:
    rng = np.random.default_rng(0)
    X = sp.random(120, 20, density=0.2, random_state=rng, data_rvs=rng.standard_normal, format="csr")
    problem = Problem.check(X, np.argmax(X @ rng.standard_normal((20, 5)) + rng.standard_normal((120, 5)), axis=1))
    solver = SOLVERS["weston_watkins"](parse_params("weston_watkins", {}))
    *_, last = solver.steps(problem)
    return solver.model(problem, last.state), problem.X, problem.y, last.right


@pytest.mark.parametrize("tree", [None, TREE])
def test_rows_that_are_known_to_be_right_are_not_scored_and_change_no_measure(
    tree: Taxonomy | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, X, y, right = _trained()
    names, half = [str(c) for c in range(5)], 60
    truth = y if tree is None else tree.find(names)[y].astype(np.int32)
    numbers = np.arange(half)
    rows = Rows(numbers, numbers + half, names, y[:half], truth[:half], truth[half:], tree, None)
    scores, asked = LinearModel.scores, []

    def scored(self: LinearModel, X: sp.csr_matrix) -> Any:
        asked.append(X.shape[0])
        return scores(self, X)

    monkeypatch.setattr(LinearModel, "scores", scored)
    every = measures(model, rows, X[:half], X[half:])
    assert sum(asked) == 120
    asked.clear()
    assert measures(model, rows, X[:half], X[half:], right[:half]) == every
    assert sum(asked) == 120 - np.count_nonzero(right[:half]) < 100
    # without a tree the scores of the measures also say which answers are certain
    model.reach = Reach(np.array([0.05]), 0.0, 1.0)
    asked.clear()
    share = measures(model, rows, X[:half], X[half:])["test"]["certain"]
    assert sum(asked) == (120 if tree is None else 180)
    assert share == certain(model, X[half:]).mean()
    assert 0.0 < share < 1.0


def test_measures_of_the_labels_themselves_are_the_same_with_and_without_a_tree() -> None:
    model, X, y, right = _trained()
    names, half = [str(c) for c in range(5)], 60
    numbers, nodes = np.arange(half), TREE.find(names)[y].astype(np.int32)
    flat = Rows(numbers, numbers + half, names, y[:half], y[:half], y[half:], None, None)
    along = Rows(numbers, numbers + half, names, y[:half], nodes[:half], nodes[half:], TREE, None)
    found = measures(model, along, X[:half], X[half:], right[:half])
    for part, due in measures(model, flat, X[:half], X[half:]).items():
        assert {"error", "micro_f1", "macro_f1", "mrr", "accuracy@3"} <= set(due)
        assert {name: found[part][name] for name in due} == pytest.approx(due)
    assert 0.0 < 1 - found["test"]["accuracy@3"] < found["test"]["error"]


def test_costs_along_a_tree_are_its_distances_also_for_labels_that_no_training_row_has() -> None:
    model, X, y, _ = _trained()
    names, half = [str(c) for c in range(5)], 60
    tree = Taxonomy.from_edges([*TREE.edges, ("a", "other"), ("root", "top"), ("top", "below")])
    numbers, nodes = np.arange(half), tree.find(names)[y].astype(np.int32)
    truth = nodes[half:].copy()
    truth[:20], truth[20:25] = tree.find(["other"])[0], tree.find(["below"])[0]
    rows = Rows(numbers, numbers + half, names, y[:half], nodes[:half], truth, tree, None)
    model.costs = Costs.of_tree(names, tree)
    test = measures(model, rows, X[:half], X[half:])["test"]
    assert test["cost"] == test["tree_loss"] > 0.0
    model.costs = Costs.of_table(names, {"0": {"1": 7.0}}, 3.0)
    answers, known = model.predict(X[half:]), np.arange(half) >= 25
    due = model.costs.between(np.where(known, y[half:], -1), answers)
    assert measures(model, rows, X[:half], X[half:])["test"]["cost"] == pytest.approx(due.mean())
