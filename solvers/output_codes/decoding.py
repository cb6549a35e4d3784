"""Decoding: scores of the classes from the margins of a code's columns.

By inner product (Crammer and Singer 2002, section 2), by Hamming distance and by loss (Allwein, Schapire and Singer
2000, equations 4 and 5).
"""

from collections.abc import Callable
from typing import Literal

import numpy as np

from solvers.numerics.array_types import Array, Floats
from solvers.output_codes.codes import is_discrete, products

Loss = Literal["hinge", "squared_hinge", "exponential", "logistic"]

# of the intervals over which secants are taken: the difference of closer losses would be one of rounding errors
_LEAST_HALF = 1e-6


def decode(h: Array, code: Array, how: str = "inner_product", loss: Loss = "hinge") -> Floats:
    """Scores of the classes from the answers of the columns; the largest is the prediction.

    Parameters
    ----------
    h : float array, shape (n_samples, n_columns)
        Margins of the binary machines.
    code : array, shape (n_classes, n_columns)
    how : str
        ``inner_product``: ``M h``. ``votes``: ``M sign(h)``. ``hamming``: less the distance
        ``sum_t (1 - sign(M_rt h_t)) / 2``. ``loss``: less ``sum_t loss(M_rt h_t)`` (Allwein, Schapire and Singer
        2000, equations 4 and 5).
    loss : str
        For ``loss``: ``hinge`` (1 - z)_+, its square, ``exponential`` exp(-z), or ``logistic`` log(1 + exp(-2 z)).

    Returns
    -------
    float64 array, shape (n_samples, n_classes)
    """
    h = np.asarray(h, dtype=np.float64)
    if how == "inner_product":
        return products(h, np.asarray(code))
    if how == "votes":
        return products(np.sign(h), np.asarray(code))
    if how == "hamming":
        return np.asarray(0.5 * products(np.sign(h), np.sign(code)) - 0.5 * code.shape[1])
    if how != "loss":
        raise ValueError(f"unknown decoding {how!r:.80}; expected inner_product, votes, hamming or loss")
    of = _LOSSES[loss]
    if not is_discrete(code):
        return np.asarray(-np.stack([of(h * row).sum(axis=1) for row in code.astype(np.float64)], axis=1))
    zeros = (code == 0).sum(axis=1) * of(np.zeros(1))
    return np.asarray(-(products(of(h), code > 0) + products(of(-h), code < 0) + zeros))


def loss_secants(after: Floats, before: Floats, code: Array, loss: Loss) -> Floats:
    """By how much a class's score by loss rises for each unit of each margin, on the way from some margins to others.

    Parameters
    ----------
    after, before : float64 arrays, shape (n_columns,)
        Margins of a row, and of another.
    code : array, shape (n_columns,)
        The row of the class.
    loss : str

    Returns
    -------
    float64 array, shape (n_columns,)
        m with ``m @ (after - before)`` the difference of the two scores; slopes where margins are equal.
    """
    of, signs = _LOSSES[loss], code.astype(np.float64)
    middle, half = (after + before) / 2.0, np.maximum(np.abs(after - before) / 2.0, _LEAST_HALF)
    return np.asarray((of(signs * (middle - half)) - of(signs * (middle + half))) / (2.0 * half))


def _squared_hinge(z: Floats) -> Floats:
    return np.maximum(1.0 - z, 0.0) ** 2


def _exponential(z: Floats) -> Floats:
    # sums over any number of columns stay finite
    return np.exp(np.minimum(-z, 600.0))


_LOSSES: dict[str, Callable[[Floats], Floats]] = {
    "hinge": lambda z: np.maximum(1.0 - z, 0.0),
    "squared_hinge": _squared_hinge,
    "exponential": _exponential,
    "logistic": lambda z: np.logaddexp(0.0, -2.0 * z),
}
