"""Places after the first: coefficients of a general minimiser, probabilities by definition, and the first as it was."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from solvers.core.linear_model import LinearModel
from solvers.core.problem import Problem
from solvers.labels.stored_arrays import ArrayFault
from solvers.selection import pool_model
from solvers.selection.later_places import LaterPlaces
from solvers.selection.pool_model import PoolModel
from solvers.selection.pooling import fit_pool, pooled
from solvers.selection.single_labels import SingleLabels
from solvers.selection.temperature_scaling import TemperatureScaling


def scored(n=2000, k=7, seed=0):
    """Two models' scores: one knows the label where it is easy, the other puts it high where it is not."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n).astype(np.int32)
    true, hard = np.eye(k)[y], rng.random((n, 1)) < 0.4
    good = 4.0 * true * ~hard + rng.standard_normal((n, k))
    later = 2.0 * true * hard + rng.standard_normal((n, k))
    return [good.astype(np.float32), later.astype(np.float32)], y


def said_by(members, coefficients):
    return log_softmax(pooled(members, np.array(coefficients)), axis=1)


def loss_without(b, members, first, y):
    total = sum(each * s.astype(float) for each, s in zip(b, members, strict=True))
    total[np.arange(len(y)), first] = -np.inf
    return -log_softmax(total, axis=1)[np.arange(len(y)), y].mean()


def test_the_coefficients_are_those_of_rows_whose_first_class_is_wrong_without_it():
    members, y = scored()
    said = said_by(members, fit_pool(members, y, (0, 1)).coefficients)
    first = said.argmax(axis=1)
    wrong = first != y
    asked = [each[wrong] for each in members], first[wrong], y[wrong]
    best = minimize(loss_without, np.ones(2), asked, bounds=[(0, None)] * 2)
    found = LaterPlaces.fit(said, members, y).coefficients
    # in proportion to the best, and less sure by no more than 0.2 % of its loss
    share = found / best.x
    assert share[0] == pytest.approx(share[1], rel=5e-3)
    assert 0.8 < share[0] < 1.0
    assert 1.001 * best.fun < loss_without(found, *asked) < 1.003 * best.fun


def test_later_places_are_better_than_those_of_the_pool_and_the_first_stays():
    members, y = scored()
    rows = np.arange(len(y))
    said = said_by(members, fit_pool(members, y, (0, 1)).coefficients)
    found = LaterPlaces.fit(said, members, y).apply(said, members)
    assert (found.argmax(axis=1) == said.argmax(axis=1)).all()
    assert found[rows, y].mean() > said[rows, y].mean() + 0.01
    place = (found > found[rows, y][:, None]).sum(axis=1)
    before = (said > said[rows, y][:, None]).sum(axis=1)
    assert (place < 3).mean() > (before < 3).mean()


def test_others_share_what_the_first_leaves_in_proportion():
    members = [np.array([[3.0, 1.0, 0.0, -1.0]], np.float32), np.array([[0.0, 0.0, 2.0, 1.0]], np.float32)]
    said = np.log(np.array([[0.7, 0.15, 0.1, 0.05]], np.float32))
    found = np.exp(LaterPlaces(np.array([0.5, 1.5])).apply(said, members)[0])
    expected = softmax(0.5 * members[0][0, 1:] + 1.5 * members[1][0, 1:])
    np.testing.assert_allclose(found, [0.7, *(0.3 * expected)], rtol=1e-5)


def test_the_second_place_is_never_likelier_than_the_first_and_probabilities_add_up_to_one():
    rng = np.random.default_rng(1)
    members = [rng.standard_normal((200, 5)).astype(np.float32) for _ in range(2)]
    said = said_by(members, [0.3, 0.2])
    found = LaterPlaces(np.array([0.0, 9.0])).apply(said, members)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0, rtol=1e-5)
    first = said.argmax(axis=1)
    assert (found.argmax(axis=1) == first).all()
    others = np.delete(members[1], 0, axis=1)
    rows = np.flatnonzero(first == 0)
    assert (found[rows, 1:].argsort(axis=1) == others[rows].argsort(axis=1)).all()
    sure = np.array([[0.0, -200.0, -300.0, -250.0, -260.0]], np.float32)
    assert np.isfinite(LaterPlaces(np.ones(2)).apply(sure, [each[:1] for each in members])).all()


def test_nothing_is_fitted_where_it_gains_nothing():
    members, y = scored()
    right = np.log(np.eye(7, dtype=np.float32)[y] + np.float32(1e-3))
    assert LaterPlaces.fit(right, members, y) is None
    # labels that are drawn by the pool's own probabilities
    said = said_by(members, [1.0, 0.5])
    uniform = np.random.default_rng(2).random((len(y), 1))
    drawn = (softmax(said.astype(float), axis=1).cumsum(axis=1) > uniform).argmax(axis=1).astype(np.int32)
    assert LaterPlaces.fit(said, members, drawn) is None
    two = [each[:, :2] for each in members]
    assert LaterPlaces.fit(said_by(two, [1.0, 1.0]), two, (y % 2).astype(np.int32)) is None


def test_arrays_are_read_back_and_checked():
    later = LaterPlaces(np.array([0.5, 2.0]))
    np.testing.assert_array_equal(LaterPlaces.from_arrays(later.arrays(), 2).coefficients, later.coefficients)
    with pytest.raises(ArrayFault, match="later_places"):
        LaterPlaces.from_arrays(later.arrays(), 3)


def test_a_chosen_pool_says_of_rows_what_was_measured_on_them_and_is_read_back():
    scores, y = scored()
    X, k = sp.csr_matrix(np.hstack(scores)), 7
    problem = Problem.check(X, y)
    task = SingleLabels(problem, np.arange(len(y)))
    choice = task.choose(dict(enumerate(scores)), 0, "accuracy", 4)
    assert "later_places" in choice.kept
    weights = [np.eye(2 * k)[:, member * k : (member + 1) * k] for member in choice.pool.members]
    members = [LinearModel(problem.classes, 2 * k, np.arange(2 * k), each) for each in weights]
    model = task.model(members, choice.pool, choice.kept)
    said = model.scores(X)
    assert -said[np.arange(len(y)), y].mean() == pytest.approx(choice.found["held_out_log_loss"], abs=1e-5)
    assert (said.argmax(axis=1) == y).mean() == choice.found["held_out_accuracy"]
    read = PoolModel.from_arrays(problem.classes, 2 * k, model.arrays())
    np.testing.assert_array_equal(read.scores(X), said)
    smaller = model.smaller(lambda W: W, half=False)
    np.testing.assert_allclose(smaller.scores(X), said, atol=1e-5)
    # arrays of before there were coefficients of later places
    old = {name: array for name, array in model.arrays().items() if not name.startswith("later_places")}
    before = PoolModel.from_arrays(problem.classes, 2 * k, old).scores(X)
    assert (before.argmax(axis=1) == said.argmax(axis=1)).all()
    assert not np.allclose(before, said, atol=0.01)


def test_rows_have_the_same_probabilities_in_blocks_of_rows_as_alone(monkeypatch):
    rng = np.random.default_rng(0)
    classes, features = tuple("abcde"), np.arange(4, dtype=np.int32)
    members = [LinearModel(classes, 4, features, rng.standard_normal((4, 5)), None) for _ in range(2)]
    tempering = TemperatureScaling(0.1, 0.3)
    later = LaterPlaces(np.array([0.5, 1.5]))
    model = PoolModel(members, np.array([1.0, 2.0]), tempering=tempering, later=later)
    X = sp.csr_matrix(rng.standard_normal((7, 4)))
    whole = model.scores(X)
    monkeypatch.setattr(pool_model, "BLOCK_SCORES", 11)
    np.testing.assert_array_equal(model.scores(X), whole)
    np.testing.assert_array_equal(np.vstack([model.scores(X[row]) for row in range(7)]), whole)
