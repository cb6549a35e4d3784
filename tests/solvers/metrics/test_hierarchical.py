"""Measures in a label tree, against sets of names."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.flat import flat
from solvers.metrics.hierarchical import hierarchical

TREE = Taxonomy.from_edges([("root", "a"), ("root", "b"), ("a", "c"), ("a", "d"), ("c", "e"), ("c", "f"), ("b", "g")])
nodes = st.integers(0, TREE.n_nodes - 1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, TREE.n_nodes - 1), nodes), min_size=1, max_size=12))
def test_measures_are_those_of_the_sets_of_labels_on_the_paths(pairs):
    sets = [tuple(set(TREE.path(i).tolist()) if i >= 0 else set() for i in pair) for pair in pairs]
    reported = hierarchical(TREE, *np.array(pairs).T)
    assert reported["error"] == pytest.approx(np.mean([not t or not t <= p for t, p in sets]))
    assert reported["tree_loss"] == pytest.approx(np.mean([len(t ^ p) / 2 for t, p in sets]))
    common, total = sum(len(t & p) for t, p in sets), sum(len(t) + len(p) for t, p in sets)
    assert reported["hierarchical_f1"] == pytest.approx(2 * common / total if total else 0.0)
    real, said = sum(len(t) for t, _ in sets), sum(len(p) for _, p in sets)
    assert reported["hierarchical_precision"] == pytest.approx(common / said)
    assert reported["hierarchical_recall"] == pytest.approx(common / real if real else 0.0)
    f1 = {}
    for node in range(TREE.n_nodes):
        both, either = sum(node in t & p for t, p in sets), sum((node in t) + (node in p) for t, p in sets)
        f1 |= {node: 2 * both / either} if either else {}
    assert reported["hierarchical_macro_f1"] == pytest.approx(np.mean(list(f1.values())))
    for level in (1, 2, 3):
        at = set(TREE.level_range(level))
        hit = sum(len(t & p & at) for t, p in sets)
        real, said = sum(len(t & at) for t, _ in sets), sum(len(p & at) for _, p in sets)
        assert reported[f"recall_{level}"] == pytest.approx(hit / real if real else 0.0)
        assert reported[f"precision_{level}"] == pytest.approx(hit / said if said else 0.0)
        assert reported[f"error_{level}"] == pytest.approx(
            np.mean([not t & p & at for t, p in sets if t & at] or [0.0])
        )
        support = {i: sum(i in t for t, _ in sets) for i in at}
        weighted = sum(f1.get(i, 0.0) * support[i] for i in at)
        assert reported[f"weighted_f1_{level}"] == pytest.approx(weighted / real if real else 0.0)
        assert reported[f"macro_f1_{level}"] == pytest.approx(np.mean([f1[i] for i in at if i in f1] or [0.0]))
        assert reported[f"f1_{level}"] == pytest.approx(2 * hit / (real + said) if real + said else 0.0)


def test_an_example_that_stops_at_an_inner_node_is_right_where_the_prediction_is_below_it():
    c, e, d = TREE.find(["c", "e", "d"])
    reported = hierarchical(TREE, np.array([c, c]), np.array([e, d]))
    assert reported["error"] == 0.5
    assert reported["tree_loss"] == 0.75
    assert (reported["micro_f1"], reported["macro_f1"]) == (0.5, pytest.approx((2 / 3 + 0) / 2))


def test_for_a_tree_without_inner_nodes_the_measures_are_the_flat_ones():
    tree = Taxonomy.flat(["x", "y", "z"])
    y_true, y_pred = np.array([0, 1, 2, 2, -1]), np.array([0, 2, 2, 1, 0])
    expected, found = flat(y_true, y_pred, 3), hierarchical(tree, y_true, y_pred)
    assert {name: found[name] for name in expected} == expected


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="no rows"):
        hierarchical(TREE, np.array([], int), np.array([], int))
