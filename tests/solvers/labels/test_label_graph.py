"""Label graphs against their own definition, and what is made of sets of their labels."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import parents_of, random_graph, random_sets

from solvers.core.problem import Problem, ProblemError
from solvers.labels import label_sets, stored_arrays
from solvers.labels.taxonomy import Taxonomy, TaxonomyError
from solvers.labels.tree_part import TreePart
from solvers.metrics.multilabel import multilabel

DIAMOND = [("root", "a"), ("root", "b"), ("a", "c"), ("b", "c"), ("c", "d"), ("b", "e"), ("root", "d")]


def above(graph, node):
    """All ancestors, by the edges."""
    parents = parents_of(graph)
    return set(parents[node]).union(*(above(graph, k) for k in parents[node]))


@settings(max_examples=60, deadline=None)
@given(n_nodes=st.integers(1, 20), seed=st.integers(0, 2**32 - 1))
def test_a_graph_is_what_its_edges_say(n_nodes, seed):
    graph = random_graph(np.random.default_rng(seed), n_nodes)
    assert Taxonomy.from_graph(graph.edges) == graph
    parents = parents_of(graph)
    way = [0] * n_nodes
    for j in range(n_nodes):
        assert all(k < j for k in parents[j])
        way[j] = 1 + max((way[k] for k in parents[j]), default=0)
        assert graph.ancestors(j).tolist() == sorted(above(graph, j))
        assert graph.subtree_size[j] == 1 + sum(j in above(graph, k) for k in range(n_nodes))
        assert graph.is_leaf[j] == (not any(j in each for each in parents))
    assert graph.level.tolist() == way
    counts = [sum(k in each for each in parents) for k in range(n_nodes)]
    tops, weights = sum(not each for each in parents), []
    for each in parents:
        weights.append(sum((weights[k] / counts[k] for k in each), Fraction(0)) if each else Fraction(1, tops))
    np.testing.assert_allclose(graph.loss_weights("sibling"), np.array(weights, float), rtol=1e-12)
    stored = stored_arrays.of_tree(graph)
    assert stored_arrays.graph(graph.names, stored) == graph


def test_faults_of_graphs_are_named():
    graph = Taxonomy.from_graph(DIAMOND)
    assert graph.names == ("a", "b", "c", "e", "d")
    assert graph.others.tolist() == [[2, 1]]
    assert graph.several_parents == "'c' has 2 parents: 'a', 'b'"
    tree = Taxonomy(graph.names, graph.parent)
    assert graph != tree
    assert graph.sha256 != tree.sha256
    for edges, message in (
        ([("root", "a"), ("a", "b"), ("b", "c"), ("c", "b"), ("a", "c")], r"2 node\(s\) are in a cycle"),
        ([("root", "a"), ("a", "b"), ("x", "b")], "'x' is the parent of 'b', but hangs below no other node"),
        ([("root", "a"), ("root", "a")], "given twice"),
        ([], "no edges"),
    ):
        with pytest.raises(TaxonomyError, match=message):
            Taxonomy.from_graph(edges)


@pytest.mark.parametrize(
    ("others", "message"),
    [([[2, 0]], "not beside"), ([[3, 4]], "not beside"), ([[4, 1], [3, 0]], "decreases"), ([[9, 0]], "runs from")],
)
def test_stored_edges_that_are_none_are_refused(others, message):
    graph = Taxonomy.from_graph(DIAMOND)
    arrays = stored_arrays.of_tree(graph) | {"others": np.array(others, np.int32)}
    with pytest.raises(stored_arrays.ArrayFault, match=message):
        stored_arrays.graph(graph.names, arrays)


def test_sets_are_closed_along_all_parents():
    graph = Taxonomy.from_graph(DIAMOND)
    labels, orphans = label_sets.of_names(graph, [["d", "a"], ["e"], []])
    assert label_sets.names_of(graph, labels) == [["a", "b", "c", "d"], ["b", "e"], []]
    assert orphans.named(graph) == [(0, "d", "c"), (1, "e", "b")]
    assert label_sets.of_names(graph, [["c"]])[1].named(graph) == [(0, "c", "a"), (0, "c", "b")]
    with pytest.raises(ProblemError, match="1 label is given without the parent: row 0 has 'c' but not 'b'"):
        Problem.check_sets(np.eye(1), np.array([[1, 0, 1, 0, 0]]), graph)
    own = label_sets.own_labels(labels, graph.parents)
    assert label_sets.names_of(graph, own) == [["d"], ["e"], []]
    part = TreePart.of_sets(graph, labels[:1])
    assert part.tree == Taxonomy.from_graph([edge for edge in DIAMOND if "e" not in edge])


def test_a_label_counts_by_the_share_of_its_parents_on_which_sets_agree():
    graph = Taxonomy.from_graph(DIAMOND)
    sets = [["a", "b", "c"], ["a"], ["a", "b"]]
    true, named = (label_sets.of_names(graph, each)[0] for each in (sets, [sets[1], sets[1], sets[0]]))
    found = multilabel(graph, true, named)
    # b, half of c; nothing; c
    assert found["h_uniform"] == pytest.approx((1.5 + 0 + 1) / 3)
    assert found["hierarchical_symmetric_difference"] == pytest.approx((2 + 0 + 1) / 3)
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 9)
    true, named = (random_sets(rng, graph, 20) for _ in range(2))
    due = 0.0
    for y, u in zip(true, named, strict=True):
        for j, parents in enumerate(parents_of(graph)):
            due += (
                (y[j] != u[j]) * np.mean([y[k] == u[k] for k in parents] or [True]) * graph.loss_weights("subtree")[j]
            )
    assert multilabel(graph, sp.csr_matrix(true), sp.csr_matrix(named))["h_subtree"] == pytest.approx(due / 20)
