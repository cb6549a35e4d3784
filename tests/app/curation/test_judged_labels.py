"""Probably wrong labels of a dataset: found out of fold, with evidence, and corrected."""

from typing import Any

import pytest
from asking import TestClient, problem
from working import run, train, upload

TITLES = {"0110": "miller", "0120": "baker", "0210": "driver", "0220": "pilot"}
WORDS = ("flour", "truck", "bread", "plane", "head", "young", "old", "senior", "first", "second")
FLIPPED = {3: "0220", 17: "0110"}


@pytest.fixture
def jobs(client: TestClient) -> None:
    """A dataset of forty titles, of which two have a wrong label, and one more label that has a single row."""
    rows = [(f"{title} {word}", label) for label, title in TITLES.items() for word in WORDS]
    rows = [(text, FLIPPED.get(row, label)) for row, (text, label) in enumerate(rows)] + [("quite unknown", "0900")]
    lines = "".join(f'{{"text": "{text}", "label": "{label}"}}\n' for text, label in rows)
    assert upload(client, "jobs", lines.encode(), "jsonl")["state"] == "ready"


def judged(client: TestClient, **request: Any) -> dict[str, Any]:
    """The job, over, and the list."""
    response = client.post("/api/v1/jobs", json={"kind": "wrong_labels"} | request)
    assert response.status_code == 202, response.text
    run(response.json()["id"])
    job = client.get(response.headers["location"]).json()
    assert job["state"] == "succeeded", job["error"]
    found: dict[str, Any] = client.get(f"/api/v1/jobs/{job['id']}/wrong-labels", params={"limit": 200}).json()
    assert found["n_rows"] == len(found["rows"]) == job["result"]["n_rows"]
    return found


def test_flipped_labels_come_first_with_evidence_and_are_corrected(client: TestClient, jobs: None) -> None:
    assert train(client, "jobs", "m", solver="crammer_singer", test_fraction=0.0)["state"] == "succeeded"
    found = judged(client, model="m")
    assert found["n_judged"] == 40
    assert {row["row"]: row["label"] for row in found["rows"][:2]} == FLIPPED
    first = found["rows"][0]
    assert first["suggested"] == {3: "0110", 17: "0120"}[first["row"]]
    assert first["probability"] > first["probability_of_label"]
    assert found["n_confident"] >= 1
    assert len(first["nearest"]) == 3
    assert first["nearest"][0]["similarity"] >= first["nearest"][1]["similarity"] > 0
    assert first["terms"][0]["feature"] in TITLES.values()
    assert first["text"].split()[0] in TITLES.values()
    lines = [{"row": row["row"], "labels": [row["suggested"]], "before": [row["label"]]} for row in found["rows"][:2]]
    response = client.post("/api/v1/datasets/jobs/corrections", json={"corrections": lines})
    assert response.status_code == 202, response.text
    run(response.json()["id"])
    again = judged(client, dataset="jobs", solver="crammer_singer")
    assert again["dataset_version"] == 2
    assert not {row["row"] for row in again["rows"]} & set(FLIPPED)


def test_requests_that_cannot_be_judged_are_refused(client: TestClient, jobs: None) -> None:
    for request in ({}, {"model": "m", "dataset": "jobs"}, {"dataset": "jobs", "version": 1}):
        problem(client.post("/api/v1/jobs", json={"kind": "wrong_labels"} | request), 422)
    lines = b"".join(b'{"text": "%s", "label": ["%s"]}\n' % (w, w) for w in (b"red", b"green", b"blue") * 5)
    assert upload(client, "sets", lines, "jsonl")["state"] == "ready"
    fault = problem(client.post("/api/v1/jobs", json={"kind": "wrong_labels", "dataset": "sets"}), 422)
    assert "sets of labels" in str(fault["errors"])
