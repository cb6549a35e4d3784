"""The linear machine of Crammer and Singer reports the margins and bounds of its sample."""

import numpy as np
import pytest
from problems import small
from training import fitted, machine

from solvers.core.problem import Problem
from solvers.methods import crammer_singer
from solvers.metrics.bounds import class_error_bound, error_bound


def trained(name: str, problem: Problem, **params):
    return fitted(machine(name, **params), problem)[1]


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_a_separated_sample_has_the_bounds_of_the_corollaries(bias: float) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    problem = Problem.check(np.eye(3)[y] + 0.05 * rng.standard_normal((60, 3)), y)
    model = trained("crammer_singer", problem, C=100.0, tol=1e-6, bias=bias, dtype="float64")
    X = np.hstack([problem.X.toarray(), np.full((60, 1), bias)])
    W = np.hstack([model.coef, model.intercept[:, None] / bias]) if bias else np.hstack([model.coef, np.zeros((3, 1))])
    W = W - W.mean(axis=0)
    F = X @ W.T
    leads = F[np.arange(60), y][:, None] - F
    leads[np.arange(60), y] = np.inf
    margin, radius = leads.min(), np.linalg.norm(X, axis=1).max()
    report = model.report
    assert report["smallest_margin"] == pytest.approx(margin)
    assert margin == pytest.approx(1.0, abs=1e-3)
    assert report["classes_separated"] == 3
    assert report["radius"] == pytest.approx(radius)
    square = (W**2).sum() / margin**2
    assert report["error_bound"] == pytest.approx(error_bound(60, 3, square, radius))
    rows = (W**2).sum(axis=1) / margin**2
    most = class_error_bound(60, 3, square, float(rows.max()), radius)
    assert report["class_error_bound_most"] == pytest.approx(most, rel=0.05)
    kernel = trained("spoc", problem, C=100.0, tol=1e-6, bias=bias, kernel="linear")
    assert report["error_bound"] == pytest.approx(kernel.report["error_bound"], rel=1e-2)


def test_a_sample_that_is_not_separated_and_one_too_large_have_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = small(n=60)
    model = trained("crammer_singer", problem, C=0.01)
    assert model.report["smallest_margin"] < 0
    assert "error_bound" not in model.report
    monkeypatch.setattr(crammer_singer, "MOST_SCORES", 299)
    assert set(trained("crammer_singer", problem, C=0.01).report) == {"nonzero_weights", "nonzero_duals"}
