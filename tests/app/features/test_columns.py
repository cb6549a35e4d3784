from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from app.features.base import InstanceError, stack
from app.features.columns import SparseFeatures
from app.features.load import load_features

NAMES = ["width", "height", "größe", "d"]

dense = st.lists(st.floats(-1e9, 1e9) | st.integers(-3, 3), min_size=4, max_size=4)


@settings(deadline=None)
@given(dense, st.permutations(range(4)))
def test_all_ways_to_write_an_instance_give_the_same_row(values: list[float], order: list[int]) -> None:
    features = SparseFeatures(4, NAMES)
    instances: list[Any] = [
        values,
        {"indices": order, "values": [values[j] for j in order]},
        {"features": {NAMES[j]: values[j] for j in order}},
        {"features": {NAMES[j]: values[j] for j in order if values[j]}},
        {"record": {NAMES[j]: values[j] for j in order}},
    ]
    for instance in instances:
        indices, row = features.row(instance)
        assert indices.dtype == np.int32
        assert row.dtype == np.float64
        assert indices.tolist() == [j for j in range(4) if values[j]]
        assert row.tolist() == [values[j] for j in range(4) if values[j]]


@pytest.mark.parametrize(
    ("instance", "detail"),
    [
        ({"text": "a"}, "this model takes numbers"),
        ({"indices": [0]}, "this model takes numbers"),
        ([1, 2, 3], "3 numbers, expected 4"),
        ([1, 2, 3, float("nan")], "a value is not a finite number"),
        ([1, 2, 3, 10**400], "a value is too large"),
        ({"indices": [0, 4], "values": [1, 2]}, "index 4 is not between 0 and 3"),
        ({"indices": [-1], "values": [1]}, "index -1 is not between 0 and 3"),
        ({"indices": [1, 1], "values": [1, 2]}, "an index is given twice"),
        ({"indices": [1, 2], "values": [1]}, "2 indices and 1 values"),
        ({"indices": [1], "values": [float("inf")]}, "a value is not a finite number"),
        ({"features": {"d": 1, "e": 2}}, r"1 unknown feature: 'e'; the model takes 'width', 'height', 'größe', 'd'$"),
        ({"features": {"e": 1, "f": 2, "g": 3, "h": 4}}, r"4 unknown features: 'e', 'f', 'g'; the model takes "),
        ({"features": {"x" * 99: 1}}, r"1 unknown feature: 'x{37}\.\.\.'; the model takes "),
        ({"record": {"width": 1, "height": 2, "größe": 3}}, r"column 'd': the number is missing$"),
        ({"record": {"width": 1, "height": None, "größe": 3, "d": 4}}, r"column 'height': a number is required$"),
        ({"record": {"width": 1, "height": "2", "größe": 3, "d": 4}}, r"column 'height': a number is required$"),
        ({"record": {"e": 1}}, r"1 unknown feature: 'e'; the model takes "),
    ],
)
def test_an_instance_that_does_not_fit_says_why(instance: Mapping[str, Any] | list[float], detail: str) -> None:
    with pytest.raises(InstanceError, match=detail):
        SparseFeatures(4, NAMES).row(instance)


def test_names_need_a_model_with_names() -> None:
    with pytest.raises(InstanceError, match="no names"):
        SparseFeatures(4).row({"features": {"a": 1}})


def test_there_are_as_many_names_as_features() -> None:
    with pytest.raises(ValueError, match="4 names for 3 features"):
        SparseFeatures(3, NAMES)


@pytest.mark.parametrize("names", [None, NAMES])
def test_saved_features_are_the_same(names: list[str] | None) -> None:
    features = SparseFeatures(4, names)
    loaded = load_features(features.kind, features.params_json(), features.arrays())
    assert isinstance(loaded, SparseFeatures)
    assert (loaded.n_features, loaded.names()) == (4, names)


def test_columns_of_a_dataset_go_by_name() -> None:
    X = csr_matrix(np.array([[1.0, 2.0], [0.0, 3.0]]))
    moved = SparseFeatures(4, NAMES).transform(X, ["d", "width"])
    np.testing.assert_array_equal(moved.toarray(), [[2, 0, 0, 1], [3, 0, 0, 0]])
    assert moved.has_sorted_indices
    with pytest.raises(InstanceError, match=r"1 unknown feature: 'depth'"):
        SparseFeatures(4, NAMES).transform(X, ["d", "depth"])


def test_columns_of_a_dataset_without_names_go_by_index() -> None:
    X = csr_matrix(np.array([[1.0, 2.0], [0.0, 3.0]]))
    np.testing.assert_array_equal(SparseFeatures(3).transform(X).toarray(), [[1, 2, 0], [0, 3, 0]])
    with pytest.raises(InstanceError, match="the data has 2 features, but the model has 1"):
        SparseFeatures(1).transform(X)


def test_rows_stack_to_a_matrix() -> None:
    features = SparseFeatures(4)
    rows = [features.row([0, 1, 0, 2]), features.row([0, 0, 0, 0]), features.row([3, 0, 0, 0])]
    np.testing.assert_array_equal(stack(rows, 4).toarray(), [[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 0]])
    assert stack([], 4).shape == (0, 4)


def test_features_that_are_not_used_are_left_out_of_rows_and_come_back_from_arrays() -> None:
    names = ["a", "b", "c", "d"]
    features = SparseFeatures(4, names, np.array([1, 3], np.int32))
    features = SparseFeatures.from_arrays(features.params_json(), features.arrays())
    assert (features.n_features, features.n_given, features.names()) == (2, 4, ["b", "d"])
    for instance in (
        {"indices": [0, 3, 1], "values": [9.0, 2.0, 1.0]},
        {"features": {"a": 9.0, "b": 1.0, "d": 2.0}},
        [9.0, 1.0, 0.0, 2.0],
    ):
        indices, values = features.row(instance)
        assert (indices.tolist(), values.tolist()) == ([0, 1], [1.0, 2.0])
    X = csr_matrix(np.array([[9.0, 1.0, 0.0, 2.0], [1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 3.0]]))
    assert features.transform(X).toarray().tolist() == [[1.0, 2.0], [0.0, 0.0], [0.0, 3.0]]
    assert features.transform(X, ["d", "b", "a", "c"]).toarray().tolist() == [[1.0, 9.0], [0.0, 1.0], [0.0, 0.0]]
    with pytest.raises(InstanceError, match="index 4 is not between 0 and 3"):
        features.row({"indices": [4], "values": [1.0]})
