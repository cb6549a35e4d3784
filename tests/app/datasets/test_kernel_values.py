"""Datasets whose rows are values of a precomputed kernel, over HTTP."""

from typing import Any

import numpy as np
import pytest
from asking import TestClient, problem
from numpy.typing import NDArray
from working import run, train, upload

from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

N, N_NEW, N_TRAIN = 60, 9, 44
SHARED = {"C": 2.0, "tol": 1e-8}
PRECOMPUTED: dict[str, Any] = {"solver": "spoc", "params": {**SHARED, "kernel": "precomputed"}}
PARTS = ["train" if i < N_TRAIN else "test" for i in range(N)]


@pytest.fixture(scope="module")
def points() -> tuple[NDArray[np.float64], list[str]]:
    rng = np.random.default_rng(3)
    numbers = np.arange(N + N_NEW) % 3
    X = rng.normal(size=(N + N_NEW, 4)) + 3.0 * np.eye(3, 4)[numbers]
    return X, [f"c{number}" for number in numbers[:N]]


def _kernel(X: NDArray[np.float64], Z: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((X @ Z.T + 1.0) ** 2)


def _csv(K: NDArray[np.float64], labels: list[str], parts: list[str] | None = None) -> bytes:
    header = ["label", *(["split"] if parts else []), *(f"k{j}" for j in range(K.shape[1]))]
    rows = [
        ",".join([label, *([parts[i]] if parts else []), *(repr(value) for value in K[i].tolist())])
        for i, label in enumerate(labels)
    ]
    return "\n".join([",".join(header), *rows, ""]).encode()


def _scores(X: NDArray[np.float64], labels: list[str], Z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the method that computes the same kernel from features itself."""
    given = {**SHARED, "kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}
    classes, y = np.unique(labels, return_inverse=True)
    solver, task = SOLVERS["spoc"](parse_params("spoc", given)), Problem.check(X, y, classes.tolist())
    *_, last = solver.steps(task)
    return np.asarray(solver.model(task, last.state).scores(Problem.check(Z, np.arange(len(Z)) % 3).X))


def _answered(client: TestClient, model: str, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of rows of kernel values, in the order of the labels."""
    response = client.post(f"/api/v1/models/{model}/predict", json={"instances": rows.tolist(), "top_k": 3})
    assert response.status_code == 200, response.text
    found = [{each["label"]: each["score"] for each in one["top"]} for one in response.json()["predictions"]]
    return np.array([[scores[label] for label in sorted(scores)] for scores in found])


def _trained_rows(client: TestClient, model: str) -> list[int]:
    """The rows of the dataset whose kernel values the model's scores depend on."""
    zero = _answered(client, model, np.zeros((1, N)))
    moved = np.abs(_answered(client, model, np.eye(N)) - zero).max(axis=1)
    return np.flatnonzero(moved > 0).tolist()


def test_a_column_for_each_row_that_trains(client: TestClient, points: tuple[NDArray[np.float64], list[str]]) -> None:
    X, labels = points
    K = _kernel(X[:N], X[:N_TRAIN])
    assert upload(client, "kernel", _csv(K, labels, PARTS), "csv")["state"] == "ready"
    job = train(client, "kernel", "k", **PRECOMPUTED)
    assert job["state"] == "succeeded", job["error"]
    expected = _scores(X[:N_TRAIN], labels[:N_TRAIN], X[N:])
    np.testing.assert_allclose(_answered(client, "k", _kernel(X[N:], X[:N_TRAIN])), expected, atol=1e-3)
    # test rows are measured, and too few values are refused with the reason
    metrics = client.get("/api/v1/models/k/versions/1").json()["metrics"]
    right = np.argmax(_scores(X[:N_TRAIN], labels[:N_TRAIN], X[N_TRAIN:N]), axis=1)
    wrong = [f"c{c}" != label for c, label in zip(right, labels[N_TRAIN:], strict=True)]
    assert metrics["test"]["error"] == pytest.approx(np.mean(wrong))
    short = client.post("/api/v1/models/k/predict", json={"instances": [[1.0] * (N_TRAIN - 1)]})
    assert str(N_TRAIN) in problem(short, 422, "invalid_input")["detail"] + short.text


def test_a_random_split_selects_columns_as_it_does_rows(
    client: TestClient, points: tuple[NDArray[np.float64], list[str]]
) -> None:
    X, labels = points
    assert upload(client, "kernel", _csv(_kernel(X[:N], X[:N]), labels), "csv")["state"] == "ready"
    job = train(client, "kernel", "k", test_fraction=0.25, seed=5, refit=False, **PRECOMPUTED)
    assert job["state"] == "succeeded", job["error"]
    version = client.get("/api/v1/models/k/versions/1").json()
    rows = _trained_rows(client, "k")
    # all that support is of the rows that train
    assert 0 < len(rows) <= version["n_train"] == N - 15
    every = train(client, "kernel", "all", test_fraction=0.0, **PRECOMPUTED)
    assert every["state"] == "succeeded", every["error"]
    new = _kernel(X[N:], X[:N])
    np.testing.assert_allclose(_answered(client, "all", new), _scores(X[:N], labels, X[N:]), atol=1e-3)
    # the values with rows that did not train do not matter
    other = new.copy()
    other[:, np.setdiff1d(np.arange(N), rows)] = 7.0
    np.testing.assert_array_equal(_answered(client, "k", new), _answered(client, "k", other))


def test_a_machine_for_each_column_of_a_code_takes_kernel_values(
    client: TestClient, points: tuple[NDArray[np.float64], list[str]]
) -> None:
    X, labels = points
    assert upload(client, "kernel", _csv(_kernel(X[:N], X[:N]), labels), "csv")["state"] == "ready"
    params = {"base": "spoc", "base_params": {"kernel": "precomputed"}, "code": "all_pairs"}
    job = train(client, "kernel", "codes", solver="output_code", params=params)
    assert job["state"] == "succeeded", job["error"]
    assert client.get("/api/v1/models/codes/versions/1").json()["metrics"]["test"]["error"] < 0.5


@pytest.mark.parametrize("own", [False, True])
def test_trials_of_a_tuning_train_on_the_columns_of_their_rows(
    client: TestClient, points: tuple[NDArray[np.float64], list[str]], own: bool
) -> None:
    X, labels = points
    content = _csv(_kernel(X[:N], X[: N_TRAIN if own else N]), labels, PARTS if own else None)
    assert upload(client, "kernel", content, "csv")["state"] == "ready"
    space = [{"solver": "spoc", "params": {"kernel": "precomputed"}, "grid": {"C": [0.1, 10.0]}}]
    body = {"kind": "tune", "dataset": "kernel", "model": "t", "space": space, "folds": 2}
    response = client.post("/api/v1/jobs", json=body)
    assert response.status_code == 202, response.text
    id = response.json()["id"]
    job = response.json()
    while job["state"] not in ("succeeded", "failed"):
        run(id)
        job = client.get(f"/api/v1/jobs/{id}").json()
    assert job["state"] == "succeeded", job["error"]
    trials = client.get(f"/api/v1/jobs/{id}/trials").json()["items"]
    assert all(trial["measures"]["accuracy"] > 0.7 for trial in trials)


def test_what_cannot_be_kernel_values_is_refused_with_a_reason(
    client: TestClient, points: tuple[NDArray[np.float64], list[str]]
) -> None:
    X, labels = points
    K = _kernel(X[:N], X[:N])

    def refused(dataset: str, **request: Any) -> str:
        asked = {"dataset": dataset, "model": "m", **PRECOMPUTED, **request}
        return str(problem(client.post("/api/v1/jobs", json=asked), 422, "invalid_input")["errors"][0])

    upload(client, "narrow", _csv(K[:, :N_TRAIN], labels), "csv")
    assert f"{N_TRAIN} columns" in refused("narrow")
    upload(client, "texts", b'{"text": "a", "label": "b"}\n{"text": "c", "label": "d"}\n' * 4, "jsonl")
    assert "rows of numbers" in refused("texts")
    upload(client, "whole", _csv(K, labels), "csv")
    assert "used unchanged" in refused("whole", columns={"scaling": "standard"})
    # what only the values show is reported by the job
    K[0, 1] += 1.0
    upload(client, "skew", _csv(K, labels), "csv")
    job = train(client, "skew", "m", test_fraction=0.0, **PRECOMPUTED)
    assert job["state"] == "failed"
    assert "symmetric" in str(job["error"])
