"""How large numbers are, and how far the spreads of columns lie apart."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from app.store.row_checks import number_scales, why_scaled


@pytest.mark.parametrize("unit", [1.0, 1e-250, 1e250])
def test_the_largest_and_smallest_deviations_of_dense_columns_are_found(unit: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)) * np.array([1e-3, 1.0, 1e3]) + np.array([5.0, 0.0, -7.0])
    found = number_scales(csr_matrix(X * unit), ["small", "one", "large"])
    assert found.least_spread is not None
    assert found.most_spread is not None
    assert (found.least_spread.column, found.most_spread.column) == ("small", "large")
    assert found.least_spread.deviation == pytest.approx(X[:, 0].std() * unit, rel=1e-9)
    assert found.most_spread.deviation == pytest.approx(X[:, 2].std() * unit, rel=1e-9)
    assert found.largest == pytest.approx(np.abs(X).max() * unit)
    assert "'large'" in str(why_scaled(found))


def test_constant_columns_and_zeros_have_no_spread() -> None:
    found = number_scales(csr_matrix(np.array([[0.1, 1.7e18], [0.1, 1.7e18], [0.1, 1.7e18]])), None)
    assert (found.least_spread, found.most_spread) == (None, None)
    assert number_scales(csr_matrix((3, 2)), None).largest == 0.0


def test_sparse_numbers_of_an_ordinary_size_are_taken_as_they_are() -> None:
    X = csr_matrix((np.array([1e-6, 1e6]), ([0, 9], [0, 9])), shape=(10, 10))
    assert why_scaled(number_scales(X, None)) is None
    assert "very large" in str(why_scaled(number_scales(X * 1e10, None)))
    assert "very small" in str(why_scaled(number_scales(X * 1e-20, None)))
