import numpy as np
import pytest

from solvers.numerics.best import kth_smallest


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("distinct", [1, 2, 5, 1000])
def test_it_is_that_of_the_sorted_values(distinct, dtype):
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 16, 57):
        values = rng.integers(distinct, size=n).astype(dtype)
        values[rng.random(n) < 0.2] = -np.inf
        for given in (values, np.sort(values), np.sort(values)[::-1]):
            found = [kth_smallest(given.copy(), k) for k in range(n)]
            np.testing.assert_array_equal(found, np.sort(values))
