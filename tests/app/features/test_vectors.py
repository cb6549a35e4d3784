"""Lists of numbers beside texts: each has one length, and a weight that is given or chosen, alike at every door."""

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from asking import TestClient, problem
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize
from working import answers, run, scripted_answers, train, upload

from app.datasets.recipe_schemas import ColumnRecipe, TableColumns, TextRecipe
from app.features.load import load_features
from app.features.tables import TableFeatures

COLUMNS = TableColumns(texts=("text",), numbers=("v.0", "size", "v.1", "w.0", "w.1", "w.2"), missing=True)
NAN = float("nan")
NUMBERS = np.array(
    [
        [3.0, 10.0, 4.0, 1.0, 0.0, 0.0],
        [0.0, NAN, 2.0, 0.0, -2.0, 0.0],
        [NAN, 30.0, NAN, 1.0, 1.0, 1.0],
        [1e200, 20.0, 1e200, 0.0, 0.0, 0.0],
    ]
)
TEXTS = ["one apple", "two pears", "an apple", "pears"]


def fitted(weight: float | None, scaling: Literal["standard", "unit_norm", "none"]) -> tuple[TableFeatures, csr_matrix]:
    recipe = ColumnRecipe(vector_weight=weight, scaling=scaling)
    return TableFeatures.fit(COLUMNS, COLUMNS.numbers, csr_matrix(NUMBERS), TEXTS, recipe, TextRecipe(min_df=1))


@pytest.mark.parametrize("scaling", ["standard", "unit_norm", "none"])
def test_each_list_has_the_length_of_its_weight(scaling: Literal["standard", "unit_norm", "none"]) -> None:
    features, X = fitted(0.5, scaling)
    names = features.names()
    assert names is not None
    assert [names[at] for at in features.vectors] == ["v.0", "v.1", "w.0", "w.1", "w.2"]
    table = X.toarray()
    v, w = table[:, [0, 2]], table[:, 3:6]
    np.testing.assert_allclose(v, 0.5 * np.array([[0.6, 0.8], [0.0, 1.0], [0.0, 0.0], [0.5**0.5, 0.5**0.5]]))
    np.testing.assert_allclose(w, 0.5 * normalize(NUMBERS[:, 3:]))
    # a missing list has no marks, and single numbers are scaled as without lists
    assert [name for name in names if "missing" in name] == ["size (missing)"]
    alone, _ = TableFeatures.fit(
        TableColumns(numbers=("size",), missing=True), ["size"], csr_matrix(NUMBERS[:, [1]]), None,
        ColumnRecipe(scaling=scaling), TextRecipe(),
    )  # fmt: skip
    np.testing.assert_array_equal(
        table[:, [1, names.index("size (missing)")]],
        alone.transform(csr_matrix(NUMBERS[:, [1]]), ["size"], None).toarray(),
    )


def test_a_record_gives_the_row_that_the_dataset_gives_also_after_loading() -> None:
    features, X = fitted(2.0, "standard")
    again = load_features(features.kind, features.params_json(), features.arrays())
    for row, (text, numbers) in enumerate(zip(TEXTS, NUMBERS.tolist(), strict=True)):
        v, w = [numbers[0], numbers[2]], numbers[3:]
        record = {"text": text, "size": numbers[1], "v": v, "w": w}
        given = {
            name: None if np.isnan(np.atleast_1d(value)).any() else value
            for name, value in record.items()
            if name != "text"
        }
        indices, values = again.row({"record": {"text": text, **given}})
        np.testing.assert_array_equal(indices, X[[row]].indices)
        np.testing.assert_allclose(values, X[[row]].data, rtol=1e-15)


def test_without_a_weight_elements_are_numbers() -> None:
    features, X = fitted(None, "none")
    assert len(features.vectors) == 0
    np.testing.assert_array_equal(X.toarray()[0, :6], NUMBERS[0])


@pytest.mark.parametrize("weight", [0, -1, "much", 1e7])
def test_wrong_weights_are_refused(weight: Any) -> None:
    with pytest.raises(ValueError, match="vector_weight"):
        ColumnRecipe.model_validate({"vector_weight": weight})


_RNG = np.random.default_rng(0)
_CENTRES = {"fruit": [1.0, 0.0, 0.0], "water": [0.0, 1.0, 0.0], "vegetable": [0.0, 0.0, 1.0]}
ROWS = [
    {
        "text": " ".join(f"word{at}" for at in _RNG.integers(200, size=6)),
        "v": (np.array(centre) + 0.3 * _RNG.normal(size=3)).round(3).tolist(),
        "label": label,
    }
    for _ in range(60)
    for label, centre in _CENTRES.items()
]


def test_the_chosen_weight_is_one_at_every_door(client: TestClient, tmp_path: Path) -> None:
    content = "\n".join(map(json.dumps, ROWS)).encode()
    upload(client, "things", content, "jsonl", text_columns=["text"], number_columns=["v"])
    request = {"kind": "train", "dataset": "things", "model": "m", "solver": "crammer_singer"}
    planned = client.post("/api/v1/jobs/plan", json=request).json()["scaling"]
    assert planned == (
        "Numbers are scaled by default (columns.vector_weight=auto): columns of lists are beside texts, whose "
        "features have length 1."
    )
    job = train(client, "things", "m", solver="crammer_singer", test_fraction=0.3)
    assert job["state"] == "succeeded", job["error"]
    version = client.get("/api/v1/models/m/versions/1").json()
    assert version["report"]["vector_weight"] in (0.25, 0.5, 1.0, 2.0, 4.0)
    assert version["request"]["columns"]["vector_weight"] == "auto"
    asked = [{"record": {"text": row["text"], "v": row["v"]}} for row in ROWS[:12]]
    known = answers(client, "m", {"instances": asked})["predictions"]
    scores = [pytest.approx(each["score"], rel=1e-6) for each in known]

    predicted = client.post(
        "/api/v1/jobs", json={"kind": "predict", "dataset": "things", "model": "m", "format": "jsonl"}
    )
    run(predicted.json()["id"])
    file = client.get(f"/api/v1/jobs/{predicted.json()['id']}/predictions").text.splitlines()
    assert [json.loads(line)["score"] for line in file[:12]] == scores

    records = [{"text": row["text"], **{f"v.{at}": x for at, x in enumerate(row["v"])}} for row in ROWS[:12]]
    _, found = scripted_answers(client, "m", records, tmp_path)
    assert found == [pytest.approx(each["score"], rel=1e-4, abs=1e-5) for each in known]


def test_a_preview_shows_lists_of_one_length(client: TestClient) -> None:
    content = "\n".join(map(json.dumps, ROWS)).encode()
    upload(client, "things", content, "jsonl", text_columns=["text"], number_columns=["v"])
    shown = client.post("/api/v1/datasets/things/preview", json={"row": 0}).json()["features"]
    values = [each["value"] for each in shown if each["feature"].startswith("v.")]
    assert np.linalg.norm(values) == pytest.approx(1.0)
    wrong = client.post("/api/v1/datasets/things/preview", json={"row": 0, "columns": {"vector_weight": 0}})
    assert "vector_weight" in json.dumps(problem(wrong, 422))
