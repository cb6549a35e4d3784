"""Answers that are certain: the exact optimum of the training problem gives the same ones.

A machine that minimises ``P(W) = 1/2 |W|^2 + L(W)`` with a convex L has one optimum W*, and its duality gap says how
far from it the weights may be. Let G be ``P(W) - D(a)``, and V the weights that the dual variables a make.

1. P is strongly convex with modulus 1 and least at W*, so ``P(W) >= P(W*) + 1/2 |W - W*|^2``.
2. The dual is a concave function less ``1/2 |V|^2``, and W* are the weights of its maximum, so
   ``D(a) <= D* - 1/2 |V - W*|^2``.
3. ``D* <= P(W*)``. The sum of all three is ``|W - W*|^2 + |V - W*|^2 <= 2 G``, and by the parallelogram's law

       |W* - (W + V) / 2|^2 <= G - 1/4 |W - V|^2.

Where W is V, which is so at most certificates, the radius is ``sqrt(G)``: less than ``sqrt(2 G)``, which step 1 alone
gives (Ndiaye et al. 2017, Theorem 2), by the root of two. Where the problem is a sum over the classes, as that of
one-vs-rest is, each class has a gap and a ball of its own.

A change of W by at most r changes the lead ``(w_y - w_c)' x`` by at most ``sqrt(2) r |x|``, and changes of w_y and w_c
alone by at most ``(r_y + r_c) |x|``. So a class that leads every other one by more than that leads it at W*, too. An
answer that is not certain may still be that of the optimum: the bound says nothing of it.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.core.model import Model
from solvers.numerics.array_types import AnyFloats, Bools, Floats

# what rounding may hide of a gap, as a certificate allows it: so many units of the objective's precision
ROUNDINGS = 1e3
# how far the weights of a model are from those that were measured, by their precision and norm
ROUNDINGS_OF_WEIGHTS = 8.0
# of weights and scores beside the products that a score sums
SCORE_ROUNDINGS = 8
CHUNK_BYTES = 64 << 20


class Reach(NamedTuple):
    """How far a model's leads may be from those of the exact optimum of its training problem.

    Of a row x, counted with the constant feature, class y leads class c at the optimum if it leads it by more than
    ``(of_classes[y] + of_classes[c]) |x|``, and by what rounding may add to that.

    Attributes
    ----------
    of_classes : float64 array, shape (n_classes,) or (1,)
        One number where all classes have the same.
    constant : float
        The value of the constant feature; 0 without one.
    norm : float
        Of the longest weight vector of a class, the constant feature's weight included; for the rounding of scores.
    """

    of_classes: Floats
    constant: float
    norm: float

    def as_json(self) -> dict[str, Any]:
        """What :meth:`of_json` takes back."""
        return {"of_classes": self.of_classes.tolist(), "constant": self.constant, "norm": self.norm}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> "Reach":
        return cls(np.array(stored["of_classes"], np.float64), float(stored["constant"]), float(stored["norm"]))


def radius(gap: float, apart: float | None = None) -> float:
    """How far W* is from the middle of W and V at most; of W itself where it is not known how far ``apart`` they are.

    Parameters
    ----------
    gap : float
        ``P(W) - D(a)``.
    apart : float, optional
        ``|W - V|``.
    """
    return math.sqrt(2.0 * gap) if apart is None else math.sqrt(max(0.0, gap - 0.25 * apart * apart))


def joint_reach(model: Model, primal: float, dual: float, multiple: float | None, constant: float) -> Reach:
    """The reach where one gap is of all classes.

    Parameters
    ----------
    model : Model
        Linear; its weights are the W that ``primal`` is of.
    primal, dual : float
        The objective at W, and the dual value.
    multiple : float, optional
        Of the weights V that the dual variables make, W is this multiple. Then the middle of both is a multiple of W,
        and leads there are in proportion to those of W. None: V is not known.
    constant : float
        The value of the constant feature, which the model has as intercept; 0 without one.
    """
    norms, precision = _norms(model, constant)
    size, gap = math.sqrt(float(norms @ norms)), primal - dual + ROUNDINGS * precision * abs(primal)
    if multiple is None:
        r = radius(gap)
    else:
        middle = 0.5 * (1.0 + 1.0 / multiple)
        r = radius(gap, abs(1.0 - 1.0 / multiple) * size) / middle
    r += ROUNDINGS_OF_WEIGHTS * precision * size
    return Reach(np.array([r / math.sqrt(2.0)]), constant, float(norms.max()))


def reach_of_classes(model: Model, gaps: Floats, sizes: Floats, apart: Floats | None, constant: float) -> Reach:
    """The reach where each class has a gap of its own.

    Parameters
    ----------
    model : Model
        As for :func:`joint_reach`.
    gaps : float64 array, shape (n_classes,)
    sizes : float64 array, shape (n_classes,)
        What each class's objective is at most; for the rounding of the gaps.
    apart : float64 array, shape (n_classes,), optional
        How far the class's weights are from those that its dual variables make; None where these are not known.
    constant : float
        As for :func:`joint_reach`.
    """
    norms, precision = _norms(model, constant)
    gaps = np.maximum(gaps, 0.0) + ROUNDINGS * precision * sizes
    # from W to the middle, and from there to the optimum
    r = np.sqrt(2.0 * gaps) if apart is None else 0.5 * apart + np.sqrt(np.maximum(0.0, gaps - 0.25 * apart**2))
    return Reach(r + ROUNDINGS_OF_WEIGHTS * precision * norms, constant, float(norms.max()))


def certain(model: Model, X: sp.csr_matrix, allowed: Bools | None = None) -> Bools:
    """Which rows the exact optimum of the training problem answers as the model does.

    Parameters
    ----------
    model : Model
        With a reach.
    X : csr_matrix, shape (n_samples, n_features)
    allowed : bool array, shape (n_classes,), optional
        The classes that may be answered; None: all.

    Returns
    -------
    bool array, shape (n_samples,)
        False says nothing: the optimum's answer may be the same.

    Raises
    ------
    ValueError
        The model has no reach.
    """
    size = max(1, CHUNK_BYTES // (8 * len(model.classes)))
    chunks = (X[begin : begin + size] for begin in range(0, X.shape[0], size))
    parts = [certain_by_scores(model, chunk, model.scores(chunk), allowed) for chunk in chunks]
    return np.concatenate([np.empty(0, bool), *parts])


def certain_by_scores(model: Model, X: sp.csr_matrix, scores: AnyFloats, allowed: Bools | None = None) -> Bools:
    """As :func:`certain`, of rows whose scores are known, shape (n_samples, n_classes); these are not changed."""
    if model.reach is None:
        raise ValueError("the model cannot certify answers: its training did not compute the required certificate")
    reach = model.reach
    precision, F = _precision(scores), scores.astype(np.float64)
    if allowed is not None:
        F[:, ~allowed] = -np.inf
    lengths = np.sqrt(_squares(model, X) + reach.constant**2)
    # two scores of a difference, each in another order of summing
    rounding = 2.0 * (np.diff(X.indptr) + SCORE_ROUNDINGS) * precision * lengths * reach.norm
    rows, answers = np.arange(len(F)), F.argmax(axis=1)
    of_answers = reach.of_classes[answers] if len(reach.of_classes) > 1 else reach.of_classes[0]
    least = F[rows, answers] - of_answers * lengths - rounding
    F += lengths[:, None] * reach.of_classes
    F[rows, answers] = -np.inf
    return np.asarray(least > F.max(axis=1))


def _squares(model: Model, X: sp.csr_matrix) -> Floats:
    """The squared lengths of rows, of the features alone that some training row has: W* has no weights of others.

    In sparse weights, features whose weights are all zero at W look the same, and they may have weights at W*.
    """
    weights = model.linear_weights()
    known = np.ones(X.shape[1], bool)
    if weights is not None and not isinstance(weights.W, sp.csr_matrix) and len(weights.features) < X.shape[1]:
        known[:] = False
        known[weights.features] = True
    data = X.data.astype(np.float64) * known[X.indices]
    return np.asarray(np.bincount(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), data**2, X.shape[0]))


def _norms(model: Model, constant: float) -> tuple[Floats, float]:
    """The length of each class's weight vector, shape (n_classes,), and the precision of the weights."""
    weights = model.linear_weights()
    assert weights is not None
    W = weights.W
    squares: Floats
    if isinstance(W, sp.csr_matrix):
        squares = np.bincount(W.indices, W.data.astype(np.float64) ** 2, W.shape[1]).astype(np.float64)
        precision = _precision(W.data)
    else:
        squares, precision = np.einsum("jc,jc->c", W, W, dtype=np.float64), _precision(W)
    if weights.intercept is not None and constant > 0:
        squares = squares + (weights.intercept.astype(np.float64) / constant) ** 2
    return np.sqrt(squares), precision


def _precision(array: AnyFloats) -> float:
    return float(np.finfo(array.dtype).eps)
