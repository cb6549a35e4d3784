"""Models of boosting: tables of stumps, and decision trees."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import small
from test_binning import mixed
from training import fitted, machine

from solvers.boosting.weak_learners.boosted_model import Ensemble
from solvers.boosting.weak_learners.stumps_model import StumpsModel
from solvers.boosting.weak_learners.votes import Votes
from solvers.core.problem import Problem
from solvers.core.stored_models import load_model

DEPTHS = [1, 3]


def problem() -> Problem:
    X = mixed(200)
    y = np.digitize(X[:, [0]].toarray()[:, 0] + X[:, [4]].toarray()[:, 0], [-0.7, 0.0, 0.8])
    return Problem.check(X, y)


def boosted(task: Problem, **params):
    return fitted(machine("multiboost_cw", **params), task)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("bins", ["exact", 5])
def test_scores_are_those_of_training(depth, bins):
    task = problem()
    last, model = boosted(task, depth=depth, bins=bins, max_epochs=30)
    order = np.argsort(task.y, kind="stable")
    np.testing.assert_allclose(model.scores(task.X)[order], last.state["loss_F"].T, atol=1e-9)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_saved_model_scores_the_same_bits_and_is_mapped(depth, tmp_path):
    task = problem()
    _, model = boosted(task, depth=depth, max_epochs=20)
    model.save(tmp_path / "m")
    loaded, _ = load_model(tmp_path / "m", verify=True)
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.scores(task.X), model.scores(task.X))
    np.testing.assert_array_equal(loaded.importances, model.importances)
    assert all(isinstance(array.base, np.memmap) for array in loaded.arrays().values())
    for one, two in zip(loaded.staged_scores(task.X), model.staged_scores(task.X), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("depth", DEPTHS)
def test_one_sparse_example_scores_like_its_matrix_row(depth):
    task = problem()
    _, model = boosted(task, depth=depth, max_epochs=20)
    for i in range(0, 200, 17):
        row = task.X[i]
        np.testing.assert_array_equal(model.score_one(row.indices, row.data), model.scores(row)[0])
    np.testing.assert_array_equal(
        model.score_one(np.empty(0, np.int32), np.empty(0)), model.scores(sp.csr_matrix((1, 7)))[0]
    )
    turned = task.X[3].indices[::-1].copy(), task.X[3].data[::-1].copy()
    np.testing.assert_allclose(model.score_one(*turned), model.scores(task.X[3])[0])
    with pytest.raises(ValueError, match="6 features; the model has 7"):
        model.scores(task.X[:, :6])


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("tau_max", [1, 5])
def test_stages_are_the_models_of_shorter_training(depth, tau_max):
    task = problem()
    params = {"depth": depth, "tau_max": tau_max, "C": 1e12, "tol": 1e-6}
    _, model = boosted(task, max_epochs=12, **params)
    stages = [stage.copy() for stage in model.staged_scores(task.X)]
    assert len(stages) == model.n_rounds == 12
    for t in (1, 5, 12):
        np.testing.assert_allclose(stages[t - 1], boosted(task, max_epochs=t, **params)[1].scores(task.X), atol=1e-9)
    np.testing.assert_allclose(stages[-1], model.scores(task.X), atol=1e-9)


@pytest.mark.parametrize("depth", DEPTHS)
def test_importances_tell_which_features_are_used(depth):
    _, model = boosted(problem(), depth=depth, max_epochs=20)
    assert model.importances.shape == (7,)
    assert model.importances.sum() == pytest.approx(1.0)
    assert not model.importances[[2, 3]].any()
    assert model.importances[[0, 4]].sum() > 0.8


def test_a_table_is_the_sum_of_its_stumps():
    rng = np.random.default_rng(0)
    features, thresholds = rng.integers(-1, 4, 50), np.round(rng.standard_normal(50), 1)
    votes = Votes(
        rng.integers(0, 50, 80), rng.integers(0, 3, 80).astype(np.int32), rng.standard_normal(80), np.array([80])
    )
    model = StumpsModel.of_stumps(features, thresholds, Ensemble(("a", "b", "c"), 4, votes))
    X = np.where(rng.random((60, 4)) < 0.5, np.round(rng.standard_normal((60, 4)), 1), 0.0)
    responses = np.where((features < 0) | (X[:, features] <= thresholds), 1.0, -1.0)
    np.testing.assert_allclose(model.scores(sp.csr_matrix(X)), responses @ votes.weights(50, 3), atol=1e-12)


def test_sparse_and_dense_input_give_the_same_bits():
    task = small(n=60, density=0.1)
    dense = Problem.check(task.X.toarray(), task.y)
    for depth in DEPTHS:
        one, two = (boosted(p, depth=depth, max_epochs=10)[1].scores(task.X) for p in (task, dense))
        np.testing.assert_array_equal(one, two)
