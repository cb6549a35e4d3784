"""Files without labels are uploaded to be answered, and for nothing else."""

from typing import Any

import orjson
from asking import TestClient, problem
from working import run, upload

ROWS = b'{"text": "a leek", "id": "r1"}\n{"text": "the sea", "id": "r2"}\n'


def test_rows_without_labels_are_answered_and_no_model_is_trained_or_measured_on_them(models: TestClient) -> None:
    dataset = upload(models, "new", ROWS, "jsonl", unlabelled="true")
    assert (dataset["state"], dataset["n_rows"], dataset["n_classes"]) == ("ready", 2, 0)
    job = models.post("/api/v1/jobs", json={"kind": "predict", "model": "foods", "dataset": "new", "format": "jsonl"})
    run(job.json()["id"])
    answers = models.get(f"/api/v1/jobs/{job.json()['id']}/predictions").content.splitlines()
    found: list[Any] = [orjson.loads(line) for line in answers]
    assert [(row["id"], row["label"]) for row in found] == [("r1", "vegetable"), ("r2", "water")]
    training = {"model": "m", "dataset": "new", "solver": "auto"}
    refused = problem(models.post("/api/v1/jobs", json=training), 422)
    assert refused["errors"][0]["detail"].startswith("no row has a label: ")
    measuring = {"kind": "evaluate", "model": "foods", "dataset": "new"}
    refused = problem(models.post("/api/v1/jobs", json=measuring), 422)
    assert refused["errors"] == [{"pointer": "/dataset", "detail": "no row has a label"}]
    assert models.get("/api/v1/datasets/new/rows").json()["rows"][0]["text"] == "a leek"
