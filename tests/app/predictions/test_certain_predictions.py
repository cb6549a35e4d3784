"""A prediction says whether its label is that of the exact optimum, and a training ends when enough labels are."""

from typing import Any

import pytest
from asking import TestClient, problem
from working import train

URL = "/api/v1/models/letters/predict"
CLEAR, EMPTY = {"indices": [1, 4], "values": [1.0, 0.5]}, {"indices": [], "values": []}


def certain(client: TestClient, *instances: Any, **more: Any) -> list[Any]:
    answer = client.post(URL, json={"instances": list(instances), **more})
    assert answer.status_code == 200, answer.text
    return [each.get("certain") for each in answer.json()["predictions"]]


def test_training_ends_when_answers_are_certain_and_each_answer_says_it_where_asked(models: TestClient) -> None:
    job = train(models, "letters", "letters", until_certain=0.9, keep_duals=True)
    assert job["state"] == "succeeded", job
    assert job["request"]["params"]["tol"] == 1e-4
    version = models.get(f"/api/v1/models/letters/versions/{job['result']['version']}").json()
    assert version["converged"]
    assert version["metrics"]["test"]["certain"] >= 0.9
    assert certain(models, CLEAR, EMPTY, certain=True) == [True, False]
    assert certain(models, EMPTY, certain=True, include=["a"]) == [True]
    assert certain(models, CLEAR) == [None]


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"solver": "centroids"}, "/until_certain"),
        ({"shards": 2}, "/until_certain"),
        ({"path": [0.1, 1.0]}, "/until_certain"),
        ({"until_certain": 0.0}, "/until_certain"),
    ],
)
def test_only_one_gap_in_one_worker_ends_by_answers(models: TestClient, more: dict[str, Any], pointer: str) -> None:
    given = {"dataset": "letters", "model": "m", "solver": "weston_watkins", "until_certain": 0.9} | more
    document = problem(models.post("/api/v1/jobs", json=given), 422)
    assert [fault["pointer"] for fault in document["errors"]] == [pointer]


def test_a_model_without_a_bound_is_not_asked(models: TestClient) -> None:
    assert train(models, "letters", "letters", solver="centroids")["state"] == "succeeded"
    for asked in (True, 1):
        document = problem(models.post(URL, json={"instances": [CLEAR], "certain": asked}), 422)
        assert [fault["pointer"] for fault in document["errors"]] == ["/certain"]
