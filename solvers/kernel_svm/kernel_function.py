"""Kernel functions of inner products: linear, polynomial, radial, and values given beforehand."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from solvers.numerics.array_types import Array, Floats

KernelName = Literal["linear", "poly", "rbf", "precomputed"]

# parameters of the methods that take a kernel
Kernel = Annotated[
    KernelName,
    Field(
        description="linear x.z; poly (gamma x.z + coef0)^degree; rbf exp(-gamma |x - z|^2); precomputed: X is the "
        "Gram matrix of the training examples, and later rows hold kernel values against them."
    ),
]
Degree = Annotated[int, Field(ge=1, le=100, description="Degree of the polynomial kernel.")]
Gamma = Annotated[
    Literal["scale"] | Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)],
    Field(description="Of poly and rbf; scale takes 1 / (n_features * variance of X)."),
]
Coef0 = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False, description="Constant of the polynomial kernel.")]


@dataclass(frozen=True)
class KernelFunction:
    """K(x, z) from x . z and, for the radial kernel, the squared lengths of both.

    Attributes
    ----------
    name : {"linear", "poly", "rbf", "precomputed"}
        ``x . z``, ``(gamma x . z + coef0) ** degree``, ``exp(-gamma |x - z|^2)``, or the entry of a matrix.
    """

    name: KernelName
    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    def of_products(self, products: Floats, left: Floats, right: Floats) -> Floats:
        """Turn inner products into kernel values, in place.

        Parameters
        ----------
        products : float64 array, shape (a, b)
        left, right : float64 arrays, shapes (a,) and (b,)
            Squared lengths of the vectors of the rows and of the columns.
        """
        if self.name == "poly":
            products *= self.gamma
            products += self.coef0
            base = products.copy()
            for _ in range(self.degree - 1):
                products *= base
        elif self.name == "rbf":
            products *= -2.0
            products += left[:, None] + right
            # rounding may leave the distance of two equal vectors below zero
            np.maximum(products, 0.0, out=products)
            products *= -self.gamma
            np.exp(products, out=products)
        return products

    def self_values(self, squares: Floats) -> Floats:
        """K(x, x) from the squared lengths; not for given values."""
        if self.name == "rbf":
            return np.ones_like(squares)
        return self.of_products(squares[:, None].copy(), squares, squares[:1])[:, 0]


def scale_of(X: sp.csr_matrix) -> float:
    """``1 / (n_features * variance of all entries of X)``, or 1 where they are all equal."""
    entries = X.shape[0] * X.shape[1]
    mean = float(X.sum()) / entries
    absent = entries - X.nnz
    variance = (float(((X.data - mean) ** 2).sum()) + absent * mean**2) / entries
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def square_lengths(X: sp.csr_matrix) -> Floats:
    """Squared length of every row, shape (n_samples,)."""
    owner = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    squares: Array = np.bincount(owner, X.data * X.data, X.shape[0])
    return squares
