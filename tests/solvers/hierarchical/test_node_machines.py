"""The rivals of H-M3: binary machines at every node, on all examples or those of the parent."""

import cvxpy as cp
import numpy as np
import pytest
from problems import check_path, parents_of, small_sets
from training import machine, trained

from solvers.core.problem import Problem

NAMES = ("node_svm", "hierarchical_svm", "hierarchical_rls")
everywhere = pytest.mark.parametrize("name", NAMES)


def optimum(name, problem, C, squared=False):
    """The value and W (n_nodes, d), node by node, by an interior point method."""
    tree, X, Y = problem.taxonomy, problem.X.toarray(), problem.label_sets().toarray()
    total, W = 0.0, []
    for j, above in enumerate(parents_of(tree)):
        rows = np.flatnonzero(Y[:, above].all(axis=1)) if name != "node_svm" else np.arange(len(X))
        w = cp.Variable(X.shape[1])
        margins = cp.multiply(2.0 * Y[rows, j] - 1, X[rows] @ w)
        losses = 0.5 * cp.square(1 - margins) if name == "hierarchical_rls" else cp.pos(1 - margins)
        losses = cp.square(losses) if squared else losses
        weighted = cp.sum(cp.multiply(C * problem.weights[rows], losses)) if len(rows) else 0.0
        task = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + weighted))
        total += task.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
        W.append(w.value)
    return total, np.array(W)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(
    ("name", "params"), [*((name, {}) for name in NAMES), ("hierarchical_svm", {"loss": "squared_hinge"})]
)
def test_bounds_and_weights_are_those_of_one_machine_a_node(name, params, graph):
    plain = small_sets(n=30, d=6, n_nodes=6, graph=graph)
    weights = np.random.default_rng(1).uniform(0.3, 2.0, 30)
    problem = Problem.check_sets(plain.X, plain.labels, plain.taxonomy, weights)
    value, W = optimum(name, problem, 0.7, squared=bool(params))
    last, model = trained(name, problem, C=0.7, tol=1e-7, max_epochs=20_000, **params)
    assert last.converged
    assert last.dual <= value * (1 + 1e-7)
    assert last.primal >= value * (1 - 1e-7)
    np.testing.assert_allclose(model.parts.coef, W, atol=5e-3 * np.abs(W).max())


@pytest.mark.parametrize("graph", [False, True])
@everywhere
def test_prediction_goes_down_as_long_as_scores_are_positive(name, graph):
    problem = small_sets(n=40, graph=graph)
    _, model = trained(name, problem)
    tree, scores = problem.taxonomy, model.parts.scores(problem.X)
    due = np.array([[(row[[j, *tree.ancestors(j)]] > 0).all() for j in range(tree.n_nodes)] for row in scores])
    np.testing.assert_array_equal(model.predict_sets(problem.X).toarray(), due)
    assert due.any()


def test_a_node_whose_parent_no_example_has_is_never_predicted():
    plain = small_sets(n=30)
    tree = plain.taxonomy
    inner = int(tree.parent.max())
    labels = plain.labels.toarray()
    labels[:, [j for j in range(tree.n_nodes) if inner in tree.path(j)]] = False
    problem = Problem.check_sets(plain.X, labels, tree)
    for name in NAMES[1:]:
        _, model = trained(name, problem)
        below = list(tree.children(inner))
        assert not model.parts.coef[below].any()
        assert not model.predict_sets(problem.X)[:, below].nnz


def test_the_example_to_be_labelled_among_the_inputs_divides_the_score_and_changes_no_sign():
    problem = small_sets(n=40, d=6)
    _, model = trained("hierarchical_rls", problem, tol=1e-12)
    tree, X, Y = problem.taxonomy, problem.X.toarray(), problem.label_sets().toarray()
    queries = np.random.default_rng(5).standard_normal((20, 6))
    for j, above in enumerate(tree.parent.tolist()):
        rows = np.flatnonzero(Y[:, above]) if above >= 0 else np.arange(40)
        S, y = X[rows].T, 2.0 * Y[rows, j] - 1
        inner = np.eye(6) + S @ S.T
        for x in queries:
            own = model.parts.coef[j] @ x
            theirs = np.linalg.solve(inner + np.outer(x, x), S @ y) @ x
            assert theirs == pytest.approx(own / (1 + x @ np.linalg.solve(inner, x)), rel=1e-4, abs=1e-6)
            assert np.sign(theirs) == np.sign(own)


@everywhere
def test_a_constant_feature_is_part_of_the_objective(name):
    plain = small_sets(n=40)
    direct = Problem.check_sets(np.hstack([plain.X.toarray(), np.full((40, 1), 1.5)]), plain.labels, plain.taxonomy)
    one, model = trained(name, plain, bias=1.5, tol=1e-3)
    two, other = trained(name, direct, tol=1e-3)
    assert (one.primal, one.dual) == (two.primal, two.dual)
    np.testing.assert_allclose(model.scores(plain.X), other.scores(direct.X), atol=1e-5)


@everywhere
def test_a_path_in_c_has_true_bounds(name):
    check_path(machine(name, tol=1e-3), small_sets(n=80), [0.1, 0.3, 1.0])
