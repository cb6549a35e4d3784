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

from app.datasets.recipe_schemas import TITLE_AND_BODY, ColumnRecipe, FieldRecipe, TableColumns, TextRecipe
from app.features.base import stack
from app.features.excerpts import split_text
from app.features.load import load_features
from app.features.tables import TableFeatures
from app.features.text import TextFeatures
from workers.phases import field_weights

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
    assert one["errors"][0]["detail"] == "no text column 'titel'; the dataset's rows have one text: title and body"


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


# the title names the label in one word, and the body has many words of chance
_CHANCE = np.random.default_rng(2)
TITLED = [
    {
        "title": f"{word}{_CHANCE.integers(3)}",
        "body": " ".join(f"w{at}" for at in _CHANCE.integers(60, size=40)),
        "size": int(_CHANCE.integers(9)),
        "label": word,
    }
    for _ in range(40)
    for word in ("apple", "sea", "leek")
]
# the title says nothing
UNTITLED = [row | {"title": f"w{_CHANCE.integers(60)}", "body": f"{row['body']} {row['title']}"} for row in TITLED]


@pytest.mark.parametrize("sets", [False, True])
def test_auto_weighs_a_title_that_says_the_label_and_joins_one_that_says_nothing(
    client: TestClient, sets: bool
) -> None:
    options: dict[str, Any] = {"text_columns": ["title", "body"], "number_columns": "size"}
    for name, rows in (("titled", TITLED), ("untitled", UNTITLED)):
        labelled = [row | {"label": [row["label"]]} for row in rows] if sets else rows
        content = "\n".join(map(json.dumps, labelled)).encode()
        made = upload(client, name, content, "jsonl", **options)
        assert (made["state"], made["kind"]) == ("ready", "table"), str(made["error"])
        solver = "node_svm" if sets else "weston_watkins"
        job = train(client, name, name, solver=solver, text={"fields": "auto"})
        assert job["state"] == "succeeded", job["error"]
        version = client.get(f"/api/v1/models/{name}/versions/1").json()
        assert version["request"]["text"]["fields"] == "auto"
        report = version["report"]
        if name == "titled":
            assert report["fields_gain"] > 2 * report["fields_gain_error"] > 0
            assert report["field_weight.title"] in (0.5, 0.7, 1.0, 2.0)
            assert report["field_weight.body"] == 1.0
        else:
            assert report["fields_gain"] <= 2 * report["fields_gain_error"]
            assert not any(key.startswith("field_weight.") for key in report)
        page = client.get(f"/models/{name}/versions/1").text
        weight = report.get("field_weight.title")
        assert ("none: joined into one text" if weight is None else f"title {weight:g}, body 1") in page
        asked = [{"record": {key: row[key] for key in ("title", "body", "size")}} for row in rows[:3]]
        assert len(answers(client, name, {"instances": asked})["predictions"]) == 3


@pytest.mark.parametrize(("solver", "fields"), [("auto", "auto"), ("subjects", "auto"), ("weston_watkins", {})])
def test_weights_of_tables_are_chosen_by_default_where_a_method_looks_for_good_answers(
    client: TestClient, solver: str, fields: Any
) -> None:
    rows = [row | {"label": [row["label"]]} for row in TITLED] if solver == "subjects" else TITLED
    content = "\n".join(map(json.dumps, rows)).encode()
    upload(client, "table", content, "jsonl", text_columns=["title", "body"], number_columns="size")
    upload(client, "texts", content, "jsonl", text_columns=["title", "body"], ignore_columns="size")
    for name, expected in (("table", fields), ("texts", {})):
        asked = {"kind": "train", "dataset": name, "model": f"of-{name}", "solver": solver}
        if solver == "subjects":
            tree = {"nodes": [{"id": word, "names": {"en": word}} for word in ("apple", "sea", "leek")]}
            asked |= {"hierarchy": _vocabulary(client, tree)}
        planned = client.post("/api/v1/jobs/plan", json=asked).json()["text_columns"]
        said = (
            "Text columns (title, body) are by default joined or weighted as training rows decide (text.fields=auto)."
        )
        assert planned == (said if expected == "auto" else None)
        job = client.post("/api/v1/jobs", json=asked)
        assert job.status_code == 202, job.text
        assert job.json()["request"]["text"]["fields"] == expected


def _vocabulary(client: TestClient, tree: dict[str, Any]) -> str:
    if client.get("/api/v1/hierarchies/words").status_code == 404:
        content = "\n".join(["id,name", *(f"{each['id']},{each['names']['en']}" for each in tree["nodes"])])
        made = client.post(
            "/api/v1/hierarchies", params={"name": "words", "format": "csv", "language": "en"}, content=content.encode()
        )
        assert made.status_code == 201, made.text
    return "words"


@pytest.mark.parametrize("rows", [TITLED, UNTITLED], ids=["titled", "untitled"])
def test_versions_of_texts_read_records_whatever_auto_chooses(client: TestClient, rows: list[dict[str, Any]]) -> None:
    content = "\n".join(map(json.dumps, rows)).encode()
    options: dict[str, Any] = {"text_columns": ["title", "body"], "ignore_columns": "size"}
    assert upload(client, "papers", content, "jsonl", **options)["kind"] == "text"
    job = train(client, "papers", "m", text={"fields": "auto"}, refit=True)
    assert job["state"] == "succeeded", job["error"]
    assert client.get("/api/v1/models/m/inputs").json()["instance"] == "record"
    asked = [{"record": {"title": row["title"], "body": row["body"]}} for row in rows[:9]]
    known = answers(client, "m", {"instances": asked})["predictions"]
    predicted = client.post(
        "/api/v1/jobs", json={"kind": "predict", "dataset": "papers", "model": "m", "format": "jsonl"}
    )
    run(predicted.json()["id"])
    file = client.get(f"/api/v1/jobs/{predicted.json()['id']}/predictions").text.splitlines()
    assert [json.loads(line)["label"] for line in file[:9]] == [each["label"] for each in known]


def test_weights_are_chosen_where_some_labels_are_not_among_the_rows_that_are_compared(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(field_weights, "some_rows", lambda n_rows: np.arange(1, n_rows, 2))
    rows = [TITLED[0] | {"label": "rare"}, *TITLED]
    content = "\n".join(map(json.dumps, rows)).encode()
    upload(client, "titled", content, "jsonl", text_columns=["title", "body"], number_columns="size")
    job = train(client, "titled", "m", text={"fields": "auto"}, test_fraction=0)
    assert job["state"] == "succeeded", job["error"]
    assert "fields_gain" in client.get("/api/v1/models/m/versions/1").json()["report"]


def test_few_rows_are_joined_and_other_words_are_refused(client: TestClient) -> None:
    upload(client, "papers", _file("csv"), "csv", text_columns=["title", "body"])
    job = train(client, "papers", "m", text={"min_df": 1, "fields": "auto"}, test_fraction=0.25)
    assert job["state"] == "succeeded", job["error"]
    assert "fields_gain" not in client.get("/api/v1/models/m/versions/1").json()["report"]
    wrong = {"dataset": "papers", "model": "m", "text": {"fields": "some"}}
    assert problem(client.post("/api/v1/jobs", json=wrong), 422)["errors"][0]["pointer"] == "/text/fields"
    wrong["text"] = {"fields": {"title": {"weight": 0}}}
    assert problem(client.post("/api/v1/jobs", json=wrong), 422)["errors"][0]["pointer"] == "/text/fields/title/weight"
    shown = client.post("/api/v1/datasets/papers/preview", json={"row": 0, "text": {"min_df": 1, "fields": "auto"}})
    assert shown.status_code == 200, shown.text


ONE_TEXT = [
    "red apple\na round fruit, an apple",
    "deep blue sea",
    "Blue   sea ¤ waves, and the\ndeep",
    " \r\nLeek \r\n\r\ngreen Ärger, leek",
    "no body ¤ \n",
    "",
]
APART = [
    ("red apple", "a round fruit, an apple"),
    ("", "deep blue sea"),
    ("Blue   sea ¤", "waves, and the\ndeep"),
    (" \r\nLeek \r", "\r\ngreen Ärger, leek"),
    ("", "no body ¤ \n"),
    ("", ""),
]


def test_one_text_has_a_title_and_a_body() -> None:
    assert [split_text(text, TITLE_AND_BODY) for text in ONE_TEXT] == APART
    assert all("\n".join(filter(None, pair)) == text or len("\n".join(filter(None, pair))) == len(text)
               for pair, text in zip(APART, ONE_TEXT, strict=True))  # fmt: skip


@pytest.mark.parametrize("recipe", [{}, {"weighting": "bm25"}, {"hash_features": 32}, {"char_ngrams": (2, 3)}])
def test_title_and_body_of_one_text_are_those_of_two_columns(recipe: dict[str, Any]) -> None:
    given = TextRecipe.model_validate({"min_df": 1, "fields": FIELDS} | recipe)
    features, X = TextFeatures.fit(ONE_TEXT, given)
    _, of_columns = TextFeatures.fit(APART, given, TITLE_AND_BODY)
    made = load_features(features.kind, json.loads(json.dumps(features.params_json())), features.arrays())
    assert isinstance(made, TextFeatures)
    assert X.toarray().tobytes() == of_columns.toarray().tobytes()
    for each in (features, made):
        rows = stack([each.row({"text": text}) for text in ONE_TEXT], each.n_features)
        assert (rows.indptr.tolist(), rows.indices.tolist()) == (X.indptr.tolist(), X.indices.tolist())
        assert rows.data.tobytes() == X.data.tobytes() == each.transform(ONE_TEXT).data.tobytes()


def test_terms_of_title_and_body_are_found_in_the_text_as_it_came() -> None:
    features, _ = TextFeatures.fit(ONE_TEXT, TextRecipe(min_df=1, fields={"title": FieldRecipe(weight=2.0)}))
    names = features.names() or []
    for text, words in zip(ONE_TEXT[:4], (["red", "fruit"], ["deep", "sea"], ["sea", "deep"], ["leek"]), strict=True):
        found = features.spans({"text": text}, [names.index(word) for word in words])
        for word in words:
            assert {text[begin:end].casefold() for begin, end in found[names.index(word)]} == {word}


@pytest.mark.parametrize("solver", ["subjects", pytest.param("auto", marks=pytest.mark.slow)])
def test_titles_of_texts_weigh_what_training_rows_decide_by_default(client: TestClient, solver: str) -> None:
    texts = [f"{row['title']} ¤ {row['body']}" for row in TITLED]
    content = "".join(f"{text}\t<{row['label']}>\n" for text, row in zip(texts, TITLED, strict=True))
    upload(client, "titled", content.encode(), "annif")
    asked = {"dataset": "titled", "model": "m", "solver": solver}
    assert "Titles and bodies of texts are by default joined or" in client.post("/api/v1/jobs/plan", json=asked).text
    job = train(client, "titled", "m", solver=solver)
    assert job["state"] == "succeeded", job["error"]
    report = client.get("/api/v1/models/m/versions/1").json()["report"]
    # by characters, too, nearly each row is answered rightly in any case
    assert "fields_gain" in report if solver == "auto" else report["field_weight.title"] in (0.5, 0.7, 1.0, 2.0)
    found = answers(client, "m", {"instances": [{"text": text} for text in texts[:9]], "explain": 3})
    right = [row["label"] for row in TITLED[:9]]
    assert [each["labels"][0]["label"] for each in found["predictions"]] == right
    preview = client.post("/api/v1/datasets/titled/preview", json={"row": 0, "text": {"min_df": 1, "fields": "auto"}})
    assert preview.status_code == 200


def test_a_machine_reads_title_and_body_at_every_door(client: TestClient, tmp_path: Path) -> None:
    texts = [f"{row['title']}\n{row['body']}" for row in TITLED]
    content = "\n".join(
        json.dumps({"text": text, "label": row["label"]}) for text, row in zip(texts, TITLED, strict=True)
    )
    upload(client, "titled", content.encode(), "jsonl")
    fields = {"title": {"weight": 2}, "body": {"max_words": 20}}
    job = train(client, "titled", "m", text={"fields": fields})
    assert job["state"] == "succeeded", job["error"]
    asked = [{"text": text} for text in texts[:9]]
    known = answers(client, "m", {"instances": asked, "top_k": 2})["predictions"]
    predicted = client.post(
        "/api/v1/jobs", json={"kind": "predict", "dataset": "titled", "model": "m", "format": "jsonl"}
    )
    run(predicted.json()["id"])
    file = client.get(f"/api/v1/jobs/{predicted.json()['id']}/predictions").text.splitlines()
    assert [json.loads(line)["label"] for line in file[:9]] == [each["label"] for each in known]
    _, found = scripted_answers(client, "m", texts[:9], tmp_path)
    assert found == [pytest.approx(each["score"], rel=1e-4, abs=1e-5) for each in known]
    for format_of_others in ("onnx", "skops"):
        refused = client.get("/api/v1/models/m/versions/1/export", params={"format": format_of_others})
        assert "the archive has a script that does" in problem(refused, 422)["errors"][0]["detail"]
