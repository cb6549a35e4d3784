"""A temperature for each row of a pool: rows on which the models agree are made less sure, the others more.

    log p(x) = log_softmax(t(x) z(x)),  t = exp(a) H^w,

where z are the pooled scores and H is the entropy of their softmax, after the entropy-based temperatures of Balanya,
Maronas and Ramos (Adaptive Temperature Scaling for Robust Calibration of Deep Neural Networks, 2024). Ranks of labels
stay as they are, and so does what features bring to them, but for one positive factor a row.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from solvers.labels import stored_arrays
from solvers.numerics.array_types import Array, Floats, Floats32, Ints32
from solvers.selection.pooling import WORTH, Pool, cautious, log_softmax

# of entropies, below which rows are equally sure
LEAST_ENTROPY = 1e-6
# what log-likelihood two parameters have to gain over all rows, beside the share of the loss that counts
LEAST_GAIN = 4.0
MOST_SCALE, MOST_POWER = 2.0, 0.5


class TemperatureScaling(NamedTuple):
    """The logarithm of the factor of all rows, a, and the power of the entropy, w."""

    scale: float
    power: float

    @classmethod
    def fit(cls, pooled: Floats32, y: Ints32) -> "TemperatureScaling | None":
        """Of the least log loss; None where that gains too little. As with pools the least sure of equals is taken.

        Parameters
        ----------
        pooled : float32 array, shape (n_rows, n_classes)
            Of rows that the models were not trained on.
        y : int32 array, shape (n_rows,)
        """
        entropy = _log_entropy(pooled)
        # about their mean the two parameters have little to do with one another
        centre = float(entropy.mean())
        before = _loss(np.zeros(2), pooled, y, entropy - centre)[0]
        bounds = [(-MOST_SCALE, MOST_SCALE), (0.0, MOST_POWER)]
        # imported here: every process that knows the methods would wait for it
        from scipy.optimize import minimize

        found = minimize(_loss, np.zeros(2), (pooled, y, entropy - centre), method="L-BFGS-B", jac=True, bounds=bounds)
        if before - found.fun < WORTH * before + LEAST_GAIN / len(y):
            return None
        fitted = cls(float(found.x[0] - centre * found.x[1]), float(found.x[1]))
        said = fitted.apply(pooled)
        careful = cautious(Pool((0,), np.ones(1), float(found.fun)), [said], y).coefficients[0]
        return fitted._replace(scale=fitted.scale + float(np.log(careful)))

    def factors(self, pooled: Floats32) -> Floats32:
        """t of each row, shape (n_rows, 1)."""
        return np.exp(self.scale + self.power * _log_entropy(pooled)).astype(np.float32)[:, None]

    def apply(self, pooled: Floats32) -> Floats32:
        """``t(x) z(x)``."""
        return self.factors(pooled) * pooled

    def arrays(self) -> dict[str, Array]:
        return {"values": np.array(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> "TemperatureScaling":
        values = np.asarray(arrays["values"])
        stored_arrays.require_floats("tempering", values, 2)
        return cls(*values.tolist())


def _log_entropy(pooled: Floats32) -> Floats:
    """In double precision: of rows that are nearly sure, little is left of the entropy in single precision."""
    shifted = pooled.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    p = np.exp(shifted)
    total = p.sum(axis=1)
    entropy = np.log(total) - (p * np.where(p > 0, shifted, 0.0)).sum(axis=1) / total
    return np.asarray(np.log(np.maximum(entropy, LEAST_ENTROPY)))


def _loss(values: Floats, pooled: Floats32, y: Ints32, entropy: Floats) -> tuple[float, Floats]:
    """Mean log loss and its gradient."""
    factors, rows = np.exp(values[0] + values[1] * entropy), np.arange(len(y))
    said = log_softmax(factors.astype(np.float32)[:, None] * pooled)
    p = np.exp(said)
    lead = (p * np.where(p > 0, pooled, np.float32(0))).sum(axis=1, dtype=np.float64) - pooled[rows, y]
    slopes = lead * factors
    gradient = np.array([slopes.mean(), (slopes * entropy).mean()])
    return -float(said[rows, y].mean(dtype=np.float64)), gradient
