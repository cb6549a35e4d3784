"""A part of a label tree, against the whole one."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import random_sets, random_tree

from solvers.labels.taxonomy import ROOT
from solvers.labels.tree_part import TreePart


def parts(n_nodes=25):
    """Of random trees the nodes that a few random sets have, one part for each seed."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, n_nodes)
        sets = random_sets(rng, tree, 3)
        sets[0, tree.parent < 0] = True
        yield TreePart.of_sets(tree, sp.csr_matrix(sets)), sets


def test_the_part_has_the_nodes_of_the_sets_with_their_parents_in_the_order_of_the_tree():
    for part, sets in parts():
        assert part.nodes.tolist() == np.flatnonzero(sets.any(axis=0)).tolist()
        assert part.is_whole == sets.any(axis=0).all()
        assert part.tree.edges == [edge for edge in part.whole.edges if edge[1] in part.tree.names]
        assert part.tree.names == tuple(part.whole.names[node] for node in part.nodes)
        assert (np.diff(part.tree.parent) >= 0).all()


def test_every_other_node_hangs_below_the_nearest_node_of_the_part():
    for part, _ in parts():
        found = dict.fromkeys([ROOT, *part.tree.names], 0)
        for node in set(range(part.whole.n_nodes)) - set(part.nodes.tolist()):
            above = [part.whole.names[other] for other in part.whole.path(node).tolist()]
            found[([ROOT, *(name for name in above if name in found)])[-1]] += 1
        assert part.n_hanging.tolist() == list(found.values())


def test_values_of_the_part_are_spread_over_the_tree():
    for part, _ in parts():
        values = np.random.default_rng(0).random((2, len(part.nodes)), np.float32)
        spread = part.spread(values, -1.0)
        assert spread.dtype == values.dtype
        assert spread.shape == (2, part.whole.n_nodes)
        for node in range(part.whole.n_nodes):
            place = part.place(node)
            assert (place is None) == (node not in part.nodes)
            expected = np.full(2, -1.0) if place is None else values[:, place]
            np.testing.assert_array_equal(spread[:, node], expected)


def test_a_part_that_is_the_whole_tree_is_that_tree():
    tree = random_tree(np.random.default_rng(0), 9)
    part = TreePart.of_sets(tree, sp.csr_matrix(np.ones((1, 9), bool)))
    assert part.is_whole
    assert part.tree is tree
    assert part.n_hanging.tolist() == [0] * 10
    values = np.arange(9.0)
    assert part.spread(values) is values
    assert part.place(4) == 4


def test_labels_that_are_stored_as_not_there_are_no_part():
    tree = random_tree(np.random.default_rng(0), 5)
    labels = sp.csr_matrix(np.ones((1, 5), bool))
    labels.data[2:] = False
    assert TreePart.of_sets(tree, labels).nodes.tolist() == [0, 1]
    with pytest.raises(IndexError):
        TreePart.of_sets(tree, labels).place(99)
