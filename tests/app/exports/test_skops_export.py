"""A linear machine as scikit-learn's estimator names the labels that the service names, with its scores."""

from typing import Any

import numpy as np
import pytest
from asking import TestClient, problem
from working import train

from app.exports import flat_machines

EXPORT = "/api/v1/models/{}/versions/1/export?format=skops"


def _loaded(models: TestClient, name: str) -> Any:
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    answer = models.get(EXPORT.format(name))
    assert answer.status_code == 200, answer.text
    assert io.get_untrusted_types(data=answer.content) == []
    return io.loads(answer.content)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["letters", "shapes", "scaled"])
def test_the_estimator_answers_as_the_service_does(name: str, models: TestClient) -> None:
    if name == "scaled":
        assert train(models, "letters", name, columns={"scaling": "robust"})["state"] == "succeeded"
    estimator = _loaded(models, name)
    rows = np.random.default_rng(0).normal(size=(50, estimator.n_features_in_)).round(3)
    answer = models.post(f"/api/v1/models/{name}/predict", json={"instances": rows.tolist(), "top_k": 3}).json()
    assert estimator.predict(rows).tolist() == [each["label"] for each in answer["predictions"]]
    for row, each in zip(estimator.decision_function(rows), answer["predictions"], strict=True):
        scores = {best["label"]: best["score"] for best in each["top"]}
        of_classes = [scores[label] for label in estimator.classes_]
        expected = of_classes if len(of_classes) > 2 else of_classes[1] - of_classes[0]
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-4)


def test_what_no_estimator_stands_for_is_refused_and_a_missing_package_named(
    models: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = problem(models.get(EXPORT.format("foods")), 422, "invalid_input")
    assert "texts" in found["errors"][0]["detail"]
    monkeypatch.setattr(flat_machines, "SKOPS", "skops_that_nobody_has")
    assert "polymargin[skops]" in problem(models.get(EXPORT.format("letters")), 503)["detail"]
