"""Models that the service has chosen: what was tried, probabilities, and what is sure enough."""

import math
import shutil
from pathlib import Path

import pytest
from asking import TestClient, bearer, problem
from working import Home, living_in, run, train, upload

from app.config import Settings
from app.main import create_app

EDGES = b"parent,child\nroot,food\nroot,water\nfood,fruit\nfood,vegetable\n"
WORDS = {"fruit": "apple pear plum red sweet", "vegetable": "leek kale green sweet", "water": "sea lake blue deep"}
TEXTS = "".join(
    f'{{"text": "{a} {b}", "label": "{label}"}}\n'
    for label, words in WORDS.items()
    for a in words.split()
    for b in words.split()
).encode()


@pytest.fixture(scope="module")
def chosen_home(empty_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the models flat and tree, which the service has chosen once for all tests."""
    folder = tmp_path_factory.mktemp("chosen")
    shutil.copytree(empty_home[0], folder, dirs_exist_ok=True)
    with living_in(folder), TestClient(create_app(), headers=bearer(empty_home[1]["admin"])) as client:
        _choose(client)
    return folder


@pytest.fixture
def chosen(chosen_home: Path, config: Settings, client: TestClient) -> TestClient:
    shutil.copytree(chosen_home, config.home, dirs_exist_ok=True)
    return client


def _choose(client: TestClient) -> None:
    assert upload(client, "things", TEXTS, "jsonl")["state"] == "ready"
    response = client.post("/api/v1/hierarchies", params={"name": "kinds", "format": "csv"}, content=EDGES)
    assert response.status_code == 201, response.text
    response = client.post("/api/v1/jobs", json={"dataset": "things", "model": "flat"})
    run(response.json()["id"])
    assert client.get(response.headers["location"]).json()["state"] == "succeeded"
    assert train(client, "things", "tree", hierarchy="kinds", solver="auto")["state"] == "succeeded"


def ask(client: TestClient, model: str, text: str, **more: object) -> dict:
    body = {"instances": [{"text": text}], "top_k": 3, **more}
    response = client.post(f"/api/v1/models/{model}/predict", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def test_the_solver_that_is_left_out_chooses_and_tells_what_it_tried(chosen: TestClient) -> None:
    version = chosen.get("/api/v1/models/flat/versions/1").json()
    assert version["solver"] == "auto"
    assert version["gap"] <= 1e-2
    assert 0 <= version["report"]["held_out_calibration_error"] <= 1
    selection = chosen.get("/api/v1/models/flat/versions/1/selection").json()
    assert len(selection["trials"]) == version["report"]["trials"]
    accuracies = [trial["measures"]["accuracy"] for trial in selection["trials"]]
    assert accuracies == sorted(accuracies, reverse=True)
    for member in selection["members"]:
        assert member["coefficient"] > 0
        assert member["gap"] is None if member["solver"] == "centroids" else member["gap"] <= 1e-2
    chosen_ones = [(member["solver"], member["params"]) for member in selection["members"]]
    assert all(pair in [(trial["solver"], trial["params"]) for trial in selection["trials"]] for pair in chosen_ones)


def test_precision_against_coverage_is_told_threshold_by_threshold(chosen: TestClient) -> None:
    for model in ("flat", "tree"):
        found = chosen.get(f"/api/v1/models/{model}/versions/1/thresholds").json()
        points = found["points"]
        assert (found["model"], found["version"], found["n_rows"] > 10, len(points) > 1) == (model, 1, True, True)
        for name, rising in (("threshold", True), ("answered", False)):
            values = [point[name] for point in points]
            assert values == sorted(values, reverse=not rising)
        # what is asked of a prediction is the same curve
        wanted = next(point for point in points if point["lower_bound"] >= 0.5)
        assert ask(chosen, model, "apple pear", min_precision=0.5)["sure_from"] | {"recall": None} == wanted
        text = chosen.get(f"/models/{model}/versions/1").text
        assert f'data-path="/models/{model}/versions/1/thresholds"' in text
        assert 'value="0.25"' in chosen.get(f"/playground?model={model}&version=1&threshold=0.25").text


def test_a_model_without_probabilities_has_no_thresholds(models: TestClient) -> None:
    problem(models.get("/api/v1/models/letters/versions/1/thresholds"), 404, "not_found")
    assert "/thresholds" not in models.get("/models/letters/versions/1").text


def test_probabilities_of_all_labels_add_up_to_one(chosen: TestClient) -> None:
    [prediction] = ask(chosen, "flat", "apple pear")["predictions"]
    assert prediction["label"] == "fruit"
    assert prediction["probability"] == prediction["top"][0]["probability"]
    assert sum(label["probability"] for label in prediction["top"]) == pytest.approx(1.0, abs=1e-4)
    assert all(math.log(label["probability"]) == pytest.approx(label["score"]) for label in prediction["top"])
    assert "sure" not in prediction


def test_a_threshold_says_what_is_sure(chosen: TestClient) -> None:
    answer = ask(chosen, "flat", "apple pear", threshold=0.2)
    assert answer["sure_from"]["threshold"] == 0.2
    [prediction] = answer["predictions"]
    assert prediction["sure"] == {"label": "fruit", "probability": prediction["probability"]}
    assert ask(chosen, "flat", "sweet", threshold=1.0)["predictions"][0]["sure"] is None


def test_along_a_tree_an_unsure_answer_backs_off_to_the_node_above(chosen: TestClient) -> None:
    leaf = ask(chosen, "tree", "sweet", threshold=0.0)["predictions"][0]
    assert leaf["sure"]["label"] in ("fruit", "vegetable")
    above = ask(chosen, "tree", "sweet", threshold=leaf["sure"]["probability"] + 1e-3)["predictions"][0]
    assert above["sure"]["label"] == "food"
    both = {label["label"]: label["probability"] for label in above["top"]}
    assert above["sure"]["probability"] == pytest.approx(both["fruit"] + both["vegetable"], abs=1e-5)


def test_a_precision_is_reached_by_a_threshold_with_its_bound(chosen: TestClient) -> None:
    used = ask(chosen, "tree", "apple", min_precision=0.6)["sure_from"]
    assert used["precision"] >= used["lower_bound"] >= 0.6
    assert 0 < used["answered"] <= 1
    assert 1 <= used["depth"] <= 2


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"threshold": 2}, "/threshold"),
        ({"threshold": "much"}, "/threshold"),
        ({"threshold": True}, "/threshold"),
        ({"min_precision": 0}, "/min_precision"),
        ({"min_precision": 1}, "/min_precision"),
        ({"min_precision": 0.99999}, "/min_precision"),
        ({"threshold": 0.5, "min_precision": 0.5}, "/min_precision"),
    ],
)
def test_what_cannot_be_a_threshold_is_refused_at_its_place(chosen: TestClient, more: dict, pointer: str) -> None:
    response = chosen.post("/api/v1/models/flat/predict", json={"instances": [{"text": "a"}], **more})
    assert problem(response, 422)["errors"][0]["pointer"] == pointer


def test_a_model_without_probabilities_says_so(chosen: TestClient) -> None:
    assert train(chosen, "things", "margins", solver="crammer_singer")["state"] == "succeeded"
    response = chosen.post("/api/v1/models/margins/predict", json={"instances": [{"text": "a"}], "threshold": 0.5})
    assert "auto" in problem(response, 422)["errors"][0]["detail"]
    assert chosen.get("/api/v1/models/margins/versions/1/selection").json() == {
        "trials": [],
        "members": [],
        "left_out": [],
        "path": None,
        "unknown_labels": {},
    }
