"""Clerks predict files, decide review rows and send feedback; they train, promote and delete nothing."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asking import TestClient, bearer, problem
from fastapi import FastAPI
from working import SPARSE, TEXTS, run, train, upload

from app.store import db, tables

LETTER = {"indices": [1, 4], "values": [1.0, 0.5]}
PREDICT = {"kind": "predict", "model": "foods"}


@pytest.fixture
def clerk(app: FastAPI, models: TestClient, secrets: dict[str, str]) -> Iterator[TestClient]:
    with TestClient(app, headers=bearer(secrets["clerk"])) as client:
        yield client


def test_a_clerk_predicts_a_file(clerk: TestClient) -> None:
    upload(clerk, "in", TEXTS, "jsonl")
    job = clerk.post("/api/v1/jobs", json=PREDICT | {"dataset": "in"})
    assert job.status_code == 202, job.text
    run(job.json()["id"])
    assert clerk.get(f"/api/v1/jobs/{job.json()['id']}/predictions").status_code == 200
    review = {"name": "unsure", "job": job.json()["id"]}
    assert "min_precision or threshold" in str(problem(clerk.post("/api/v1/reviews", json=review), 422)["errors"])
    assert "Code a file" in clerk.get("/models/foods").text


def test_a_clerk_decides_rows_and_neither_appends_nor_deletes_them(clerk: TestClient) -> None:
    given: Any = {"id": "5" * 32, "name": "unsure", "job_id": "0" * 32, "model": "letters", "version": 1}
    given |= {"dataset_version": 1, "sure_share": 0.0, "seed": 0, "opinions": 1, "created_at": 0.0}
    with db.sessions()() as session:
        session.add(tables.Review(**given))
        session.flush()
        row: Any = {"row": 0, "place": 0, "alternatives": [], "sure": False, "state": "open", "revision": 1}
        session.add(tables.ReviewRow(review_id="5" * 32, **row))
        session.commit()
    assert len(clerk.post("/api/v1/reviews/unsure/claim", json={}).json()["rows"]) == 1
    assert clerk.put("/api/v1/reviews/unsure/decisions/0", json={"label": "a"}).status_code == 200
    assert clerk.delete("/api/v1/reviews/unsure/decisions/0").status_code == 200
    problem(clerk.post("/api/v1/reviews/unsure/append", json={}), 403, "forbidden")
    problem(clerk.delete("/api/v1/reviews/unsure"), 403, "forbidden")


def test_a_clerk_sends_feedback_and_cannot_append_or_delete_it(clerk: TestClient) -> None:
    reported = clerk.post("/api/v1/models/letters/feedback", json={"instance": LETTER, "labels": ["a"]})
    assert reported.status_code == 201, reported.text
    problem(clerk.post("/api/v1/models/letters/feedback/rows", json={}), 403, "forbidden")
    problem(clerk.delete(f"/api/v1/models/letters/feedback/{reported.json()['id']}"), 403, "forbidden")


@pytest.mark.parametrize(
    "request_",
    [
        {"dataset": "letters", "model": "letters"},
        {"kind": "tune", "dataset": "letters", "model": "letters", "space": [{"solver": "spoc"}]},
        {"kind": "evaluate", "dataset": "letters", "model": "letters"},
        {"kind": "compress", "model": "letters", "version": 1, "float16": True},
        {"kind": "adopt", "model": "letters", "hierarchy": "tree"},
    ],
    ids=lambda request: request.get("kind", "train"),
)
def test_a_clerk_submits_predictions_alone(clerk: TestClient, request_: dict[str, object]) -> None:
    before = len(clerk.get("/api/v1/jobs").json()["items"])
    assert "kind predict" in problem(clerk.post("/api/v1/jobs", json=request_), 403, "forbidden")["detail"]
    assert len(clerk.get("/api/v1/jobs").json()["items"]) == before


def test_a_clerk_changes_only_jobs_of_its_own(models: TestClient, clerk: TestClient) -> None:
    theirs = models.post("/api/v1/jobs", json=PREDICT | {"dataset": "foods"}).json()["id"]
    training = models.post("/api/v1/jobs", json={"dataset": "letters", "model": "m"}).json()["id"]
    own = clerk.post("/api/v1/jobs", json=PREDICT | {"dataset": "foods"}).json()["id"]
    asks: list[Callable[[str], object]] = [
        lambda id: clerk.post(f"/api/v1/jobs/{id}/cancel"),
        lambda id: clerk.post(f"/api/v1/jobs/{id}/retry"),
        lambda id: clerk.patch(f"/api/v1/jobs/{id}", json={"tags": {"a": "b"}}),
    ]
    for ask in asks:
        for id in (theirs, training):
            problem(ask(id), 403, "forbidden")  # type: ignore[arg-type]
        assert ask(own).status_code == 200  # type: ignore[attr-defined]
    assert models.get(f"/api/v1/jobs/{theirs}").json()["state"] == "queued"


def test_a_clerk_deletes_only_its_own_datasets_that_no_model_came_from(models: TestClient, clerk: TestClient) -> None:
    upload(clerk, "in", SPARSE, "svmlight")
    upload(clerk, "trained-on", SPARSE, "svmlight")
    train(models, "trained-on", "m")
    problem(clerk.delete("/api/v1/datasets/letters?force=true"), 403, "forbidden")
    problem(clerk.delete("/api/v1/datasets/trained-on?force=true"), 409, "conflict")
    assert clerk.delete("/api/v1/datasets/in?force=true").status_code == 204


def test_pages_offer_a_clerk_what_it_may_do(models: TestClient, clerk: TestClient) -> None:
    assert 'id="upload"' in clerk.get("/datasets").text
    assert "data-corrects" in clerk.get("/playground").text
    own = clerk.post("/api/v1/jobs", json=PREDICT | {"dataset": "foods"}).json()["id"]
    theirs = models.post("/api/v1/jobs", json=PREDICT | {"dataset": "foods"}).json()["id"]
    assert [f"/jobs/{id}/cancel" in clerk.get(f"/jobs/{id}").text for id in (own, theirs)] == [True, False]
    assert "new-alias" not in clerk.get("/models/letters").text
