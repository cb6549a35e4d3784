"""Own labels of rows along a tree: what is ranked, and trained without the tree where held-out rows say so."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, logit

from solvers.core.problem import Problem
from solvers.core.stored_models import load_model
from solvers.labels.label_sets import own_labels
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.evaluation import Evaluation, Labels, Truth
from solvers.metrics.outcomes import Outcomes
from solvers.registry import make
from solvers.selection.candidates import default_families
from solvers.selection.sets.own_labels import closed, flat_problem, has_own_inner, of_own


def shelves(n=240, seed=0):
    """Rows of one own label each, half of these inner nodes: words of an inner node are not those of its children."""
    parent = np.r_[-1, -1, np.repeat([0, 1], 3)].astype(np.int32)
    tree = Taxonomy(("a", "b", *(f"leaf{j}" for j in range(6))), parent)
    rng = np.random.default_rng(seed)
    own = np.where(rng.random(n) < 0.5, rng.integers(2, size=n), rng.integers(2, 8, size=n))
    X = 0.3 * rng.standard_normal((n, 12))
    X[np.arange(n), own] += 1.0
    labels = np.zeros((n, 8), bool)
    labels[np.arange(n), own] = True
    labels[np.arange(n)[own > 1], parent[own[own > 1]]] = True
    return Problem.check_sets(X, labels, tree), own


def trained(problem, **params):
    solver = make("auto", params, seed=1)
    *_, last = solver.steps(problem)
    return solver, last.state, solver.model(problem, last.state)


def test_a_flat_problem_has_the_own_labels_and_no_tree():
    problem, own = shelves()
    flat = flat_problem(problem)
    np.testing.assert_array_equal(flat.labels.toarray().argmax(axis=1), own)
    assert (flat.labels.sum(axis=1) == 1).all()
    assert flat.tree.depth == 1
    assert flat.classes == problem.classes
    assert has_own_inner(problem)
    assert not has_own_inner(flat)
    assert [family.flat for family in default_families(problem)].count(True) == 1
    assert not any(family.flat for family in default_families(flat))


def test_a_node_is_in_a_set_as_far_as_the_best_own_label_at_or_below_it():
    tree = Taxonomy(tuple("abcd"), np.array([-1, -1, 0, 2], np.int32))
    found = closed(np.array([[-3.0, -1.0, 5.0, 1.0]]), np.array([True, True, False, True]), tree.parents)
    np.testing.assert_array_equal(found, [[1.0, -1.0, 1.0, 1.0]])


def test_an_inner_node_is_ranked_by_what_the_labels_below_leave_of_it():
    tree = Taxonomy(tuple("abcd"), np.array([-1, -1, 0, 0], np.int32))
    given = logit(np.array([[0.9, 0.3, 0.7, 0.4], [0.5, 0.1, 0.5, 0.2]]))
    found = of_own(given, np.ones(4, bool), tree.parents)
    np.testing.assert_allclose(expit(found), [[0.2, 0.3, 0.7, 0.4], [0.5e-6, 0.1, 0.5, 0.2]], rtol=1e-9)
    # nobody has it as an own label
    assert of_own(given, np.array([False, True, True, True]), tree.parents) is given


def test_an_inner_node_above_a_likely_label_does_not_come_first():
    problem, own = shelves()
    _, _, model = trained(problem, candidates=[{"solver": "node_svm", "params": {"loss": "squared_hinge", "C": 1.0}}])
    assert not model.flat
    # a set has its inner node always, which would come first
    assert (model.scores(problem.X).argmax(axis=1) < 2).all()
    assert (model.predict(problem.X) == own).mean() > 0.6
    leaves = own > 1
    assert (model.predict(problem.X[leaves]) == own[leaves]).mean() > 0.4


def test_own_labels_are_ranked_and_the_tree_is_left_aside_where_that_ranks_better(tmp_path):
    problem, _ = shelves()
    solver, state, model = trained(problem, measure="ndcg")
    assert model.record["members"][0].get("flat") is True
    assert model.flat
    assert model.ranks_own
    fresh, own = shelves(seed=1)
    assert (model.predict(fresh.X) == own).mean() > 0.8
    assert own_labels(model.predict_sets(fresh.X), fresh.tree.parents)[np.arange(240), own].mean() > 0.5
    row = fresh.X[0]
    nodes, scores = model.top(row.indices, row.data, 8)
    ranking = model.ranking(row)
    assert len(nodes) == 8
    assert nodes[0] == ranking.first()[0] == model.predict(row)[0]
    np.testing.assert_allclose(scores, ranking.values[0][nodes], rtol=1e-6)
    parts = model.contributions(row.indices, row.data, int(nodes[0]), None)
    assert parts.parts.sum() + parts.intercept == pytest.approx(scores[0], abs=1e-5)
    below = np.flatnonzero(fresh.tree.parent >= 0)
    odds = logit(model.probabilities(fresh.X))
    assert (odds[:, below] <= odds[:, fresh.tree.parent[below]] + 1e-9).all()
    model.save(tmp_path / "m")
    again, _ = load_model(tmp_path / "m")
    assert again.flat
    np.testing.assert_array_equal(again.ranking(fresh.X).values, ranking_of(model, fresh))
    # trained once more on all rows, it stays what it is
    more, _ = shelves(n=300)
    other, start = solver.on_all_rows(problem, state, more, np.full(300, -1))
    *_, last = other.steps(more, start)
    refitted = other.model(more, last.state)
    assert refitted.flat
    assert (refitted.predict(fresh.X) == own).mean() > 0.8


def ranking_of(model, problem):
    return model.ranking(problem.X).values


def test_measures_of_ranked_labels_are_of_own_labels():
    problem, own = shelves()
    _, _, model = trained(problem, measure="ndcg")
    labels = Labels(problem.classes, 8, np.arange(8), problem.tree)
    truth = Truth(sp.csr_matrix(problem.labels))
    evaluation = Evaluation(labels, truth, True, model.ranks_own)
    ranking = model.ranking(problem.X)
    evaluation.add(ranking)
    found = {each.name: each.value for each in Outcomes(evaluation).measures(0) if each.level == 0}
    assert found["precision@1"] == pytest.approx((ranking.first() == own).mean())
    assert found["recall@3"] >= found["precision@1"]
