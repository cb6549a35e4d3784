"""Training rows that are like an instance."""

import pytest
from asking import TestClient, problem

URL = "/api/v1/models/{}/nearest"


@pytest.mark.parametrize(
    ("model", "instance"),
    [
        ("foods", {"text": "a green leek"}),
        ("letters", {"indices": [1, 4], "values": [1.0, 0.5]}),
        ("shapes", {"features": {}}),
    ],
)
def test_the_nearest_rows_have_the_predicted_label_and_come_in_order(
    models: TestClient, model: str, instance: dict[str, object]
) -> None:
    predicted = models.post(f"/api/v1/models/{model}/predict", json={"instances": [instance]}).json()
    found = models.post(URL.format(model), json={"instance": instance, "limit": 3}).json()
    assert found["label"] == predicted["predictions"][0]["label"]
    assert 1 <= len(found["rows"]) <= 3
    assert len(found["rows"]) <= found["n_compared"] == found["n_rows"]
    assert all(row["labels"] == [found["label"]] for row in found["rows"])
    similarities = [row["similarity"] for row in found["rows"]]
    assert similarities == sorted(similarities, reverse=True)
    assert all(-1.000001 <= each <= 1.000001 for each in similarities)


def test_a_training_row_is_nearest_to_itself(models: TestClient) -> None:
    first = models.post(URL.format("foods"), json={"instance": {"text": "a green leek"}}).json()["rows"][0]
    again = models.post(URL.format("foods"), json={"instance": {"text": first["text"]}, "label": first["labels"][0]})
    assert again.json()["rows"][0]["similarity"] == pytest.approx(1.0)


def test_what_cannot_be_compared_is_said(models: TestClient) -> None:
    leek = {"instance": {"text": "a green leek"}}
    problem(models.post(URL.format("foods"), json={"instance": [1.0]}), 422, "invalid_input")
    problem(models.post(URL.format("foods"), json={**leek, "label": "no such label"}), 404, "not_found")
    assert models.delete("/api/v1/datasets/foods", params={"force": True}).status_code in (200, 202, 204)
    problem(models.post(URL.format("foods"), json=leek), 404, "not_found")
