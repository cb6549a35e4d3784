"""Sets of labels of which a precision is asked: labels side by side, and along a tree."""

import json
import shutil
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from asking import TestClient, bearer, problem
from typer.testing import CliRunner
from working import Home, living_in, run, train, upload

from app.cli import cli
from app.config import Settings
from app.main import create_app

EDGES = b"parent,child\nroot,food\nroot,water\nfood,fruit\nfood,leaf\n"
PARENTS = {"fruit": "food", "leaf": "food"}
LABELS = ("fruit", "leaf", "water")
AUTO = {"solver": "auto", "params": {"candidates": [{"solver": "node_svm", "params": {"C": 1.0}}]}}


def rows(n: int, seed: int) -> tuple[list[dict[str, list]], list[list[str]]]:
    """Sparse instances of six values, and their labels."""
    rng = np.random.default_rng(seed)
    has = rng.random((n, 3)) < 0.4
    values = (np.hstack([has, has]) * 2.0 + rng.normal(size=(n, 6))).round(4)
    sets = [[label for label, one in zip(LABELS, row, strict=True) if one] for row in has]
    return [{"indices": list(range(6)), "values": row} for row in values.tolist()], sets


def _file(n: int, seed: int) -> bytes:
    lines = [
        f"{','.join(labels)} {' '.join(f'{j + 1}:{v}' for j, v in enumerate(one['values']))}"
        for one, labels in zip(*rows(n, seed), strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture(scope="module")
def sets_home(empty_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the models flat and tree, trained once for all tests."""
    folder = tmp_path_factory.mktemp("sets")
    shutil.copytree(empty_home[0], folder, dirs_exist_ok=True)
    with living_in(folder), TestClient(create_app(), headers=bearer(empty_home[1]["admin"])) as client:
        assert upload(client, "things", _file(900, 0), "svmlight", label_separator=",")["state"] == "ready"
        response = client.post("/api/v1/hierarchies", params={"name": "kinds", "format": "csv"}, content=EDGES)
        assert response.status_code == 201, response.text
        assert train(client, "things", "flat", **AUTO)["state"] == "succeeded"
        assert train(client, "things", "tree", hierarchy="kinds", **AUTO)["state"] == "succeeded"
    return folder


@pytest.fixture
def sets(sets_home: Path, config: Settings, client: TestClient) -> TestClient:
    shutil.copytree(sets_home, config.home, dirs_exist_ok=True)
    return client


def ask(client: TestClient, model: str, instances: list, **more: object) -> dict:
    response = client.post(f"/api/v1/models/{model}/predict", json={"instances": instances, **more})
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize("model", ["flat", "tree"])
def test_sure_labels_of_new_rows_have_the_precision_that_was_asked(sets: TestClient, model: str) -> None:
    instances, true = rows(600, seed=1)
    shares = []
    for precision in (0.7, 0.9):
        answer = ask(sets, model, instances, min_precision=precision)
        used = answer["sure_from"]
        assert used["precision"] >= used["lower_bound"] >= precision
        assert 0 < used["recall"] <= 1
        assert 0 < used["answered"] <= 1
        said, right = 0, 0
        for one, labels in zip(answer["predictions"], true, strict=True):
            found = [label["label"] for label in one["sure_labels"]]
            assert "sure" not in one
            assert all(label["probability"] >= used["threshold"] for label in one["sure_labels"])
            given = {*labels, *(PARENTS[label] for label in labels if label in PARENTS and model == "tree")}
            for place, label in enumerate(found):
                assert model == "flat" or label not in PARENTS or PARENTS[label] in found[:place]
            said += len(found)
            right += len(given.intersection(found))
        # the precision of all rows exceeds it; that of these varies
        assert right / said >= precision - 2.0 * (precision * (1.0 - precision) / said) ** 0.5
        shares.append(said)
    assert shares[0] > shares[1] > 0


def test_a_threshold_of_the_users_own_is_a_probability(sets: TestClient) -> None:
    [instance], _ = rows(1, seed=2)
    for model, n_labels in (("flat", 3), ("tree", 4)):
        every = ask(sets, model, [instance], threshold=0)
        assert every["sure_from"]["threshold"] == 0
        [one] = every["predictions"]
        assert len(one["sure_labels"]) == n_labels
        assert ask(sets, model, [instance], threshold=1)["predictions"][0]["sure_labels"] == []
        least = sorted(label["probability"] for label in one["sure_labels"])[1]
        assert len(ask(sets, model, [instance], threshold=least)["predictions"][0]["sure_labels"]) == n_labels - 1
    assert "sure_labels" not in ask(sets, "flat", [instance])["predictions"][0]


def test_a_precision_that_no_threshold_reached_leaves_nothing_sure_and_the_set_as_it_is(sets: TestClient) -> None:
    instances, _ = rows(5, seed=3)
    answer = ask(sets, "flat", instances, min_precision=0.99999)
    assert answer["sure_from"]["threshold"] is None
    assert all(one["sure_labels"] == [] for one in answer["predictions"])
    plain = ask(sets, "flat", instances)["predictions"]
    assert [one["subtree"] for one in answer["predictions"]] == [one["subtree"] for one in plain]


def test_a_version_that_keeps_no_held_out_counts_tells_which_training_gives_them(sets: TestClient) -> None:
    assert train(sets, "things", "margins", solver="node_svm")["state"] == "succeeded"
    instances, _ = rows(1, seed=4)
    for field in ("threshold", "min_precision"):
        response = sets.post("/api/v1/models/margins/predict", json={"instances": instances, field: 0.5})
        [fault] = problem(response, 422)["errors"]
        assert fault["pointer"] == f"/{field}"
        assert "train it again with the solver auto" in fault["detail"]


@pytest.mark.parametrize("model", ["flat", "tree"])
def test_precision_against_recall_is_told_threshold_by_threshold(sets: TestClient, model: str) -> None:
    found = sets.get(f"/api/v1/models/{model}/versions/1/thresholds").json()
    points = found["points"]
    # of 300 rows a fifth is for tests, and each of the others is held out once
    assert (found["model"], found["n_rows"], len(points) > 10) == (model, 720, True)
    for name, rising in (("threshold", True), ("answered", False), ("recall", False)):
        values = [point[name] for point in points]
        assert values == sorted(values, reverse=not rising)
    assert all(0 <= point["lower_bound"] <= point["precision"] <= 1 for point in points)
    instances, _ = rows(1, seed=5)
    for precision in (0.7, 0.9):
        wanted = next(point for point in points if point["lower_bound"] >= precision)
        assert ask(sets, model, instances, min_precision=precision)["sure_from"] | {"depth": None} == wanted
    assert f'data-path="/models/{model}/versions/1/thresholds"' in sets.get(f"/models/{model}/versions/1").text
    picture = sets.get("/api/v1/figures/thresholds", params={"model": model, "version": 1})
    assert picture.status_code == 200, picture.text


def test_a_version_that_keeps_no_held_out_counts_has_no_thresholds(sets: TestClient) -> None:
    assert train(sets, "things", "plain", solver="node_svm")["state"] == "succeeded"
    problem(sets.get("/api/v1/models/plain/versions/1/thresholds"), 404, "not_found")
    assert "/thresholds" not in sets.get("/models/plain/versions/1").text


@pytest.mark.usefixtures("wired")
def test_the_command_line_shows_sure_labels_and_what_they_are_worth(
    sets: TestClient, secrets: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYMARGIN_API_KEY", secrets["admin"])
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "rows.jsonl"
    file.write_text('{"indices": [0, 3], "values": [4.0, 4.0]}\n')
    shown = CliRunner().invoke(cli, ["predict", "tree", "--file", str(file), "--min-precision", "0.8"])
    assert shown.exit_code == 0, shown.output
    assert "fruit 0.9" in shown.output
    assert "of the labels" in shown.output
    shown = CliRunner().invoke(cli, ["predict", "tree", "--file", str(file), "--min-precision", "0.99999"])
    assert "No threshold reached this precision" in shown.output
    shown = CliRunner().invoke(cli, ["models", "thresholds", "tree"])
    assert shown.exit_code == 0, shown.output
    assert "found" in shown.output


def _shared(client: TestClient, model: str, instances: list, **more: object) -> list[dict]:
    """The rows of a file of predictions of the same rows."""
    lines = [" ".join(f"{j + 1}:{v}" for j, v in enumerate(one["values"])) for one in instances]
    name = f"rows-{uuid4().hex}"
    assert upload(client, name, ("\n".join(lines) + "\n").encode(), "svmlight", unlabelled="true")["state"] == "ready"
    asked = {"kind": "predict", "model": model, "dataset": name, "format": "jsonl", **more}
    made = client.post("/api/v1/jobs", json=asked)
    assert made.status_code == 202, made.text
    run(made.json()["id"])
    content = client.get(f"/api/v1/jobs/{made.json()['id']}/predictions").content
    return [json.loads(line) for line in content.splitlines()]


@pytest.mark.parametrize("model", ["flat", "tree"])
def test_chosen_labels_are_those_of_the_set_that_are_allowed(sets: TestClient, model: str) -> None:
    instances, _ = rows(40, seed=2)
    whole = ask(sets, model, instances)["predictions"]
    for one in whole:
        steps = [step for label in one["labels"] for step in label["path"]]
        assert [node["label"] for node in one["subtree"]] == list(dict.fromkeys(steps))
    chosen = [
        ({"exclude": ["fruit"]}, {"leaf", "water", "food"}),
        ({"include": ["water", "leaf"]}, {"leaf", "water"}),
        ({"include": ["leaf", "fruit"], "exclude": ["fruit"]}, {"leaf"}),
    ]
    if model == "tree":
        chosen += [({"include": ["food"]}, {"fruit", "leaf", "food"}), ({"exclude": ["food"]}, {"water"})]
    for more, left in chosen:
        found = ask(sets, model, instances, top_k=3, explain=2, **more)["predictions"]
        for before, after in zip(whole, found, strict=True):
            assert after["labels"] == [label for label in before["labels"] if label["label"] in left]
            steps = list(dict.fromkeys(step for label in after["labels"] for step in label["path"]))
            assert [node["label"] for node in after["subtree"]] == steps
            assert [step["label"] for step in after["explanation"]] == (steps or [after["label"]])
            assert {each["label"] for each in after["top"]} <= left
        answered = sets.post(f"/v1/models/{model}:predict", json={"instances": instances, **more}).json()
        assert [one["labels"] for one in answered["predictions"]] == [one["labels"] for one in found]
        written = _shared(sets, model, instances, top_k=3, **more)
        assert [row["labels"] for row in written] == [[one["label"] for one in each["labels"]] for each in found]
        assert {label for row in written for label in row["alternatives"]} <= left


@pytest.mark.parametrize("model", ["flat", "tree"])
@pytest.mark.parametrize("more", [{}, {"exclude": ["fruit"]}])
def test_a_file_has_for_each_set_what_a_row_is_answered(sets: TestClient, model: str, more: dict) -> None:
    instances, _ = rows(60, seed=3)
    answers = ask(sets, model, instances, threshold=0.8, **more)["predictions"]
    written = _shared(sets, model, instances, threshold=0.8, **more)
    assert any(not label["sure"] for one in answers for label in one["labels"])
    for row, one in zip(written, answers, strict=True):
        labels = one["labels"]
        assert row["labels"] == [label["label"] for label in labels]
        assert row["scores"] == pytest.approx([label["score"] for label in labels])
        assert row["probabilities"] == pytest.approx([label["probability"] for label in labels])
        assert row["sure"] == [label["sure"] for label in labels]
        assert row["sure_ancestors"] == [label.get("sure_ancestor") for label in labels]
        if model == "tree":
            assert row["paths"] == [label["path"] for label in labels]
