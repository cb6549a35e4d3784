"""At which level of a label tree answers reach a precision."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.errors import InvalidInput
from app.predictions.sure_answers import Used, promise, sure_nodes, used_threshold
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.confidence.back_off import BackOff


def model(n: int = 400) -> Any:
    """Branches are always right; labels are right where they are at least 0.5 probable, else in every second row."""
    tree = Taxonomy.from_edges([("root", "a"), ("a", "a1"), ("a", "a2")])
    sure = np.linspace(0.1, 0.9, n)
    confidence = np.stack([np.full(n, 0.95), sure], axis=1).astype(np.float32)
    correct = np.stack([np.ones(n, bool), (sure >= 0.5) | (np.arange(n) % 2 == 0)], axis=1)
    back_off = BackOff(tree, tree.find(["a1", "a2"]), confidence, correct)
    facts = {"set_reliability": None, "reliability": None, "least_probability": 0.0}
    return SimpleNamespace(back_off=back_off, names_sets=False, **facts)


def test_labels_need_a_higher_threshold_than_answers_at_any_level() -> None:
    thresholds = {level: used_threshold(model(), None, 0.9, False, level) for level in ("any", "leaves", 1, 2)}
    shown = {level: used.shown["threshold"] for level, used in thresholds.items() if used is not None}
    assert shown["any"] < shown["leaves"] == shown[2]
    assert shown[1] == pytest.approx(0.95)
    assert thresholds["leaves"] is not None
    promised = promise(model(), thresholds["leaves"])
    assert promised["lower_bound"] > 0.9
    assert promised["depth"] is None
    assert thresholds[1] is not None
    assert promise(model(), thresholds[1]) == {**thresholds[1].shown, "counted": "nodes"}
    assert thresholds["any"] is not None
    found = promise(model(), thresholds["any"])
    alone = promise(model(), Used(thresholds["any"].threshold, {}, "leaves"))
    assert found == {**thresholds["any"].shown, "counted": "nodes", "label_precision": alone["precision"]}
    assert alone["answered"] < found["answered"] == 1


@pytest.mark.parametrize("level", [3, 0, "top", 1.5, True])
def test_levels_that_a_tree_does_not_have_are_refused(level: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        used_threshold(model(), None, 0.9, False, level)
    assert refused.value.errors[0].pointer == "/sure_level"


def test_a_level_without_a_precision_or_a_threshold_is_refused() -> None:
    assert used_threshold(model(), None, None, False, "any") is None
    with pytest.raises(InvalidInput) as refused:
        used_threshold(model(), None, None, False, 1)
    assert refused.value.errors[0].pointer == "/sure_level"


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_levels_are_checked_with_a_threshold_too(threshold: float | None) -> None:
    asked = (threshold, None if threshold else 0.9)
    used = used_threshold(model(), *asked, False, 1)
    assert used is not None
    assert used.level == 1
    with pytest.raises(InvalidInput):
        used_threshold(model(), *asked, False, 3)


def test_what_is_sure_is_the_label_or_above_it_and_with_a_level_the_node_there() -> None:
    tree = Taxonomy.from_edges([("root", "a"), ("root", "b"), ("a", "a1"), ("b", "b1"), ("b", "b2"), ("b", "b3")])
    classes = ("a1", "b1", "b2", "b3")
    back_off = BackOff(tree, tree.find(classes), np.empty((0, 2), np.float32), np.empty((0, 2), bool))
    one: Any = SimpleNamespace(back_off=back_off, classes=classes)
    # the likeliest label is a1 in the first row, where b is more probable than a
    scores = np.log([[0.4, 0.2, 0.2, 0.2], [0.1, 0.5, 0.3, 0.1]])
    best = scores.argmax(axis=1)
    assert sure_nodes(one, scores, best, Used(0.6, {}))[0] == [None, "b"]
    names, probabilities = sure_nodes(one, scores, best, Used(0.3, {}))
    assert names == ["a1", "b1"]
    assert probabilities.tolist() == pytest.approx([0.4, 0.5])
    names, probabilities = sure_nodes(one, scores, best, Used(0.3, {}, 1))
    assert names == ["a", "b"]
    assert probabilities.tolist() == pytest.approx([0.4, 0.9])
    assert sure_nodes(one, scores, best, Used(0.45, {}, 2))[0] == [None, "b1"]
