"""Costs of wrong answers, from a table and along a label tree."""

import numpy as np
import pytest
from problems import random_tree

from solvers.labels.costs import Costs, cost_of, costs_of, table_fault
from solvers.labels.stored_arrays import ArrayFault

CLASSES = ("a", "b", "c", "d")
TABLE = {"a": {"c": 5.0, "b": 0.0}, "d": {"a": 0.25}}
MATRIX = np.array([[0, 0, 5, 2], [2, 0, 2, 2], [2, 2, 0, 2], [0.25, 2, 2, 0]])


def from_table() -> Costs:
    return Costs.of_table(CLASSES, TABLE, 2.0)


def from_tree(seed: int = 0):
    tree = random_tree(np.random.default_rng(seed), 30)
    names = [tree.names[node] for node in np.random.default_rng(seed + 1).permutation(30)[:17].tolist()]
    nodes = tree.find(names)
    return Costs.of_tree(names, tree), tree.distance(nodes[:, None], nodes[None])


def matrix(costs: Costs) -> np.ndarray:
    row, rows = np.empty(costs.n_classes), []
    for y in range(costs.n_classes):
        costs_of(costs, y, row)
        rows.append(row.copy())
    return np.array(rows)


@pytest.mark.parametrize("seed", range(5))
def test_the_distances_of_a_tree_are_those_of_its_paths(seed):
    costs, distances = from_tree(seed)
    np.testing.assert_array_equal(matrix(costs), distances)


def test_a_table_has_its_entries_and_one_cost_for_all_other_pairs():
    np.testing.assert_array_equal(matrix(from_table()), MATRIX)


def test_labels_of_a_table_that_are_no_classes_are_left_out():
    costs = Costs.of_table(("b", "d", "a"), TABLE, 2.0)
    np.testing.assert_array_equal(matrix(costs), MATRIX[np.ix_([1, 3, 0], [1, 3, 0])])


@pytest.mark.parametrize("made", [from_table, lambda: from_tree()[0]])
def test_single_costs_rows_and_means_agree(made):
    costs = made()
    k, L = costs.n_classes, matrix(made())
    pairs = np.indices((k, k)).reshape(2, -1)
    np.testing.assert_array_equal(costs.between(*pairs), L.ravel())
    assert [cost_of(costs, 1, c) for c in range(k)] == L[1].tolist()
    np.testing.assert_array_equal(costs.at_zero(np.array([2, 0, 2]), largest=True), L.max(axis=1)[[2, 0, 2]])
    np.testing.assert_array_equal(costs.at_zero(np.array([2, 0]), largest=False), L.sum(axis=1)[[2, 0]])


@pytest.mark.parametrize("made", [from_table, lambda: from_tree(3)[0]])
def test_expected_costs_are_means_by_the_probabilities(made):
    costs = made()
    P = np.random.default_rng(0).dirichlet(np.ones(costs.n_classes), 20)
    np.testing.assert_allclose(costs.expected(P), P @ matrix(costs), atol=1e-12)


def test_a_label_that_is_no_class_costs_the_default_or_the_way_from_the_root():
    assert from_table().between(np.array([-1]), np.array([2])).tolist() == [2.0]
    tree = random_tree(np.random.default_rng(0), 30)
    costs = Costs.of_tree(tree.names, tree)
    every = np.arange(30)
    np.testing.assert_array_equal(costs.between(np.full(30, -1), every), tree.distance(np.full(30, -1), every))


@pytest.mark.parametrize("made", [from_table, lambda: from_tree()[0]])
def test_written_arrays_make_the_same_costs(made):
    costs = made()
    again = Costs.from_arrays(costs.n_classes, costs.arrays())
    for one, other in zip(costs, again, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("answers", np.array([0, 9, 1], np.int32)), ("begin", np.zeros(3, np.int64)), ("own", np.zeros(2))],
)
def test_written_arrays_that_do_not_fit_the_classes_are_refused(name, wrong):
    with pytest.raises(ArrayFault, match=name):
        Costs.from_arrays(4, {**from_table().arrays(), name: wrong})


def test_unknown_labels_of_a_table_are_named():
    assert table_fault(TABLE, CLASSES) is None
    assert table_fault({"x": {"a": 1.0}, "b": {"y": 2.0}}, CLASSES) == (
        "costs name 2 labels that no training row has: 'x', 'y'"
    )


def test_only_costs_of_one_for_all_are_one():
    assert Costs.of_table(CLASSES, {"a": {"b": 1.0}}, 1.0).are_one
    assert not Costs.of_table(CLASSES, {"a": {"b": 2.0}}, 1.0).are_one
    assert not Costs.of_table(CLASSES, {}, 2.0).are_one
