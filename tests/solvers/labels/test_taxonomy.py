"""The label tree against its own definition, worked out the slow way."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.core.problem import Problem, ProblemError
from solvers.labels.taxonomy import Taxonomy, TaxonomyError


@st.composite
def trees(draw):
    """Edges of a random tree in random order, by names without meaning."""
    n = draw(st.integers(1, 25))
    names = draw(st.permutations([f"n{i}" for i in range(n)]))
    edges = [("root" if i == 0 else draw(st.sampled_from(["root", *names[:i]])), names[i]) for i in range(n)]
    return draw(st.permutations(edges))


def way_up(edges, name):
    """The names from a node up to the root."""
    above = {child: parent for parent, child in edges}
    way = [name]
    while way[-1] != "root":
        way.append(above[way[-1]])
    return way


@settings(max_examples=60, deadline=None)
@given(trees())
def test_a_tree_is_what_its_edges_say(edges):
    tree = Taxonomy.from_edges(edges)
    assert sorted(tree.edges) == sorted(edges)
    assert Taxonomy.from_edges(tree.edges) == tree
    assert (tree.parent < np.arange(tree.n_nodes)).all()
    for i, name in enumerate(tree.names):
        way = way_up(edges, name)
        below = [child for parent, child in edges if parent == name]
        assert [tree.names[a] for a in tree.path(i)] == way[-2::-1]
        assert [tree.names[a] for a in tree.ancestors(i)] == way[-2:0:-1]
        assert tree.level[i] == len(way) - 1
        assert [tree.names[c] for c in tree.children(i)] == below
        assert tree.is_leaf[i] == (not below)
        assert tree.subtree_size[i] == sum(name in way_up(edges, other) for other in tree.names)
    assert [tree.names[c] for c in tree.children(-1)] == [child for parent, child in edges if parent == "root"]
    assert [i for level in range(1, tree.depth + 1) for i in tree.level_range(level)] == list(range(tree.n_nodes))
    assert all((tree.level[list(tree.level_range(level))] == level).all() for level in range(1, tree.depth + 1))


@settings(max_examples=40, deadline=None)
@given(trees())
def test_distances_are_half_the_length_of_the_path(edges):
    tree = Taxonomy.from_edges(edges)
    nodes = np.arange(-1, tree.n_nodes)
    ways = [way_up(edges, "root" if i < 0 else tree.names[i]) for i in nodes]
    expected = [[len(set(one) ^ set(two)) / 2 for two in ways] for one in ways]
    np.testing.assert_array_equal(tree.distance(nodes[:, None], nodes), expected)


@settings(max_examples=40, deadline=None)
@given(trees(), st.data())
def test_the_closure_of_a_set_is_the_union_of_its_paths(edges, data):
    tree = Taxonomy.from_edges(edges)
    sets = data.draw(st.lists(st.lists(st.integers(0, tree.n_nodes - 1), max_size=4), max_size=4))
    indptr = np.cumsum([0, *map(len, sets)])
    begin, nodes = tree.closure(indptr, np.array([i for one in sets for i in one], np.int32))
    expected = [sorted({a for i in one for a in tree.path(i).tolist()}) for one in sets]
    assert [nodes[begin[i] : begin[i + 1]].tolist() for i in range(len(sets))] == expected


@settings(max_examples=40, deadline=None)
@given(trees())
def test_weights_of_losses_follow_their_definitions(edges):
    tree = Taxonomy.from_edges(edges)
    counts = {name: sum(parent == name for parent, _ in edges) for name in ("root", *tree.names)}
    sibling = [np.prod([Fraction(1, counts[above]) for above in way_up(edges, name)[1:]]) for name in tree.names]
    np.testing.assert_allclose(tree.loss_weights("sibling"), np.array(sibling, float), rtol=1e-14)
    share = [sum(name in way_up(edges, other) for other in tree.names) for name in tree.names]
    np.testing.assert_allclose(tree.loss_weights("subtree"), np.array(share) / (tree.n_nodes + 1), rtol=1e-14)
    assert tree.loss_weights("uniform").tolist() == [1.0] * tree.n_nodes
    leaves = tree.loss_weights("sibling")[tree.leaves]
    assert leaves.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([], "no edge"),
        ([("root", "a"), ("b", "c"), ("c", "d"), ("d", "b")], r"3 node\(s\) are in a cycle: c < b < d < c"),
        ([("root", "a"), ("b", "b")], r"1 node\(s\) are in a cycle: b < b"),
        ([("root", "a"), ("root", "b"), ("a", "b")], "'b' has two parents: 'root' and 'a'"),
        ([("root", "a"), ("root", "a")], "'a' is given twice as a child of 'root'"),
        ([("root", "a"), ("lost", "b")], "'lost' is the parent of 'b', but hangs below no other node"),
        ([("root", "a"), ("a", "root")], "'a' has 'root' as a child"),
        ([("root", "a", "b")], "edge 0 is .* a pair"),
        (["ab"], "edge 0 is 'ab'"),
    ],
)
def test_what_is_no_tree_is_refused_by_name(edges, message):
    with pytest.raises(TaxonomyError, match=message):
        Taxonomy.from_edges(edges)


@pytest.mark.parametrize(
    ("names", "parent", "message"),
    [
        (["a", "a"], [-1, -1], "the name 'a' is given twice"),
        (["a", "root"], [-1, 0], "'root' is the reserved name of the top"),
        (["a", "b"], [-1, 2], "runs from -1 to 2"),
        (["a", "b"], [-1], "one integer for each of 2 names"),
        (["a", "b"], [1, 0], "cycle"),
    ],
)
def test_parent_arrays_are_checked(names, parent, message):
    with pytest.raises(TaxonomyError, match=message):
        Taxonomy.from_parents(names, parent)


def test_unknown_labels_are_named():
    tree = Taxonomy.from_edges([("root", "a"), ("a", "b")])
    assert tree.find(["b", "a", "b"]).tolist() == [1, 0, 1]
    with pytest.raises(TaxonomyError, match=r"2 labels?: 'x', 'root'"):
        tree.find(["a", "x", "root", "x"])


def test_a_long_chain_is_no_trouble():
    tree = Taxonomy.from_parents([str(i) for i in range(3000)], np.arange(-1, 2999))
    assert tree.depth == 3000
    assert tree.path(2999).tolist() == list(range(3000))
    assert tree.distance(0, 2999) == 1499.5


def test_a_problem_keeps_its_tree_and_names_labels_that_are_not_in_it():
    tree = Taxonomy.from_edges([("root", "a"), ("root", "b"), ("a", "c")])
    problem = Problem.check(np.eye(3), [0, 1, 1], ["c", "a"], taxonomy=tree)
    assert problem.nodes().tolist() == [2, 0, 0]
    with pytest.raises(ProblemError, match=r"no node for 1 labels?: 'z'"):
        Problem.check(np.eye(3), [0, 1, 1], ["c", "z"], taxonomy=tree)
    with pytest.raises(ProblemError, match="needs a label tree"):
        Problem.check(np.eye(3), [0, 1, 1]).nodes()
