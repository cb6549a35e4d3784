"""Both levels of a machine without a regulariser: the least loss, then the least norm, each with a certificate.

The limit of ``1/2 |W|^2 + C L(W)`` as C grows is the shortest of the weights W that have the least loss L, a sum of
hinges; from a finite C on the minimiser is that limit itself (Mangasarian and Meyer 1979). With dual
variables beta of the losses, each example's in the box or simplex of its weight, and ``V = V(beta)`` the weights that
they make, all W have

    L(W) >= sum beta - <V, W>.                                                                              (1)

1. Loss: no weights of at most the length R have a loss below ``sum beta - R |V|``.
2. Norm: multiplied by C, (1) says of all W with a loss of at most l that ``1/2 |W|^2 >= D(C beta) - C l``, D the dual
   of the machine at C. So the gap there is how much shorter, in half squares, weights of no more loss can be.
3. Separation: where all margins are positive, W divided by the least separates. Otherwise weights that separate all
   rows with margin 1 have no loss, and are at least ``sum beta / |V|`` long. With V = 0 there are none: the alternative
   of Farkas.

V is small where C is large; one least squares problem over the variables within their bounds makes it next to nothing.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, lsmr
from threadpoolctl import threadpool_limits

from solvers.numerics.array_types import Array, Floats, Ints32

LossName = Literal["weston_watkins", "crammer_singer", "lee_lin_wahba"]
# arrays of the size rows times classes, and weights, that a certificate holds at a time
ARRAYS, WEIGHTS = 16, 8
# what a dual variable has to be of its bound, on both sides, to count as within
WITHIN, MOST_NEAR = 1e-10, 0.1
MOST_ITERATIONS, MOST_PRODUCTS, MOST_ROUNDS = 1000, 1 << 31, 4
# the C of rows of mean squared length 1 from which variables are moved to their bounds
FAR = 100.0
# part of the first length below which no other variables are tried
NEGLIGIBLE = 1e-6
# units of the precision in a sum, beside the number of its terms
ROUNDINGS = 8
ROUNDINGS_OF_OBJECTIVE = 1e3
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Task:
    """The rows, their classes and weights, and the loss.

    Attributes
    ----------
    X : csr_matrix of float64, shape (n_samples, n_features)
        With the constant feature.
    y : int32 array, shape (n_samples,)
    weights : float64 array, shape (n_samples,)
        Of the examples' losses, positive.
    loss : str
    """

    X: sp.csr_matrix
    y: Ints32
    weights: Floats
    n_classes: int
    loss: LossName

    @property
    def absolute(self) -> bool:
        """Whether a margin is ``-f_c`` rather than ``f_y - f_c``."""
        return self.loss == "lee_lin_wahba"

    @property
    def largest(self) -> bool:
        """Whether an example's loss is its largest violation rather than their sum."""
        return self.loss == "crammer_singer"

    @property
    def lengths(self) -> Floats:
        """Of the rows, shape (n_samples,)."""
        return np.sqrt(np.asarray(self.X.multiply(self.X).sum(axis=1), np.float64).ravel())

    def margins(self, F: Floats) -> Floats:
        """The margins of all rows and classes, infinite at the own class; ``F`` are the scores, of the same shape."""
        rows = np.arange(len(F))
        M = -F if self.absolute else F[rows, self.y][:, None] - F
        M[rows, self.y] = np.inf
        return M

    def coefficients(self, beta: Floats) -> Floats:
        """The v_ic with ``w_c = sum_i v_ic x_i``, as dual variables make them; shape (n_samples, n_classes)."""
        rows, total = np.arange(len(beta)), beta.sum(axis=1)
        if self.absolute:
            return np.asarray(total[:, None] / self.n_classes - beta)
        v = -beta
        v[rows, self.y] = total
        return v

    def gradient(self, V: Floats) -> Floats:
        """The transpose of the weights that dual variables make, at V; shape (n_samples, n_classes)."""
        F = self.X @ V
        rows = np.arange(len(F))
        G = F.mean(axis=1)[:, None] - F if self.absolute else F[rows, self.y][:, None] - F
        G[rows, self.y] = 0.0
        return np.asarray(G)

    def feasible(self, beta: Floats) -> Floats:
        """The dual variables within their bounds, those of empty rows at the bound; changed in place."""
        empty, top = self.lengths == 0.0, self.weights[:, None]
        np.clip(beta, 0.0, top, out=beta)
        beta[empty] = self.weights[empty, None] / (self.n_classes - 1 if self.largest else 1)
        beta[np.arange(len(beta)), self.y] = 0.0
        if self.largest:
            beta /= np.maximum(beta.sum(axis=1) / self.weights, 1.0)[:, None]
        return beta


class Bound(NamedTuple):
    """Inequality (1): the sum of the dual variables less what rounding may add, and the length of V, with it.

    Attributes
    ----------
    square : float
        Of V, as it is.
    """

    total: float
    length: float
    square: float

    @property
    def separates_from(self) -> float:
        """How long weights with margin 1 on all rows are at least."""
        return self.total / self.length if self.length > 0 else math.inf

    def radius(self, loss: float) -> float:
        """Up to which length no weights have less than this loss; negative where the bound does not say it of any."""
        lead = self.total - loss
        return lead / self.length if self.length > 0 else math.copysign(math.inf, lead)


@dataclass(frozen=True)
class Levels:
    """What is certified of weights W.

    Attributes
    ----------
    C : float
        Of the machine.
    primal, dual : float
        Its objective at W, and a lower bound of the least.
    loss, norm : float
        L(W), and |W|.
    norm_bound : float
        No weights of at most that loss are shorter.
    bounds : tuple of Bound
        Each says (1) of its own dual variables.
    least_margin : float
        Of all rows, less what rounding may add.
    unit : float
        The length of the shortest weights that can change a score by 1.
    contradictions : int
        Rows that nothing separates: empty, or equal to one of another class.
    """

    C: float
    primal: float
    dual: float
    loss: float
    norm: float
    norm_bound: float
    bounds: tuple[Bound, ...]
    least_margin: float
    unit: float
    contradictions: int

    def loss_radius(self, tol: float) -> float:
        """Up to which length no weights have less than ``(1 - tol)`` of the loss."""
        return max(bound.radius((1.0 - tol) * self.loss) for bound in self.bounds)

    def loss_bound(self, radius: float) -> float:
        """No weights of at most that length have less loss."""
        return max(0.0, *(bound.total - radius * bound.length for bound in self.bounds))

    @property
    def separation(self) -> float:
        """How long weights with margin 1 on all rows are at least; infinite where there are none."""
        return math.inf if self.contradictions else max(bound.separates_from for bound in self.bounds)

    @property
    def hard_gap(self) -> float:
        """The relative gap, in half squares, of W divided by its least margin; infinite where that is not positive."""
        if self.least_margin <= 0:
            return math.inf
        ratio = self.separation * self.least_margin / self.norm
        return max(0.0, 1.0 - ratio * ratio)

    @property
    def norm_gap(self) -> float:
        """The relative gap of the norm, in half squares, among weights of no more loss."""
        return 1.0 - (self.norm_bound / self.norm) ** 2 if self.norm > 0 else 0.0


def certify(task: Task, W: Floats, alpha: Floats, C: float, *, polish: bool = True) -> Levels:
    """Certify weights by the dual variables of the machine at C.

    Parameters
    ----------
    W : float64 array, shape (n_features, n_classes)
        With a sum of zero over the classes, for ``lee_lin_wahba``.
    alpha : float64 array, shape (n_samples, n_classes)
        Dual variables of the machine at C, feasible but for rounding.
    polish : bool
        Whether the limit may be near: then all variables within their bounds are tried, where few of them do not do.
    """
    with threadpool_limits(1, "blas"):
        F = task.X @ W
        rounding = (np.diff(task.X.indptr).max(initial=0) + ROUNDINGS) * EPS * task.lengths
        rounding *= float(np.sqrt((W**2).sum(axis=0).max()))
        M = task.margins(F)
        least = float((M.min(axis=1) - 2.0 * rounding).min())
        Z = np.maximum(1.0 - M, 0.0)
        loss = float(task.weights @ (Z.max(axis=1) if task.largest else Z.sum(axis=1)))
        beta = task.feasible(alpha / C)
        bounds = [_bound(task, beta, _weights(task, beta))]
        if least <= 0.0 and C >= FAR:
            bounds += _polished_bounds(task, _snapped(task, beta, C))
        if least <= 0.0 and polish and min(bound.length for bound in bounds) > NEGLIGIBLE * bounds[0].length:
            bounds += _polished_bounds(task, beta)
        square = float((W**2).sum())
        primal = 0.5 * square + C * loss
        # of multiples of the variables up to 1, that with the largest dual value, as for every machine
        dual = max(_dual(bound, C) for bound in bounds)
        gap = max(0.0, primal - dual) + ROUNDINGS_OF_OBJECTIVE * EPS * primal
        return Levels(
            C=C,
            primal=primal,
            dual=min(dual, primal),
            loss=loss,
            norm=float(np.sqrt(square)),
            norm_bound=float(np.sqrt(max(0.0, square - 2.0 * gap))),
            bounds=tuple(bounds),
            least_margin=least,
            unit=1.0 / max(float(task.lengths.max()), float(np.finfo(np.float64).tiny)),
            contradictions=contradictions(task.X, task.y),
        )


def _dual(bound: Bound, C: float) -> float:
    multiple = min(1.0, bound.total / (C * bound.square)) if bound.square > 0 else 1.0
    return multiple * C * bound.total - 0.5 * (multiple * C) ** 2 * bound.square


def contradictions(X: sp.csr_matrix, y: Ints32) -> int:
    """How many rows are empty, or equal to a row of another class: no weights have a positive margin on all of them."""
    X = sp.csr_matrix(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    X.sort_indices()
    groups: dict[bytes, list[int]] = {}
    for i, (begin, end) in enumerate(zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)):
        groups.setdefault(X.indices[begin:end].tobytes() + X.data[begin:end].tobytes(), []).append(i)
    return sum(len(rows) for key, rows in groups.items() if not key or len(np.unique(y[rows])) > 1)


def _weights(task: Task, beta: Floats) -> Floats:
    return np.asarray(task.X.T @ task.coefficients(beta))


def _bound(task: Task, beta: Floats, V: Floats) -> Bound:
    total, square = float(beta.sum()), float((V**2).sum())
    v, most = np.abs(task.coefficients(beta)), np.bincount(task.X.indices, minlength=1).max() + task.n_classes
    length = float(np.sqrt(square))
    length += (most + ROUNDINGS) * EPS * float(np.sqrt(((abs(task.X).T @ v) ** 2).sum()))
    return Bound(total * (1.0 - (float(np.log2(beta.size)) + ROUNDINGS) * EPS), float(length), square)


def _snapped(task: Task, beta: Floats, C: float) -> Floats:
    """The dual variables, those near a bound at it: at the limit they are of the order of 1 / C away from it."""
    top, near = task.weights[:, None], min(MOST_NEAR, C**-0.5)
    snapped = np.where(beta < near * top, 0.0, np.where(beta > (1.0 - near) * top, top, beta))
    return task.feasible(snapped)


def _polished_bounds(task: Task, beta: Floats) -> Iterator[Bound]:
    """The bounds of variables that make ever smaller weights."""
    bound = _bound(task, beta, V := _weights(task, beta))
    yield bound
    for times in range(MOST_ROUNDS):
        if bound.length == 0.0:
            return
        beta, before = task.feasible(_polished(task, beta, V, MOST_PRODUCTS >> times)), bound
        bound = _bound(task, beta, V := _weights(task, beta))
        yield bound
        if bound.length > 0.1 * before.length:
            return


def _polished(task: Task, beta: Floats, V: Floats, most_products: int) -> Floats:
    """Dual variables near the given ones that make weights near zero.

    A change is measured by the distance to the nearer bound, so that variables at bounds stay there, and those next to
    one hardly move. In a simplex the slack is one more variable, in the place of the own class.
    """
    rows, top = np.arange(len(beta)), task.weights[:, None]
    scale = beta.copy() if task.largest else np.minimum(beta, top - beta)
    if task.largest:
        scale[rows, task.y] = np.maximum(task.weights - beta.sum(axis=1), 0.0)
    scale[scale < WITHIN * top] = 0.0
    if not task.largest:
        scale[rows, task.y] = 0.0
    scale[task.lengths == 0.0] = 0.0
    within = np.flatnonzero(scale.any(axis=1))
    if len(within) == 0:
        return beta
    part = Task(task.X[within], task.y[within], task.weights[within], task.n_classes, task.loss)
    scale, at = scale[within], np.arange(len(within))
    squares = np.maximum((scale**2).sum(axis=1), np.finfo(np.float64).tiny)[:, None]

    def centred(u: Floats) -> Floats:
        # changes of a simplex's variables and slack sum to zero
        return u - scale * ((scale * u).sum(axis=1)[:, None] / squares) if task.largest else u

    def change(u: Array) -> Floats:
        delta = scale * centred(u.reshape(scale.shape))
        delta[at, part.y] = 0.0
        return delta

    def forward(u: Array) -> Floats:
        return _weights(part, change(u)).ravel()

    def backward(v: Array) -> Floats:
        return np.asarray(centred(scale * part.gradient(v.reshape(V.shape)))).ravel()

    operator = LinearOperator((V.size, scale.size), matvec=forward, rmatvec=backward, dtype=np.float64)
    products = 2 * task.n_classes * (part.X.nnz + 2 * task.X.shape[1])
    most = min(MOST_ITERATIONS, 4 * V.size, 1 + most_products // products)
    u, *_ = lsmr(operator, -V.ravel(), atol=1e-9, btol=0.0, conlim=0.0, maxiter=most)
    polished = beta.copy()
    polished[within] += change(u)
    return polished
