"""Biases that follow the dual variables from afar: true bounds, the certificate's model, the same bits."""

import dataclasses
from collections import deque

import numpy as np
import pytest
import scipy.sparse as sp
from problems import small
from training import machine

import solvers.core.certified_ascent
import solvers.linear.driver.ascent
import solvers.linear.layouts.layouts
import solvers.methods.one_vs_rest
from solvers.core.linear_model import LinearModel
from solvers.core.problem import Problem
from solvers.linear.layouts.hybrid_layout import HybridLayout
from solvers.linear.layouts.layouts import DenseLayout, held_back, share_of

METHODS = ("weston_watkins", "crammer_singer", "absolute_maximum", "one_vs_rest")
methods = pytest.mark.parametrize("name", METHODS)
BIAS = 2.0


def texts(n: int = 400, d: int = 300, k: int = 6) -> Problem:
    """Rows of a few words and length 1, of which some are empty."""
    rng, y = np.random.default_rng(3), (np.arange(n) % k).astype(np.int32)
    columns = (rng.integers(0, d // 2, (n, 5)) + (d // 2 // k) * y[:, None]) % d
    X = sp.csr_matrix((np.full(5 * n, 5**-0.5), columns.ravel(), np.arange(0, 5 * n + 1, 5)), (n, d))
    X.sum_duplicates()
    empty = rng.random(n) < 0.02
    return Problem.check(sp.csr_matrix(X.multiply(~empty[:, None])), y)


def shorter(problem: Problem) -> Problem:
    return Problem.check(0.3 * problem.X, problem.y)


def method(name, **params):
    return machine(name, **({"bias": BIAS} | params))


def objective(name, problem, model):
    """That of a model with an intercept, at C = 1, from its definition."""
    assert isinstance(model, LinearModel)
    F, at = model.scores(problem.X).astype(float), np.arange(problem.n_samples)
    half = 0.5 * float((model.coef.astype(float) ** 2).sum() + ((model.intercept.astype(float) / BIAS) ** 2).sum())
    if name in ("hinge", "squared_hinge"):
        signs = 2.0 * (np.arange(F.shape[1]) == problem.y[:, None]) - 1.0
        losses = np.maximum(1.0 - signs * F, 0.0)
        return half + float((losses if name == "hinge" else losses**2).sum())
    violations = 1.0 + F - F[at, problem.y][:, None]
    violations[at, problem.y] = 0.0
    violations = np.maximum(violations, 0.0)
    return half + float(violations.sum() if name == "weston_watkins" else violations.max(axis=1).sum())


@pytest.mark.parametrize("name", METHODS[:2])
@pytest.mark.parametrize("dense", [False, True])
def test_every_certificate_is_true_and_of_the_model(name, dense):
    problem = shorter(small(n=150, d=60, k=9, density=0.9)) if dense else texts()
    solver = method(name, tol=1e-4, dtype="float64")
    layout = solver.ascent.loss.layout(solver.prepared(problem))
    assert layout.constant is not None
    assert isinstance(layout, DenseLayout) == dense
    ones = np.full((problem.n_samples, 1), BIAS)
    appended = Problem.check(sp.csr_matrix(sp.hstack([problem.X, ones])), problem.y)
    *_, exact = machine(name, tol=1e-6).steps(appended)
    certificates_are_true(name, solver, problem, exact)


def certificates_are_true(name, solver, problem, exact):
    certified = [step for step in solver.steps(problem) if np.isfinite(step.primal)]
    for step in certified:
        assert step.dual <= exact.primal * (1 + 1e-9)
        assert step.primal >= exact.dual * (1 - 1e-9)
    assert certified[-1].converged
    model = solver.model(problem, certified[-1].state)
    assert objective(name, problem, model) == pytest.approx(certified[-1].primal, rel=1e-9)


@pytest.mark.parametrize("loss", ["hinge", pytest.param("squared_hinge", marks=pytest.mark.slow)])
def test_certificates_of_one_against_the_rest_are_true_and_of_the_model(loss, monkeypatch):
    problem = texts()
    solver = method("one_vs_rest", tol=1e-4, dtype="float64", loss=loss)
    held = solver.task(solver.prepared(problem)).held
    assert held is not None
    assert held.share == pytest.approx(share_of(solver.prepared(problem).X, BIAS, problem.weights, 6))
    with monkeypatch.context() as patched:
        patched.setattr(solvers.linear.layouts.layouts, "PART", np.inf)
        plain = method("one_vs_rest", tol=1e-6, dtype="float64", loss=loss)
        assert plain.task(plain.prepared(problem)).held is None
        *_, exact = plain.steps(problem)
    monkeypatch.setattr(solvers.core.certified_ascent, "CERTIFY_SHARE", 10)
    certificates_are_true(loss, solver, problem, exact)


@methods
def test_biases_held_back_take_fewer_epochs_to_the_same_gap(name, monkeypatch):
    held = deque(method(name, tol=1e-3).steps(texts()), maxlen=1)[0]
    monkeypatch.setattr(solvers.linear.layouts.layouts, "PART", np.inf)
    plain = deque(method(name, tol=1e-3).steps(texts()), maxlen=1)[0]
    assert held.converged
    assert plain.converged
    assert held.epoch < plain.epoch


@methods
@pytest.mark.parametrize("slices", [1 << 27, 2000])
def test_a_run_with_biases_held_back_resumes_bit_for_bit(name, slices, monkeypatch):
    monkeypatch.setattr(solvers.linear.driver.ascent, "SLICE_OPERATIONS", slices)
    monkeypatch.setattr(solvers.methods.one_vs_rest, "SLICE_PRODUCTS", slices)
    problem, solver = texts(n=120), method(name, tol=1e-3)
    states = [{key: np.array(value) for key, value in step.state.items()} for step in solver.steps(problem)]
    for stop in range(0, len(states) - 1, max(1, len(states) // 8)):
        ((left, last),) = deque(enumerate(solver.steps(problem, states[stop]), 1), maxlen=1)
        assert left == len(states) - stop - 1
        for key, array in states[-1].items():
            np.testing.assert_array_equal(last.state[key], array, err_msg=key)


@methods
def test_a_path_goes_on_with_the_biases_that_it_has(name):
    problem = texts()
    *_, first = method(name, tol=1e-3).steps(problem)
    solver = method(name, C=1.5, tol=1e-3)
    state = solver.rescaled(problem, first.state, 1.0)
    *_, on = solver.steps(problem, state)
    *_, fresh = method(name, C=1.5, tol=1e-3).steps(problem)
    assert on.converged
    assert on.primal == pytest.approx(fresh.primal, rel=2e-3)
    assert on.epoch <= fresh.epoch


def test_the_share_is_a_tenth_of_the_rows_and_at_least_what_lets_a_class_move():
    X = sp.csr_matrix(np.array([[1.0, 0.0, 4.0], [0.0, 1.0, 4.0]]))
    many, few = np.full(2, 100.0), np.full(2, 2.0)
    assert share_of(X, 4.0, many, 2) == pytest.approx(0.1 / 16)
    assert share_of(X, 4.0, few, 2) == pytest.approx(0.5 / 16)
    assert share_of(X, 4.0, few / 100, 2) == 1.0
    assert share_of(X, 0.0, many, 2) == 1.0
    # a bias far below the rows is left as it is
    X.data[X.data == 4.0] = 0.1
    assert share_of(X, 0.1, many, 2) == 1.0


def test_rows_for_an_end_game_are_left_as_they_are():
    few, of_few_weights = shorter(small(n=40, d=120)), shorter(small(n=150, d=20, density=0.9))
    for problem, tol, held in ((few, 1e-5, False), (few, 1e-3, True), (of_few_weights, 1e-3, False)):
        solver = method("weston_watkins", tol=tol)
        assert (solver.ascent.loss.layout(solver.prepared(problem)).constant is not None) == held


def test_biases_of_weights_in_lists_have_a_dense_row_and_are_multiplied_out():
    X, k = texts(n=60).X, 6
    X = sp.csr_matrix(sp.hstack([X, np.full((60, 1), BIAS)]))
    layout = HybridLayout.within(held_back(X, 0.25), k, np.dtype(np.float64), None)
    layout = dataclasses.replace(layout, n_hot=0, n_entries=100).with_constant(X.shape[1] - 1, BIAS, 0.25)
    assert layout.n_hot == 1
    W, biases = layout.weights(), np.arange(1.0, k + 1.0)
    layout.set_biases(W, biases)
    np.testing.assert_array_equal(W.hot[0, :k], 2.0 * biases)
    np.testing.assert_array_equal(layout.biases(W), biases)
    assert layout.square_norm(W) == pytest.approx(float(biases @ biases))
    found = layout.csr(layout.state(W), X.shape[1], np.arange(k, dtype=np.int32)).toarray()
    np.testing.assert_array_equal(found[-1], biases)
    assert not found[:-1].any()
