"""H-M3 against its exponential dual, and against searches over all labelings."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
import training
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import (
    check_path,
    closed_sets,
    parents_of,
    random_graph,
    random_sets,
    random_tree,
    small,
    small_sets,
    with_tree,
)
from training import fitted

from solvers.core.memory import TooLargeError
from solvers.core.problem import Problem, ProblemError
from solvers.hierarchical.marginals import graph_sets
from solvers.hierarchical.marginals.ascent import MarkovAscent
from solvers.hierarchical.marginals.example import markov_graph
from solvers.hierarchical.subtree_model import SubtreeModel
from solvers.kernel_svm.kernel_function import KernelFunction
from solvers.kernel_svm.kernel_map import kernel_map
from solvers.labels.taxonomy import Taxonomy
from solvers.numerics import coefficients

SCALINGS = ("uniform", "sibling", "subtree")
# closed sets along a label graph, whose nodes have several parents
KINDS = ("consistent", "all", "graph")
variants = pytest.mark.parametrize(
    ("labelings", "loss", "scaling"), list(itertools.product(KINDS, ("symmetric", "hierarchical"), SCALINGS))
)
each_kind = pytest.mark.parametrize("labelings", KINDS)
each_labelings = pytest.mark.parametrize("labelings", KINDS[:2])


def machine(**params):
    if params.get("labelings") == "graph":
        params["labelings"] = "consistent"
    return training.machine("hm3", **params)


def trained(problem, **params):
    return fitted(machine(**params), problem)


def lost(tree, y, u, loss, scaling):
    """The loss of u by its definition."""
    c, total = tree.loss_weights(scaling), 0.0
    for j, above in enumerate(parents_of(tree)):
        if y[j] != u[j]:
            right = [y[k] == u[k] for k in above if loss == "hierarchical"] or [True]
            total += c[j] * np.mean(right)
    return total


def edges_of(tree):
    """(parent, child) by number; -1 is the root, of the nodes that have no other parent."""
    return [(k, j) for j, above in enumerate(parents_of(tree)) for k in above or [-1]]


def features(tree, u):
    """Which of the four ways each edge is labelled, shape (4 n_edges,)."""
    edges = edges_of(tree)
    ways = np.zeros((len(edges), 2, 2))
    for e, (above, j) in enumerate(edges):
        ways[e, int(above < 0 or u[above]), int(u[j])] = 1.0
    return ways.ravel()


def rivals(tree, labelings):
    every = np.array(list(itertools.product([False, True], repeat=tree.n_nodes)))
    return every if labelings == "all" else closed_sets(tree)


def exponential_dual(problem, C, labelings, loss, scaling):
    """The optimal value with one dual variable for each example and labeling, and w (4 n_edges, d)."""
    tree, X = problem.taxonomy, problem.X.toarray()
    Y, U = problem.label_sets().toarray(), rivals(tree, labelings)
    own, other = (np.array([features(tree, u) for u in sets]) for sets in (Y, U))
    L = np.array([[lost(tree, y, u, loss, scaling) for u in U] for y in Y])
    alpha = cp.Variable(L.shape, nonneg=True)
    mass = cp.sum(alpha, axis=1)
    w = (cp.diag(mass) @ own - alpha @ other).T @ X
    task = cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(L, alpha)) - 0.5 * cp.sum_squares(w)), [mass <= C * problem.weights]
    )
    value = task.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return float(value), np.asarray(w.value)


@variants
def test_the_reduced_dual_equals_the_one_over_all_labelings(labelings, loss, scaling):
    plain = small_sets(n=16, d=6, n_nodes=5, seed=3, graph=labelings == "graph")
    weights = np.random.default_rng(1).uniform(0.3, 2.0, 16)
    problem = Problem.check_sets(plain.X, plain.labels, plain.taxonomy, weights)
    value, w = exponential_dual(problem, 0.7, labelings, loss, scaling)
    last, model = trained(problem, C=0.7, labelings=labelings, loss=loss, scaling=scaling, tol=1e-5, max_epochs=2000)
    assert last.converged
    assert last.dual <= value * (1 + 1e-7)
    assert last.primal >= value * (1 - 1e-7)
    # the sums of node weights over closed sets are the scores of w, up to a constant of the example
    sets = closed_sets(problem.taxonomy)
    due = np.array([features(problem.taxonomy, u) for u in sets]) @ w @ problem.X.T.toarray()
    scores = sets @ model.parts.scores(problem.X).T
    np.testing.assert_allclose(scores - scores[0], due - due[0], atol=2e-2 * np.abs(due).max())


@settings(max_examples=25, deadline=None)
@given(
    n_nodes=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
    labelings=st.sampled_from(KINDS),
    loss=st.sampled_from(["symmetric", "hierarchical"]),
    scaling=st.sampled_from(SCALINGS),
)
def test_the_most_violating_labeling_equals_a_search_over_all(n_nodes, seed, labelings, loss, scaling):
    rng = np.random.default_rng(seed)
    tree = random_graph(rng, n_nodes) if labelings == "graph" else random_tree(rng, n_nodes)
    sets = random_sets(rng, tree, 3)
    sets[0, 0] = True
    problem = Problem.check_sets(rng.standard_normal((3, 4)), sets, tree)
    driver = MarkovAscent(problem, 1.0, scaling, loss == "hierarchical", labelings == "all")
    A = np.zeros((4, -(-driver.n_columns // 8) * 8))
    A[:, : driver.n_columns] = rng.standard_normal((4, driver.n_columns))
    if labelings == "all":
        A[:, n_nodes : 2 * n_nodes][:, tree.parent < 0] = 0.0
    pool = coefficients.empty(3, 16)
    losses, linear, _, _ = driver.sums(A, pool, np.zeros(3))
    # w of the vectors a and b, as the derivation has them
    edges = edges_of(tree)
    a, w = A[:, :n_nodes], np.zeros((4, len(edges), 2, 2))
    for e, (above, j) in enumerate(edges):
        top = a[:, above] if above >= 0 else np.zeros(4)
        both = A[:, n_nodes + j] if labelings == "all" and above >= 0 else a[:, j]
        w[:, e, 1, 1], w[:, e, 1, 0], w[:, e, 0, 1], w[:, e, 0, 0] = (
            both,
            top - both,
            a[:, j] - both,
            both - top - a[:, j],
        )
    assert driver.square_norm(A) == pytest.approx((w**2).sum())
    X = problem.X[:, driver.features].toarray()
    others, total = rivals(tree, labelings), 0.0
    for x, y in zip(X, sets, strict=True):
        scores = [x @ w.reshape(4, -1) @ features(tree, u) + lost(tree, y, u, loss, scaling) for u in others]
        total += max(scores) - x @ w.reshape(4, -1) @ features(tree, y)
    assert losses == pytest.approx(total)
    assert linear == 0.0


@each_kind
def test_masses_stay_marginals_of_a_distribution(labelings):
    problem = small_sets(n=40, n_nodes=9, graph=labelings == "graph")
    last, _ = trained(problem, labelings=labelings, tol=1e-4, C=2.0)
    tree, state = problem.taxonomy, last.state
    Y = problem.label_sets().toarray()
    p = np.hstack([2.0 * Y, 2.0 * (Y & (tree.parent >= 0))])
    for i in range(40):
        at = slice(state["mass_start"][i], state["mass_start"][i] + state["mass_length"][i])
        p[i, state["mass_classes"][at]] = state["mass_values"][at]
    p, r = p[:, :9], p[:, 9:]
    edges = np.array([edge for edge in edges_of(tree) if edge[0] >= 0])
    own, above, below = p[:, edges[:, 1]], p[:, edges[:, 0]], edges[:, 1]
    assert p.min() >= -1e-12
    assert p.max() <= 2.0 + 1e-12
    if labelings != "all":
        assert (own <= above).all()
    else:
        assert (r[:, below] <= np.minimum(own, above) + 1e-12).all()
        assert (r[:, below] >= np.maximum(0.0, own + above - 2.0) - 1e-12).all()


@each_kind
def test_the_gap_is_never_negative_and_the_dual_never_falls(labelings):
    problem = small_sets(n=60, graph=labelings == "graph")
    steps = [s for s in machine(labelings=labelings, tol=1e-4).steps(problem) if s.gap == s.gap]
    assert all(step.gap >= 0 for step in steps)
    assert (np.diff([step.dual for step in steps]) >= 0).all()
    assert steps[-1].converged


@each_kind
def test_a_resumed_run_repeats_the_uninterrupted_one_through_all_its_phases(labelings, monkeypatch):
    monkeypatch.setattr("solvers.hierarchical.epochs.SLICE_OPERATIONS", 8000)
    monkeypatch.setattr("solvers.hierarchical.marginals.ascent.REBUILD_EPOCHS", 3)
    problem = small_sets(n=60, n_nodes=12, graph=labelings == "graph")
    made = machine(labelings=labelings, tol=1e-6, max_epochs=20)
    states = [{key: np.array(value) for key, value in s.state.items()} for s in made.steps(problem)]
    assert "V" in states[-1]
    assert len(states) > 20
    for stop in range(0, len(states) - 1, len(states) // 6):
        *_, last = made.steps(problem, states[stop])
        assert last.state.keys() == states[-1].keys()
        for key, array in states[-1].items():
            np.testing.assert_array_equal(last.state[key], array, err_msg=key)


def test_one_label_an_example_is_trained_as_its_path():
    problem = with_tree(small(n=40))
    sets = Problem.check_sets(problem.X, problem.label_sets(), problem.taxonomy)
    one, other = trained(problem, tol=1e-3), trained(sets, tol=1e-3)
    assert (one[0].primal, one[0].dual) == (other[0].primal, other[0].dual)
    np.testing.assert_array_equal(one[1].scores(problem.X), other[1].scores(problem.X))
    assert isinstance(one[1], SubtreeModel)


@each_labelings
def test_a_constant_feature_is_part_of_the_objective(labelings):
    plain = small_sets(n=40)
    X = np.hstack([plain.X.toarray(), np.full((40, 1), 1.5)])
    direct = Problem.check_sets(X, plain.labels, plain.taxonomy)
    (one, model), (two, other) = (
        trained(plain, bias=1.5, tol=1e-3, labelings=labelings), trained(direct, tol=1e-3, labelings=labelings)
    )  # fmt: skip
    assert (one.primal, one.dual) == (two.primal, two.dual)
    np.testing.assert_allclose(model.scores(plain.X), other.scores(direct.X), atol=1e-12)


@each_kind
def test_a_path_in_c_has_true_bounds_and_takes_fewer_epochs_than_alone(labelings):
    problem = small_sets(n=150, d=20, n_nodes=15, graph=labelings == "graph")
    made = machine(labelings=labelings, tol=1e-2)
    on_the_path, alone = check_path(made, problem, [0.03, 0.1, 0.3, 1.0])
    assert on_the_path < alone


def test_weights_of_all_nodes_that_exceed_the_memory_are_refused():
    tree = random_tree(np.random.default_rng(0), 3000)
    sets = np.zeros((50, 3000), bool)
    sets[:, 0] = True
    with pytest.raises(TooLargeError, match=r"3,000 classes needs at least 1 MB; memory_mb allows 1 MB"):
        machine(memory_mb=1).steps(Problem.check_sets(np.eye(50), sets, tree))


def gram_of(problem, params):
    X = problem.X.toarray()
    if params["kernel"] == "rbf":
        return np.exp(-params["gamma"] * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    return (params.get("gamma", 1.0) * X @ X.T + params.get("coef0", 0.0)) ** params.get("degree", 1)


@each_labelings
@pytest.mark.parametrize(
    "params",
    [{"kernel": "rbf", "gamma": 0.2}, {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0, "bias": 0.5}],
)
def test_a_kernel_has_the_optimum_of_its_own_space(labelings, params):
    problem = small_sets(n=14, d=4, n_nodes=4)
    K = gram_of(problem, params)
    vectors = np.linalg.cholesky(K + params.get("bias", 0.0) ** 2 + 1e-11 * np.eye(14))
    explicit = Problem.check_sets(vectors, problem.labels, problem.taxonomy)
    value, _ = exponential_dual(explicit, 2.0, labelings, "symmetric", "uniform")
    last, model = trained(problem, C=2.0, tol=1e-5, labelings=labelings, max_epochs=3000, **params)
    assert last.converged
    assert last.dual <= value * (1 + 1e-6)
    assert last.primal >= value * (1 - 1e-6)
    _, linear = trained(explicit, C=2.0, tol=1e-5, labelings=labelings, max_epochs=3000)
    due = linear.parts.scores(explicit.X)
    np.testing.assert_allclose(model.parts.scores(problem.X), due, atol=2e-2 * np.abs(due).max())
    given = Problem.check_sets(K, problem.labels, problem.taxonomy)
    other = {"kernel": "precomputed", "bias": params.get("bias", 0.0)}
    one, precomputed = trained(given, C=2.0, tol=1e-5, labelings=labelings, max_epochs=3000, **other)
    assert one.primal == pytest.approx(last.primal, rel=1e-4)
    np.testing.assert_allclose(precomputed.parts.scores(given.X), due, atol=2e-2 * np.abs(due).max())


def test_the_linear_kernel_through_vectors_is_the_machine_itself():
    problem = small_sets(n=30)
    K = (problem.X @ problem.X.T).tocsr()
    plain, model = trained(problem, tol=1e-4)
    mapped, other = trained(Problem.check_sets(K, problem.labels, problem.taxonomy), tol=1e-4, kernel="precomputed")
    assert mapped.dual <= plain.primal
    assert plain.dual <= mapped.primal
    np.testing.assert_allclose(other.parts.scores(K), model.parts.scores(problem.X), atol=0.05)


def test_vectors_of_a_kernel_have_its_values_as_inner_products_and_no_more_of_them_than_it_takes():
    X = small_sets(n=40, d=6).X
    vectors = kernel_map(X, KernelFunction("rbf", gamma=0.3), 0.5)
    K = np.exp(-0.3 * ((X.toarray()[:, None] - X.toarray()[None]) ** 2).sum(axis=2)) + 0.5
    np.testing.assert_allclose(vectors @ vectors.T, K, atol=1e-10)
    assert kernel_map(X, KernelFunction("linear")).shape == (40, 6)
    with pytest.raises(ProblemError, match="not positive semidefinite"):
        kernel_map(sp.csr_matrix([[1.0, 2.0], [2.0, 1.0]]), KernelFunction("precomputed"))
    with pytest.raises(ProblemError, match="one row and one column"):
        trained(small_sets(), kernel="precomputed")


@each_kind
def test_a_model_has_the_objective_that_is_reported_and_is_found_before_the_dual_variables_make_it(labelings):
    rng = np.random.default_rng(0)
    problem = small_sets(n=80, n_nodes=6, graph=labelings == "graph")
    problem = Problem.check_sets(8.0 * rng.normal(size=(80, 8)), problem.labels, problem.taxonomy)
    tree, Y = problem.taxonomy, problem.labels.toarray()
    last, model = trained(problem, labelings=labelings, tol=1e-2)
    assert last.converged
    driver = MarkovAscent(problem, 1.0, "uniform", False, labelings == "all", of_duals=True)
    if labelings != "all":
        # the score of a closed set is the sum of those of its nodes
        F, U = model.parts.scores(problem.X), rivals(tree, labelings).astype(float)
        L = np.array([[lost(tree, y, u > 0, "symmetric", "uniform") for u in U] for y in Y])
        losses = (L + F @ U.T).max(axis=1) - (F * Y).sum(axis=1)
        half = 0.5 * driver.square_norm(last.state["before"])
        assert last.primal == pytest.approx(losses.sum() + half, rel=1e-6)
    *_, other = driver.train(1e-2, 10_000, 0, None)
    assert other.converged
    assert last.epoch <= other.epoch / 2


def test_a_graph_that_is_a_tree_has_the_optimum_of_the_machine_for_trees():
    problem = small_sets(n=60, n_nodes=12)
    along_tree, _ = trained(problem, tol=1e-5, loss="hierarchical", scaling="sibling")
    graph = Taxonomy.from_graph(problem.taxonomy.edges)
    assert graph == problem.taxonomy
    driver = MarkovAscent(problem, 1.0, "sibling", True, False)
    driver.tree, driver._masses = markov_graph(graph), graph_sets
    *_, last = driver.train(1e-5, 10_000, 0, None)
    assert last.converged
    assert last.dual <= along_tree.primal * (1 + 1e-9)
    assert along_tree.dual <= last.primal * (1 + 1e-9)


def test_all_labelings_along_a_graph_are_refused_and_so_is_one_label_an_example():
    with pytest.raises(ProblemError, match=r"labelings=all needs a label tree, but '.*' has 3 parents"):
        trained(small_sets(graph=True), labelings="all")
    problem = small_sets(graph=True)
    one = Problem.check(problem.X, np.arange(problem.n_samples) % 2, problem.taxonomy.names[:2], None, problem.taxonomy)
    with pytest.raises(ProblemError, match="a label graph needs sets of labels"):
        trained(one)
