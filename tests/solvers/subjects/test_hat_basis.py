"""The basis of the ranker's numbers: the same in blocks, and no second array of its size."""

import tracemalloc

import numpy as np
import pytest

from solvers.subjects import hat_basis
from solvers.subjects.hat_basis import HatBasis

CROSSED = ((0, 3), (1, 3))


def numbers(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4)).astype(np.float32)
    X[rng.random(n) < 0.5, 1] = 0.0
    X[:, 3] = rng.random(n) < 0.4
    return X


def test_columns_are_centred_and_scaled() -> None:
    X = numbers(1000)
    _, phi = HatBasis.fit(X, CROSSED)
    assert phi.dtype == np.float32
    assert np.allclose(phi.mean(axis=0, dtype=np.float64), 0.0, atol=1e-5)
    assert np.all(phi.std(axis=0, dtype=np.float64) < 1.0 + 1e-4)


def test_blocks_give_the_same_basis(monkeypatch: pytest.MonkeyPatch) -> None:
    X = numbers(1000)
    basis, phi = HatBasis.fit(X, CROSSED)
    monkeypatch.setattr(hat_basis, "_BLOCK", 37)
    in_blocks, phi_in_blocks = HatBasis.fit(X, CROSSED)
    np.testing.assert_allclose(in_blocks.mean, basis.mean, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(in_blocks.deviation, basis.deviation, rtol=1e-12)
    np.testing.assert_allclose(phi_in_blocks, phi, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(in_blocks.transform(X), phi_in_blocks)


def test_the_largest_array_exists_once(monkeypatch: pytest.MonkeyPatch) -> None:
    X = numbers(20_000)
    monkeypatch.setattr(hat_basis, "_BLOCK", 512)
    monkeypatch.setattr(hat_basis, "_MOST_ROWS", 1000)
    tracemalloc.start()
    try:
        _, phi = HatBasis.fit(X, CROSSED)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert phi.nbytes <= most < 1.5 * phi.nbytes
