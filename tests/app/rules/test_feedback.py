"""Feedback: kept before it is acknowledged, listed, deleted, and made into rows of the dataset."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from asking import TestClient, bearer, problem
from sqlalchemy import update
from working import run, train, upload

from app.rules import feedback
from app.store import tables
from app.store.db import sessions

APPLE = {"text": "a yellow apple"}
SETS = b'{"text": "red apple", "label": ["fruit", "red"]}\n{"text": "deep sea", "label": ["water"]}\n' * 6


def report(client: TestClient, model: str, instance: Any, *labels: str, **more: Any) -> dict[str, Any]:
    response = client.post(f"/api/v1/models/{model}/feedback", json={"instance": instance, "labels": labels, **more})
    assert response.status_code == 201, response.text
    reported: dict[str, Any] = response.json()
    assert client.get(response.headers["location"]).json() == reported
    return reported


def append(client: TestClient, model: str, **body: str) -> dict[str, Any]:
    """The job, over."""
    response = client.post(f"/api/v1/models/{model}/feedback/rows", json=body)
    assert response.status_code == 202, response.text
    run(response.json()["id"])
    job: dict[str, Any] = client.get(response.headers["location"]).json()
    return job


def listed(client: TestClient, model: str, **query: Any) -> list[str]:
    page = client.get(f"/api/v1/models/{model}/feedback", params=query).json()
    return [each["id"] for each in page["items"]]


def rows(client: TestClient, dataset: str, offset: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/v1/datasets/{dataset}/rows?offset={offset}").json()["rows"]
    return found


def test_an_answer_has_an_id_by_which_feedback_names_it(models: TestClient) -> None:
    response = models.post("/api/v1/models/foods/predict", json={"instances": [APPLE]}, headers={"X-Request-ID": "r1"})
    answer = response.json()
    assert answer["id"] == response.headers["x-request-id"] == "r1"
    reported = report(models, "foods", APPLE, "fruit", version=answer["version"], answer="r1/0", note="ripe")
    assert (reported["model"], reported["version"], reported["key"]) == ("foods", 1, "the-admin")
    assert (reported["answer"], reported["note"], reported["job"]) == ("r1/0", "ripe", None)
    assert (reported["instance"], reported["labels"]) == (APPLE, ["fruit"])


def test_feedback_becomes_rows_of_the_next_version_which_models_learn(models: TestClient) -> None:
    first, second = report(models, "foods", APPLE, "fruit"), report(models, "foods", {"text": "a new bird"}, "bird")
    assert listed(models, "foods") == [second["id"], first["id"]]
    job = append(models, "foods")
    assert (job["state"], job["result"]["dataset_version"], job["request"]["feedback"]) == ("succeeded", 2, 2)
    assert [(row["label"], row["text"]) for row in rows(models, "foods", 24)] == [
        ("fruit", "a yellow apple"), ("bird", "a new bird"),
    ]  # fmt: skip
    assert listed(models, "foods", waiting=True) == []
    assert listed(models, "foods", waiting=False) == [second["id"], first["id"]]
    assert models.get(f"/api/v1/models/foods/feedback/{first['id']}").json()["job"] == job["id"]
    problem(models.post("/api/v1/models/foods/feedback/rows", json={}), 409, "conflict")
    assert train(models, "foods", "foods")["state"] == "succeeded"
    assert models.get("/api/v1/models/foods").json()["latest"]["n_classes"] == 4


@pytest.mark.parametrize(
    ("model", "instance", "stored"),
    [
        ("shapes", {"features": {"width": 4, "height": 0}}, {"features": {"width": 4.0}}),
        ("shapes", [4, 2.5], {"features": {"width": 4.0, "height": 2.5}}),
        ("shapes", {"indices": [1], "values": [3]}, {"features": {"height": 3.0}}),
        ("letters", {"indices": [4, 1], "values": [2, 1]}, {"indices": [1, 4], "values": [1.0, 2.0]}),
        ("letters", [0, 1, 0, 0, 2, 0], {"indices": [1, 4], "values": [1.0, 2.0]}),
    ],
    ids=["named", "list with names", "indices with names", "indices", "list"],
)
def test_every_form_of_an_instance_becomes_a_row(
    models: TestClient, model: str, instance: Any, stored: dict[str, Any]
) -> None:
    label = "flat" if model == "shapes" else "a"
    assert report(models, model, instance, label)["instance"] == stored
    before = models.get(f"/api/v1/datasets/{model}").json()["n_rows"]
    assert append(models, model, part="test")["state"] == "succeeded"
    (row,) = rows(models, model, before)
    assert (row["label"], row["split"]) == (label, "test")
    assert [value for _, value in row["features"]] == list(stored.get("values", stored.get("features", {}).values()))


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"instance": {"features": {"x": 1}}}, "/instance"),
        ({"instance": "a text"}, "/instance"),
        ({"instance": {"text": "x", "more": 1}}, "/instance"),
        ({"labels": []}, "/labels"),
        ({"labels": [" "]}, "/labels/0"),
        ({"labels": ["a\u0007"]}, "/labels/0"),
        ({"labels": ["fruit", "water"]}, "/labels"),
        ({"labels": ["a" * 1001]}, "/labels/0"),
        ({"version": 0}, "/version"),
        ({"answer": "two words"}, "/answer"),
        ({"note": "a\u0000"}, "/note"),
        ({"note": "n" * 2001}, "/note"),
        ({"label": "fruit"}, "/label"),
    ],
    ids=str,
)
def test_feedback_that_does_not_fit_the_model_is_refused(
    models: TestClient, change: dict[str, Any], pointer: str
) -> None:
    body = {"instance": APPLE, "labels": ["fruit"], **change}
    document = problem(models.post("/api/v1/models/foods/feedback", json=body), 422, "invalid_input")
    assert document["errors"][0]["pointer"] == pointer
    assert listed(models, "foods") == []


@pytest.mark.parametrize(
    ("content", "empty"),
    [
        ("", True),
        (" \n", True),
        ({"title": "", "body": " "}, True),
        ({"colour": None}, True),
        ({"colour": None, "weight": 0}, False),
        ({"title": "", "body": "x"}, False),
        ("x", False),
    ],
    ids=str,
)
def test_texts_and_records_without_content_are_empty(content: Any, empty: bool) -> None:
    assert feedback._is_empty(content) is empty


@pytest.mark.parametrize("text", ["", " \n"])
def test_feedback_without_content_is_refused(models: TestClient, text: str) -> None:
    body = {"instance": {"text": text}, "labels": ["fruit"]}
    document = problem(models.post("/api/v1/models/foods/feedback", json=body), 422, "invalid_input")
    (error,) = document["errors"]
    assert (error["pointer"], error["detail"].partition(":")[0]) == ("/instance", "the instance is empty")
    assert listed(models, "foods") == []


def test_feedback_to_a_version_that_is_not_there_is_refused(models: TestClient) -> None:
    body = {"instance": APPLE, "labels": ["fruit"], "version": 7}
    problem(models.post("/api/v1/models/foods/feedback", json=body), 404, "not_found")
    problem(models.get("/api/v1/models/foods/feedback/1"), 404, "not_found")
    reported = report(models, "foods", APPLE, "fruit")
    problem(models.get(f"/api/v1/models/letters/feedback/{reported['id']}"), 404, "not_found")


def test_what_does_not_fit_the_dataset_is_left_waiting(models: TestClient) -> None:
    reported = report(models, "letters", [0, 1, 0, 0, 2, 0], "a")
    document = problem(models.post("/api/v1/models/letters/feedback/rows", json={"dataset": "foods"}), 409)
    assert "none of the 1" in document["detail"]
    assert listed(models, "letters", waiting=True) == [reported["id"]]


def test_sets_of_labels_become_sets(models: TestClient) -> None:
    upload(models, "sets", SETS, "jsonl")
    report(models, "foods", APPLE, "fruit")
    assert append(models, "foods", dataset="sets")["state"] == "succeeded"
    assert rows(models, "sets", 12)[0]["labels"] == ["fruit"]


def test_a_job_that_failed_gives_back_what_it_took_and_never_appends_it_twice(models: TestClient) -> None:
    reported = report(models, "foods", APPLE, "fruit")
    job = models.post("/api/v1/models/foods/feedback/rows", json={}).json()["id"]
    assert models.post(f"/api/v1/jobs/{job}/cancel").json()["state"] == "cancelled"
    assert listed(models, "foods", waiting=True) == [reported["id"]]
    assert append(models, "foods")["state"] == "succeeded"
    models.post(f"/api/v1/jobs/{job}/retry")
    run(job)
    late = models.get(f"/api/v1/jobs/{job}").json()
    assert (late["state"], late["error"]["code"]) == ("failed", "conflict")
    assert models.get("/api/v1/datasets/foods").json()["n_rows"] == 25


def test_feedback_is_deleted_by_whoever_told_it_but_not_while_a_job_takes_it(
    models: TestClient, secrets: dict[str, str]
) -> None:
    reported = report(models, "foods", APPLE, "fruit")
    url = f"/api/v1/models/foods/feedback/{reported['id']}"
    problem(models.delete(url, headers=bearer(secrets["editor"])), 403, "forbidden")
    job = models.post("/api/v1/models/foods/feedback/rows", json={}).json()["id"]
    problem(models.delete(url), 409, "conflict")
    run(job)
    assert models.delete(url).status_code == 204
    problem(models.get(url), 404, "not_found")
    assert models.get("/api/v1/datasets/foods").json()["n_rows"] == 25


def test_pages_go_on_where_the_one_before_ended(models: TestClient) -> None:
    reported = [report(models, "foods", APPLE, "fruit")["id"] for _ in range(3)]
    first = models.get("/api/v1/models/foods/feedback?page_size=2").json()
    rest = models.get(f"/api/v1/models/foods/feedback?page_token={first['next_page_token']}").json()
    assert [each["id"] for page in (first, rest) for each in page["items"]] == reported[::-1]


def test_the_same_report_again_is_kept_once(models: TestClient) -> None:
    headers = {"Idempotency-Key": "mine"}
    body = {"instance": APPLE, "labels": ["fruit"]}
    first, again = (models.post("/api/v1/models/foods/feedback", json=body, headers=headers) for _ in range(2))
    assert (first.json(), again.headers["idempotency-replayed"]) == (again.json(), "true")
    assert len(listed(models, "foods")) == 1
    problem(models.post("/api/v1/models/foods/feedback", json=body | {"note": "n"}, headers=headers), 422)


def test_feedback_is_audited_without_what_it_says_and_counts_as_stored(models: TestClient) -> None:
    reported = report(models, "foods", {"text": "a yellow apple of mine"}, "fruit")
    (entry,) = models.get(f"/api/v1/audit?thing={reported['id']}").json()["items"]
    assert (entry["what"], entry["key"], entry["before"]) == ("feedback", "the-admin", None)
    assert "apple" not in str(entry)
    before = models.get("/api/v1/usage").json()["stored_bytes"]
    report(models, "foods", {"text": "x" * 1000}, "fruit")
    assert 1000 < models.get("/api/v1/usage").json()["stored_bytes"] - before < 1100


def test_a_full_workspace_takes_no_feedback(models: TestClient, configure: Callable[..., None]) -> None:
    configure(max_stored_bytes=1)
    body = {"instance": APPLE, "labels": ["fruit"]}
    problem(models.post("/api/v1/models/foods/feedback", json=body), 507, "storage_full")


def test_feedback_goes_with_its_model(models: TestClient) -> None:
    report(models, "foods", APPLE, "fruit")
    with sessions()() as session:
        session.query(tables.Model).filter_by(name="foods").delete()
        session.commit()
        assert session.query(tables.Feedback).count() == 0


def test_two_requests_for_rows_do_not_take_the_same(models: TestClient) -> None:
    reported = report(models, "foods", APPLE, "fruit")
    job = models.post("/api/v1/models/foods/feedback/rows", json={})
    assert re.fullmatch("[0-9a-f]{32}", job.json()["id"])
    problem(models.post("/api/v1/models/foods/feedback/rows", json={}), 409, "conflict")
    with sessions()() as session:  # as where the job's row is collected
        session.execute(update(tables.Feedback).values(job_id="0" * 32))
        session.commit()
    assert listed(models, "foods", waiting=True) == [reported["id"]]
