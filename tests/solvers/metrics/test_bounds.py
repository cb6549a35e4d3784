"""What margins say about errors to come."""

import numpy as np
import pytest
from problems import linear_map, small
from training import fitted, machine

from solvers.core.problem import Problem
from solvers.metrics import bounds


def trained(problem, **params):
    return fitted(machine("spoc", **params), problem)[1]


def test_the_bound_on_all_errors_is_corollary_2():
    m, k, square, R, delta = 500, 4, 7.5, 1.3, 0.1
    pairs = 6
    expected = (
        130 * R**2 / m * (k * square * np.log(4 * np.e * m) * np.log(4 * m) + np.log(2 * (2 * m) ** pairs / delta))
    )
    assert bounds.error_bound(m, k, square, R, delta) == pytest.approx(expected)


def test_the_bound_on_one_class_is_corollary_3():
    m, k, square, own, R, delta = 500, 4, 7.5, 2.0, 1.3, 0.1
    capacity = (k * own + square) * np.log(4 * np.e * m) * np.log(4 * m)
    expected = 130 * R**2 / m * (capacity + np.log(2 * (2 * m) ** (k - 1) / delta))
    assert bounds.class_error_bound(m, k, square, own, R, delta) == pytest.approx(expected)


def test_many_classes_overflow_nothing_and_more_examples_promise_more():
    values = [bounds.error_bound(m, 5000, 3.0, 1.0) for m in (10**4, 10**6, 10**8)]
    assert np.isfinite(values).all()
    assert values == sorted(values, reverse=True)
    assert bounds.error_bound(10**9, 3, 1.0, 1.0) < 1


def test_a_class_margin_is_the_least_lead_in_which_the_class_takes_part():
    F = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, -1.0], [0.0, 1.5, 2.0], [0.0, 5.0, 2.0]])
    reported = bounds.report(F, np.array([0, 1, 2, 1], np.int32), np.ones(3), 1.0, 4)
    # leads: 2 and 3; 2 and 3; 2 and 0.5; 5 and 3
    assert reported["smallest_margin"] == 0.5
    assert reported["classes_separated"] == 3
    by_class = [bounds.class_error_bound(4, 3, 3 / m**2, 1 / m**2, 1.0) for m in (2.0, 0.5, 0.5)]
    assert reported["class_error_bound_least"] == pytest.approx(min(by_class))
    assert reported["class_error_bound_most"] == pytest.approx(max(by_class))
    assert reported["error_bound"] == pytest.approx(bounds.error_bound(4, 3, 3 / 0.5**2, 1.0))


def test_a_machine_that_errs_on_its_sample_gets_a_bound_only_for_the_classes_it_separates():
    F = np.array([[3.0, 0.0, 0.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    reported = bounds.report(F, np.array([0, 1, 2], np.int32), np.ones(3), 1.0, 3)
    assert reported["classes_separated"] == 1
    assert "error_bound" not in reported
    assert reported["class_error_bound_least"] == reported["class_error_bound_most"]
    none = bounds.report(-F, np.array([0, 1, 2], np.int32), np.ones(3), 1.0, 3)
    assert "class_error_bound_least" not in none


def test_the_bound_does_not_change_when_all_scores_are_multiplied():
    F, y = np.array([[1.0, 0.0], [-0.5, 0.5]]), np.array([0, 1], np.int32)
    once, twice = bounds.report(F, y, np.ones(2), 1.0, 2), bounds.report(2 * F, y, 4 * np.ones(2), 1.0, 2)
    assert once["error_bound"] == pytest.approx(twice["error_bound"])


def test_a_models_report_tells_the_norm_margin_and_support_that_its_scores_show():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    problem = Problem.check(np.eye(3)[y] + 0.1 * rng.standard_normal((60, 3)), y)
    model = trained(problem, kernel="linear", C=100.0)
    F, W, report = model.scores(problem.X), linear_map(model), model.report
    assert report["norm"] == pytest.approx(np.linalg.norm(W))
    assert report["radius"] == pytest.approx(np.sqrt(problem.X.power(2).sum(axis=1).max()))
    assert report["n_support"] == model.n_support < 60
    assert report["support_share"] == model.n_support / 60
    wrong = np.where(np.eye(3)[y] > 0, -np.inf, F).max(axis=1)
    assert report["smallest_margin"] == pytest.approx((F[np.arange(60), y] - wrong).min())
    assert report["smallest_margin"] > 0
    expected = bounds.error_bound(60, 3, report["norm"] ** 2 / report["smallest_margin"] ** 2, report["radius"])
    assert report["error_bound"] == pytest.approx(expected)


def test_every_number_of_a_report_is_finite_so_that_it_can_be_saved(tmp_path):
    model = trained(small(n=30), C=1e-6)
    assert np.isfinite(list(model.report.values())).all()
    model.save(tmp_path / "m")
