"""Text columns with weights of their own: a record gives the row that the dataset gives, at every door."""

import io
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import TestClient, problem
from scipy.sparse import csr_matrix
from working import answers, run, scripted_answers, train, upload

from app.datasets.recipe_schemas import ColumnRecipe, TableColumns, TextRecipe
from app.features.base import stack
from app.features.load import load_features
from app.features.tables import TableFeatures
from app.features.text import TextFeatures

COLUMNS = TableColumns(texts=("title", "body"))
ROWS = [
    ("red apple", "a round fruit, an apple"),
    ("", "deep blue sea"),
    ("Blue   sea", ""),
    ("Leek", "green Ärger, leek"),
]
FIELDS: dict[str, Any] = {"title": {"weight": 2.5, "ngram_max": 2}, "body": {"max_characters": 14}}
LIMITED: dict[str, Any] = {"title": {"weight": 2.5, "ngram_max": 2}, "body": {"max_sentences": 2}}


def fitted(**recipe: Any) -> tuple[TableFeatures, csr_matrix]:
    given = TextRecipe.model_validate({"min_df": 1} | recipe)
    return TableFeatures.fit(COLUMNS, [], csr_matrix((len(ROWS), 0)), ROWS, ColumnRecipe(), given)


def record(row: tuple[str, str]) -> dict[str, Any]:
    return {"record": {"title": row[0], "body": row[1] or None}}


@pytest.mark.parametrize("recipe", [{}, {"weighting": "bm25"}, {"hash_features": 32}, {"char_ngrams": (2, 3)}])
def test_a_record_gives_the_row_that_the_dataset_gives_to_the_bit(recipe: dict[str, Any]) -> None:
    features, X = fitted(fields=FIELDS, **recipe)
    made = load_features(features.kind, json.loads(json.dumps(features.params_json())), features.arrays())
    assert isinstance(made, TableFeatures)
    for each in (features, made):
        rows = stack([each.row(record(row)) for row in ROWS], each.n_features)
        again = each.transform(csr_matrix((len(ROWS), 0)), [], ROWS)
        for found in (rows, again):
            assert (found.indptr.tolist(), found.indices.tolist()) == (X.indptr.tolist(), X.indices.tolist())
            assert found.data.tobytes() == X.data.tobytes()


def test_a_row_is_the_weighted_sum_of_its_fields_each_of_length_one() -> None:
    features, X = fitted(fields={"title": {"weight": 3.0}})
    joined, _ = TextFeatures.fit(["\n".join(row) for row in ROWS], TextRecipe(min_df=1))
    assert features.names() == [f"title+body: {term}" for term in joined.names() or []]
    title, body = (joined.transform([row[at] for row in ROWS]).toarray() for at in (0, 1))
    expected = 3.0 * title + body
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(X.toarray(), expected, rtol=1e-12)


def test_terms_of_one_field_that_are_left_out_change_no_row_of_another() -> None:
    rows = [("red", "rare apple sea"), ("red blue", "apple sea one"), ("blue", "sea apple two")]
    recipe = TextRecipe.model_validate({"min_df": 2, "fields": {"title": {"weight": 2}}})
    features, X = TableFeatures.fit(COLUMNS, [], csr_matrix((3, 0)), rows, ColumnRecipe(), recipe)
    assert features.names() == [f"title+body: {term}" for term in ("apple", "blue", "red", "sea")]
    assert abs(features.transform(csr_matrix((3, 0)), [], rows) - X).nnz == 0


def test_options_of_a_field_concern_it_alone() -> None:
    features, _ = fitted(fields=FIELDS)
    names = [str(features.named(index)).partition(": ")[2] for index in range(features.n_features)]
    assert {"red apple", "blue sea"} <= set(names)  # pairs of words in titles
    assert not {"deep blue", "round fruit"} & set(names)
    assert "fruit" in names
    assert "ärger" not in names or "green" in names
    assert features.row(record(("", "nothing here: apple")))[0].size == 0  # beyond 14 characters


def test_spans_are_those_of_the_texts_joined_by_line_breaks() -> None:
    features, _ = fitted(fields=FIELDS)
    instance = record(("Red apple", "an apple, apple"))
    text = "Red apple\nan apple, apple"
    indices, _ = features.row(instance)
    found = {
        str(features.named(index)).partition(": ")[2]: [text[begin:end] for begin, end in spans]
        for index, spans in features.spans(instance, indices.tolist()).items()
    }
    assert found["apple"] == ["apple", "apple"]  # the third one is cut
    assert found["red apple"] == ["Red apple"]


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"title": {"weight": 0}}, "greater than 0"),
        ({"title": {"max_characters": 0}}, "greater than or equal to 1"),
        ({"title": {"char_ngrams": [3, 2]}}, "first length must not exceed the second"),
        ({"title": {"min_df": 3}}, "Extra inputs"),
    ],
)
def test_wrong_options_of_fields_are_refused(fields: dict[str, Any], detail: str) -> None:
    with pytest.raises(ValueError, match=detail):
        TextRecipe.model_validate({"fields": fields})


_WORDS = {"fruit": ["apple", "pear"], "water": ["sea", "lake"], "vegetable": ["leek", "carrot"]}
PAPERS = [
    {"title": f"{word} {size}", "body": f"About it. A {size} {word}. No {other}", "label": label}
    for label, words in _WORDS.items()
    for word, other, size in product(words, ["sea", "pear"], ["big", "small"])
]


def _file(format: str) -> bytes:
    if format == "csv":
        lines = [",".join(f'"{row[name]}"' for name in ("title", "body", "label")) for row in PAPERS]
        return "\n".join(["title,body,label", *lines]).encode()
    if format == "jsonl":
        return "\n".join(map(json.dumps, PAPERS)).encode()
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(PAPERS), file := io.BytesIO())
    return file.getvalue()


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_fields_are_read_alike_at_every_door(client: TestClient, format: str, tmp_path: Path) -> None:
    content = _file(format)
    made = upload(client, "papers", content, format, text_columns=["title", "body"])
    assert (made["state"], made["kind"]) == ("ready", "text"), str(made["error"])
    job = train(client, "papers", "m", text={"min_df": 1, "max_words": 5, "fields": LIMITED}, test_fraction=0.25)
    assert job["state"] == "succeeded", job["error"]
    asked = [{"record": {"title": row["title"], "body": row["body"]}} for row in PAPERS]
    known = answers(client, "m", {"instances": asked})["predictions"]
    scores = [pytest.approx(each["score"], rel=1e-6) for each in known]

    predicted = client.post(
        "/api/v1/jobs", json={"kind": "predict", "dataset": "papers", "model": "m", "format": "jsonl"}
    )
    run(predicted.json()["id"])
    file = client.get(f"/api/v1/jobs/{predicted.json()['id']}/predictions").text.splitlines()
    assert [json.loads(line)["score"] for line in file] == scores

    _, found = scripted_answers(client, "m", [each["record"] for each in asked], tmp_path)
    assert found == [pytest.approx(each["score"], rel=1e-4, abs=1e-5) for each in known]
    for format_of_others in ("onnx", "skops"):
        refused = client.get("/api/v1/models/m/versions/1/export", params={"format": format_of_others})
        assert "the archive has a script that does" in problem(refused, 422)["errors"][0]["detail"]

    shown = client.get("/api/v1/datasets/papers/rows", params={"limit": 1}).json()["rows"][0]
    assert shown["record"] == asked[0]["record"]
    read = client.get("/api/v1/models/m/inputs").json()
    assert (read["instance"], read["text_columns"]) == ("record", ["title", "body"])
    refused = client.post("/api/v1/models/m/predict", json={"instances": [{"text": "an apple"}]})
    assert "this model takes records" in json.dumps(problem(refused, 422))


def test_fields_that_are_no_text_columns_are_refused_by_name(client: TestClient) -> None:
    upload(client, "papers", _file("csv"), "csv", text_columns=["title", "body"])
    asked = {"dataset": "papers", "model": "m", "text": {"fields": {"titel": {"weight": 2}}}}
    found = problem(client.post("/api/v1/jobs", json=asked), 422)
    assert found["errors"] == [
        {
            "pointer": "/text/fields/titel",
            "detail": "no text column 'titel'; the dataset's text columns are title, body",
        }
    ]
    upload(client, "one", _file("csv"), "csv", text_columns="title", ignore_columns="body")
    one = problem(client.post("/api/v1/jobs", json=asked | {"dataset": "one"}), 422)
    assert "the dataset has one text column" in one["errors"][0]["detail"]


def test_appended_and_deleted_rows_keep_their_fields(client: TestClient) -> None:
    upload(client, "papers", _file("csv"), "csv", text_columns=["title", "body"])
    more = b"body,title,label\nround apple tart,apple,fruit\n"
    appended = client.post(
        "/api/v1/datasets/papers/rows", params={"format": "csv", "text_columns": ["body", "title"]}, content=more
    )
    run(appended.json()["id"])
    corrected = client.post("/api/v1/datasets/papers/corrections", json={"corrections": [{"row": 0, "delete": True}]})
    run(corrected.json()["id"])
    preview = {"row": len(PAPERS) - 1, "text": {"min_df": 1, "fields": {"title": {"weight": 100}}}}
    found = client.post("/api/v1/datasets/papers/preview", json=preview).json()
    assert found["features"][0]["feature"] == "title+body: apple"
    values = [each["value"] for each in found["features"]]
    assert values[0] > 0.99  # the title, which comes second in the file, has all the weight
