"""Cholesky factors: the bits of SciPy, and other threads run meanwhile."""

import threading

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import lapack

from solvers.numerics import cholesky


def positive(n: int, dtype: type) -> NDArray[np.floating]:
    A = np.random.default_rng(n).normal(size=(n, n))
    return np.asfortranarray((A @ A.T + n * np.eye(n)).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factor_solution_and_inverse_are_those_of_scipy(dtype: type) -> None:
    A, B = positive(70, dtype), np.asfortranarray(np.random.default_rng(1).normal(size=(70, 3)).astype(dtype))
    letter = "s" if dtype == np.float32 else "d"
    expected, _ = getattr(lapack, f"{letter}potrf")(A, lower=1, clean=0)
    solved, _ = getattr(lapack, f"{letter}potrs")(expected, B, lower=1)
    inverse, _ = getattr(lapack, f"{letter}potri")(expected, lower=1)
    cholesky.factorize(A)
    assert np.array_equal(A, expected)
    cholesky.solve(A, B)
    assert np.array_equal(B, solved)
    cholesky.invert(A)
    assert np.array_equal(A, inverse)


def test_a_matrix_without_factor_is_refused() -> None:
    with pytest.raises(cholesky.NotPositiveDefiniteError):
        cholesky.factorize(np.asfortranarray(-np.eye(3)))
    with pytest.raises(cholesky.NotPositiveDefiniteError):
        cholesky.invert(np.zeros((3, 3), order="F"))


def test_arrays_that_lapack_would_misread_are_refused() -> None:
    A = np.asfortranarray(np.eye(3))
    for wrong in (positive(4, np.float64)[::2], np.arange(9.0).reshape(3, 3), np.eye(3, dtype=np.int64, order="F")):
        with pytest.raises(ValueError, match="square matrix"):
            cholesky.factorize(wrong)
    for B in (np.ones((4, 2), order="F"), np.ones((3, 2)), np.ones((3, 2), np.float32, order="F")):
        with pytest.raises(ValueError, match="right sides"):
            cholesky.solve(A, B)


def test_other_threads_run_during_the_work() -> None:
    ended, beats = threading.Event(), 0

    def beat() -> None:
        nonlocal beats
        while not ended.is_set():
            beats += 1
            ended.wait(0.001)

    A = positive(1500, np.float64)
    thread = threading.Thread(target=beat)
    thread.start()
    try:
        before = beats
        cholesky.factorize(A)
        cholesky.invert(A)
        during = beats - before
    finally:
        ended.set()
        thread.join()
    # wrappers that keep the lock let a thread run where a call begins and where it ends
    assert during > 10
