"""Numbers beyond the range of floats end training with their reason."""

import math

import pytest

from solvers.core.base import Step, within_range
from solvers.core.problem import ProblemError


def _step(primal: float, dual: float, converged: bool = False) -> Step:
    return Step(1, primal, dual, math.nan, converged, {})


@pytest.mark.parametrize(
    "step",
    [
        _step(math.inf, 0.0),
        _step(1.0, math.inf),
        _step(math.nan, 0.5, converged=True),
        _step(1.0, -math.inf, converged=True),
    ],
)
def test_a_certificate_that_is_no_number_is_a_failure(step: Step) -> None:
    with pytest.raises(ProblemError, match="left the range of floats"):
        list(within_range([_step(1.0, 0.5), step], certified=True))


def test_what_is_not_measured_yet_is_none() -> None:
    steps = [_step(math.nan, math.nan), _step(1.0, -math.inf), _step(1.0, 0.5, converged=True)]
    assert list(within_range(steps, certified=True)) == steps
    assert len(list(within_range([_step(math.nan, math.nan, converged=True)], certified=False))) == 1
