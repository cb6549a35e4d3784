"""At which level of a label tree answers reach a precision."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.errors import InvalidInput
from app.predictions.sure_answers import promise, used_threshold
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.confidence.back_off import BackOff


def model(n: int = 400) -> Any:
    """Branches are always right; labels are right where they are at least 0.5 probable, else in every second row."""
    tree = Taxonomy.from_edges([("root", "a"), ("a", "a1"), ("a", "a2")])
    sure = np.linspace(0.1, 0.9, n)
    confidence = np.stack([np.full(n, 0.95), sure], axis=1).astype(np.float32)
    correct = np.stack([np.ones(n, bool), (sure >= 0.5) | (np.arange(n) % 2 == 0)], axis=1)
    back_off = BackOff(tree, tree.find(["a1", "a2"]), confidence, correct)
    return SimpleNamespace(back_off=back_off, set_reliability=None, reliability=None, names_sets=False)


def test_labels_need_a_higher_threshold_than_answers_at_any_level() -> None:
    thresholds = {level: used_threshold(model(), None, 0.9, False, level) for level in ("any", "leaves", 1, 2)}
    shown = {level: used.shown["threshold"] for level, used in thresholds.items() if used is not None}
    assert shown["any"] < shown["leaves"] == shown[2]
    assert shown[1] == pytest.approx(0.95)
    assert thresholds["leaves"] is not None
    promised = promise(model(), thresholds["leaves"])
    assert promised["lower_bound"] > 0.9
    assert promised["depth"] is None
    assert promise(model(), thresholds["leaves"], 1)["answered"] == 1.0


@pytest.mark.parametrize("level", [3, 0, "top", 1.5, True])
def test_levels_that_a_tree_does_not_have_are_refused(level: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        used_threshold(model(), None, 0.9, False, level)
    assert refused.value.errors[0].pointer == "/sure_level"
