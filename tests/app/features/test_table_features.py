"""Numbers are scaled, levels folded and texts weighed; a record gives the row that the dataset gives."""

from typing import Any, Literal

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MaxAbsScaler, Normalizer, RobustScaler, StandardScaler

from app.datasets.recipe_schemas import ColumnRecipe, TableColumns, TextRecipe
from app.features.base import InstanceError, stack
from app.features.columns import SparseFeatures
from app.features.load import load_features
from app.features.scaled import ScaledFeatures
from app.features.tables import TableFeatures

COLUMNS = TableColumns(
    texts=("title", "body"), numbers=("x", "y"), categories=("c",), left_out={"day": "dates"}, missing=True
)
NAMES = ["x", "y", "c=", "c=blue", "c=grey", "c=red"]
RECORDS: list[dict[str, Any]] = [
    {"x": 1.0, "y": 0.0, "c": "red", "title": "one apple", "body": "red apple"},
    {"x": None, "y": 2.0, "c": "red", "title": "two pears", "body": None},
    {"x": 3.0, "y": -4.0, "c": "blue", "title": "one pear"},
    {"x": 9.5, "y": 1.0, "c": "blue", "title": "apple", "body": "two"},
    {"x": 2.0, "y": 0.0, "c": "grey", "title": "", "body": "one"},
    {"x": 0.0, "y": 7.0, "c": None, "title": "two", "body": "pears"},
]
TEXTS = ["\n".join(filter(None, (row["title"], row.get("body")))) for row in RECORDS]


def matrix() -> csr_matrix:
    dense = np.zeros((len(RECORDS), len(NAMES)))
    for k, row in enumerate(RECORDS):
        dense[k, :2] = np.nan if row["x"] is None else row["x"], row["y"]
        dense[k, NAMES.index(f"c={row['c'] or ''}")] = 1
    return csr_matrix(dense)


def fitted(**recipe: Any) -> tuple[TableFeatures, csr_matrix]:
    return TableFeatures.fit(COLUMNS, NAMES, matrix(), TEXTS, ColumnRecipe(**recipe), TextRecipe(min_df=1))


@pytest.mark.parametrize("missing", ["median", "mean", "zero"])
@pytest.mark.parametrize("scaling", ["standard", "robust", "max_abs", "unit_norm", "none"])
def test_numbers_are_scaled_as_scikit_learn_scales_them(
    scaling: Literal["standard", "robust", "max_abs", "unit_norm", "none"], missing: Literal["median", "mean", "zero"]
) -> None:
    features, X = fitted(scaling=scaling, missing=missing, mark_missing=False)
    filler = (
        SimpleImputer(strategy="constant", fill_value=0.0) if missing == "zero" else SimpleImputer(strategy=missing)
    )
    filled = filler.fit_transform(matrix().toarray()[:, :2])
    scaler = {
        "standard": StandardScaler(),
        "robust": RobustScaler(),
        "max_abs": MaxAbsScaler(),
        "unit_norm": Normalizer(),
        "none": None,
    }[scaling]
    expected = filled if scaler is None else scaler.fit_transform(filled)
    np.testing.assert_allclose(X.toarray()[:, :2], expected, rtol=1e-12, atol=1e-14)
    assert features.arrays()["marked"].sum() == 0


@pytest.mark.parametrize("scaling", ["standard", "unit_norm", "max_abs"])
def test_a_record_gives_the_same_bits_as_its_row(scaling: Literal["standard", "unit_norm", "max_abs"]) -> None:
    features, X = fitted(scaling=scaling)
    loaded = load_features(features.kind, features.params_json(), features.arrays())
    assert loaded.names() == features.names()
    rows = stack([loaded.row({"record": record}) for record in RECORDS], loaded.n_features)
    for found in (rows, features.transform(matrix(), NAMES, TEXTS)):
        np.testing.assert_array_equal(found.indptr, X.indptr)
        np.testing.assert_array_equal(found.indices, X.indices)
        np.testing.assert_array_equal(found.data, X.data)


def test_features_are_named_by_their_columns() -> None:
    features, X = fitted()
    names = features.names()
    assert names is not None
    assert names[:6] == ["x", "y", "x (missing)", "c=blue", "c=red", "c=(others)"]
    assert names[6] == "title+body: apple"
    assert names == [features.named(index) for index in range(features.n_features)]
    dense = X.toarray()
    np.testing.assert_array_equal(dense[:, 2], [0, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(dense[:, 5], [0, 0, 0, 0, 1, 1])


def test_a_level_that_is_new_counts_among_the_rare_ones() -> None:
    features, _ = fitted()
    indices, _ = features.row({"record": {"c": "violet"}})
    assert 5 in indices
    every, _ = fitted(min_level_rows=1)
    names = every.names()
    assert names is not None
    assert "c=(others)" not in names
    row, _ = every.row({"record": {"x": 1, "y": 1, "c": "violet"}})
    assert not {names[index] for index in row} & {"c=", "c=blue", "c=grey", "c=red"}


def test_another_dataset_may_have_its_columns_in_another_order() -> None:
    features, _ = fitted()
    names = ["y", "c=red", "c=violet", "x"]
    X = csr_matrix([[2.0, 1, 0, 1], [1, 0, 1, np.nan]])
    found = features.transform(X, names, ["one", ""])
    again = [{"x": 1, "y": 2, "c": "red", "title": "one"}, {"y": 1, "c": "violet", "title": ""}]
    expected = stack([features.row({"record": record}) for record in again], features.n_features)
    assert (found != expected).nnz == 0
    with pytest.raises(InstanceError, match=r"lacks 1 column, such as 'x'"):
        features.transform(X[:, :3], names[:3], ["", ""])


def test_spans_are_those_of_the_joined_text() -> None:
    features, _ = fitted()
    instance = {"record": RECORDS[0]}
    indices, _ = features.row(instance)
    found = {features.named(index): spans for index, spans in features.spans(instance, indices.tolist()).items()}
    assert found["title+body: apple"] == [(4, 9), (14, 19)]


@pytest.mark.parametrize(
    ("instance", "message"),
    [
        ({"text": "a"}, "this model takes records"),
        ([1.0, 2.0], "this model takes records"),
        ({"record": {"z": 1}}, r"1 unknown column: 'z'"),
        ({"record": {"x": "1"}}, "column 'x': a number is required"),
        ({"record": {"x": 10**400}}, "column 'x': the number is not finite"),
        ({"record": {"c": [1]}}, "column 'c': a string, a number or a boolean is required"),
        ({"record": {"title": 1}}, "column 'title': a text is required"),
    ],
)
def test_a_record_that_does_not_fit_says_why(instance: Any, message: str) -> None:
    features, _ = fitted()
    with pytest.raises(InstanceError, match=message):
        features.row(instance)


def test_what_was_never_missing_must_be_there() -> None:
    X = matrix()
    X.data[np.isnan(X.data)] = 1.0
    columns = COLUMNS.model_copy(update={"missing": False})
    features, _ = TableFeatures.fit(columns, NAMES, X, TEXTS, ColumnRecipe(), TextRecipe(min_df=1))
    with pytest.raises(InstanceError, match="column 'y': the value is missing"):
        features.row({"record": {"x": 1, "c": "red"}})
    with pytest.raises(InstanceError, match="a number is missing"):
        features.transform(matrix(), NAMES, TEXTS)


def test_columns_that_were_left_out_may_be_in_a_record() -> None:
    features, _ = fitted()
    given = RECORDS[2] | {"day": "2024-01-01"}
    assert (features.row({"record": given})[1] == features.row({"record": RECORDS[2]})[1]).all()
    assert features.as_given({"record": given}) == {"record": given}


def test_numbers_of_a_dataset_without_other_columns_are_scaled_too() -> None:
    X = csr_matrix([[1.0, 0, 3], [2, 5, 0], [0, 1, 1]])
    given = SparseFeatures(3, ["a", "b", "c"])
    features, scaled = ScaledFeatures.fit(given, X, ColumnRecipe())
    np.testing.assert_allclose(scaled.toarray(), StandardScaler().fit_transform(X.toarray()))
    loaded = load_features("scaled", features.params_json(), features.arrays())
    rows = stack([loaded.row(row) for row in X.toarray().tolist()], 3)
    assert (rows != scaled).nnz == 0
    assert loaded.names() == ["a", "b", "c"]
    assert loaded.as_given({"features": {"b": 2.0}}) == {"features": {"b": 2.0}}


@pytest.mark.parametrize("factor", [1e-300, 1e-170, 1e170, 1e299])
@pytest.mark.parametrize("scaling", ["standard", "robust", "max_abs", "unit_norm", "power_of_two"])
def test_scaled_numbers_do_not_depend_on_a_unit_whose_squares_leave_the_range_of_floats(
    scaling: Literal["standard", "robust", "max_abs", "unit_norm", "power_of_two"], factor: float
) -> None:
    numbers = np.array([[1.0, 0, 3], [2, 5, 0], [0, 1, 1]])
    recipe = ColumnRecipe(scaling=scaling)
    once, scaled = (
        ScaledFeatures.fit(SparseFeatures(3), csr_matrix(numbers * unit), recipe)[1].toarray() for unit in (1.0, factor)
    )
    if scaling == "power_of_two":
        assert 1.0 <= scaled.max() < 2.0
        scaled = scaled * (once.max() / scaled.max())
    np.testing.assert_allclose(scaled, once, rtol=1e-12)


def test_a_constant_column_is_not_scaled_by_its_rounding_errors() -> None:
    X = csr_matrix(np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0]]))
    scaled = ScaledFeatures.fit(SparseFeatures(2), X, ColumnRecipe())[1].toarray()
    assert (scaled[:, 0] == 0.0).all()
