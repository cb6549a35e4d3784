"""Rankers of candidates: a linear score of a (row, candidate) pair, fitted on lists of true and false candidates.

    P(w) = lambda/2 |w|^2 + 1/n sum_i 1/|P_i| sum_{y in P_i} log(1 + sum_{z in N_i} exp(w . (phi_iz - phi_iy)))

is the soft maximum of the margins that Weston and Watkins compare one by one: each true candidate y of a row against
all of its false ones. For the dual point made of the loss's gradient in the scores the gap is
``|grad P|^2 / (2 lambda)`` at every w, as P is the sum of a quadratic and a convex function of the scores (Fenchel's
equality holds for the latter). The logistic form compares every candidate with zero, for probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]
_Loss = Callable[[Floats], tuple[float, Floats]]

_BLOCK = 1 << 14
# Newton's steps end here in any case
_MOST_HALVINGS = 30


@dataclass(frozen=True, eq=False)
class Lists:
    """Candidates of rows, row after row.

    Attributes
    ----------
    phi : float32 array, shape (n_pairs, n_columns)
    begin : int64 array, shape (n_rows + 1,)
        Where the candidates of each row begin.
    true : bool array, shape (n_pairs,)
    """

    phi: NDArray[np.float32]
    begin: NDArray[np.int64]
    true: NDArray[np.bool_]

    def scores(self, w: Floats) -> Floats:
        """``phi w``, shape (n_pairs,), in float64."""
        found = np.empty(len(self.phi))
        for at in range(0, len(self.phi), _BLOCK):
            found[at : at + _BLOCK] = self.phi[at : at + _BLOCK].astype(np.float64) @ w
        return found


class Iterate(NamedTuple):
    """A point of Newton's method: weights, objective and certificate."""

    w: Floats
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return (self.primal - self.dual) / self.primal if self.primal > 0 else 0.0


def softmax_steps(lists: Lists, strength: float, w: Floats | None = None) -> Iterator[Iterate]:
    """Damped Newton on P; each iterate with its exact duality gap.

    Parameters
    ----------
    lists : Lists
        Rows without a true or without a false candidate count for nothing.
    strength : float
        lambda.
    w : float64 array, optional
        Where to begin.
    """
    weights = _row_weights(lists)
    yield from _newton(
        lists, strength, w, lambda s: _softmax(s, lists.begin, lists.true, weights), _softmax_hessian(lists, weights)
    )


def logistic_steps(lists: Lists, strength: float, w: Floats | None = None) -> Iterator[Iterate]:
    """The same of the mean logistic loss of all pairs."""
    n = max(1, len(lists.begin) - 1)
    sign = np.where(lists.true, 1.0, -1.0)

    def loss(scores: Floats) -> tuple[float, Floats]:
        margins = sign * scores
        return float(np.logaddexp(0.0, -margins).sum() / n), -sign * expit(-margins) / n

    def hessian(scores: Floats) -> Floats:
        p = expit(scores)
        return _gram(lists.phi, p * (1.0 - p) / n)

    yield from _newton(lists, strength, w, loss, hessian)


def _newton(
    lists: Lists, strength: float, w: Floats | None, loss: _Loss, hessian: Callable[[Floats], Floats]
) -> Iterator[Iterate]:
    d = lists.phi.shape[1]
    w = np.zeros(d) if w is None else w.copy()
    while True:
        # computed again from w, so that a resumed training takes the same steps
        scores = lists.scores(w)
        value, slope = loss(scores)
        gradient = strength * w + _pull(lists.phi, slope)
        primal = 0.5 * strength * float(w @ w) + value
        yield Iterate(w, primal, primal - float(gradient @ gradient) / (2.0 * strength))
        H = hessian(scores)
        H[np.diag_indices(d)] += strength
        step = scipy.linalg.cho_solve(scipy.linalg.cho_factor(H, lower=True), -gradient)
        moved = lists.scores(step)
        slope_along, size = float(gradient @ step), 1.0
        for _ in range(_MOST_HALVINGS):
            tried = w + size * step
            value, _ = loss(scores + size * moved)
            if 0.5 * strength * float(tried @ tried) + value <= primal + 1e-4 * size * slope_along:
                break
            size *= 0.5
        w = tried


def _row_weights(lists: Lists) -> Floats:
    """``1 / (n |P_i|)`` of each row, 0 where it has no true or no false candidate."""
    n_rows = len(lists.begin) - 1
    row = np.repeat(np.arange(n_rows), np.diff(lists.begin))
    n_true = np.bincount(row[lists.true], minlength=n_rows)
    usable = (n_true > 0) & (n_true < np.diff(lists.begin))
    return np.where(usable, 1.0 / (max(1, n_rows) * np.maximum(1, n_true)), 0.0)


@njit(cache=True, nogil=True)
def _softmax(scores, begin, true, weights):  # type: ignore[no-untyped-def]
    """The loss and its gradient in the scores."""
    slope = np.zeros(len(scores))
    total = 0.0
    for i in range(len(begin) - 1):
        if weights[i] == 0.0:
            continue
        rest = _log_sum_of_false(scores, true, begin[i], begin[i + 1])
        share = 0.0
        for y in range(begin[i], begin[i + 1]):
            if true[y]:
                lead = rest - scores[y]
                if lead > 0:
                    total += weights[i] * (lead + np.log1p(np.exp(-lead)))
                    miss = 1.0 / (1.0 + np.exp(-lead))
                else:
                    total += weights[i] * np.log1p(np.exp(lead))
                    miss = np.exp(lead) / (1.0 + np.exp(lead))
                slope[y] = -weights[i] * miss
                share += weights[i] * miss
        for z in range(begin[i], begin[i + 1]):
            if not true[z]:
                slope[z] = share * np.exp(scores[z] - rest)
    return total, slope


@njit(inline="always")
def _log_sum_of_false(scores, true, begin, end):  # type: ignore[no-untyped-def]
    highest, mass = -np.inf, 0.0
    for z in range(begin, end):
        if not true[z]:
            highest = max(highest, scores[z])
    for z in range(begin, end):
        if not true[z]:
            mass += np.exp(scores[z] - highest)
    return highest + np.log(mass)


def _softmax_hessian(lists: Lists, weights: Floats) -> Callable[[Floats], Floats]:
    """The matrix of second derivatives by scores.

    With q the shares of a row's false candidates and m_y the share that they take of y's soft maximum, the loss of y
    has ``m_y (1 - m_y) d d' + m_y (sum_z q_z phi_z phi_z' - c c')``, where c = sum_z q_z phi_z and d = c - phi_y.
    """

    def hessian(scores: Floats) -> Floats:
        within, of_centre, of_true, centre = _curvature(scores, lists.begin, lists.true, weights)
        d = lists.phi.shape[1]
        H = _gram(lists.phi, within)
        rows = np.flatnonzero(weights > 0)
        for at in range(0, len(rows), 1024):
            some = rows[at : at + 1024]
            C = np.empty((len(some), d))
            leads, heights = [], []
            for k, i in enumerate(some.tolist()):
                here = slice(lists.begin[i], lists.begin[i + 1])
                block = lists.phi[here].astype(np.float64)
                C[k] = centre[here] @ block
                y = lists.true[here]
                leads.append((C[k] - block[y]) * np.sqrt(of_true[here][y])[:, None])
                heights.append(of_centre[i])
            D = np.concatenate(leads)
            H += D.T @ D - (C * np.array(heights)[:, None]).T @ C
        return H

    return hessian


@njit(cache=True, nogil=True)
def _curvature(scores, begin, true, weights):  # type: ignore[no-untyped-def]
    within = np.zeros(len(scores))
    centre = np.zeros(len(scores))
    of_true = np.zeros(len(scores))
    of_centre = np.zeros(len(begin) - 1)
    for i in range(len(begin) - 1):
        if weights[i] == 0.0:
            continue
        rest = _log_sum_of_false(scores, true, begin[i], begin[i + 1])
        for y in range(begin[i], begin[i + 1]):
            if true[y]:
                miss = 1.0 / (1.0 + np.exp(min(700.0, scores[y] - rest)))
                of_true[y] = weights[i] * miss * (1.0 - miss)
                of_centre[i] += weights[i] * miss
        for z in range(begin[i], begin[i + 1]):
            if not true[z]:
                centre[z] = np.exp(scores[z] - rest)
                within[z] = of_centre[i] * centre[z]
    return within, of_centre, of_true, centre


def _gram(phi: NDArray[np.float32], weights: Floats) -> Floats:
    """``phi' diag(weights) phi`` in float64."""
    d = phi.shape[1]
    H = np.zeros((d, d))
    for at in range(0, len(phi), _BLOCK):
        w = weights[at : at + _BLOCK]
        kept = np.flatnonzero(w > 0)
        block = phi[at : at + _BLOCK][kept] * np.sqrt(w[kept, None])
        H += (block.T @ block).astype(np.float64)
    return H


def _pull(phi: NDArray[np.float32], slope: Floats) -> Floats:
    """``phi' slope`` in float64."""
    total = np.zeros(phi.shape[1])
    for at in range(0, len(phi), _BLOCK):
        total += slope[at : at + _BLOCK] @ phi[at : at + _BLOCK].astype(np.float64)
    return total
