from concurrent.futures import ThreadPoolExecutor

import pytest
from asking import TestClient, bearer, problem
from fastapi import FastAPI
from sqlalchemy import update
from working import SPARSE, upload

from app.store import tables
from app.store.db import sessions
from app.store.idempotency import KEPT_SECONDS

KEY = {"Idempotency-Key": "one-of-mine"}
BODY = {"dataset": "letters", "model": "letters", "solver": "weston_watkins"}


def submit(client: TestClient, body: dict[str, object] = BODY, headers: dict[str, str] = KEY):  # type: ignore[no-untyped-def]
    return client.post("/api/v1/jobs", json=body, headers=headers)


def count(client: TestClient) -> int:
    return sum(job["kind"] == "train" for job in client.get("/api/v1/jobs").json()["items"])


def test_the_same_submission_again_gets_the_same_job(client: TestClient) -> None:
    upload(client, "letters", SPARSE, "svmlight")
    first, again = submit(client), submit(client, {**BODY, "seed": 0})
    assert (first.status_code, again.status_code) == (202, 202)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json() == first.json()
    assert again.headers["location"] == first.headers["location"]
    assert count(client) == 1


def test_the_same_key_with_another_submission_is_refused(client: TestClient) -> None:
    upload(client, "letters", SPARSE, "svmlight")
    submit(client)
    problem(submit(client, {**BODY, "seed": 1}), 422, "invalid_input")
    response = client.post("/api/v1/datasets?name=b&format=svmlight", content=SPARSE, headers=KEY)
    problem(response, 422, "invalid_input")
    assert count(client) == 1


def test_another_api_key_may_use_the_same_idempotency_key(client: TestClient, secrets: dict[str, str]) -> None:
    upload(client, "letters", SPARSE, "svmlight")
    jobs = {submit(client).json()["id"], submit(client, headers=KEY | bearer(secrets["editor"])).json()["id"]}
    assert len(jobs) == 2


def test_a_refused_submission_leaves_its_key_free(client: TestClient) -> None:
    problem(submit(client), 404)
    upload(client, "letters", SPARSE, "svmlight")
    problem(submit(client, {**BODY, "params": {"C": -1}}), 422)
    response = submit(client)
    assert response.status_code == 202
    assert "idempotency-replayed" not in response.headers


def test_twenty_submissions_at_once_make_one_job(client: TestClient, app: FastAPI) -> None:
    upload(client, "letters", SPARSE, "svmlight")
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: submit(client), range(20)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == 19
    assert count(client) == 1


def test_the_same_upload_again_gets_the_same_dataset(client: TestClient) -> None:
    url = "/api/v1/datasets?name=letters&format=svmlight"
    first = client.post(url, content=SPARSE, headers=KEY)
    again = client.post(url, files={"file": ("a", SPARSE)}, headers=KEY)
    assert again.status_code == 202
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json() == first.json()
    problem(client.post(url, content=SPARSE + b"a 1:1\n", headers=KEY), 422)
    problem(client.post(url, content=SPARSE), 409, "conflict")
    assert len(client.get("/api/v1/datasets").json()["items"]) == 1


def test_what_was_deleted_since_is_not_made_again(client: TestClient) -> None:
    url = "/api/v1/datasets?name=letters&format=svmlight"
    job = client.post(url, content=SPARSE, headers=KEY).json()["job"]
    client.post(f"/api/v1/jobs/{job}/cancel")
    assert client.delete("/api/v1/datasets/letters").status_code == 204
    problem(client.post(url, content=SPARSE, headers=KEY), 409, "conflict")


def test_a_key_is_free_again_after_a_week(client: TestClient) -> None:
    upload(client, "letters", SPARSE, "svmlight")
    first = submit(client)
    with sessions()() as session:
        session.execute(update(tables.Idempotency).values(created_at=tables.Idempotency.created_at - KEPT_SECONDS - 1))
        session.commit()
    submit(client, headers={"Idempotency-Key": "another"})
    assert submit(client).json()["id"] != first.json()["id"]


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
def test_a_key_that_is_no_plain_word_is_refused(client: TestClient, key: str) -> None:
    problem(submit(client, headers={"Idempotency-Key": key}), 422)
