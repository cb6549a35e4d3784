"""One sigmoid for all labels of sets, which depends on how many rows of the training have the label.

    log-odds(i, j) = (t_0 + t_1 l) s_j(x_i) + t_2 + t_3 l,   l = log n_j

n_j are the rows with label j that the model which scored row i was trained on. For the model of all rows they count as
in the folds: t is not known beyond the numbers that it is fitted to, least of all where labels are about as frequent as
each other. Labels that few rows have share what is known of them: alone, a label whose rows are all held out has scores
that hardly differ, and any sigmoid of its own is noise.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from solvers.numerics.array_types import AnyFloats, AnyInts, Array, Floats, Ints

NEWTON_STEPS, RIDGE = 30, 1e-3
# false pairs of rows and labels that sigmoids are fitted to
MOST_PAIRS = 1 << 20


class Trained(NamedTuple):
    """What the models that score rows held out were trained on.

    Attributes
    ----------
    fold : int array, shape (n_rows,)
        That of each row held out.
    counts : int array, shape (n_folds, n_labels)
        Rows with each label that the model of each fold was trained on.
    whole : int array, shape (n_labels,)
        Rows with each label in all.
    """

    fold: AnyInts
    counts: Ints
    whole: Ints

    @property
    def typical(self) -> Floats:
        """Rows with each label, as many as the model of a fold has of those in all; shape (n_labels,)."""
        share = float(self.counts.sum()) / max(1.0, float(len(self.counts) * self.whole.sum()))
        return np.asarray(share * self.whole, np.float64)


class FrequencyCalibration(NamedTuple):
    """The sigmoid.

    Attributes
    ----------
    slope, offset : float64 array, shape (2,)
        Weights t of the scores and of the constant.
    centre, scale : float
        Of the scores.
    size : float
        The mean of l, from which it counts.
    """

    slope: Floats
    offset: Floats
    centre: float = 0.0
    scale: float = 1.0
    size: float = 0.0

    @classmethod
    def fit(
        cls, scores: AnyFloats, labels: sp.csr_matrix, trained: Trained, *, frequency: bool
    ) -> "FrequencyCalibration":
        """Minimise the log loss over pairs of rows and labels that the row's model was trained on.

        Parameters
        ----------
        scores : float array, shape (n_rows, n_labels)
        labels : csr_matrix of bool, same shape
        frequency : bool
            False: t_1 and t_3 are 0, so that the order within a row is that of the scores.
        """
        row, label, weights, n_true = _pairs(labels)
        known = trained.counts[trained.fold[row], label] > 0
        row, label, weights, n_true = row[known], label[known], weights[known], int(known[:n_true].sum())
        if len(row) == 0:
            return cls(np.array([1.0, 0.0]), np.array([-4.0, 0.0]))
        values = scores[row, label].astype(np.float64)
        total = float(weights.sum())
        centre = float(weights @ values) / total
        scale = float(np.sqrt(weights @ (values - centre) ** 2 / total)) or 1.0
        values = (values - centre) / scale
        columns, middle = [values, np.ones_like(values)], 0.0
        if frequency:
            size = np.log(trained.counts[trained.fold[row], label])
            middle = float(weights @ size) / total
            columns += [values * (size - middle), size - middle]
        Z = np.stack(columns)
        share = (n_true + 0.5) / (total + 1.0)
        t = np.array([1.0, np.log(share / (1.0 - share)), 0.0, 0.0])[: len(Z)]
        value, gradient, hessian = _measure(Z, weights, n_true, t)
        for _ in range(NEWTON_STEPS):
            direction = np.linalg.solve(hessian + RIDGE * np.eye(len(t)), gradient)
            if float(gradient @ direction) < 1e-6 * (1.0 + value):
                break
            length = 1.0
            while length > 1e-4:
                tried = _measure(Z, weights, n_true, t - length * direction)
                if tried[0] <= value - 1e-4 * length * float(gradient @ direction):
                    break
                length /= 2.0
            else:
                break
            t, (value, gradient, hessian) = t - length * direction, tried
        t = np.append(t, np.zeros(4 - len(t)))
        return cls(t[[0, 2]], t[[1, 3]], centre, scale, middle)

    def lines(self, counts: Array) -> tuple[Floats, Floats]:
        """Slope and offset of the log-odds of labels that so many training rows have, each of the shape of counts."""
        size = np.log(np.maximum(counts, 1)) - self.size
        slope = np.maximum(self.slope[0] + self.slope[1] * size, 1e-6) / self.scale
        return slope, self.offset[0] + self.offset[1] * size - slope * self.centre


def _pairs(labels: sp.csr_matrix) -> tuple[Ints, Ints, Floats, int]:
    """Rows and labels of pairs, first all the true ones, what each pair weighs, and how many are true.

    Many false pairs are represented by a sample.
    """
    n, k = labels.shape
    true = np.repeat(np.arange(n, dtype=np.int64), np.diff(labels.indptr)) * k + labels.indices
    if n * k <= MOST_PAIRS:
        is_false = np.ones(n * k, bool)
        is_false[true] = False
        false = np.flatnonzero(is_false)
    else:
        drawn = np.random.default_rng([n, k]).integers(n * k, size=MOST_PAIRS)
        ordered = np.sort(true)
        place = np.minimum(np.searchsorted(ordered, drawn), max(0, len(true) - 1))
        false = drawn[ordered[place] != drawn] if len(true) else drawn
    pairs = np.concatenate([true, false])
    weight = (n * k - len(true)) / max(1, len(false))
    return pairs // k, pairs % k, np.where(np.arange(len(pairs)) < len(true), 1.0, weight), len(true)


def _measure(Z: Floats, weights: Floats, n_true: int, t: Floats) -> tuple[float, Floats, Floats]:
    """The log loss with the ridge, its gradient and its Hessian; the first pairs are true."""
    f = t @ Z
    p = expit(f)
    value = float(weights @ np.logaddexp(0.0, f) - f[:n_true].sum()) + 0.5 * RIDGE * float(t @ t)
    errors = weights * p
    errors[:n_true] -= 1.0
    return value, Z @ errors + RIDGE * t, (Z * (weights * p * (1.0 - p))) @ Z.T
