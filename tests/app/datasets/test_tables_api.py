"""A table of texts, numbers and categories: uploaded, looked at, trained on, asked, appended to, taken away."""

import csv
import io
from typing import Any

import pytest
from asking import TestClient, problem
from working import answers, run, train, upload

HEADER = "id,label,title,price,colour,day\n"
COLOURS = ("red", "green", "blue")
KINDS = ("fruit", "leaf", "sea")
TITLES = ("a sweet round thing to eat", "a thing that grows on trees", "wide and deep and wet thing")


def rows(begin: int, end: int) -> bytes:
    lines = []
    for k in range(begin, end):
        price = "" if k % 4 == 0 else f"{k % 3 + k / 100:.2f}"
        lines.append(f"r{k},{KINDS[k % 3]},{TITLES[k % 3]} {k},{price},{COLOURS[k % 3]},2024-01-{k % 28 + 1:02}\n")
    return (HEADER + "".join(lines)).encode()


@pytest.fixture
def shop(client: TestClient) -> TestClient:
    """A client of a service with the dataset and the model shop."""
    made = upload(client, "shop", rows(0, 36), "csv", infer_columns="true", missing="keep")
    assert made["state"] == "ready", made["error"]
    assert train(client, "shop", "shop", columns={"scaling": "robust"}, text={"min_df": 1})["state"] == "succeeded"
    return client


def test_what_columns_were_taken_for_is_told(shop: TestClient) -> None:
    dataset = shop.get("/api/v1/datasets/shop").json()
    assert (dataset["kind"], dataset["n_features"]) == ("table", 4)
    columns = shop.get("/api/v1/datasets/shop/statistics").json()["columns"]
    assert [(each["name"], each["role"]) for each in columns] == [
        ("title", "text"), ("price", "number"), ("colour", "category"), ("day", "left out"),
    ]  # fmt: skip
    assert (columns[1]["missing"], columns[1]["least"], columns[1]["most"]) == (9, 0.03, 2.35)
    assert (columns[2]["levels"], columns[3]["why"]) == (3, "dates")
    page = " ".join(shop.get("/datasets/shop").text.split())
    assert '<th scope="row" class="name">day</th><td>left out: dates</td>' in page
    assert '<th scope="row" class="name">price</th><td>number</td><td class="number">9</td>' in page
    row = shop.get("/api/v1/datasets/shop/rows", params={"offset": 4, "limit": 1}).json()["rows"][0]
    assert (row["id"], row["text"]) == ("r4", f"{TITLES[1]} 4")
    assert row["record"] == {"title": f"{TITLES[1]} 4", "price": None, "colour": "green"}


def test_a_record_is_asked_by_the_names_of_its_columns(shop: TestClient) -> None:
    records = [
        {"title": f"{TITLES[1]} 1", "price": 1.2, "colour": "green", "day": "2024-03-01"},
        {"colour": "blue"},
        {"title": "a sweet round thing", "price": None, "colour": "violet"},
    ]
    asked = {"instances": [{"record": record} for record in records], "explain": 2}
    found = answers(shop, "shop", asked)["predictions"]
    assert [each["label"] for each in found] == ["leaf", "sea", "fruit"]
    named = {term["feature"] for term in found[0]["explanation"][0]["lifted_by"]}
    assert named & {"colour=green", "title: grows", "title: trees", "title: on", "title: that"}
    reported = problem(shop.post("/api/v1/models/shop/predict", json={"instances": [{"record": {"x": 1}}]}), 422)
    assert reported["errors"][0]["detail"] == "1 unknown column: 'x'; the model takes 'title', 'price', 'colour'"


def test_the_nearest_rows_are_told_by_their_columns(shop: TestClient) -> None:
    asked = {"instance": {"record": {"title": f"{TITLES[1]} 4", "colour": "green"}}, "limit": 1}
    found = shop.post("/api/v1/models/shop/nearest", json=asked).json()
    row = found["rows"][0]
    assert found["label"] == "leaf"
    assert row["record"] == {"title": row["text"], "price": row["record"]["price"], "colour": "green"}


def test_answers_to_a_dataset_have_the_ids_of_its_rows(shop: TestClient) -> None:
    job = shop.post("/api/v1/jobs", json={"kind": "predict", "model": "shop", "dataset": "shop", "format": "csv"})
    run(job.json()["id"])
    content = shop.get(f"/api/v1/jobs/{job.json()['id']}/predictions").text
    found = list(csv.DictReader(io.StringIO(content)))
    assert [row["id"] for row in found] == [f"r{k}" for k in range(36)]


def test_appended_rows_have_the_columns_of_the_dataset(shop: TestClient) -> None:
    # by themselves these would make the colours names of rows
    more = (HEADER + "s1,sea,wide and deep and wet,1,violet,2024-05-01\ns2,leaf,tree,,green,x\n").encode()
    response = shop.post("/api/v1/datasets/shop/rows", params={"format": "csv"}, content=more)
    run(response.json()["id"])
    job = shop.get(response.headers["location"]).json()
    assert job["state"] == "succeeded", job["error"]
    last = shop.get("/api/v1/datasets/shop/rows", params={"offset": 36}).json()["rows"]
    assert [(row["record"]["price"], row["record"]["colour"]) for row in last] == [(1.0, "violet"), (None, "green")]
    assert [row["id"] for row in last] == ["s1", "s2"]
    assert train(shop, "shop", "shop")["state"] == "succeeded"


def test_feedback_on_records_becomes_rows(shop: TestClient) -> None:
    body = {"instance": {"record": {"title": "an odd thing", "colour": "green", "day": "today"}}, "labels": ["leaf"]}
    assert shop.post("/api/v1/models/shop/feedback", json=body).status_code == 201
    response = shop.post("/api/v1/models/shop/feedback/rows", json={})
    run(response.json()["id"])
    job = shop.get(response.headers["location"]).json()
    assert job["state"] == "succeeded", job["error"]
    (row,) = shop.get("/api/v1/datasets/shop/rows", params={"offset": 36}).json()["rows"]
    assert row["label"] == "leaf"
    assert row["record"] == {"title": "an odd thing", "price": None, "colour": "green"}


def test_other_protocols_take_records_as_well(shop: TestClient) -> None:
    inputs = shop.get("/v2/models/shop").json()["inputs"]
    assert [(each["name"], each["datatype"]) for each in inputs] == [
        ("price", "FP64"), ("colour", "BYTES"), ("title", "BYTES"),
    ]  # fmt: skip
    body = {
        "inputs": [
            {"name": "price", "datatype": "FP64", "shape": [2], "data": [1.0, 2.0]},
            {"name": "colour", "datatype": "BYTES", "shape": [2], "data": ["green", "blue"]},
        ]
    }
    found = shop.post("/v2/models/shop/infer", json=body).json()["outputs"][0]["data"]
    assert found == ["leaf", "sea"]
    body["inputs"][0]["shape"], body["inputs"][0]["data"] = [1], [1.0]
    assert shop.post("/v2/models/shop/infer", json=body).status_code == 422
    frame = {"dataframe_split": {"columns": ["colour", "price"], "data": [["green", None], ["blue", 2.0]]}}
    path = "/mlflow/shop/invocations"
    assert shop.post(path, json=frame).json()["predictions"] == ["leaf", "sea"]
    sent = shop.post(path, content="colour,price\ngreen,\nblue,2\n", headers={"Content-Type": "text/csv"})
    assert sent.json()["predictions"] == ["leaf", "sea"]


@pytest.mark.parametrize(
    ("content", "query", "request_", "pointer"),
    [
        (rows(0, 12), {"infer_columns": "true", "missing": "keep"}, {"text": {"min_df": 1}}, None),
        (b"label,x,c\n" + b"a,1,r\nb,2,s\n" * 5, {"infer_columns": "true"}, {"text": {"min_df": 1}}, "/text"),
        (b"label,text\n" + b"a,one\nb,two\n" * 5, {}, {"columns": {"scaling": "none"}}, "/columns"),
    ],
    ids=["table", "no texts", "texts alone"],
)
def test_a_recipe_for_columns_that_are_not_there_is_refused(
    client: TestClient, content: bytes, query: dict[str, str], request_: dict[str, Any], pointer: str | None
) -> None:
    upload(client, "data", content, "csv", **query)
    body = {"dataset": "data", "model": "m", "solver": "weston_watkins", **request_}
    response = client.post("/api/v1/jobs", json=body)
    if pointer is None:
        assert response.status_code == 202
    else:
        assert problem(response, 422)["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize("kind", ["predict", "evaluate"])
def test_a_table_whose_columns_were_read_otherwise_is_refused_by_their_names(shop: TestClient, kind: str) -> None:
    few = b"label,title,price,colour,note\nleaf,a thing that grows here,1,red,x\nsea,wide and wet it is,b2,blue,\n"
    lacking = b"label,title,price\nleaf,grows,\nsea,wide,1\n"
    declared = {"text_columns": ["title", "note"], "number_columns": "price", "category_columns": "colour"}
    uploads: dict[str, tuple[bytes, dict[str, Any]]] = {
        "few": (few, {"infer_columns": "true"}),
        "lacking": (lacking, {"text_columns": "title", "number_columns": "price"}),
        "more": (few.replace(b"b2", b"2"), declared),
    }
    for name, (content, options) in uploads.items():
        made = upload(shop, name, content, "csv", missing="keep", **options)
        assert made["state"] == "ready", made["error"]
    body = {"kind": kind, "model": "shop", "part": "all"}
    for dataset, faults in (
        (
            "few",
            [
                ("price", "numbers in column 'price', which was left out (a value of its own in each row) when"),
                ("colour", "upload it with that column in category_columns"),
            ],
        ),
        ("lacking", [("colour", "categories in column 'colour', which the dataset does not have")]),
        ("more", [("note", "with that column in ignore_columns")]),
    ):
        refused = problem(shop.post("/api/v1/jobs", json={**body, "dataset": dataset}), 422, "invalid_input")
        assert [each["pointer"] for each in refused["errors"]] == ["/dataset"] * len(faults), refused
        for each, (column, said) in zip(refused["errors"], faults, strict=True):
            assert f"column '{column}'" in each["detail"]
            assert said in each["detail"]
    assert shop.post("/api/v1/jobs", json={**body, "dataset": "shop"}).status_code == 202
