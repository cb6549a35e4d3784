"""Resharded states: every class keeps its columns, whichever shard had them or gets them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.sharding.reshard import gather_columns, split


@given(st.integers(2, 30), st.data())
def test_columns_follow_their_classes_from_any_number_of_shards_to_any_other(k, data):
    W, alpha = np.arange(5.0 * k).reshape(5, k), np.arange(3 * k).reshape(3, k)
    before, after = (data.draw(st.lists(st.integers(0, 3), min_size=k, max_size=k)) for _ in range(2))
    parts = []
    for rank in set(before):
        own = np.flatnonzero(np.array(before) == rank).astype(np.int32)
        padding = np.full((5, data.draw(st.integers(0, 2))), np.nan)
        state = {"own": own, "W": np.hstack([W[:, own], padding]), "alpha": alpha[:, own], "rest": np.arange(4)}
        alone, common = split(state, ("W", "alpha"))
        assert set(common) == {"rest"}
        parts.append(alone)
    for rank in set(after):
        own = np.flatnonzero(np.array(after) == rank).astype(np.int32)
        found = gather_columns(parts, own)
        np.testing.assert_array_equal(found["own"], own)
        np.testing.assert_array_equal(found["W"], W[:, own])
        np.testing.assert_array_equal(found["alpha"], alpha[:, own])
        assert found["alpha"].dtype == alpha.dtype


def test_parts_that_lack_a_class_or_differ_in_rows_are_refused():
    part = {"own": np.array([0, 2], np.int32), "W": np.zeros((5, 2))}
    with pytest.raises(ValueError, match="class 1 is missing from all parts"):
        gather_columns([part], np.array([0, 1], np.int32))
    with pytest.raises(ValueError, match="differ"):
        gather_columns([part, {"own": np.array([1], np.int32), "W": np.zeros((4, 1))}], np.array([0], np.int32))
