"""A linear machine as ONNX names the labels that the service names, with its scores."""

from typing import Any

import numpy as np
import pytest
from asking import TestClient, problem
from working import train

from app.exports import onnx_models

EXPORT = "/api/v1/models/{}/versions/1/export?format=onnx"


def _runs(models: TestClient, name: str, rows: list[list[float]]) -> tuple[list[str], Any]:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    answer = models.get(EXPORT.format(name))
    assert answer.status_code == 200, answer.text
    session = runtime.InferenceSession(answer.content, providers=["CPUExecutionProvider"])
    label, scores = session.run(["label", "scores"], {"features": np.array(rows, np.float32)})
    return label.tolist(), scores


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["weston_watkins", "auto"])
@pytest.mark.parametrize("dataset", ["letters", "shapes"])
def test_onnx_gives_the_labels_and_scores_of_the_service(dataset: str, solver: str, models: TestClient) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    params = {} if solver != "auto" else {"candidates": [{"solver": "softmax"}], "most_members": 1}
    assert train(models, dataset, "m", solver=solver, params=params)["state"] == "succeeded"
    width = models.get("/api/v1/models/m").json()["latest"]["n_features"]
    rows = np.random.default_rng(0).normal(size=(50, width)).round(3).tolist()
    labels, scores = _runs(models, "m", rows)
    answer = models.post("/api/v1/models/m/predict", json={"instances": rows, "top_k": 3}).json()
    assert labels == [each["label"] for each in answer["predictions"]]
    for row, each in zip(scores, answer["predictions"], strict=True):
        reported = [best["score"] for best in each["top"]]
        np.testing.assert_allclose(np.sort(row)[::-1][: len(reported)], reported, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("scaling", ["standard", "max_abs"])
def test_onnx_scales_numbers_as_the_service_does(scaling: str, models: TestClient) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    columns, bias = {"scaling": scaling}, {"bias": 1.0}
    assert train(models, "letters", "m", columns=columns, params=bias)["state"] == "succeeded"
    width = models.get("/api/v1/models/m").json()["latest"]["n_features"]
    rows = np.random.default_rng(0).normal(1.0, 2.0, size=(50, width)).round(3).tolist()
    labels, scores = _runs(models, "m", rows)
    answer = models.post("/api/v1/models/m/predict", json={"instances": rows, "top_k": 3}).json()
    assert labels == [each["label"] for each in answer["predictions"]]
    for row, each in zip(scores, answer["predictions"], strict=True):
        np.testing.assert_allclose(np.sort(row)[::-1], [best["score"] for best in each["top"]], rtol=1e-4, atol=1e-4)


def test_rows_of_length_1_are_refused_with_a_reason(models: TestClient) -> None:
    assert train(models, "letters", "m", columns={"scaling": "unit_norm"})["state"] == "succeeded"
    found = problem(models.get(EXPORT.format("m")), 422, "invalid_input")
    assert "length 1" in found["errors"][0]["detail"]


def test_what_onnx_has_no_words_for_is_refused_with_a_reason(models: TestClient) -> None:
    found = problem(models.get(EXPORT.format("foods")), 422, "invalid_input")
    assert "texts" in found["errors"][0]["detail"]
    train(models, "letters", "kernel", solver="kernel_weston_watkins")
    found = problem(models.get(EXPORT.format("kernel")), 422, "invalid_input")
    assert "no linear machine" in found["errors"][0]["detail"]


def test_a_service_without_the_package_says_what_it_lacks(models: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_models, "PACKAGE", "onnx_that_nobody_has")
    assert "polymargin[onnx]" in problem(models.get(EXPORT.format("letters")), 503)["detail"]
    problem(models.get(EXPORT.format("foods")), 422, "invalid_input")  # with the package it could not, either
