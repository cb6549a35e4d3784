"""Closures of largest weight, and margins in label graphs, against searches over all sets and a linear program."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import closed_sets, random_graph
from scipy.optimize import linprog

from solvers.hierarchical.closures import best_closure, blank_cut
from solvers.hierarchical.isotonic import leave_prices, nodes_of_part


def closure(graph, weights):
    chosen, cut = np.zeros(graph.n_nodes, bool), blank_cut(graph.n_nodes, len(graph.parents.nodes))
    nodes, part = np.arange(graph.n_nodes, dtype=np.int32), np.zeros(graph.n_nodes, np.int32)
    return best_closure(graph.parents, weights, nodes, part, 0, chosen, cut), chosen


@settings(max_examples=80, deadline=None)
@given(
    n_nodes=st.integers(1, 10),
    share=st.sampled_from([0.0, 0.2, 0.5]),
    whole=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_best_closure_is_the_smallest_of_the_best_of_all(n_nodes, share, whole, seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, n_nodes, share)
    # whole numbers tie
    weights = rng.integers(-2, 3, n_nodes).astype(float) if whole else rng.standard_normal(n_nodes)
    total, chosen = closure(graph, weights)
    sets = closed_sets(graph)
    worth = sets @ weights
    assert total == pytest.approx(worth.max(), abs=1e-12)
    best = sets[worth > worth.max() - 1e-12]
    np.testing.assert_array_equal(chosen, best[best.sum(axis=1).argmin()])


@pytest.mark.parametrize("share", [0.005, 0.02, 0.1])
def test_the_best_closure_of_a_large_graph_has_the_value_of_the_linear_program(share):
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 400, share)
    assert not graph.is_tree
    below = np.repeat(np.arange(400), np.diff(graph.parents.start))
    n = len(below)
    order = sp.csr_matrix(
        (np.r_[np.ones(n), -np.ones(n)], (np.r_[np.arange(n), np.arange(n)], np.r_[below, graph.parents.nodes])),
        shape=(n, 400),
    )
    for shift in (-0.5, 0.0, 0.5):
        weights = rng.standard_normal(400) + shift
        total, chosen = closure(graph, weights)
        found = linprog(-weights, order, np.zeros(n), bounds=(0, 1), method="highs")
        assert total == pytest.approx(-found.fun, rel=1e-9, abs=1e-9)
        assert total == pytest.approx(weights @ chosen)
        assert (chosen[below] <= chosen[graph.parents.nodes]).all()


@settings(max_examples=60, deadline=None)
@given(n_nodes=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
def test_a_margin_is_the_price_at_which_a_node_leaves_the_best_set(n_nodes, seed):
    rng = np.random.default_rng(seed)
    graph, scores = random_graph(rng, n_nodes), rng.standard_normal(n_nodes)
    margins = scores[None].copy()
    leave_prices(graph.parents, margins)
    sets = closed_sets(graph)
    for price in (0.0, *rng.standard_normal(3)):
        np.testing.assert_array_equal(margins[0] > price, sets[(sets @ (scores - price)).argmax()])
    means = [scores[nodes_of_part(graph.parents, scores, node)].mean() for node in range(n_nodes)]
    np.testing.assert_allclose(margins[0], means, atol=1e-12)
