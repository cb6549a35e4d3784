"""The step on one weight, against eighty digits."""

from decimal import Decimal, getcontext
from itertools import product

import numpy as np
import pytest

from solvers.boosting.pairs import coordinates

getcontext().prec = 80
MASSES = [0.0, 1e-290, 1e-30, 1e-7, 0.3, 5.0, 1e5]


def slope(v: Decimal, w: float, plus: float, minus: float, a: float) -> Decimal:
    """Derivative of the smooth part of the one-variable problem, in 80 digits."""
    up = (v - Decimal(w)).exp()
    return (Decimal(minus) * up - Decimal(plus) / up) / (2 * Decimal(a))


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3, 1e8, 1e17, 1e30])
@pytest.mark.parametrize("signed", [False, True])
def test_a_step_ends_in_the_minimum_to_the_last_digits(C, signed):
    a = 0.5 * 9e4 / C
    for w, plus, minus in product([0.0, 0.7, 40.0, -2.0], MASSES, MASSES):
        if w < 0 and not signed:
            continue
        v = coordinates.best_weight(w, plus, minus, a, signed)
        assert np.isfinite(v)
        assert signed or v >= 0
        if v == 0:
            pull = slope(Decimal(0), w, plus, minus, a)
            assert pull >= Decimal("-1.000000000001")
            assert not signed or pull <= Decimal("1.000000000001")
            continue
        # the derivative changes its sign within some units in the last place around v
        width = Decimal(8 * np.spacing(max(abs(v), abs(w), abs(v - w), 1.0)))
        responses = [slope(Decimal(v) + s * width, w, plus, minus, a) + (1 if v > 0 else -1) for s in (-1, 1)]
        assert responses[0] <= 0 <= responses[1], (w, plus, minus, v)


def test_without_regularisation_in_sight_the_step_is_that_of_adaboost():
    assert coordinates.best_weight(0.0, 0.4, 0.1, 1e-30, False) == pytest.approx(0.5 * np.log(4.0), rel=1e-14)
    assert coordinates.best_weight(0.0, 0.1, 0.4, 1e-30, False) == 0.0
    assert coordinates.best_weight(0.0, 0.1, 0.4, 1e-30, True) == pytest.approx(-0.5 * np.log(4.0), rel=1e-14)
