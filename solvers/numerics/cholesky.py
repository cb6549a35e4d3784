"""Cholesky factors of large dense matrices by LAPACK, while other threads run.

SciPy's own wrappers keep the interpreter lock for as long as LAPACK works, which is minutes for tens of thousands of
rows: no other thread of the process runs, not even the one that says that it lives. These functions call the same
LAPACK through SciPy's pointers for compiled code, without the lock, and return the same bits.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address

from solvers.numerics.array_types import Array


class NotPositiveDefiniteError(ArithmeticError):
    """A matrix has no Cholesky factor."""


def factorize(A: Array) -> None:
    """Replace the lower triangle of a positive definite matrix by its Cholesky factor; the upper one stays.

    Parameters
    ----------
    A : float32 or float64 array, shape (n, n)
        In Fortran's order.

    Raises
    ------
    NotPositiveDefiniteError
    """
    n = _size(A)
    if _call("potrf", A.dtype, n, A, n):
        raise NotPositiveDefiniteError


def invert(factor: Array) -> None:
    """Replace a factor, as :func:`factorize` leaves it, by the lower triangle of the inverse of its matrix.

    Raises
    ------
    NotPositiveDefiniteError
        A diagonal element of the factor is zero.
    """
    n = _size(factor)
    if _call("potri", factor.dtype, n, factor, n):
        raise NotPositiveDefiniteError


def solve(factor: Array, B: Array) -> None:
    """Replace B by the solutions of the systems whose matrix has this factor, as :func:`factorize` leaves it.

    Parameters
    ----------
    factor : float32 or float64 array, shape (n, n)
    B : array, shape (n, k)
        Of the same dtype, in Fortran's order.
    """
    n = _size(factor)
    if B.dtype != factor.dtype or B.shape[:1] != (n,) or not B.flags.f_contiguous:
        raise ValueError("the right sides do not fit the factor")
    _call("potrs", factor.dtype, n, B.shape[1], factor, n, B, n)


def _size(A: Array) -> int:
    n = int(A.shape[0])
    if A.shape != (n, n) or A.dtype not in (np.float32, np.float64) or not A.flags.f_contiguous:
        raise ValueError("not a square matrix of floats in Fortran's order")
    return n


def _call(name: str, dtype: Any, *arguments: int | Array) -> int:
    """Call a function of LAPACK on the lower triangle; returns its ``info``."""
    # all arguments are pointers, which `held` keeps alive
    held = [ctypes.c_int(value) if isinstance(value, int) else value for value in arguments]
    info = ctypes.c_int()
    pointers = [value.ctypes.data if isinstance(value, np.ndarray) else ctypes.addressof(value) for value in held]
    _function(("s" if dtype == np.float32 else "d") + name, len(held))(b"L", *pointers, ctypes.addressof(info))
    return int(info.value)


@cache
def _function(name: str, n_arguments: int) -> Any:
    address = get_cython_function_address("scipy.linalg.cython_lapack", name)
    # such a function is called without the interpreter lock
    return ctypes.CFUNCTYPE(None, ctypes.c_char_p, *[ctypes.c_void_p] * (n_arguments + 1))(address)
