"""Members of pools whose many weights are made fewer and shorter."""

import numpy as np
import pytest
import scipy.sparse as sp
from training import fitted

from solvers.core.linear_model import LinearModel
from solvers.core.problem import Problem
from solvers.core.stored_models import load_model
from solvers.registry import make
from solvers.selection import lighter_weights
from solvers.selection.lighter_weights import lighter

K, D, N = 12, 300, 400


@pytest.fixture
def problem() -> Problem:
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=N)
    X = sp.random(N, D, 0.05, random_state=1, data_rvs=rng.random).tolil()
    X[np.arange(N), y] = 1.0
    return Problem.check(sp.csr_matrix(X), y)


@pytest.fixture(params=["crammer_singer", "label_trees", "one_vs_rest"])
def model(request, problem, monkeypatch):
    monkeypatch.setattr(lighter_weights, "MANY_BYTES", 0)
    return fitted(make(request.param, {"bias": 1.0} if request.param != "label_trees" else {}, seed=0), problem)[1]


def dense(model) -> np.ndarray:
    if isinstance(model, LinearModel):
        W = np.zeros((model.n_features, model.W.shape[1]))
        W[model.features] = model.W
        return W
    return model.W.toarray()


def test_weights_that_move_no_score_go_and_the_others_are_rounded(model, problem):
    whole, light = dense(model), lighter(model, problem.X)
    moved = whole**2 * np.asarray(problem.X.multiply(problem.X).mean(axis=0)).ravel()[:, None]
    least = lighter_weights.SHARE * moved.sum(axis=0) / np.maximum((whole != 0).sum(axis=0), 1)
    expected = np.where(moved < least, 0.0, whole).astype(np.float16)
    assert (expected != 0).sum() < (whole != 0).sum()
    np.testing.assert_array_equal(dense(light), expected)
    assert (light.scores(problem.X).argmax(axis=1) == model.scores(problem.X).argmax(axis=1)).mean() > 0.97
    assert light.report == model.report


def test_files_take_four_bytes_a_weight_and_give_the_same_scores(model, problem, tmp_path):
    light = lighter(model, problem.X)
    light.save(tmp_path / "model")
    arrays = {path.stem: np.load(path) for path in (tmp_path / "model").glob("*.npy")}
    weights = arrays["W"] if "W" in arrays else arrays["data"]
    assert weights.dtype == np.float16
    assert "indices" not in arrays or arrays["indices"].dtype == np.uint16
    loaded, _ = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.scores(problem.X), light.scores(problem.X))
    row = problem.X[3]
    np.testing.assert_array_equal(loaded.score_one(row.indices, row.data), light.score_one(row.indices, row.data))
    assert loaded.nbytes == light.nbytes


@pytest.mark.parametrize("factor", [1e-6, 1e9])
def test_weights_that_half_precision_cannot_hold_stay_as_they_are(model, problem, factor):
    if model.kind != "linear":
        pytest.skip("weights of label trees come from a loss of their own")
    scaled = LinearModel(model.classes, model.n_features, model.features, model.W * factor, model.intercept)
    assert lighter(scaled, problem.X / factor) is scaled


def test_small_models_and_those_without_such_weights_stay_as_they_are(problem):
    _, small = fitted(make("centroids", {}), problem)
    assert lighter(small, problem.X) is small


def test_trials_are_measured_with_the_weights_that_are_kept(problem, monkeypatch):
    params = {"candidates": [{"solver": "crammer_singer", "params": {"C": 1.0}}], "folds": 2}

    def trained():
        return fitted(make("auto", params, seed=0), problem)[1]

    whole = trained()
    monkeypatch.setattr(lighter_weights, "MANY_BYTES", 0)
    monkeypatch.setattr(lighter_weights, "SHARE", 0.5)
    light = trained()
    assert light.nbytes < whole.nbytes
    before, after = (each.record["trials"][0]["measures"]["log_loss"] for each in (whole, light))
    assert before != after
    assert light.members[0].kind == "sparse_linear"
