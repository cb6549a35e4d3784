"""Ridge regressions, one a class with its own weights of the examples, that may have to sum to zero.

Passes of the interior point method over all pairs of an example and a class.

The rest of the method needs of all classes sums, extremes and agreement, of one worker or of shards.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numba import njit
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from solvers.numerics.array_types import Floats
from solvers.sharding.exchange import Exchange, gather


class ClassSums(Protocol):
    """Sums over the classes of all shards; each shard calls the same functions in the same order."""

    def mean(self, W: Floats) -> Floats:
        """The mean over all classes of W (n_rows, n_own), as a column."""

    def total(self, array: Floats) -> Floats:
        """The sum over all shards."""

    def least(self, value: float) -> float:
        """The least value of all shards."""

    def everywhere(self, flag: bool) -> bool:
        """Whether something holds in every shard."""


class AllClasses:
    """One worker has all classes: there is nothing to add."""

    def mean(self, W: Floats) -> Floats:
        return np.asarray(W.mean(axis=1, keepdims=True))

    def total(self, array: Floats) -> Floats:
        return array

    def least(self, value: float) -> float:
        return value

    def everywhere(self, flag: bool) -> bool:
        return flag


class ShardSums:
    """Sums over the shards of an exchange, added in the order of ranks: all shards get the same bits."""

    def __init__(self, exchange: Exchange, n_classes: int) -> None:
        self._exchange, self._n_classes = exchange, n_classes

    def mean(self, W: Floats) -> Floats:
        return self.total(W.sum(axis=1, keepdims=True)) / self._n_classes

    def total(self, array: Floats) -> Floats:
        return np.asarray(np.sum([part[0] for part in self._parts(array)], axis=0))

    def least(self, value: float) -> float:
        return float(min(part[0][0] for part in self._parts(np.array([value]))))

    def everywhere(self, flag: bool) -> bool:
        return self.least(float(flag)) > 0.0

    def _parts(self, array: Floats) -> list[list[Floats]]:
        return [list(part) for part in gather(self._exchange, [np.ascontiguousarray(array)])]


@njit(cache=True, nogil=True)
def measure(
    signs: Any,
    margins: Any,
    bounds: Any,
    F: Any,
    alpha: Any,
    beta: Any,
    slack: Any,
    xi: Any,
    v: Any,
    D: Any,
    signed: Any,
) -> tuple[float, float, float, float]:
    """v = m - s f, D and s alpha in place; losses, sum of alpha m, complementarity and largest violation."""
    hinge, linear, gap, violation = 0.0, 0.0, 0.0, 0.0
    for i in range(F.shape[0]):
        for c in range(F.shape[1]):
            B = bounds[i, c]
            if B == 0.0:
                v[i, c], D[i, c], signed[i, c] = 0.0, 0.0, 0.0
                continue
            a, b, p, x = alpha[i, c], beta[i, c], slack[i, c], xi[i, c]
            margin = margins[i, c] - signs[i, c] * F[i, c]
            v[i, c] = margin
            D[i, c] = a * b / (p * b + x * a)
            signed[i, c] = signs[i, c] * a
            hinge += B * max(margin, 0.0)
            linear += a * margins[i, c]
            gap += a * p + b * x
            violation = max(violation, margin * b / B, -margin * a / B)
    return hinge, linear, gap, violation


@njit(cache=True, nogil=True)
def move(signs: Any, D: Any, scores: Any, dalpha: Any, signed: Any) -> None:
    """dalpha and s dalpha in place, after a change of W that changes the scores so."""
    for i in range(D.shape[0]):
        for c in range(D.shape[1]):
            dalpha[i, c] -= D[i, c] * signs[i, c] * scores[i, c]
            signed[i, c] = signs[i, c] * dalpha[i, c]


@njit(cache=True, nogil=True)
def predict(alpha: Any, beta: Any, slack: Any, xi: Any, dalpha: Any) -> tuple[float, float]:
    """Step to the boundary along the predictor, and the sum of its products of changes."""
    rate, cross = 0.0, 0.0
    for i in range(alpha.shape[0]):
        for c in range(alpha.shape[1]):
            a, da = alpha[i, c], dalpha[i, c]
            if a == 0.0:
                continue
            b = beta[i, c]
            low, high = da / a, da / b
            rate = max(rate, -low, high, 1.0 + low, 1.0 - high)
            cross += da * (xi[i, c] * (1.0 - high) - slack[i, c] * (1.0 + low))
    return 1.0 / max(rate, 1e-300), cross


@njit(cache=True, nogil=True)
def correct(
    target: float, alpha: Any, beta: Any, slack: Any, xi: Any, v: Any, dalpha: Any, r: Any, q: Any, right: Any
) -> None:
    """In place: r and q, what the two products still lack of the target, and the right side of the corrector."""
    for i in range(alpha.shape[0]):
        for c in range(alpha.shape[1]):
            a, b, p, x, da = alpha[i, c], beta[i, c], slack[i, c], xi[i, c], dalpha[i, c]
            if a == 0.0:
                r[i, c], q[i, c], right[i, c] = 0.0, 0.0, 0.0
                continue
            first = target + da * p * (1.0 + da / a)
            second = target - da * x * (1.0 - da / b)
            r[i, c], q[i, c] = first - a * p, second - b * x
            right[i, c] = v[i, c] + first / a - second / b


@njit(cache=True, nogil=True)
def finish(alpha: Any, beta: Any, slack: Any, xi: Any, dalpha: Any, r: Any, q: Any) -> float:
    """r and q become the changes of slack and xi; returns the step to the boundary."""
    rate = 0.0
    for i in range(alpha.shape[0]):
        for c in range(alpha.shape[1]):
            a, b, p, x, da = alpha[i, c], beta[i, c], slack[i, c], xi[i, c], dalpha[i, c]
            if a == 0.0:
                continue
            r[i, c] = (r[i, c] - p * da) / a
            q[i, c] = (q[i, c] + x * da) / b
            rate = max(rate, -da / a, da / b, -r[i, c] / p, -q[i, c] / x)
    return 1.0 / max(rate, 1e-300)


@njit(cache=True, nogil=True)
def advance(
    length: float, bounds: Any, alpha: Any, beta: Any, slack: Any, xi: Any, dalpha: Any, dslack: Any, dxi: Any
) -> None:
    """A step of this length, in place; rounding never takes alpha out of its box."""
    for i in range(alpha.shape[0]):
        for c in range(alpha.shape[1]):
            alpha[i, c] = min(alpha[i, c] + length * dalpha[i, c], bounds[i, c])
            beta[i, c] -= length * dalpha[i, c]
            slack[i, c] += length * dslack[i, c]
            xi[i, c] += length * dxi[i, c]


@njit(cache=True, nogil=True)
def gram(indptr: Any, indices: Any, data: Any, D: Any, packed: Any) -> None:
    """Adds D_ic x_ij x_il, for l <= j, to packed[j (j + 1) / 2 + l, c], all classes at once."""
    k = D.shape[1]
    for i in range(indptr.shape[0] - 1):
        for s in range(indptr[i], indptr[i + 1]):
            first = indices[s] * (indices[s] + 1) // 2
            for t in range(indptr[i], s + 1):
                product, at = data[s] * data[t], first + indices[t]
                for c in range(k):
                    packed[at, c] += product * D[i, c]


DENSE = 0.25
NARROW = 24
CHUNK = 512


class NormalEquations:
    """Systems ``(I + X' D_c X) z_c = right_c - lambda``, where lambda makes the z_c sum to zero, or vanishes.

    Parameters
    ----------
    X : csr_matrix of float64, shape (n_samples, n_features)
        Indices sorted within a row. The attribute ``X`` holds it dense if a quarter of it or more is not zero.
    bounds : float64 array, shape (n_samples, n_classes)
        Where it vanishes, so will D.
    sum_to_zero : bool
        Whether the solutions must sum to zero.
    sums : ClassSums
        Over the classes of all shards; D has those of this shard.
    """

    def __init__(self, X: sp.csr_matrix, bounds: Floats, sum_to_zero: bool, sums: ClassSums | None = None) -> None:
        n, self.d = X.shape
        self.rows = X
        self.X: Any = X.toarray() if X.nnz >= DENSE * n * self.d else X
        self.sum_to_zero, self.sums = sum_to_zero, sums or AllClasses()
        # One pass over pairs of features for all classes beats BLAS on sparse or narrow X, unless most of D is zero.
        mostly = 8 * np.count_nonzero(bounds) > bounds.size
        self.by_rows = sp.issparse(self.X) or (self.d <= NARROW and mostly)
        self.factors: list[Floats] = []
        self.joint = np.empty((0, 0))

    def factor(self, D: Floats) -> bool:
        """Prepare for :meth:`solve` with weights D (n_samples, n_classes) >= 0; False if rounding does not let it."""
        self.factors, inverses = [], np.zeros((self.d, self.d), order="F")
        for G in self._grams(D):
            L = _cholesky(G)
            if L is None:
                break
            self.factors.append(L)
            if self.sum_to_zero:
                inverses += dpotri(L, lower=1)[0]
        if not self.sums.everywhere(len(self.factors) == D.shape[1]):
            return False
        if self.sum_to_zero:
            joint = _cholesky(np.asfortranarray(self.sums.total(inverses)))
            if joint is None:
                return False
            self.joint = joint
        return True

    def solve(self, right: Floats) -> Floats:
        """The solutions, shape (n_features, n_classes)."""
        Z = np.empty_like(right)
        for c, L in enumerate(self.factors):
            Z[:, c] = dpotrs(L, right[:, c], lower=1)[0]
        if not self.sum_to_zero:
            return Z
        shift = dpotrs(self.joint, self.sums.total(Z.sum(axis=1)), lower=1)[0]
        for c, L in enumerate(self.factors):
            Z[:, c] -= dpotrs(L, shift, lower=1)[0]
        return self.centred(Z)

    def centred(self, W: Floats) -> Floats:
        """W (n_features, n_classes), made to sum to zero over the classes if asked for."""
        return W - self.sums.mean(W) if self.sum_to_zero else W

    def _grams(self, D: Floats) -> Iterator[Floats]:
        """``I + X' D_c X`` of one class after the other; the lower triangle counts."""
        if self.by_rows:
            packed = np.zeros((self.d * (self.d + 1) // 2, D.shape[1]))
            gram(self.rows.indptr, self.rows.indices, self.rows.data, D, packed)
            at = np.tril_indices(self.d)
        for c in range(D.shape[1]):
            G = np.eye(self.d, order="F")
            if self.by_rows:
                G[at] += packed[:, c]
                yield G
                continue
            root = np.sqrt(D[:, c])
            rows = np.flatnonzero(root)
            for start in range(0, len(rows), CHUNK):
                some = rows[start : start + CHUNK]
                scaled = self.X[some] * root[some, None]
                G = dsyrk(1.0, scaled.T, beta=1.0, c=G, lower=1, overwrite_c=1)
            yield G


def _cholesky(G: Floats) -> Floats | None:
    """Lower factor of G, of a slightly heavier diagonal if need be; None if that does not help either."""
    weight = 0.0
    diagonal = np.diagonal(G).copy()
    for _ in range(6):
        L, info = dpotrf(G, lower=1)
        if info == 0 and np.isfinite(L[-1, -1]):
            return np.asarray(L)
        weight = max(100.0 * weight, 1e-15)
        np.fill_diagonal(G, diagonal * (1.0 + weight))
    return None
