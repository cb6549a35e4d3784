"""Coordinate steps on the exponential loss of all pairs of an example and a wrong class (Lin et al. 2012, Algorithm 2).

``mu_iq = omega_i exp(F_q(x_i) - F_y(x_i))`` is kept as a product ``e[q, i] r[i]``: a step on class c changes row c of e
and, where c is the true class, r; so it costs O(n), in contiguous loops. Rows are sorted by their class: class c owns
those from ``starts[c]`` to ``starts[c + 1]``, where e[c] means nothing. ``E[i]`` is the sum of e[q, i] over the wrong
classes q; it follows the steps, and is added up afresh before it can have fallen to a thousandth, when rounding would
show: it falls no faster than the fastest of its terms, and the steps of every class are added up in ``way[0, c]``.
``way[1, c]`` adds them up as well, until e or r may be near the end of the floats' range; the factors of r then go to
e. The scores F themselves are moved apart, once for all steps on a variable.

Sums may be reordered (``reassoc``), or LLVM would not vectorise them: fifteen times the speed, and still one result on
one machine, as the loops do not depend on the number of threads.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.kernels.stumps import LANES

LONG, FAR = 6.9, 230.0
TILE = 1024
SUMS = {"reassoc", "nsz", "contract"}


@njit(cache=True, nogil=True)
def restart(
    F: NDArray[np.float64],
    omega: NDArray[np.float64],
    y: NDArray[np.int32],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
) -> None:
    """e, r and E afresh from the scores F."""
    for i in range(len(y)):
        total, own = 0.0, F[y[i], i]
        for q in range(F.shape[0]):
            if q != y[i]:
                e[q, i] = omega[i] * np.exp(F[q, i] - own)
                total += e[q, i]
        r[i] = 1.0
        E[i] = total


@njit(cache=True, nogil=True)
def add_up(starts: NDArray[np.int64], e: NDArray[np.float64], E: NDArray[np.float64]) -> None:
    """E afresh from e."""
    E[:] = 0.0
    for q in range(e.shape[0]):
        s, t = starts[q], starts[q + 1]
        _accumulate(e[q][:s], E[:s])
        _accumulate(e[q][t:], E[t:])


@njit(cache=True, nogil=True)
def _accumulate(x: NDArray[np.float64], total: NDArray[np.float64]) -> None:
    for i in range(len(x)):
        total[i] += x[i]


@njit(cache=True, nogil=True, fastmath=SUMS)
def _wrong(h: NDArray[np.int8], e: NDArray[np.float64], r: NDArray[np.float64]) -> tuple[float, float]:
    """V_+ and V_- over rows of other classes: their margin grows where h is -1."""
    plus = minus = 0.0
    for i in range(len(h)):
        mu, half = e[i] * r[i], 0.5 * h[i]
        # products with 0 and 1: choosing with a condition would not be vectorised
        plus += mu * (0.5 - half)
        minus += mu * (0.5 + half)
    return plus, minus


@njit(cache=True, nogil=True)
def masses(
    h: NDArray[np.int8],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    begin: int,
    end: int,
) -> tuple[float, float]:
    """V_+ and V_- of one variable at the current mu (equation 9); its class owns the rows [begin, end)."""
    before = _wrong(h[:begin], e[:begin], r[:begin])
    after = _wrong(h[end:], e[end:], r[end:])
    minus, plus = _wrong(h[begin:end], E[begin:end], r[begin:end])
    return before[0] + after[0] + plus, before[1] + after[1] + minus


@njit(cache=True, nogil=True)
def best_weight(w: float, plus: float, minus: float, a: float, signed: bool) -> float:
    """The minimiser over v of ``|v| + (V_- exp(v - w) + V_+ exp(w - v)) / 2a``, v >= 0 unless signed.

    Equation 12 without its cancellation; V_+ and V_- are those at w, ``a = p / 2C``. Either may vanish.
    """
    middle = a + np.hypot(a, np.sqrt(plus) * np.sqrt(minus))
    if plus > 0.0:
        v = w + (np.log(plus) - np.log(middle))
        if v > 0.0:
            return float(v)
    if signed and minus > 0.0:
        v = w - (np.log(minus) - np.log(middle))
        if v < 0.0:
            return float(v)
    return 0.0


@njit(cache=True, nogil=True)
def next_weight(w: float, plus: float, minus: float, a: float, share: float, signed: bool) -> float:
    """``share`` of the way from w to the minimiser; beyond it, with ``share > 1``, where that too lowers the value."""
    best = best_weight(w, plus, minus, a, signed)
    if share == 1.0 or best == w:
        return float(best)
    v = w + share * (best - w)
    if share < 1.0:
        return float(v)
    # a weight that its penalty holds at zero stays there, and none changes its sign on the way
    if best == 0.0 or (v > 0.0) != (best > 0.0):
        return float(best)
    lowered = abs(v) - abs(w) + (minus * np.expm1(v - w) + plus * np.expm1(w - v)) / (2.0 * a)
    return float(v if lowered <= 0.0 else best)


@njit(cache=True, nogil=True)
def _move_wrong(h: NDArray[np.int8], up: float, down: float, e: NDArray[np.float64], E: NDArray[np.float64]) -> None:
    """The scores of rows of other classes grow where h is +1."""
    for i in range(len(h)):
        old = e[i]
        new = old * (up if h[i] > 0 else down)
        e[i] = new
        E[i] += new - old


@njit(cache=True, nogil=True)
def _move_own(h: NDArray[np.int8], up: float, down: float, r: NDArray[np.float64]) -> None:
    """The scores of a class's own rows grow where h is +1."""
    for i in range(len(h)):
        r[i] *= down if h[i] > 0 else up


@njit(cache=True, nogil=True)
def move(
    h: NDArray[np.int8],
    step: float,
    c: int,
    starts: NDArray[np.int64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    way: NDArray[np.float64],
) -> None:
    """Let e, r and E follow ``step h``, added to the scores of class c (equation 20)."""
    begin, end = starts[c], starts[c + 1]
    up, down = np.exp(step), np.exp(-step)
    _move_wrong(h[:begin], up, down, e[c][:begin], E[:begin])
    _move_wrong(h[end:], up, down, e[c][end:], E[end:])
    _move_own(h[begin:end], up, down, r[begin:end])
    way[:, c] += abs(step)
    _settle(c, starts, e, r, E, way)


@njit(cache=True, nogil=True)
def _settle(
    c: int,
    starts: NDArray[np.int64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    way: NDArray[np.float64],
) -> None:
    if way[1, c] > FAR:
        for q in range(e.shape[0]):
            for i in range(len(r)):
                e[q, i] *= r[i]
        r[:] = 1.0
        way[1] = 0.0
        way[0, c] = 2 * LONG
    if way[0, c] > LONG:
        add_up(starts, e, E)
        way[0] = 0.0


@njit(cache=True, nogil=True)
def _run_end(classes: NDArray[np.int32], first: int) -> int:
    """Where variables of another class than that of the first begin."""
    last = first + 1
    while last < len(classes) and classes[last] == classes[first]:
        last += 1
    return last


@njit(cache=True, nogil=True)
def _multiply(e: NDArray[np.float64], r: NDArray[np.float64], u: NDArray[np.float64]) -> None:
    for i in range(len(u)):
        u[i] = e[i] * r[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _divide(u: NDArray[np.float64], r: NDArray[np.float64], e: NDArray[np.float64], E: NDArray[np.float64]) -> None:
    """e afresh from ``u = e r``."""
    for i in range(len(u)):
        new = u[i] / r[i]
        E[i] += new - e[i]
        e[i] = new


@njit(cache=True, nogil=True, fastmath=SUMS)
def _step_and_sum(
    g: NDArray[np.int8], up: float, down: float, h: NDArray[np.int8], u: NDArray[np.float64]
) -> tuple[float, float]:
    """Let mu of rows of other classes, u, follow a step of learner g; then V_+ and V_- of learner h over them."""
    plus = minus = 0.0
    for i in range(len(h)):
        mu, half = u[i] * (up if g[i] > 0 else down), 0.5 * h[i]
        u[i] = mu
        plus += mu * (0.5 - half)
        minus += mu * (0.5 + half)
    return plus, minus


@njit(cache=True, nogil=True)
def _sweep_class(
    sides: NDArray[np.int8],
    c: int,
    weights: NDArray[np.float64],
    a: float,
    share: float,
    signed: bool,
    starts: NDArray[np.int64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    way: NDArray[np.float64],
    u: NDArray[np.float64],
) -> int:
    """:func:`sweep` over variables of one class, whose mu is kept in u meanwhile: a step then reads and writes that.

    Returns how many it has come to before the factors of mu had to be made anew.
    """
    begin, end = starts[c], starts[c + 1]
    own, rest = r[begin:end], E[begin:end]
    # the rows of other classes are two slices; loops over slices begin at 0, or LLVM would not vectorise them
    for lo, hi in ((0, begin), (end, len(r))):
        _multiply(e[c][lo:hi], r[lo:hi], u[lo:hi])
    up = down = 1.0
    g, j = sides[0], 0
    while j < len(weights) and way[1, c] <= FAR:
        h = sides[j]
        minus, plus = _wrong(h[begin:end], rest, own)
        for lo, hi in ((0, begin), (end, len(r))):
            more, less = _step_and_sum(g[lo:hi], up, down, h[lo:hi], u[lo:hi])
            plus, minus = plus + more, minus + less
        weight = next_weight(weights[j], plus, minus, a, share, signed)
        step = weight - weights[j]
        g, up, down = h, np.exp(step), np.exp(-step)
        _move_own(h[begin:end], up, down, own)
        way[:, c] += abs(step)
        weights[j] = weight
        j += 1
    for lo, hi in ((0, begin), (end, len(r))):
        _step_and_sum(g[lo:hi], up, down, g[lo:hi], u[lo:hi])
        _divide(u[lo:hi], r[lo:hi], e[c][lo:hi], E[lo:hi])
    _settle(c, starts, e, r, E, way)
    return j


@njit(cache=True, nogil=True)
def sweep(
    sides: NDArray[np.int8],
    classes: NDArray[np.int32],
    weights: NDArray[np.float64],
    a: float,
    share: float,
    signed: bool,
    starts: NDArray[np.int64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    way: NDArray[np.float64],
) -> None:
    """Step on one variable after the other: weak learner ``sides[j]``, +1 or -1 a row, of class ``classes[j]``.

    ``weights`` change in place, by ``share`` of the way to the minimum. Several variables of a class in a row are
    half as dear.
    """
    u = np.empty(len(r))
    first = 0
    while first < len(classes):
        c, last = classes[first], _run_end(classes, first)
        if last > first + 1:
            first += _sweep_class(sides[first:last], c, weights[first:last], a, share, signed, starts, e, r, E, way, u)
        else:
            plus, minus = masses(sides[first], e[c], r, E, starts[c], starts[c + 1])
            weight = next_weight(weights[first], plus, minus, a, share, signed)
            if weight != weights[first]:
                move(sides[first], weight - weights[first], c, starts, e, r, E, way)
                weights[first] = weight
            first = last


@njit(cache=True, nogil=True)
def shift(
    sides: NDArray[np.int8], classes: NDArray[np.int32], steps: NDArray[np.float64], F: NDArray[np.float64]
) -> None:
    """Add ``steps[j] sides[j]`` to the scores of class ``classes[j]``."""
    for j in range(len(classes)):
        f, h, step = F[classes[j]], sides[j], steps[j]
        for i in range(len(h)):
            f[i] += step if h[i] > 0 else -step


@njit(cache=True, nogil=True, fastmath=SUMS)
def _dot(h: NDArray[np.int8], u: NDArray[np.float64]) -> float:
    total = 0.0
    for i in range(len(h)):
        total += h[i] * u[i]
    return total


@njit(cache=True, nogil=True)
def gradients(
    sides: NDArray[np.int8],
    classes: NDArray[np.int32],
    starts: NDArray[np.int64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """out[j] = V_+ - V_- of variable j; several of a class in a row are cheaper."""
    u = np.empty(len(r))
    first = 0
    while first < len(classes):
        c, last = classes[first], _run_end(classes, first)
        begin, end = starts[c], starts[c + 1]
        _multiply(e[c], r, u)
        np.negative(u, u)
        _multiply(E[begin:end], r[begin:end], u[begin:end])
        for j in range(first, last):
            out[j] = _dot(sides[j], u)
        first = last


@njit(cache=True, nogil=True, fastmath=SUMS)
def _pull_wrong(
    F: NDArray[np.float64], own: NDArray[np.float64], e: NDArray[np.float64], r: NDArray[np.float64]
) -> tuple[float, float]:
    """Sums of mu and of mu log(mu / omega) over rows of other classes."""
    total = entropy = 0.0
    for i in range(len(F)):
        mu = e[i] * r[i]
        total += mu
        entropy += mu * (F[i] - own[i])
    return total, entropy


@njit(cache=True, nogil=True, fastmath=SUMS)
def _pull_own(r: NDArray[np.float64], E: NDArray[np.float64]) -> float:
    """Sum of S over a class's own rows."""
    total = 0.0
    for i in range(len(r)):
        total += r[i] * E[i]
    return total


@njit(cache=True, nogil=True)
def own_scores(starts: NDArray[np.int64], F: NDArray[np.float64], own: NDArray[np.float64]) -> None:
    """own = the score of every row's true class."""
    for c in range(F.shape[0]):
        own[starts[c] : starts[c + 1]] = F[c, starts[c] : starts[c + 1]]


@njit(cache=True, nogil=True)
def pull(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    F: NDArray[np.float64],
    own: NDArray[np.float64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Sums over the rows for the classes [first, last): of mu_ic, of mu_ic log(mu_ic / omega_i), and of |u_ic|.

    ``u_ic = S_i`` in the rows of class c, ``-mu_ic`` elsewhere; ``own`` holds the scores of the true classes.
    """
    for c in range(first, last):
        s, t = starts[c], starts[c + 1]
        f, g = F[c], e[c]
        m0, l0 = _pull_wrong(f[:s], own[:s], g[:s], r[:s])
        m1, l1 = _pull_wrong(f[t:], own[t:], g[t:], r[t:])
        sums[c, 0], sums[c, 1] = m0 + m1, l0 + l1
        sums[c, 2] = m0 + m1 + _pull_own(r[s:t], E[s:t])


@njit(cache=True, nogil=True)
def _round(
    c: int,
    scale: float,
    y: NDArray[np.int32],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    q: NDArray[Any],
) -> int:
    """q = u of class c as whole numbers; returns their sum."""
    total = 0
    for i in range(len(y)):
        # both are read, whichever is wanted: a conditional load would not be vectorised
        own, other = E[i], e[i]
        u = own if y[i] == c else -other
        whole = np.int64(np.rint(u * r[i] * scale))
        q[i] = whole
        total += int(whole)
    return total


@njit(cache=True, nogil=True)
def _outdone(
    c: int, y: NDArray[np.int32], F: NDArray[np.float64], own: NDArray[np.float64], wrong: NDArray[np.uint8]
) -> None:
    """Set wrong where class c, if it comes before the true one, scores as much, or, if behind it, more."""
    for i in range(len(y)):
        wrong[i] |= np.uint8((F[i] > own[i]) | ((F[i] == own[i]) & (y[i] > c)))


@njit(cache=True, nogil=True)
def interleave(q: NDArray[Any], first: int, many: int, U: NDArray[Any]) -> None:
    """Write lanes, one a row of q, side by side: ``U[(first + i) 16 + lane]``, over the blocks of U."""
    for block in range(U.shape[0]):
        u = U[block][first * LANES :]
        lanes = min(LANES, q.shape[0] - block * LANES)
        part = q[block * LANES : block * LANES + lanes]
        for i in range(many):
            for lane in range(lanes):
                u[i * LANES + lane] = part[lane, i]


@njit(cache=True, nogil=True)
def load(
    begin: int,
    end: int,
    y: NDArray[np.int32],
    F: NDArray[np.float64],
    own: NDArray[np.float64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    scales: NDArray[np.float64],
    U: NDArray[Any],
    totals: NDArray[np.int64],
) -> int:
    """``u_ic scales[c]``, rounded, to lane c of U for the rows [begin, end); adds to the lanes' totals.

    Returns how many of the rows are wrong.
    """
    k = F.shape[0]
    wrong, q = np.empty(TILE, np.uint8), np.empty((k, TILE), U.dtype)
    n_wrong = 0
    for first in range(begin, end, TILE):
        last = min(first + TILE, end)
        many = last - first
        wrong[:] = 0
        for c in range(k):
            mine = y[first:last]
            totals[c] += _round(c, scales[c], mine, e[c][first:last], r[first:last], E[first:last], q[c][:many])
            _outdone(c, mine, F[c][first:last], own[first:last], wrong[:many])
        interleave(q, first, many, U)
        for i in range(many):
            n_wrong += wrong[i]
    return n_wrong
