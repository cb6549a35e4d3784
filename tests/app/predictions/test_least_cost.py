"""Answers of least expected cost, by the probabilities of a version and its costs."""

import io
import math
from typing import Any

import pyarrow.parquet as pq
import pytest
from asking import TestClient, problem
from working import answers, train

from workers.tasks import run

CLEAR, EMPTY = {"indices": [1, 4], "values": [1.0, 0.5]}, {"indices": [], "values": []}
POOL = {"candidates": [{"solver": "centroids"}], "folds": 2}


def priced(client: TestClient, **params: Any) -> None:
    labels = sorted(each["label"] for each in statistics(client)["classes"])
    # to answer the second label for any other is dear
    costs = {label: {labels[1]: 1000.0} for label in labels if label != labels[1]}
    job = train(client, "letters", "letters", solver="auto", params={**POOL, "costs": costs, **params})
    assert job["state"] == "succeeded", job


def statistics(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/api/v1/datasets/letters/statistics").json()
    return found


def test_an_answer_is_the_label_of_least_expected_cost_with_that_cost(models: TestClient) -> None:
    priced(models)
    labels = sorted(each["label"] for each in statistics(models)["classes"])
    plain = answers(models, "letters", {"instances": [CLEAR, EMPTY], "top_k": len(labels)})
    chosen = answers(models, "letters", {"instances": [CLEAR, EMPTY], "top_k": len(labels), "least_cost": True})
    for before, after in zip(plain["predictions"], chosen["predictions"], strict=True):
        said = {each["label"]: each["probability"] for each in before["top"]}
        expected = {
            answer: sum(
                p * (0.0 if label == answer else 1000.0 if answer == labels[1] else 1.0) for label, p in said.items()
            )
            for answer in labels
        }
        costs = [each["expected_cost"] for each in after["top"]]
        assert costs == sorted(costs)
        for each in after["top"]:
            assert each["expected_cost"] == pytest.approx(expected[each["label"]], abs=1e-4)
            assert each["probability"] == pytest.approx(said[each["label"]])
        assert after["label"] == after["labels"][0]["label"] == after["top"][0]["label"]
        assert after["expected_cost"] == after["labels"][0]["expected_cost"] == costs[0]
        assert math.isclose(costs[0], min(expected.values()), abs_tol=1e-4)
        assert "expected_cost" not in before
    only = answers(models, "letters", {"instances": [CLEAR], "include": [labels[1]], "least_cost": True})
    assert only["predictions"][0]["label"] == labels[1]


def test_a_file_has_the_answers_and_costs_of_single_requests(models: TestClient) -> None:
    priced(models)
    given = {"kind": "predict", "model": "letters", "dataset": "letters", "least_cost": True, "top_k": 2}
    job = models.post("/api/v1/jobs", json=given).json()
    run(job["id"])
    file = models.get(f"/api/v1/jobs/{job['id']}/predictions")
    assert file.status_code == 200, file.text
    table = pq.read_table(io.BytesIO(file.content)).to_pylist()
    assert table
    for row in table:
        assert row["expected_cost"] <= row["expected_cost_2"]
    features = models.get("/api/v1/datasets/letters/rows").json()["rows"][0]["features"]
    instance = {"indices": [index for index, _ in features], "values": [value for _, value in features]}
    answer = answers(models, "letters", {"instances": [instance], "least_cost": True})["predictions"][0]
    assert (table[0]["label"], table[0]["expected_cost"]) == (answer["label"], pytest.approx(answer["expected_cost"]))


@pytest.mark.parametrize(
    "training", [{"solver": "crammer_singer", "params": {"costs": {}}}, {"solver": "auto", "params": POOL}]
)
def test_a_version_without_costs_or_probabilities_is_refused(models: TestClient, training: dict[str, Any]) -> None:
    assert train(models, "letters", "letters", **training)["state"] == "succeeded"
    asked = {"instances": [CLEAR], "least_cost": True}
    document = problem(models.post("/api/v1/models/letters/predict", json=asked), 422)
    (fault,) = document["errors"]
    assert fault["pointer"] == "/least_cost"
    assert ("calibrated" in fault["detail"]) == (training["solver"] != "auto")


def test_what_is_of_the_most_probable_label_does_not_go_with_it(models: TestClient) -> None:
    priced(models)
    for more in ({"threshold": 0.5}, {"certain": True}, {"least_cost": 1}):
        asked = {"instances": [CLEAR], "least_cost": True, **more}
        assert problem(models.post("/api/v1/models/letters/predict", json=asked), 422)["errors"]


def test_costs_that_do_not_fit_are_refused_before_training(models: TestClient) -> None:
    for more, pointer in (
        ({"params": {"costs": {"nobody": {"a": 2.0}}}}, "/params/costs"),
        ({"params": {"costs": "tree"}}, "/params/costs"),
        ({"params": {"costs": {"a": {"b": -2.0}}}}, "/params/costs/a/b"),
    ):
        given = {"dataset": "letters", "model": "m", "solver": "crammer_singer"} | more
        document = problem(models.post("/api/v1/jobs", json=given), 422)
        assert document["errors"][-1]["pointer"] == pointer


@pytest.mark.parametrize("other", [{"threshold": 0.5}, {"min_precision": 0.9}])
def test_a_file_is_refused_before_it_is_queued_where_a_precision_is_asked_too(
    models: TestClient, other: dict[str, float]
) -> None:
    given = {"kind": "predict", "model": "letters", "dataset": "letters", "least_cost": True, **other}
    document = problem(models.post("/api/v1/jobs", json=given), 422)
    assert "least_cost cannot be combined" in document["errors"][0]["detail"]
