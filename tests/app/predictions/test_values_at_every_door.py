"""One value, one label, whatever its spelling: through training, predictions, the protocols and feedback."""

import io
import unicodedata
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asking import TestClient
from working import train, upload

SOLVERS = ("weston_watkins", "auto")
CSV = {"Content-Type": "text/csv"}


def predicted(client: TestClient, model: str, records: list[Any], **more: Any) -> list[str]:
    response = client.post(f"/api/v1/models/{model}/predict", json={"instances": records, **more})
    assert response.status_code == 200, response.text
    return [one["labels"][0]["label"] for one in response.json()["predictions"]]


def by_mlflow(client: TestClient, model: str, **asked: Any) -> list[str]:
    response = client.post(f"/mlflow/{model}/invocations", **asked)
    assert response.status_code == 200, response.text
    found: list[str] = response.json()["predictions"]
    return found


def ready(client: TestClient, name: str, content: bytes, format: str, **options: str) -> None:
    dataset = upload(client, name, content, format, **options)
    assert dataset["state"] == "ready", dataset["error"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_whole_number_is_one_level_however_it_is_written(client: TestClient, solver: str) -> None:
    rng = np.random.default_rng(5)
    lines = [f"{label},{code},{rng.random():.3f}" for label, code in [("x", "3.0"), ("y", "12.0"), ("z", "80.0")] * 12]
    content = "\n".join(["label,code,size", *lines, "z,,0.5", ""]).encode()
    ready(client, "codes", content, "csv", category_columns="code", number_columns="size", missing="keep")
    assert train(client, "codes", "codes", solver=solver)["state"] == "succeeded"
    for three, twelve in ((3, 12), (3.0, 12.0), ("3", "12"), ("3.0", "12.0")):
        records = [{"record": {"code": code, "size": 0.5}} for code in (three, twelve)]
        assert predicted(client, "codes", records) == ["x", "y"], three
    answer = client.post("/api/v1/models/codes/predict", json={"instances": [{"record": {"code": 81, "size": 0.5}}]})
    assert answer.json()["predictions"][0]["unknown"] == ["code=81"]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("as_category", [True, False])
def test_a_boolean_of_parquet_is_the_same_in_csv_and_json(client: TestClient, solver: str, as_category: bool) -> None:
    rng = np.random.default_rng(6)
    table = pa.table({"label": ["off", "on"] * 24, "flag": [False, True] * 24, "size": rng.random(48)})
    pq.write_table(table, written := io.BytesIO())
    options = {"category_columns": "flag", "number_columns": "size"} if as_category else {}
    ready(client, "flags", written.getvalue(), "parquet", **options)
    assert train(client, "flags", "flags", solver=solver)["state"] == "succeeded"
    rows = [{"flag": True, "size": 0.5}, {"flag": False, "size": 0.5}]
    field = "record" if as_category else "features"
    assert predicted(client, "flags", [{field: row} for row in rows]) == ["on", "off"]
    assert by_mlflow(client, "flags", json={"dataframe_records": rows}) == ["on", "off"]
    split = {"columns": ["flag", "size"], "data": [list(row.values()) for row in rows]}
    assert by_mlflow(client, "flags", json={"dataframe_split": split}) == ["on", "off"]
    for true, false in (("True", "False"), ("true", "false")):
        content = f"flag,size\n{true},0.5\n{false},0.5\n"
        assert by_mlflow(client, "flags", content=content, headers=CSV) == ["on", "off"]


def test_labels_of_requests_are_found_in_any_form(client: TestClient) -> None:
    cafe = "caf\u00e9"
    texts = "".join(
        f'{{"text": "{text}", "label": "{label}"}}\n' for text, label in [("cup beans", cafe), ("malt hops", "bar")] * 9
    )
    ready(client, "places", texts.encode(), "jsonl")
    assert train(client, "places", "places")["state"] == "succeeded"
    decomposed = unicodedata.normalize("NFD", cafe)
    assert decomposed != cafe
    rows = [{"text": "malt hops"}]
    assert predicted(client, "places", rows, include=[decomposed]) == [cafe]
    assert predicted(client, "places", [{"text": "cup beans"}], exclude=[decomposed]) == ["bar"]
    reported = client.post("/api/v1/models/places/feedback", json={"instance": rows[0], "labels": [decomposed]})
    assert reported.status_code == 201, reported.text
    assert reported.json()["labels"] == [cafe]


def test_labels_that_are_numbers_are_found_in_any_form(client: TestClient) -> None:
    texts = "".join(f'{{"text": "{text}", "label": {label}}}\n' for text, label in [("cup", 7), ("malt", 8)] * 9)
    ready(client, "numbers", texts.encode(), "jsonl")
    assert train(client, "numbers", "numbers")["state"] == "succeeded"
    assert predicted(client, "numbers", [{"text": "malt"}], include=["7.0"]) == ["7"]
    for label, kept in (("7.0", "7"), ("9.0", "9")):
        reported = client.post(
            "/api/v1/models/numbers/feedback", json={"instance": {"text": "malt"}, "labels": [label]}
        )
        assert reported.json()["labels"] == [kept]
