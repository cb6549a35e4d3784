"""One frame gets one answer, by whatever door it comes: files of all formats, requests and the protocols."""

import csv
import datetime
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asking import TestClient
from working import answers, run, train, upload

N = 36
FRAME: dict[str, list[Any]] = {
    "label": ["a", "b", "c"] * (N // 3),
    "flag": [True, False, False] * (N // 3),
    "code": [7.0, 11.0, 42.0] * (N // 3),
    "rare": [None, 3.0, 4.0] * (N // 3),
    "word": ["caf\u00e9", "na\u00efve", "x"] * (N // 3),
    "u": [k / N for k in range(N)],
}
FORMATS = ("csv", "jsonl", "parquet")
CATEGORIES = ["flag", "code", "rare", "word"]


def rows(frame: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(frame, values, strict=True)) for values in zip(*frame.values(), strict=True)]


def as_file(frame: dict[str, list[Any]], format: str) -> bytes:
    """As pandas writes it."""
    if format == "parquet":
        sink = io.BytesIO()
        pq.write_table(pa.table(frame), sink)
        return sink.getvalue()
    if format == "jsonl":
        return "\n".join(json.dumps(row, default=str) for row in rows(frame)).encode()
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(frame)
    writer.writerows(row.values() for row in rows(frame))
    return stream.getvalue().encode()


def without(frame: dict[str, list[Any]], name: str) -> dict[str, list[Any]]:
    return {key: values for key, values in frame.items() if key != name}


QUERY = without({key: values[:3] for key, values in FRAME.items()}, "label")
UNKNOWN = {**QUERY, "flag": ["maybe"] * 3, "code": [12.0] * 3}


@pytest.fixture
def services(client: TestClient) -> TestClient:
    """A client of a service with a model of the same frame in each format."""
    for format in FORMATS:
        given = upload(
            client,
            format,
            as_file(FRAME, format),
            format,
            category_columns=CATEGORIES,
            number_columns="u",
            missing="keep",
        )  # type: ignore[arg-type]
        assert given["state"] == "ready", given["error"]
        assert train(client, format, format)["state"] == "succeeded"
    return client


def rest(client: TestClient, model: str, records: list[dict[str, Any]]) -> list[tuple[str, float]]:
    found = answers(client, model, {"instances": [{"record": record} for record in records]})["predictions"]
    return [(each["label"], each["score"]) for each in found]


def mlflow(client: TestClient, model: str, content: bytes, media: str) -> list[Any]:
    response = client.post(f"/mlflow/{model}/invocations", content=content, headers={"Content-Type": media})
    assert response.status_code == 200, response.text
    return list(response.json()["predictions"])


def infer(client: TestClient, model: str, frame: dict[str, list[Any]]) -> list[str]:
    inputs = []
    for name, values in frame.items():
        kind = "BOOL" if type(values[0]) is bool else "BYTES" if type(values[-1]) is str else "FP64"
        if kind == "FP64" and None in values:
            kind, values = "BYTES", ["" if value is None else str(value) for value in values]
        inputs.append({"name": name, "datatype": kind, "shape": [len(values)], "data": values})
    response = client.post(f"/v2/models/{model}/infer", json={"inputs": inputs})
    assert response.status_code == 200, response.text
    return list(response.json()["outputs"][0]["data"])


def file_job(client: TestClient, model: str, dataset: str) -> list[dict[str, Any]]:
    body = {"kind": "predict", "model": model, "dataset": dataset, "format": "jsonl"}
    response = client.post("/api/v1/jobs", json=body)
    assert response.status_code == 202, response.text
    run(response.json()["id"])
    lines = client.get(f"/api/v1/jobs/{response.json()['id']}/predictions").text.splitlines()
    return [json.loads(line) for line in lines]


def test_one_frame_gets_one_answer_by_every_door(services: TestClient) -> None:
    typed = rows(QUERY)
    strings = [{k: v if k == "u" else None if v is None else str(v) for k, v in row.items()} for row in typed]
    whole = [row | {"code": int(row["code"])} for row in typed]
    split = json.dumps({"dataframe_split": {"columns": list(QUERY), "data": [list(row.values()) for row in typed]}})
    expected = rest(services, "csv", typed)
    assert [label for label, _ in expected] == ["a", "b", "c"]
    for format in FORMATS:
        name = f"query-{format}"
        options = {"category_columns": CATEGORIES, "number_columns": "u", "missing": "keep", "unlabelled": "true"}
        assert upload(services, name, as_file(QUERY, format), format, **options)["state"] == "ready"  # type: ignore[arg-type]
    for model in FORMATS:
        for records in (typed, strings, whole):
            assert rest(services, model, records) == expected
        labels = [label for label, _ in expected]
        assert mlflow(services, model, split.encode(), "application/json") == labels
        assert mlflow(services, model, as_file(QUERY, "csv"), "text/csv") == labels
        assert infer(services, model, QUERY) == labels
        for format in FORMATS:
            found = file_job(services, model, f"query-{format}")
            assert [(row["label"], row["score"], row["unknown"]) for row in found] == [(*one, []) for one in expected]


def test_values_that_no_training_row_has_are_reported_and_counted(services: TestClient) -> None:
    found = answers(services, "csv", {"instances": [{"record": record} for record in rows(UNKNOWN)]})["predictions"]
    assert [each["unknown"] for each in found] == [["flag=maybe", "code=12"]] * 3
    assert all(
        "unknown" not in each
        for each in answers(services, "csv", {"instances": [{"record": r} for r in rows(QUERY)]})["predictions"]
    )
    assert services.get("/api/v1/models/csv/versions/1/drift").json()["n_unknown"] == 3
    options = {"category_columns": CATEGORIES, "number_columns": "u", "missing": "keep", "unlabelled": "true"}
    assert upload(services, "odd", as_file(UNKNOWN, "csv"), "csv", **options)["state"] == "ready"  # type: ignore[arg-type]
    assert [row["unknown"] for row in file_job(services, "parquet", "odd")] == [["flag=maybe", "code=12"]] * 3


def test_appended_rows_and_corrections_are_read_as_the_first_file(services: TestClient) -> None:
    more = {
        **{key: values[:3] for key, values in FRAME.items()},
        "code": ["7.00", "11", "042"],
        "flag": ["1", "no", "FALSE"],
    }
    for format in ("csv", "jsonl"):
        response = services.post(
            "/api/v1/datasets/parquet/rows", params={"format": format}, content=as_file(more, format)
        )
        assert response.status_code == 202, response.text
        run(response.json()["id"])
    statistics = services.get("/api/v1/datasets/parquet/statistics").json()
    assert statistics["n_rows"] == N + 6
    levels = {each["name"]: each.get("levels") for each in statistics["columns"]}
    assert (levels["flag"], levels["code"]) == (3, 4)  # true, false, no; 7, 11, 42, 042


def test_labels_of_corrections_are_read_as_those_of_the_file(client: TestClient) -> None:
    content = b"label,x\n" + b"7.0,1\n11.0,2\n" * 3
    assert upload(client, "codes", content, "csv")["state"] == "ready"
    body = {"corrections": [{"row": 0, "labels": ["11.0"]}, {"row": 1, "labels": ["cafe\u0301"]}]}
    response = client.post("/api/v1/datasets/codes/corrections", json=body)
    run(response.json()["id"])
    found = [row["label"] for row in client.get("/api/v1/datasets/codes/rows").json()["rows"]]
    assert found == ["11", "caf\u00e9", "7", "11", "7", "11"]
    more = client.post("/api/v1/datasets/codes/rows", params={"format": "csv"}, content=b"label,x\n7.00,3\n")
    run(more.json()["id"])
    assert client.get("/api/v1/datasets/codes/rows").json()["rows"][6]["label"] == "7"


VECTORS: dict[str, list[Any]] = {
    "label": ["a", "b"] * 8,
    "text": ["red apple", "blue sea"] * 8,
    "v": [[1.0, 0.0, k / 16] if k % 2 else [0.0, 1.0, k / 16] for k in range(16)],
}


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
@pytest.mark.parametrize("options", [{"text_columns": "text", "number_columns": "v"}, {"infer_columns": "true"}])
def test_lists_of_numbers_are_read_alike_from_json_lines_and_parquet(
    client: TestClient, format: str, options: dict[str, str]
) -> None:
    made = upload(client, "v", as_file(VECTORS, format), format, **options)
    assert made["state"] == "ready", made["error"]
    columns = client.get("/api/v1/datasets/v/statistics").json()["columns"]
    assert [each["name"] for each in columns if each["role"] == "number"] == ["v.0", "v.1", "v.2"]
    (first,) = client.get("/api/v1/datasets/v/rows", params={"limit": 1}).json()["rows"]
    assert [first["record"][name] for name in ("v.0", "v.1", "v.2")] == [0.0, 1.0, 0.0]


def test_lists_of_other_lengths_are_refused_with_their_lines(client: TestClient) -> None:
    vectors = {**VECTORS, "v": [*VECTORS["v"][:13], [1.0], 3.0, None]}
    content = as_file(vectors, "jsonl")
    made = upload(client, "v", content, "jsonl", text_columns="text", number_columns="v")
    faults = [(each["row"], each["detail"]) for each in made["error"]["errors"]]
    said = "expected a list of 3 numbers as in the first row"
    assert faults == [(14, f"a list of 1, {said}"), (15, f"a number, {said}"), (16, f"null, {said}")]


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_rows_may_lack_their_list_where_missing_numbers_are_kept(client: TestClient, format: str) -> None:
    vectors = {**VECTORS, "v": [*VECTORS["v"][:14], None, None]}
    options = {"text_columns": "text", "number_columns": "v", "missing": "keep"}
    made = upload(client, "v", as_file(vectors, format), format, **options)
    assert (made["state"], made["n_rows"]) == ("ready", 16), made["error"]
    rows = client.get("/api/v1/datasets/v/rows", params={"offset": 13, "limit": 2}).json()["rows"]
    assert [row["record"]["v.1"] for row in rows] == [0.0, None]
    assert train(client, "v", "v", text={"min_df": 1})["state"] == "succeeded"
    asked = {"instances": [{"record": {"text": "red apple"}}, {"record": {"text": "blue sea", "v": None}}]}
    assert [each["label"] for each in answers(client, "v", asked)["predictions"]] == ["a", "b"]
    wrong = {**vectors, "v": [*vectors["v"][:13], [1.0], None, None]}
    refused = upload(client, "w", as_file(wrong, format), format, **options)
    (fault,) = refused["error"]["errors"]
    assert fault["row"] == 14
    assert "expected" in fault["detail"]


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_a_file_for_a_model_has_lists_as_the_model_was_trained_on(client: TestClient, format: str) -> None:
    options = {"text_columns": "text", "number_columns": "v"}
    assert upload(client, "v", as_file(VECTORS, "parquet"), "parquet", **options)["state"] == "ready"
    assert train(client, "v", "v", text={"min_df": 1})["state"] == "succeeded"
    rows = upload(client, "rows", as_file(without(VECTORS, "label"), format), format, for_model="v")
    assert (rows["state"], rows["n_rows"]) == ("ready", 16), rows["error"]


def test_numbers_that_were_lists_are_asked_for_as_lists(client: TestClient) -> None:
    assert upload(client, "v", as_file(without(VECTORS, "text"), "parquet"), "parquet")["state"] == "ready"
    assert train(client, "v", "v")["state"] == "succeeded"
    asked = [{"features": {"v": [1.0, 0.0, 0.5]}}, {"features": {"v.0": 1.0, "v.2": 0.5}}, [1.0, 0.0, 0.5]]
    found = [answers(client, "v", {"instances": [one]})["predictions"] for one in asked]
    assert found[0] == found[1] == found[2]
    frame = {"dataframe_records": [{"v": [1.0, 0.0, 0.5]}]}
    answer = client.post("/mlflow/v/invocations", json=frame).json()
    assert answer["predictions"] == [found[0][0]["labels"][0]["label"]]
    refused = client.post("/api/v1/models/v/predict", json={"instances": [{"features": {"v": [1.0]}}]})
    assert "a list of 3 numbers is required, or numbers 'v.0' to 'v.2'" in refused.text
    refused = client.post("/api/v1/models/v/predict", json={"instances": [{"features": {"v.0": [1.0]}}]})
    assert "feature 'v.0': a number is required" in refused.text


def test_open_inference_has_one_input_for_a_column_of_lists(client: TestClient) -> None:
    options = {"text_columns": "text", "number_columns": "v"}
    assert upload(client, "v", as_file(VECTORS, "parquet"), "parquet", **options)["state"] == "ready"
    assert train(client, "v", "v", text={"min_df": 1})["state"] == "succeeded"
    inputs = client.get("/v2/models/v").json()["inputs"]
    assert [(each["name"], each["shape"]) for each in inputs] == [("v", [-1, 3]), ("text", [-1])]
    text = {"name": "text", "datatype": "BYTES", "shape": [2], "data": ["blue sea", "red apple"]}
    vectors = {"name": "v", "datatype": "FP64", "shape": [2, 3], "data": [1.0, 0.0, 0.5, 0.0, 1.0, 0.5]}
    answer = client.post("/v2/models/v/infer", json={"inputs": [text, vectors]}).json()
    assert answer["outputs"][0]["data"] == ["b", "a"]
    short = {**vectors, "shape": [2, 2], "data": [1.0, 0.0, 0.0, 1.0]}
    refused = client.post("/v2/models/v/infer", json={"inputs": [text, short]})
    assert "a list of 3 numbers is required" in refused.text
    one = {**vectors, "shape": [1, 3], "data": [1.0, 0.0, 0.5]}
    refused = client.post("/v2/models/v/infer", json={"inputs": [text, one]})
    assert "all inputs must have the same number of rows" in refused.text


def test_a_column_of_lists_is_asked_for_as_it_was_trained_on(client: TestClient) -> None:
    frame = {
        "label": ["a", "b"] * 8,
        "text": ["red apple", "blue sea"] * 8,
        "v": [[1.0, 0.0, k / 16] if k % 2 else [0.0, 1.0, k / 16] for k in range(16)],
    }
    options = {"text_columns": "text", "number_columns": "v"}
    assert upload(client, "v", as_file(frame, "parquet"), "parquet", **options)["state"] == "ready"
    assert train(client, "v", "v", text={"min_df": 1})["state"] == "succeeded"
    listed = {"text": "red apple", "v": [0.0, 1.0, 0.25]}
    named = {"text": "red apple", "v.0": 0.0, "v.1": 1.0, "v.2": 0.25}
    assert rest(client, "v", [listed]) == rest(client, "v", [named])
    response = client.post("/api/v1/models/v/predict", json={"instances": [{"record": {"text": "x", "v": [1.0]}}]})
    assert response.status_code == 422
    assert "a list of 3 numbers is required" in response.text


FLAGS: dict[str, list[Any]] = {
    "label": ["a", "b", "c"] * 12,
    "flag": [True, False, False] * 12,
    "whole": [7.0, 11.0, 42.0] * 12,
    "day": [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1), datetime.date(2024, 2, 3)] * 12,
    "u": [k / 36 for k in range(36)],
}
FLAG_KINDS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "categories": (
        ["flag", "whole", "day", "u"],
        {"category_columns": ["flag", "whole", "day"], "number_columns": "u"},
    ),
    "numbers": (["flag", "whole", "u"], {"number_columns": ["flag", "whole", "u"]}),
    "both": (["flag", "whole", "day"], {"number_columns": ["flag", "whole"], "category_columns": "day"}),
    "inferred": (["flag", "whole", "u"], {"infer_columns": "true"}),
}


@pytest.mark.parametrize(
    "kind",
    ["categories", "numbers", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("both", "inferred"))],
)
def test_flags_whole_floats_and_dates_of_files_are_answered_as_rows_of_requests(client: TestClient, kind: str) -> None:
    names, options = FLAG_KINDS[kind]
    columns = {name: FLAGS[name] for name in names}
    asked = {name: values[:3] for name, values in columns.items()}
    files = {format: (format, as_file(asked, format)) for format in FORMATS}
    lines = files["csv"][1]
    files["small"] = ("csv", lines.replace(b"True", b"true").replace(b"False", b"false"))
    files["digits"] = ("csv", lines.replace(b"True", b"1").replace(b"False", b"0"))
    for format in FORMATS:
        made = upload(client, format, as_file({"label": FLAGS["label"], **columns}, format), format, **options)
        assert made["state"] == "ready", made["error"]
        assert train(client, format, format)["state"] == "succeeded"
        records = [json.loads(json.dumps(row, default=str)) for row in rows(asked)]
        expected = rest(client, format, records)
        assert rest(client, format, [row | {"flag": int(row["flag"])} for row in records]) == expected
        for written, (of_file, content) in files.items():
            ways: list[dict[str, Any]] = [{"for_model": format}]
            if format == "parquet":
                ways.append({**options, "unlabelled": "true"})
            for way, how in enumerate(ways):
                name = f"{way}-{written}-{format}"
                made = upload(client, name, content, of_file, **how)
                assert made["state"] == "ready", (name, made["error"])
                found = [(row["label"], row["score"]) for row in file_job(client, format, name)]
                assert found == expected, name


def test_a_file_for_a_model_of_numbers_has_them_as_columns_or_as_features(client: TestClient) -> None:
    numbers: dict[str, list[Any]] = {name: FLAGS[name] for name in ("label", "flag", "u")}
    assert upload(client, "m", as_file(numbers, "parquet"), "parquet")["state"] == "ready"
    assert train(client, "m", "m")["state"] == "succeeded"
    asked: list[dict[str, Any]] = [{"flag": True, "u": 0.5}, {"flag": False, "u": 0.25}, {"u": 0.25}]
    response = answers(client, "m", {"instances": [{"features": row} for row in asked]})
    expected = [(each["label"], each["score"]) for each in response["predictions"]]
    for name, lines in (
        ("folded", [{"features": row, "note": "x"} for row in asked]),
        ("flat", [{"flag": False, **row, "note": "x"} for row in asked]),
    ):
        made = upload(client, name, "\n".join(map(json.dumps, lines)).encode(), "jsonl", for_model="m")
        assert made["state"] == "ready", made["error"]
        assert [(row["label"], row["score"]) for row in file_job(client, "m", name)] == expected
    wrong = json.dumps({"features": asked[0]}) + "\n" + json.dumps({"features": {"other": 1}}) + "\n"
    made = upload(client, "wrong", wrong.encode(), "jsonl", for_model="m")
    assert [each["row"] for each in made["error"]["errors"]] == [2]


@pytest.mark.parametrize("beside", ["u", "word"])
def test_a_column_of_digits_is_read_as_the_flag_of_the_model(client: TestClient, beside: str) -> None:
    values: list[Any] = [0.5, 1.5, 2.5] if beside == "u" else ["x", "y", "x"]
    frame = {"label": FLAGS["label"], "flag": FLAGS["flag"], beside: values * 12, "code": FLAGS["whole"]}
    options = {"infer_columns": "true", "missing": "keep"}
    assert upload(client, "m", as_file(frame, "csv"), "csv", **options)["state"] == "ready"
    assert train(client, "m", "m")["state"] == "succeeded"
    asked = [{"flag": 1, beside: values[0], "code": 7.0}, {"flag": None, beside: values[2], "code": 11.0}]
    content = "\n".join([",".join(asked[0]), *(",".join(map(str, row.values())) for row in asked)])
    made = upload(client, "rows", content.replace("None", "").encode(), "csv", unlabelled="true", **options)
    assert made["state"] == "ready", made["error"]
    found = [(row["label"], row["score"]) for row in file_job(client, "m", "rows")]
    assert found == rest(client, "m", asked)


def test_numbers_are_no_levels_of_a_category_of_text(client: TestClient) -> None:
    codes = b"label,code,u\n" + b"a,007,1\nb,42,2\n" * 9
    options = {"category_columns": "code", "number_columns": "u"}
    assert upload(client, "codes", codes, "csv", **options)["state"] == "ready"
    assert train(client, "codes", "codes")["state"] == "succeeded"
    assert upload(client, "rows", b"code,u\n007,1\n", "csv", unlabelled="true")["state"] == "ready"
    response = client.post("/api/v1/jobs", json={"kind": "predict", "model": "codes", "dataset": "rows"})
    run(response.json()["id"])
    ended = client.get(f"/api/v1/jobs/{response.json()['id']}").json()
    assert "upload it in category_columns" in json.dumps(ended["error"])


SIZE, OTHER = "gr\u00f6\u00dfe", "gro\u0308\u00dfe"


@pytest.mark.parametrize("header", [SIZE, OTHER])
@pytest.mark.parametrize("categories", [False, True])
def test_a_column_is_the_same_in_every_unicode_form_of_its_name(
    client: TestClient, header: str, categories: bool
) -> None:
    rows = "".join(f"{'ab'[at % 2]},{at % 2 * 5},1\n" for at in range(20))
    options = {"category_columns": OTHER if header == SIZE else SIZE, "number_columns": "u"} if categories else {}
    content = f"label,{header},u\n{rows}".encode()
    dataset = upload(client, "sizes", content, "csv", **options)
    assert dataset["state"] == "ready", dataset["error"]
    assert train(client, "sizes", "sizes", solver="weston_watkins")["state"] == "succeeded"
    for name in (SIZE, OTHER):
        asked = [{"record" if categories else "features": {name: 5, "u": 1}}]
        response = client.post("/api/v1/models/sizes/predict", json={"instances": asked})
        assert response.status_code == 200, response.text
        assert response.json()["predictions"][0]["label"] == "b"
        csv = client.post(
            "/mlflow/sizes/invocations", content=f"{name},u\n5,1\n".encode(), headers={"Content-Type": "text/csv"}
        )
        assert csv.json()["predictions"] == ["b"]
        for format, asked_rows in (
            ("csv", f"{name},u\n5,1\n".encode()),
            ("jsonl", json.dumps({"features": {name: 5, "u": 1}} if not categories else {name: 5, "u": 1}).encode()),
        ):
            file = f"{format}-{len(name)}"
            made = upload(client, file, asked_rows, format, unlabelled="true", for_model="sizes")
            assert made["state"] == "ready", made["error"]
            assert [row["label"] for row in file_job(client, "sizes", file)] == ["b"]
    both = {"instances": [{"record": {SIZE: 5, OTHER: 0, "u": 1}}]}
    assert "given twice, in two Unicode forms" in client.post("/api/v1/models/sizes/predict", json=both).text


def test_keys_of_json_lines_in_two_unicode_forms_are_one_feature(client: TestClient) -> None:
    rows = [{"label": "ab"[at % 2], "features": {(SIZE, OTHER)[at % 2]: at % 2 * 5 + 1}} for at in range(8)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    assert upload(client, "lines", lines.encode(), "jsonl")["state"] == "ready"
    assert client.get("/api/v1/datasets/lines/statistics").json()["n_features"] == 1
    twice = json.dumps({"label": "a", "features": {SIZE: 1, OTHER: 2}}).encode()
    assert "two keys differ in their Unicode form alone" in json.dumps(upload(client, "twice", twice, "jsonl")["error"])
