import csv
import gzip
import io

import pytest
from asking import MARKER, TestClient, bearer, problem
from working import SPARSE, TEXTS, run, train, upload

LONG = 20 * MARKER


def failed(client: TestClient, content: bytes, format: str) -> dict[str, object]:
    """The first fault of an import, which did not repeat the file."""
    dataset = upload(client, "wrong", content, format)
    assert dataset["state"] == "failed", dataset
    assert LONG not in str(dataset)
    error = dataset["error"]
    assert error["status"] == 422
    problem(client.get("/api/v1/datasets/wrong/statistics"), 409, "conflict")
    problem(
        client.post("/api/v1/jobs", json={"dataset": "wrong", "model": "a", "solver": "weston_watkins"}),
        409,
        "conflict",
    )
    fault: dict[str, object] = error["errors"][0]
    return fault


@pytest.mark.parametrize(
    ("content", "format", "row"),
    [
        (b"a 1:1\nb 2:%s\n" % LONG.encode(), "svmlight", 2),
        (b"a 1:1\nb 1:1\nb 0:1\n", "svmlight", 3),
        (b"a 1:1\nb 4294967296:1\n", "svmlight", 2),
        (b"a 1:1\nb 1:nan\n", "svmlight", 2),
        (b"a 1:inf\nb 1:1\n", "svmlight", 1),
        (b"a 1:1\n\xff 1:1\n", "svmlight", 2),
        (b"a 3:1 2:1\nb 1:1\n", "svmlight", 1),
        (b"label,x\na,1\nb,1,%s\n" % LONG.encode(), "csv", 3),
        (b"label,x\na,1\nb,nan\n", "csv", 3),
        (b'{"label": "a", "text": "x"}\n{"label": "b", "text": %s}\n' % LONG.encode(), "jsonl", 2),
        (b'{"label": "a", "text": "x"}\n{"label": "b", "text": "\xff"}\n', "jsonl", 2),
    ],
)
def test_a_faulty_row_is_named_by_its_line(client: TestClient, content: bytes, format: str, row: int) -> None:
    assert failed(client, content, format)["row"] == row


def test_a_csv_file_without_the_label_column_says_so(client: TestClient) -> None:
    assert "label" in str(failed(client, b"x,y\n1,2\n", "csv")["detail"])
    dataset = upload(client, "right", b"x,y\n1,2\n2,3\n", "csv", label_column="x")
    assert (dataset["state"], dataset["n_classes"]) == ("ready", 2)


def test_a_ready_dataset_shows_its_counts_and_rows(client: TestClient) -> None:
    dataset = upload(client, "letters", SPARSE, "svmlight")
    assert (dataset["state"], dataset["n_rows"], dataset["n_classes"]) == ("ready", 24, 3)
    for ref in ("letters", dataset["id"]):
        statistics = client.get(f"/api/v1/datasets/{ref}/statistics").json()
        assert [count["train"] for count in statistics["classes"]] == [8, 8, 8]
    rows = client.get("/api/v1/datasets/letters/rows", params={"offset": 1, "limit": 2}).json()
    assert [(row["row"], row["label"]) for row in rows["rows"]] == [(1, "b"), (2, "c")]
    assert rows["rows"][0]["features"] == [[1, 1.0], [4, 0.5]]
    beyond = client.get("/api/v1/datasets/letters/rows", params={"offset": 2**62}).json()
    assert beyond == {"rows": [], "n_rows": 24}


def test_rows_are_shortened_unless_they_are_asked_for_whole(client: TestClient) -> None:
    text, wide = 400 * "long ", {f"f{i:02}": 1.0 for i in range(70)}
    upload(
        client,
        "texts",
        b"".join(b'{"text": "%s", "label": "%s"}\n' % (text.encode(), y) for y in (b"a", b"b") * 11),
        "jsonl",
    )
    numbers = b"label," + ",".join(wide).encode() + b"\n" + b"".join(y + b",1" * 70 + b"\n" for y in (b"a", b"b"))
    upload(client, "numbers", numbers, "csv")
    found = {
        (name, whole): client.get(f"/api/v1/datasets/{name}/rows", params={"limit": 2, "whole": whole}).json()["rows"][
            0
        ]
        for name in ("texts", "numbers")
        for whole in (False, True)
    }
    assert [len(found["texts", whole]["text"]) for whole in (False, True)] == [500, len(text)]
    assert [len(found["numbers", whole]["features"]) for whole in (False, True)] == [50, 70]
    many = client.get("/api/v1/datasets/texts/rows", params={"limit": 21, "whole": True}).json()
    assert (len(many["rows"]), many["n_rows"]) == (20, 22)


def test_a_failed_import_gives_way_to_the_next_upload_of_its_name(client: TestClient, secrets: dict[str, str]) -> None:
    failed = upload(client, "wrong", b"x,y\n1,2\n", "csv")
    assert failed["state"] == "failed"
    refused = problem(client.post("/api/v1/jobs", json={"dataset": "wrong", "model": "m"}), 409, "conflict")
    assert "import failed" in refused["detail"]
    query, content = "/api/v1/datasets?name=wrong&format=csv", b"label,x\na,1\nb,2\n"
    taken = problem(client.post(query, content=content, headers=bearer(secrets["editor"])), 409, "conflict")
    assert "belongs to another key" in taken["detail"]
    assert upload(client, "wrong", content, "csv")["state"] == "ready"
    problem(client.get(f"/api/v1/datasets/{failed['id']}"), 404, "not_found")
    problem(client.post(query, content=content), 409, "conflict")


def test_an_option_that_no_upload_has_is_answered_with_the_nearest(client: TestClient) -> None:
    answer = client.post("/api/v1/datasets?name=a&decimel=comma", content=b"label,x\na,1\n")
    assert problem(answer, 422)["errors"] == [
        {"pointer": "/query/decimel", "detail": "unknown field; did you mean 'decimal'?"}
    ]


def test_rows_without_labels_are_said_to_be_no_training_data(client: TestClient) -> None:
    upload(client, "asked", b"text\na b\nc d\n", "csv", unlabelled="true")
    for solver in ("crammer_singer", "auto"):
        body = {"dataset": "asked", "model": "m", "solver": solver}
        (fault,) = problem(client.post("/api/v1/jobs", json=body), 422)["errors"]
        assert "no row has a label" in fault["detail"]


def test_datasets_come_in_pages_newest_first(client: TestClient) -> None:
    for name in ("a", "b", "c"):
        client.post("/api/v1/datasets", params={"name": name, "format": "svmlight"}, content=SPARSE)
    first = client.get("/api/v1/datasets?page_size=2").json()
    rest = client.get("/api/v1/datasets", params={"page_token": first["next_page_token"]}).json()
    assert [item["name"] for item in first["items"] + rest["items"]] == ["c", "b", "a"]
    assert rest["next_page_token"] is None


def test_a_dataset_that_a_model_came_from_is_deleted_by_force_only(client: TestClient) -> None:
    upload(client, "letters", SPARSE, "svmlight")
    assert train(client, "letters", "letters")["state"] == "succeeded"
    problem(client.delete("/api/v1/datasets/letters"), 409, "conflict")
    assert client.delete("/api/v1/datasets/letters?force=true").status_code == 204
    problem(client.get("/api/v1/datasets/letters"), 404, "not_found")
    version = client.get("/api/v1/models/letters/versions/1").json()
    assert version["dataset"] is None
    assert len(version["dataset_sha256"]) == 64


def test_a_name_that_is_taken_is_a_conflict(client: TestClient) -> None:
    upload(client, "letters", SPARSE, "svmlight")
    response = client.post("/api/v1/datasets", params={"name": "letters", "format": "jsonl"}, content=TEXTS)
    problem(response, 409, "conflict")


def test_a_column_of_weights_is_named_at_the_upload(client: TestClient) -> None:
    content = b"label,x,w\n" + b"a,1,2.5\nb,2,0.5\n" * 3
    dataset = upload(client, "weighed", content, "csv", weight_column="w")
    assert (dataset["state"], dataset["n_features"]) == ("ready", 1)
    statistics = client.get("/api/v1/datasets/weighed/statistics").json()
    assert statistics["weights"] == {"least": 0.5, "most": 2.5, "mean": 1.5}
    assert client.get("/api/v1/datasets/weighed/rows").json()["rows"][0]["weight"] == 2.5
    fault = upload(client, "wrong", b"label,x,w\na,1,2\nb,2,0\n", "csv", weight_column="w")["error"]["errors"][0]
    assert (fault["row"], fault["column"]) == (3, "w")


@pytest.mark.parametrize(("format", "column"), [("svmlight", "w"), ("csv", "label")])
def test_weights_that_cannot_stand_there_are_refused_at_once(client: TestClient, format: str, column: str) -> None:
    response = client.post(
        "/api/v1/datasets", params={"name": "d", "format": format, "weight_column": column}, content=b"a 1:1\n"
    )
    document = problem(response, 422, "invalid_input")
    assert document["errors"][0]["pointer"] == "/weight_column"


def test_the_format_is_detected_from_the_content_where_none_is_named(client: TestClient) -> None:
    dataset = upload(client, "detected", gzip.compress(b"label;text\na;one\nb;two\n"), None)
    assert (dataset["state"], dataset["format"], dataset["n_rows"]) == ("ready", "csv", 2)
    refused = client.post("/api/v1/datasets", params={"name": "unknown"}, content=b"nothing known\n")
    document = problem(refused, 422, "invalid_input")
    assert document["errors"][0]["pointer"] == "/format"
    problem(client.get("/api/v1/datasets/untold"), 404, "not_found")


@pytest.mark.parametrize(
    ("format", "option"),
    [("parquet", {"encoding": "latin-1"}), ("jsonl", {"delimiter": "tab"}), ("tsv", {"delimiter": "comma"}),
     ("annif", {"label_column": "topic"}), ("svmlight", {"text_columns": "title"}), ("npz", {"decimal": "comma"}),
     ("jsonl", {"quotes": "false"})],
)  # fmt: skip
def test_what_a_format_cannot_heed_is_refused_at_once(client: TestClient, format: str, option: dict[str, str]) -> None:
    refused = client.post("/api/v1/datasets", params={"name": "d", "format": format, **option}, content=b"x")
    (name,) = option
    assert problem(refused, 422, "invalid_input")["errors"][0]["pointer"] == f"/{name}"


def test_all_faulty_rows_are_in_the_report(client: TestClient) -> None:
    content = b"label,=x\n" + b"a,1\na,one\n" * 300
    dataset = upload(client, "wrong", content, "csv")
    detail = "the file has 300 errors; the first 20 are listed, the others in the report"
    hint = "if column '=x' holds text, name it with text_columns or category_columns, or use infer_columns"
    assert dataset["error"]["detail"] == f"{detail}; {hint}"
    answer = client.get("/api/v1/datasets/wrong/errors")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert rows[0] == ["line", "column", "fault"]
    assert rows[1:] == [[str(line), "'=x", "'one' is not a number"] for line in range(3, 602, 2)]
    upload(client, "right", SPARSE, "svmlight")
    problem(client.get("/api/v1/datasets/right/errors"), 404, "not_found")


def test_decimal_commas_without_the_option_suggest_the_option(client: TestClient) -> None:
    detail = upload(client, "wrong", b"label;x\na;1,5\nb;-1.200,5\n", "csv")["error"]["detail"]
    assert "; decimal=comma reads numbers with decimal commas; if column" in detail


def test_who_leaves_missing_numbers_unsaid_is_told_how_to_keep_them(client: TestClient) -> None:
    assert "missing=keep" in upload(client, "wrong", b"label,x\na,1\nb,\n", "csv")["error"]["detail"]


def test_rows_for_validation_are_neither_trained_on_nor_tested_on(client: TestClient) -> None:
    rows = b"a,1,train\nb,2,train\n" * 4 + b"a,1,test\nb,2,validation\nc,3,validation\n"
    dataset = upload(client, "parts", b"label,x,split\n" + rows, "csv")
    assert (dataset["n_rows"], dataset["n_train"]) == (11, 8)
    statistics = client.get("/api/v1/datasets/parts/statistics").json()
    assert (statistics["n_train"], statistics["n_test"], statistics["n_validation"]) == (8, 1, 2)
    assert statistics["classes"][1] == {"label": "b", "train": 4, "test": 0, "validation": 1}
    assert client.get("/api/v1/datasets/parts/rows?offset=9&limit=1").json()["rows"][0]["split"] == "validation"
    assert train(client, "parts", "parts")["state"] == "succeeded"
    version = client.get("/api/v1/models/parts/versions/1").json()
    assert version["classes"] == ["a", "b"] if "classes" in version else version["n_classes"] == 2
    request = {"kind": "evaluate", "model": "parts", "dataset": "parts", "part": "validation"}
    job = client.post("/api/v1/jobs", json=request)
    run(job.json()["id"])
    evaluation = client.get(job.headers["location"]).json()["result"]["evaluation"]
    assert client.get(f"/api/v1/evaluations/{evaluation}").json()["n_rows"] == 2


def test_keys_that_nothing_was_said_of_are_refused_with_what_to_say(client: TestClient) -> None:
    made = upload(client, "papers", b'{"label": "a", "text": "x", "title": "t"}\n', "jsonl")
    said = "set infer_columns to read these keys as columns, and leave out unwanted ones with ignore_columns"
    assert said in made["error"]["detail"]
