"""Passes of the interior point method over all pairs of an example and a class."""

from typing import Any

from numba import njit


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
