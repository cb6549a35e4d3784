"""A training ends when the answers to the rows of another dataset are certain."""

import json
from typing import Any

import numpy as np
import pytest
from asking import TestClient, problem
from working import TABLE, TEXTS, run, train, upload

CLEAR, EMPTY = {"indices": [1, 4], "values": [1.0, 0.5]}, {"indices": [], "values": []}


def rows(client: TestClient, name: str, *given: dict[str, Any]) -> dict[str, Any]:
    """An unlabelled dataset of sparse rows."""
    content = "".join(json.dumps(each) + "\n" for each in given).encode()
    made = upload(client, name, content, "jsonl", unlabelled="true")
    assert made["state"] == "ready", made
    return made


def noisy() -> bytes:
    """Sparse rows of three classes that no weights separate: each class has two features of its own, and noise."""
    rng, lines = np.random.default_rng(0), []
    for y in range(90):
        x = rng.normal(size=6)
        x[2 * (y % 3) : 2 * (y % 3) + 2] += 1.0
        lines.append("abc"[y % 3] + " " + " ".join(f"{at}:{value:.3f}" for at, value in enumerate(x, 1)) + "\n")
    return "".join(lines).encode()


def version_of(client: TestClient, **request: Any) -> dict[str, Any]:
    """The version that a training on noisy rows with this request makes."""
    job = train(client, "noisy", "noisy", until_certain=1.0, **request)
    assert job["state"] == "succeeded", job
    version: dict[str, Any] = client.get(f"/api/v1/models/noisy/versions/{job['result']['version']}").json()
    return version


@pytest.mark.parametrize("held_out", [0.0, 0.25])
def test_the_rows_end_the_training_of_the_model_that_is_served(models: TestClient, held_out: float) -> None:
    upload(models, "noisy", noisy(), "svmlight")
    rows(models, "clear", {"indices": [0, 1], "values": [1.0, 1.0]})
    id = rows(models, "empty", EMPTY)["id"]
    early = version_of(models, certain_rows="clear", test_fraction=held_out)
    late = version_of(models, certain_rows="empty@1", test_fraction=held_out)
    assert late["request"]["certain_rows"] == f"{id}@1"
    assert early["report"]["certain_rows"] == 1.0
    assert late["report"]["certain_rows"] == 0.0
    assert early["gap"] > 1e-4 >= late["gap"]
    assert early["epochs"] < late["epochs"]
    page = models.get(f"/models/noisy/versions/{early['version']}").text
    assert "Certain answers to other rows" in page


def test_texts_are_read_by_the_recipe_of_the_training(models: TestClient) -> None:
    text = json.dumps({"text": "Green, LONG leek!"}).encode() + b"\n"
    assert upload(models, "august", text, "jsonl", unlabelled="true")["state"] == "ready"
    job = train(models, "foods", "foods", until_certain=1.0, certain_rows="august")
    assert job["state"] == "succeeded", job
    version = models.get(f"/api/v1/models/foods/versions/{job['result']['version']}").json()
    assert version["report"]["certain_rows"] == 1.0
    assert models.delete("/api/v1/datasets/august").status_code == 204
    judged = models.post("/api/v1/jobs", json={"kind": "wrong_labels", "model": "foods"})
    assert judged.status_code == 202, judged.text


def test_rows_that_do_not_fit_are_refused(models: TestClient) -> None:
    upload(models, "texts", TEXTS, "jsonl")
    upload(models, "table", TABLE, "csv")
    rows(models, "wide", {"indices": [0, 400], "values": [1.0, 1.0]})
    given = {"dataset": "letters", "model": "m", "solver": "weston_watkins", "until_certain": 0.9}

    def faults(status: int, **more: Any) -> list[str]:
        document = problem(models.post("/api/v1/jobs", json=given | more), status)
        return [f"{fault.get('pointer')}: {fault['detail']}" for fault in document.get("errors", [])]

    assert faults(422, certain_rows="texts") == ["/certain_rows: the model reads numbers, and the dataset holds texts"]
    assert faults(422, certain_rows="letters@2") == ["/certain_rows: the dataset has the versions 1 to 1"]
    (fault,) = faults(422, certain_rows="wide", until_certain=None)
    assert fault.startswith("/certain_rows: give until_certain, too")
    (fault,) = faults(422, certain_rows="wide", shards=2)
    assert fault == "/until_certain: give shards or until_certain, not both"
    (fault,) = faults(422, certain_rows="no such")
    assert fault.startswith("/certain_rows: ")
    assert faults(404, certain_rows="missing") == []
    job = train(models, "letters", "letters", until_certain=0.9, certain_rows="wide")
    assert job["state"] == "failed"
    assert "certain_rows: the dataset does not fit the model" in job["error"]["detail"]


def test_rows_that_were_deleted_before_the_training_fail_it(models: TestClient) -> None:
    rows(models, "clear", CLEAR)
    given = {"dataset": "letters", "model": "m", "solver": "weston_watkins", "until_certain": 0.9}
    queued = models.post("/api/v1/jobs", json=given | {"certain_rows": "clear"}).json()
    assert models.delete("/api/v1/datasets/clear").status_code == 204
    run(queued["id"])
    job = models.get(f"/api/v1/jobs/{queued['id']}").json()
    assert job["state"] == "failed"
    assert job["error"]["detail"] == "the dataset of certain_rows was deleted"
