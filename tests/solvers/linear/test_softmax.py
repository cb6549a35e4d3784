"""The equations inside softmax regression, and its agreement with another program."""

import numpy as np
import pytest
from problems import linear_map, small
from scipy.special import softmax as exact_softmax
from scipy.special import wrightomega
from sklearn.linear_model import LogisticRegression
from training import machine

from solvers.core.problem import Problem
from solvers.linear.steps.softmax import distribution, log_sum_exp, omega


def solver(**params):
    return machine("softmax", **params)


def test_omega_is_wrights():
    points = np.concatenate([np.linspace(-60, 60, 4001), np.logspace(2, 6, 50)])
    np.testing.assert_allclose([omega(x) for x in points], wrightomega(points), rtol=1e-13)


@pytest.mark.parametrize("a", [1e-6, 0.1, 1.0, 30.0, 1e5])
@pytest.mark.parametrize("spread", [1e-3, 1.0, 50.0, 1e4])
@pytest.mark.parametrize("k", [2, 7, 500])
def test_a_step_solves_its_equations_and_sums_to_one(k, a, spread):
    t = spread * np.random.default_rng(k).standard_normal(k)
    p = np.empty(k)
    distribution(t, a, p)
    assert p.sum() == pytest.approx(1.0, abs=1e-14)
    some = p > 1e-200
    nu = t[some] - np.log(p[some]) - a * p[some]
    assert np.ptp(nu) <= 1e-9 * max(1.0, spread, a)


def test_log_sum_exp_does_not_overflow():
    assert log_sum_exp(np.array([1e4, 1e4, -1e4]), 3) == pytest.approx(1e4 + np.log(2.0))
    assert log_sum_exp(np.array([-1e4, 5.0]), 1) == -1e4


def test_it_is_logistic_regression():
    problem = small(n=60)
    made = solver(C=3.0, tol=1e-9)
    *_, last = made.steps(problem)
    assert last.converged
    peer = LogisticRegression(C=3.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(problem.X, problem.y)
    np.testing.assert_allclose(linear_map(made.model(problem, last.state)), peer.coef_, atol=1e-4)
    scores = made.model(problem, last.state).scores(problem.X)
    np.testing.assert_allclose(exact_softmax(scores, axis=1), peer.predict_proba(problem.X), atol=1e-4)


def test_empty_rows_count_in_both_bounds():
    problem = small(n=40)
    X = problem.X.toarray()
    X[3] = X[20] = 0.0
    *_, last = solver(tol=1e-6).steps(Problem.check(X, problem.y))
    *_, without = solver(tol=1e-6).steps(Problem.check(np.delete(X, [3, 20], axis=0), np.delete(problem.y, [3, 20])))
    assert last.converged
    assert last.primal == pytest.approx(without.primal + 2 * np.log(5), rel=1e-5)
