"""Learnt label trees: how classes are divided, what is solved in the nodes, and how paths are scored."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from problems import small
from training import fitted

from solvers.hierarchical.learnt_trees.clustering import centroids, cluster_means, learn_tree
from solvers.hierarchical.learnt_trees.driver import nodes_of
from solvers.registry import make


def classes_below(tree, node):
    found = {int(tree.label[node])} if tree.label[node] >= 0 else set()
    return found.union(*(classes_below(tree, child) for child in np.flatnonzero(tree.parent == node)))


@pytest.mark.parametrize("clustering", ["balanced", "kmeans"])
def test_a_tree_divides_all_classes_down_to_small_sets(clustering):
    rng = np.random.default_rng(0)
    centers = sp.csr_matrix(rng.random((37, 20)))
    tree = learn_tree(centers, clustering, 4, 5, rng)
    assert sorted(tree.label[tree.label >= 0].tolist()) == list(range(37))
    assert tree.parent[0] == -1
    assert (np.diff(tree.parent) >= 0).all()
    for node in np.flatnonzero(tree.label < 0):
        children = np.flatnonzero(tree.parent == node)
        assert len(children) >= 2
        if clustering == "balanced" and (tree.label[children] < 0).any():
            one, other = (len(classes_below(tree, child)) for child in children)
            assert abs(one - other) <= 1
        elif (tree.label[children] >= 0).all():
            assert len(children) <= 5 or clustering == "kmeans"


def test_classes_that_are_alike_come_together():
    blocks = np.kron(np.eye(2), np.ones((4, 6)))
    rng = np.random.default_rng(1)
    tree = learn_tree(sp.csr_matrix(blocks + 0.1 * rng.random(blocks.shape)), "balanced", 2, 4, rng)
    halves = [classes_below(tree, child) for child in np.flatnonzero(tree.parent == 0)]
    assert {frozenset(half) for half in halves} == {frozenset(range(4)), frozenset(range(4, 8))}


def test_centroids_and_the_means_of_clusters_have_unit_length_or_are_zero():
    X = sp.csr_matrix(np.array([[3.0, 0.0], [0.0, 4.0], [5.0, 0.0], [1.0, 1.0]]))
    X.data[X.data == 5.0] = 0.0
    found = centroids(X, np.array([0, 0, 1, 2], np.int32), 3, np.array([1.0, 1.0, 1.0, 2.0]))
    root = np.sqrt(0.5)
    np.testing.assert_allclose(found.toarray(), [[0.6, 0.8], [0.0, 0.0], [root, root]])
    means = cluster_means(sp.csr_matrix(X, dtype=np.float32), np.array([2, 0, 1, 2]))
    assert means.dtype == np.float32
    np.testing.assert_allclose(means, [[0.0, 1.0], [0.0, 0.0], np.array([4.0, 1.0]) / np.sqrt(17.0)], rtol=1e-6)


def test_classes_without_features_are_divided_all_the_same():
    tree = learn_tree(sp.csr_matrix((9, 3)), "kmeans", 4, 2, np.random.default_rng(0))
    assert sorted(tree.label[tree.label >= 0].tolist()) == list(range(9))


def test_the_bounds_are_those_of_the_sum_over_all_nodes():
    problem = small(n=60, k=6)
    params = {"C": 0.7, "tol": 1e-6, "bias": 0.0, "most_leaves": 2, "trees": 2, "dtype": "float64"}
    solver = make("label_trees", params, seed=3)
    *_, last = solver.steps(problem)
    centers = centroids(problem.X, problem.y, 6, problem.weights)
    trees = [learn_tree(centers, "balanced", 100, 2, np.random.default_rng([3, tree])) for tree in range(2)]
    best = 0.0
    for node in nodes_of(trees, problem.y, 6):
        X = problem.X[node.rows].toarray()
        for child in range(node.n_children):
            w, signs = cp.Variable(problem.n_features), np.where(node.child == child, 1.0, -1.0)
            losses = cp.sum_squares(cp.pos(1 - cp.multiply(signs, X @ w)))
            best += cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + 0.7 * losses)).solve()
    assert last.converged
    assert last.dual <= best * (1 + 1e-5)
    assert last.primal >= best * (1 - 1e-5)
    assert last.primal == pytest.approx(best, rel=1e-4)


def test_a_class_is_scored_by_the_losses_on_its_paths():
    problem = small(n=80, k=6)
    _, model = fitted(make("label_trees", {"most_leaves": 2, "trees": 3, "bias": 0.5}, seed=1), problem)
    margins = problem.X.toarray() @ model.W.toarray() + model.intercept
    expected = np.zeros((problem.n_samples, 6))
    for leaf in np.flatnonzero(model.label >= 0):
        loss, node = np.zeros(problem.n_samples), leaf
        while model.parent[node] >= 0:
            loss += np.maximum(0.0, 1.0 - margins[:, node]) ** 2
            node = model.parent[node]
        expected[:, model.label[leaf]] += np.exp(-loss) / 3
    np.testing.assert_allclose(model.scores(problem.X), np.log(expected), rtol=1e-4, atol=1e-4)


def test_the_nearest_centroid_has_the_largest_cosine():
    problem = small(n=50, k=4)
    solver = make("centroids", {"smoothing": 0.1})
    *_, last = solver.steps(problem)
    X = problem.X.toarray()
    means = np.array([X[problem.y == c].sum(axis=0) for c in range(4)])
    cosines = X @ means.T / np.linalg.norm(X, axis=1)[:, None] / np.linalg.norm(means, axis=1)
    expected = np.log(np.maximum(cosines, 0) + 0.1)
    np.testing.assert_allclose(solver.model(problem, last.state).scores(problem.X), expected, atol=1e-5)
