"""Products of sparse rows, against SciPy's."""

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.numerics.row_products import gram


def made(n: int, m: int, density: float, dtype: type) -> sp.csr_matrix:
    return sp.csr_matrix(sp.random(n, m, density, format="csr", random_state=n + m, dtype=np.float64), dtype=dtype)


@pytest.mark.parametrize(("n", "density"), [(1, 1.0), (7, 0.0), (600, 0.05), (1100, 0.02)])
def test_products_with_oneself_are_those_of_a_sparse_product(n: int, density: float) -> None:
    X = made(n, 300, density, np.float64)
    G = gram(X)
    assert np.array_equal(G, (X @ X.T.tocsr()).toarray())
    assert np.array_equal(G, G.T)


def test_single_precision_is_rounded_after_the_sum() -> None:
    X = made(400, 200, 0.1, np.float64)
    G = gram(X, np.float32)
    assert G.dtype == np.float32
    assert np.array_equal(G, gram(X).astype(np.float32))
