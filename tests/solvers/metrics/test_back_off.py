"""Answers that stop on the way down a label tree, against a walk that is written out."""

import numpy as np
import pytest
from problems import random_tree

from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.confidence.back_off import BackOff
from solvers.metrics.confidence.reliability import threshold_curve


def walked(tree, nodes, p):
    """The way down to the likeliest class by a plain loop: (node, probability) by level."""

    def path(node):
        return [] if node < 0 else [*path(tree.parent[node]), int(node)]

    masses = np.zeros(tree.n_nodes)
    for c, node in enumerate(nodes):
        masses[path(node)] += p[c]
    return [(node, masses[node]) for node in path(nodes[int(np.argmax(p))])]


@pytest.mark.parametrize("seed", range(5))
def test_the_way_goes_to_the_likeliest_class_and_is_sure_down_to_the_deepest_node_or_at_one_level(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 12)
    classes = [tree.names[j] for j in rng.choice(12, 8, replace=False)]
    P = rng.dirichlet(np.full(8, 0.5), size=30)
    y = rng.integers(8, size=30)
    found = BackOff.from_log_probabilities(tree, classes, np.log(P).astype(np.float32), y)
    ways, confidence = found.ways(P, P.argmax(axis=1))
    for i, p in enumerate(P):
        way = walked(tree, found.nodes, p)
        assert ways[i, : len(way)].tolist() == [node for node, _ in way]
        assert (ways[i, len(way) :] == -1).all()
        np.testing.assert_allclose(confidence[i, : len(way)], [mass for _, mass in way], atol=1e-6)
        path = {int(found.nodes[y[i]])}
        while (above := tree.parent[min(path)]) >= 0:
            path.add(int(above))
        assert found.correct[i, : len(way)].tolist() == [node in path for node, _ in way]
        for threshold in (0.0, 0.3, 0.6, 0.95):
            sure = [level for level, (_, mass) in enumerate(way, 1) if mass >= threshold]
            depths = [
                found.depths(ways, confidence, threshold, level)[i] for level in (None, *range(1, tree.depth + 1))
            ]
            assert depths == [max(sure, default=0), *(level * (level in sure) for level in range(1, tree.depth + 1))]


def test_the_curve_counts_the_deepest_answers():
    confidence = np.array([[0.9, 0.8], [0.9, 0.4], [0.5, 0.5], [0.3, 0.1]], np.float32)
    correct = np.array([[True, False], [True, True], [True, True], [False, False]])
    curve = {round(point.threshold, 3): point for point in threshold_curve(confidence, correct)}
    assert set(curve) == {0.1, 0.3, 0.4, 0.5, 0.8, 0.9}
    assert (curve[0.9].precision, curve[0.9].answered, curve[0.9].depth) == (1.0, 0.5, 1.0)
    assert (curve[0.8].precision, curve[0.8].answered, curve[0.8].depth) == (0.5, 0.5, 1.5)
    assert (curve[0.4].precision, curve[0.4].answered) == (2 / 3, 0.75)
    assert curve[0.1].depth == 2.0


def test_the_arrays_are_read_again():
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 9)
    found = BackOff.from_log_probabilities(
        tree, tree.names, np.log(rng.dirichlet(np.ones(9), size=40)).astype(np.float32), rng.integers(9, size=40)
    )
    read = BackOff.from_arrays(found.arrays())
    assert read.tree.names == tree.names
    assert read.curve == found.curve
    p = rng.dirichlet(np.ones(9), size=2)
    np.testing.assert_array_equal(read.ways(p, np.array([3, 5])), found.ways(p, np.array([3, 5])))


@pytest.mark.parametrize("seed", range(5))
def test_the_curve_is_what_a_count_of_each_threshold_gives(seed):
    rng = np.random.default_rng(seed)
    confidence = np.sort(np.round(rng.random((200, 3)), 2), axis=1)[:, ::-1].astype(np.float32)
    confidence[rng.random(200) < 0.1, 1:] = 0.0
    correct = rng.random((200, 3)) < confidence
    for point in threshold_curve(confidence, correct):
        depth = (confidence >= np.float32(point.threshold)).sum(axis=1)
        answered = np.flatnonzero(depth)
        right = correct[answered, depth[answered] - 1]
        assert point.precision == pytest.approx(right.mean())
        assert point.answered == len(answered) / 200
        assert point.depth == pytest.approx(depth[answered].mean())


def test_of_no_answers_there_is_no_curve():
    assert threshold_curve(np.empty((0, 3), np.float32), np.empty((0, 3), bool)) == []
    assert threshold_curve(np.zeros((4, 1), np.float32), np.zeros((4, 1), bool)) == []


def test_a_precision_is_asked_of_one_level_or_of_the_labels_alone() -> None:
    tree = Taxonomy.from_edges([("root", "a"), ("a", "a1"), ("a", "a2"), ("root", "b")])
    confidence = np.array([[0.9, 0.8], [0.9, 0.3], [0.7, 0.0], [0.6, 0.2]], np.float32)
    correct = np.array([[True, True], [True, False], [True, False], [False, False]])
    found = BackOff(tree, tree.find(["a1", "a2", "b"]), confidence, correct)
    assert found.at(1).confidence.tolist() == confidence[:, 0].tolist()
    assert found.at(2).correct.tolist() == [True, False, False, False]
    # the third row's way ends at the first level: its label is there
    assert found.own.confidence.tolist() == pytest.approx([0.8, 0.3, 0.7, 0.2])
    assert found.own.correct.tolist() == [True, False, True, False]
