"""Roots of the equations of a block: each solves its equation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.numerics.block_roots import box_root, simplex_root

values = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12).map(np.array)
bounds = st.sampled_from([1e-3, 0.1, 1.0, 50.0, 1e6])


@settings(deadline=None, max_examples=300, derandomize=True)
@given(values, bounds, st.booleans(), st.floats(-10, 10))
def test_box_root_solves_its_equation(b, bound, shared, start):
    gamma = 1.0 if shared else -1.0 / (len(b) + 1)
    S = box_root(b, len(b), bound, gamma, start)
    assert np.clip(b - gamma * S, 0, bound).sum() == pytest.approx(S, abs=1e-11 * max(1.0, np.abs(b).max() * len(b)))


@settings(deadline=None, max_examples=300, derandomize=True)
@given(values, bounds)
def test_simplex_root_solves_its_equation(b, bound):
    theta = simplex_root(b, len(b), bound)
    total = np.maximum(b - theta, 0).sum()
    assert total == pytest.approx(min(theta, bound), abs=1e-11 * max(1.0, np.abs(b).max() * len(b)))
