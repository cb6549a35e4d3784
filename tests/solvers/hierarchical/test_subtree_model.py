"""Predicted sets against a search over all of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import closed_sets, parents_of, random_graph, random_tree

from solvers.core.linear_model import LinearModel
from solvers.core.problem import Problem
from solvers.core.stored_models import load_model
from solvers.hierarchical.subtree_model import SubtreeModel
from solvers.labels.label_sets import of_nodes
from solvers.labels.stored_arrays import ArrayFault
from solvers.labels.taxonomy import Taxonomy
from solvers.registry import make


def identity_model(tree, rule, dtype=np.float64):
    """A model whose nodes' scores are the features themselves."""
    m = tree.n_nodes
    return SubtreeModel(tree, LinearModel(tree.names, m, np.arange(m), np.eye(m, dtype=dtype)), rule)


@settings(max_examples=60, deadline=None)
@given(n_nodes=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_the_best_set_and_its_margins_equal_a_search_over_all_closed_sets(n_nodes, seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_nodes)
    f = rng.standard_normal((3, n_nodes))
    model, sets = identity_model(tree, "best_set"), closed_sets(tree)
    margins, found = model.scores(sp.csr_matrix(f)), model.predict_sets(sp.csr_matrix(f)).toarray()
    for i in range(3):
        worth = sets @ f[i]
        np.testing.assert_array_equal(found[i], sets[worth.argmax()])
        for j in range(n_nodes):
            due = worth[sets[:, j]].max() - worth[~sets[:, j]].max()
            assert margins[i, j] == pytest.approx(due, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(n_nodes=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_the_rule_of_paths_takes_nodes_whose_ancestors_are_all_positive(n_nodes, seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_nodes)
    f = rng.standard_normal((3, n_nodes))
    model = identity_model(tree, "path")
    due = np.array([[(row[tree.path(j)] > 0).all() for j in range(n_nodes)] for row in f])
    np.testing.assert_array_equal(model.predict_sets(sp.csr_matrix(f)).toarray(), due)


shapes = pytest.mark.parametrize("shape", [random_tree, random_graph])


@shapes
@pytest.mark.parametrize("rule", ["best_set", "path"])
def test_margins_never_rise_on_the_way_down_so_that_sets_are_closed(rule, shape):
    rng = np.random.default_rng(0)
    tree = shape(rng, 40)
    model = identity_model(tree, rule, np.float32)
    margins = model.scores(sp.csr_matrix(rng.standard_normal((50, 40))))
    for j, above in enumerate(parents_of(tree)):
        assert (margins[:, [j]] <= margins[:, above]).all()


@shapes
@pytest.mark.parametrize("rule", ["best_set", "path"])
def test_one_example_gets_what_many_get_and_a_saved_model_answers_alike(rule, shape, tmp_path):
    rng = np.random.default_rng(1)
    tree = shape(rng, 15)
    X = sp.random(30, 15, density=0.5, random_state=rng, data_rvs=rng.standard_normal, format="csr")
    model = identity_model(tree, rule)
    model.save(tmp_path / "model")
    loaded, _ = load_model(tmp_path / "model", verify=True)
    assert isinstance(loaded, SubtreeModel)
    assert loaded.tree == tree
    many = model.predict_sets(X, chunk_bytes=1).toarray()
    np.testing.assert_array_equal(many, loaded.predict_sets(X).toarray())
    np.testing.assert_array_equal(many, model.scores(X) > 0)
    for i in range(30):
        nodes, margins = loaded.subtree(X[i].indices, X[i].data)
        np.testing.assert_array_equal(nodes, np.flatnonzero(many[i]))
        np.testing.assert_allclose(margins, model.scores(X[i])[0, nodes], atol=1e-12)
    _, worth = loaded.top(X[0].indices, X[0].data, 3)
    assert (np.diff(worth) <= 0).all()
    assert model.predict_sets(X[:0]).shape == (0, 15)
    assert tree.level[model.predict(X)].max() == 1
    assert loaded.path(14)[-1] == tree.names[14]
    # a margin is what its contributions add up to
    found = loaded.contributions(X[0].indices, X[0].data, 14, 3)
    assert found.parts.sum() == pytest.approx(model.scores(X[0])[0, [14]].sum() - model.scores(X[0])[0, 3])


@pytest.mark.parametrize("name", ["hm3", "node_svm", "hierarchical_svm", "hierarchical_rls", "kernel_ridge"])
def test_a_model_knows_which_nodes_training_rows_had(name, tmp_path):
    tree = Taxonomy.from_edges([("root", "a"), ("root", "b"), ("a", "c"), ("a", "d")])
    X, solver = sp.csr_matrix(np.eye(4)), make(name, {})
    for labels, due in ((["c", "b", "c", "a"], ["a", "b", "c"]), (["c", "b", "d", "a"], None)):
        problem = Problem.check_sets(X, of_nodes(tree, tree.find(labels)), tree)
        *_, last = solver.steps(problem)
        model = solver.model(problem, last.state)
        model.save(tmp_path / name)
        loaded, _ = load_model(tmp_path / name, verify=True)
        for each in (model, loaded, solver.light_model(problem, last.state, 0.1), loaded.with_parts(loaded.parts)):
            assert each.learnt == (None if due is None else set(tree.find(due).tolist()))


def test_the_nodes_that_training_rows_had_are_checked():
    tree = Taxonomy.flat(["a", "b"])
    arrays = SubtreeModel(tree, identity_model(tree, "path").parts, "path", np.array([1])).arrays()
    with pytest.raises(ArrayFault, match="the array learnt"):
        SubtreeModel.from_arrays(tree.names, 2, arrays | {"learnt": np.array([2])})
