"""Conjugate gradients on the dual variables of some examples."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import small
from training import machine

import solvers.linear.inner_passes
from solvers.core.problem import Problem
from solvers.linear.layouts.layouts import SparseLayout
from solvers.linear.steps import conjugate
from solvers.numerics import coefficients

# to compile them in the precision that shows what they do takes eight seconds
pytestmark = pytest.mark.slow
METHODS = ("weston_watkins", "crammer_singer")


def begun(name, problem, epochs):
    """A run after so many epochs, in float64: task, W and dual variables."""
    method = machine(name, tol=1e-12, dtype="float64", max_epochs=epochs, C=3.0)
    *_, last = method.steps(problem)
    driver = method.ascent
    task, layout = driver.task(problem)
    assert isinstance(layout, SparseLayout)
    return method, task, driver.resumed(task, layout, last.state)


def dual(method, task, run):
    W = np.zeros_like(run.W.hot)
    coefficients.rebuild(task.rows, run.duals, W)
    return method.ascent.loss.linear_part(task, run.duals) - 0.5 * (W**2).sum(), W


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("seed", range(4))
def test_the_dual_rises_by_what_is_said_and_everything_stays_feasible_and_consistent(name, seed):
    method, task, run = begun(name, small(n=150, d=60, k=7, seed=seed, density=0.15), 1 + seed)
    blank, before = run.layout.no_change(run.W, None), dual(method, task, run)[0]
    some = np.flatnonzero(run.duals.length > 0).astype(np.int32)[seed::2].copy()
    gain, products = conjugate.projected_conjugate_gradients(
        some, task, method.largest_loss, *run.W, run.duals, *blank, 60, 1e-12, None
    )
    after, W = dual(method, task, run)
    assert 0 < products <= 61
    assert gain > 0
    assert after - before == pytest.approx(gain, rel=1e-9)
    np.testing.assert_allclose(run.W.hot, W, atol=1e-10)
    assert not any(part.any() for part in blank)
    for i in range(len(task.y)):
        first, n = run.duals.start[i], run.duals.length[i]
        alpha = -run.duals.values[first + 1 : first + n]
        assert (alpha > 0).all()
        total = alpha.sum() if method.largest_loss else alpha.max(initial=0.0)
        assert total <= task.bounds[i] * (1 + 1e-9)
        if n:
            assert run.duals.classes[first] == task.y[i]
            assert run.duals.values[first] == pytest.approx(alpha.sum())


@pytest.mark.parametrize("name", METHODS)
def test_nothing_is_gained_at_the_optimum(name):
    method, task, run = begun(name, small(n=60, d=60, k=4, density=0.15), 3000)
    some = np.flatnonzero(run.duals.length > 0).astype(np.int32)
    blank = run.layout.no_change(run.W, None)
    gain, _ = conjugate.projected_conjugate_gradients(
        some, task, method.largest_loss, *run.W, run.duals, *blank, 50, 1e-9, None
    )
    assert 0 <= gain < 1e-9


def test_it_saves_epochs_where_rows_are_nearly_parallel_and_their_labels_differ(monkeypatch):
    rng, n = np.random.default_rng(1), 200
    base = sp.random(n, 300, density=0.05, random_state=rng, data_rvs=rng.random, format="csr")
    X = sp.vstack([base, base + 0.1 * sp.random(n, 300, density=0.05, random_state=rng)])
    X = sp.diags(1.0 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())) @ X
    y = np.concatenate([np.arange(n) % 6, (np.arange(n) + rng.integers(0, 2, n)) % 6])
    problem = Problem.check(sp.csr_matrix(X), y)
    epochs = []
    for first in (10, 10**9):
        monkeypatch.setattr(solvers.linear.inner_passes, "GRADIENTS_FROM", first)
        method = machine("crammer_singer", tol=1e-8, C=10.0, max_epochs=3000)
        *_, last = method.steps(problem)
        assert last.converged
        epochs.append(last.epoch)
    assert epochs[0] < 0.5 * epochs[1]


@pytest.mark.parametrize("length", [0.3, 3.0, 1e6, 1e20, 1e300])
def test_a_point_however_far_is_projected_onto_the_nearest_feasible_one(length):
    rng = np.random.default_rng(0)
    alpha, p = rng.dirichlet(np.ones(6), 2) * 2.0, rng.normal(size=(2, 6))
    chosen = conjugate.Chosen(np.arange(2, dtype=np.int32), np.array([0, 6, 12]), np.zeros(12, np.int32), np.arange(12))
    step = np.empty(12)
    bounds = np.array([2.0, 2.5])
    assert not conjugate.project(chosen, bounds, True, alpha.ravel(), p.ravel(), length, step)
    reached = alpha + step.reshape(2, 6)
    assert (reached >= 0).all()
    for C, one, start, direction in zip(bounds, reached, alpha, p, strict=True):
        assert one.sum() <= C * (1 + 1e-12)
        # of the feasible points none is further along from the nearest one towards the point itself
        beyond = (start + length * direction - one) / max(length, 1.0)
        assert max(C * beyond.max(), 0.0) <= beyond @ one + 1e-9
