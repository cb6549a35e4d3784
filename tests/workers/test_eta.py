"""The time left: an estimate that knows its limits."""

import math

import pytest

from workers.running.eta import EtaEstimate


def test_a_gap_that_falls_tenfold_a_second_ends_when_it_reaches_the_tolerance() -> None:
    estimate = EtaEstimate(tol=1e-6, max_epochs=None)
    for second in range(4):
        fraction, eta = estimate.step(second + 1, 10.0**-second, float(second))
    assert eta == pytest.approx(3.0)
    assert fraction == pytest.approx(0.5)


def test_the_limit_of_epochs_ends_training_too() -> None:
    fraction, eta = EtaEstimate(tol=1e-6, max_epochs=10).step(2, math.nan, 4.0)
    assert fraction == pytest.approx(0.2)
    assert eta == pytest.approx(16.0)


def test_the_limit_of_epochs_promises_nothing_while_it_is_far_away() -> None:
    estimate = EtaEstimate(tol=0.05, max_epochs=1000)
    assert estimate.step(3, math.nan, 360.0) == (0.0, None)
    assert estimate.step(100, math.nan, 400.0) == (pytest.approx(0.1), pytest.approx(3600.0))


def test_without_a_trend_nothing_is_promised() -> None:
    estimate = EtaEstimate(tol=1e-3, max_epochs=None)
    assert estimate.step(1, math.nan, 1.0) == (0.0, None)
    assert estimate.step(2, 0.5, 2.0) == (0.0, None)
    assert estimate.step(3, 0.6, 3.0) == (0.0, None)


def test_the_fraction_never_falls_and_never_says_done() -> None:
    estimate = EtaEstimate(tol=1e-3, max_epochs=None)
    gaps = [1.0, 0.1, 0.5, 0.01, 0.3, 1e-4, 1e-5]
    fractions = [estimate.step(i, gap, float(i))[0] for i, gap in enumerate(gaps)]
    assert fractions == sorted(fractions)
    assert fractions[-1] < 1


def test_the_share_that_a_method_tells_is_taken_and_never_falls() -> None:
    eta = EtaEstimate(0.01, 1000)
    assert eta.step(3, math.nan, 10.0, 0.25) == (0.25, pytest.approx(30.0))
    assert eta.step(4, math.nan, 12.0, 0.2) == (0.25, pytest.approx(36.0))
