"""Suggested rows: chosen by a job, listed with reasons and alternatives, and opened as a review queue."""

from typing import Any

import numpy as np
import pytest
from asking import TestClient, problem
from working import run, train, upload

from solvers.selection.next_rows import margins_of_sets

TITLES = {"0110": "miller", "0120": "baker", "0210": "driver", "0220": "pilot"}
WORDS = ("flour", "truck", "bread", "plane", "head", "young", "old", "senior", "first", "second")
SURE = [f"{title} {word}" for title in TITLES.values() for word in WORDS]
UNSURE = ["miller baker", "driver pilot", "quite unknown"]


@pytest.fixture
def model(client: TestClient) -> None:
    """A model of four titles, and a dataset without labels: titles that it knows, and three that it does not."""
    lines = [f'{{"text": "{title} {word}", "label": "{label}"}}\n' for label, title in TITLES.items() for word in WORDS]
    assert upload(client, "jobs", "".join(lines).encode(), "jsonl")["state"] == "ready"
    assert train(client, "jobs", "m")["state"] == "succeeded"
    new = "".join(f'{{"text": "{text}"}}\n' for text in [*SURE, *UNSURE])
    assert upload(client, "new", new.encode(), "jsonl", unlabelled="true")["state"] == "ready"


def suggested(client: TestClient, **more: Any) -> dict[str, Any]:
    """The job, over."""
    response = client.post("/api/v1/jobs", json={"kind": "suggest_rows", "model": "m", "dataset": "new"} | more)
    assert response.status_code == 202, response.text
    run(response.json()["id"])
    job: dict[str, Any] = client.get(response.headers["location"]).json()
    return job


def rows_of(client: TestClient, job: dict[str, Any]) -> list[dict[str, Any]]:
    assert job["state"] == "succeeded", job["error"]
    found = client.get(f"/api/v1/jobs/{job['id']}/suggested-rows", params={"limit": 200}).json()
    assert found["n_rows"] == len(found["rows"]) == job["result"]["n_rows"]
    rows: list[dict[str, Any]] = found["rows"]
    return rows


@pytest.mark.parametrize("diversity", ["clusters", "k_center", "none"])
def test_the_least_sure_rows_of_unlabelled_ones_are_suggested_with_alternatives(
    client: TestClient, model: None, diversity: str
) -> None:
    rows = rows_of(client, suggested(client, budget=3, diversity=diversity, few_rows_share=0.0))
    assert len(rows) == 3
    assert set(UNSURE) & {row["text"] for row in rows}
    if diversity == "none":
        assert {row["text"] for row in rows} == set(UNSURE)
    assert all(row["labels"] == [] and row["reason"] == "least_sure" for row in rows)
    assert [row["margin"] for row in rows] == sorted(row["margin"] for row in rows)
    assert all(len(row["alternatives"]) == 4 for row in rows)
    best = next(row for row in rows if row["text"] in UNSURE)["alternatives"]
    assert best[0]["score"] >= best[1]["score"]


def test_the_same_seed_suggests_the_same_rows(client: TestClient, model: None) -> None:
    first, second = (rows_of(client, suggested(client, budget=10, seed=5)) for _ in range(2))
    assert first == second


def test_a_share_of_the_budget_is_for_labels_with_few_rows(client: TestClient, model: None) -> None:
    rows = rows_of(client, suggested(client, budget=8, few_rows_share=0.5, few_rows=11))
    assert [row["reason"] for row in rows] == ["few_rows"] * 4 + ["least_sure"] * 4
    assert {row["alternatives"][0]["label"] for row in rows[:4]} == set(TITLES)
    assert len({row["row"] for row in rows}) == 8


def test_suggested_rows_become_a_review_queue_and_decided_ones_are_not_suggested_again(
    client: TestClient, model: None
) -> None:
    job = suggested(client, budget=3, diversity="none")
    before = rows_of(client, job)
    review = client.post("/api/v1/reviews", json={"name": "next", "job": job["id"]})
    assert review.status_code == 201, review.text
    assert review.json()["n_rows"] == 3
    claimed = client.post("/api/v1/reviews/next/claim", json={"count": 3}).json()["rows"]
    assert [row["row"] for row in claimed] == [row["row"] for row in before]
    assert [row["alternatives"][0]["label"] for row in claimed] == [row["alternatives"][0]["label"] for row in before]
    decided = client.put(f"/api/v1/reviews/next/decisions/{claimed[0]['row']}", json={"label": "0110"})
    assert decided.status_code == 200, decided.text
    after = {row["row"] for row in rows_of(client, suggested(client, budget=43, diversity="none"))}
    assert after == set(range(43)) - {claimed[0]["row"]}
    again = rows_of(client, suggested(client, budget=43, diversity="none", skip_decided=False))
    assert {row["row"] for row in again} == set(range(43))


def test_rows_of_a_job_of_another_kind_and_of_an_unfinished_one_are_refused(client: TestClient, model: None) -> None:
    [training] = client.get("/api/v1/jobs", params={"kind": "train"}).json()["items"]
    fault = problem(client.get(f"/api/v1/jobs/{training['id']}/suggested-rows"), 404)
    assert fault["detail"] == "the job suggests no rows"
    queued = client.post("/api/v1/jobs", json={"kind": "suggest_rows", "model": "m", "dataset": "new"}).json()
    problem(client.get(f"/api/v1/jobs/{queued['id']}/suggested-rows"), 409)
    fault = problem(
        client.post("/api/v1/jobs", json={"kind": "suggest_rows", "model": "m", "dataset": "new", "part": "test"}), 422
    )
    assert "/part" in str(fault["errors"])


@pytest.fixture
def sets(client: TestClient) -> None:
    """A model of sets of labels, and rows without labels: some as it has learnt, some with words of several labels."""
    words = {"red": "ruby rose brick", "green": "leaf moss lime", "blue": "sea sky ink"}
    lines = []
    for label, known in words.items():
        for word in known.split():
            lines += [f'{{"text": "{word} {label}", "label": ["{label}"]}}\n'] * 4
    lines += ['{"text": "ruby red leaf green", "label": ["green", "red"]}\n'] * 4
    assert upload(client, "sets", "".join(lines).encode(), "jsonl")["state"] == "ready"
    assert train(client, "sets", "m", solver="node_svm")["state"] == "succeeded"
    texts = [f"{word} {label}" for label, known in words.items() for word in known.split()] + UNSURE_SETS
    new = "".join(f'{{"text": "{text}"}}\n' for text in texts)
    assert upload(client, "new", new.encode(), "jsonl", unlabelled="true")["state"] == "ready"


UNSURE_SETS = ["quite unknown", "ruby sky moss brick", "sea"]


@pytest.mark.parametrize("diversity", ["clusters", "k_center", "none"])
def test_rows_with_sets_are_suggested_by_their_least_sure_label(client: TestClient, sets: None, diversity: str) -> None:
    rows = rows_of(client, suggested(client, budget=4, diversity=diversity))
    assert len({row["row"] for row in rows}) == 4
    assert [row["margin"] for row in rows] == sorted(row["margin"] for row in rows)
    assert set(UNSURE_SETS) & {row["text"] for row in rows}
    every = rows_of(client, suggested(client, budget=12, diversity="none"))
    assert len(every) == 12
    for row in every:
        scores = [each["score"] for each in row["alternatives"]]
        assert all((each["score"] > 0) == each["predicted"] for each in row["alternatives"])
        assert row["margin"] == pytest.approx(min(abs(score) for score in scores), rel=1e-5)
    if diversity == "none":
        assert rows == every[:4]


def test_suggested_rows_with_sets_become_a_review_queue_of_sets(client: TestClient, sets: None) -> None:
    job = suggested(client, budget=3, few_rows_share=0.34, few_rows=100)
    before = rows_of(client, job)
    assert [row["reason"] for row in before] == ["few_rows", "least_sure", "least_sure"]
    review = client.post("/api/v1/reviews", json={"name": "next", "job": job["id"]})
    assert review.status_code == 201, review.text
    claimed = client.post("/api/v1/reviews/next/claim", json={"count": 3}).json()["rows"]
    assert [row["row"] for row in claimed] == [row["row"] for row in before]
    shown = [[(each["label"], each["predicted"]) for each in row["alternatives"]] for row in before]
    assert [[(each["label"], each["predicted"]) for each in row["alternatives"]] for row in claimed] == shown
    decided = client.put(f"/api/v1/reviews/next/decisions/{claimed[0]['row']}", json={"labels": ["red", "blue"]})
    assert decided.status_code == 200, decided.text
    again = {row["row"] for row in rows_of(client, suggested(client, budget=12))}
    assert again == set(range(12)) - {claimed[0]["row"]}


def test_the_least_sure_label_is_the_one_nearest_to_the_decision() -> None:
    above = np.array([[2.0, -0.5, 0.7], [-3.0, -0.1, -2.0], [0.2, -4.0, 1.0], [-1.0, -1.0, -1.0]])
    values = above.copy()
    values[1, 1] = values[2, 0] = -np.inf  # never an answer; of these, the set has the second
    values[3] = -np.inf
    np.testing.assert_allclose(margins_of_sets(above, values), [0.5, 2.0, 0.2, np.inf])
