"""Coordinate steps on the exponential loss of all pairs of an example and a wrong class (Lin et al. 2012, Algorithm 2).

The pairs' weights are kept as :mod:`solvers.boosting.pairs.pair_weights` has them. E follows the steps, and is added up
afresh before it can have fallen to a thousandth, when rounding would show: it falls no faster than the fastest of its
terms, and ``since_sum`` adds up the steps of every class. ``since_merge`` adds them up as well, until e or r may be
near the end of the floats' range; the factors of r then go to e. The scores F themselves are moved afterwards, once for
all steps on a variable.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.boosting.pairs.pair_weights import (
    SUMS,
    TILE,
    PairWeights,
    add_up,
    merge,
    multiply,
    n_tiles,
    piece_length,
    run_end,
    within,
)
from solvers.numerics.array_types import Floats, Ints, Ints8, Ints32
from solvers.numerics.parallel_for import parallel_for

LONG, FAR = 6.9, 230.0
# rows of a piece of a single class
SPAN = 1800


class StepRule(NamedTuple):
    """How far a step on a weight goes.

    Attributes
    ----------
    a : float
        ``p / 2C``.
    share : float
        Of the way to the minimum.
    signed : bool
        Whether weights may be negative.
    """

    a: float
    share: float
    signed: bool


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
def _wrong(h: Ints8, e: Floats, r: Floats) -> tuple[float, float]:
    """V_+ and V_- over rows of other classes, whose margin grows where h is -1.

    They are the sums of Lin et al. 2012, equation 9, from the current mu: Lin et al. 2012, equation 21, whose factors
    exp(w) and exp(-w) are left to :func:`best_weight`.
    """
    plus = minus = 0.0
    for i in range(len(h)):
        # products with 0 and 1: choosing with a condition would not be vectorised
        mu, against = e[i] * r[i], np.float64(h[i] > 0)
        plus += mu * (1.0 - against)
        minus += mu * against
    return plus, minus


@njit(cache=True, nogil=True)
def best_weight(w: float, plus: float, minus: float, a: float, signed: bool) -> float:
    """The minimiser over v of ``|v| + (V_- exp(v - w) + V_+ exp(w - v)) / 2a``, v >= 0 unless signed.

    V_+ and V_- are those at w, ``a = p / 2C``. Either may vanish.

    - The objective is that of Lin et al. 2012, equation 10; its derivative vanishes by Lin et al. 2012, equation 11.
    - The minimiser is that of Lin et al. 2012, equation 12, without its cancellation.
    - Where C is large it is half the logarithm of V_+ over V_-: Lin et al. 2012, equation 13.
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
def next_weight(w: float, plus: float, minus: float, rule: StepRule) -> float:
    """``share`` of the way from w to the minimiser; beyond it, with ``share > 1``, where that too lowers the value."""
    best = best_weight(w, plus, minus, rule.a, rule.signed)
    if rule.share == 1.0 or best == w:
        return float(best)
    v = w + rule.share * (best - w)
    if rule.share < 1.0:
        return float(v)
    # a weight that its penalty holds at zero stays there, and none changes its sign on the way
    if best == 0.0 or (v > 0.0) != (best > 0.0):
        return float(best)
    lowered = abs(v) - abs(w) + (minus * np.expm1(v - w) + plus * np.expm1(w - v)) / (2.0 * rule.a)
    return float(v if lowered <= 0.0 else best)


@njit(cache=True, nogil=True)
def _move_wrong(h: Ints8, up: float, down: float, e: Floats, E: Floats) -> None:
    """The scores of rows of other classes grow where h is +1."""
    for i in range(len(h)):
        old = e[i]
        new = old * (up if h[i] > 0 else down)
        e[i] = new
        E[i] += new - old


@njit(cache=True, nogil=True)
def _move_own(h: Ints8, up: float, down: float, r: Floats) -> None:
    """The scores of a class's own rows grow where h is +1."""
    for i in range(len(h)):
        r[i] *= down if h[i] > 0 else up


@njit(cache=True, nogil=True)
def _move_and_sum(
    piece: int,
    length: int,
    responses: Ints8,
    classes: Ints32,
    moved: int,
    step: float,
    asked: int,
    mu: PairWeights,
    sums: Floats,
) -> None:
    """Let mu of one piece follow the step of variable ``moved`` (Lin et al. 2012, equation 20); then sum for ``asked``.

    ``sums[piece]`` are its V_+ and V_- over these rows at the current mu. -1 means no variable.
    """
    e, r, E = mu.e, mu.r, mu.E
    begin, end = piece * length, min((piece + 1) * length, len(r))
    if moved >= 0:
        h, c = responses[moved], classes[moved]
        s, t = within(begin, end, mu.starts, c)
        up, down = np.exp(step), np.exp(-step)
        _move_wrong(h[begin:s], up, down, e[c][begin:s], E[begin:s])
        _move_wrong(h[t:end], up, down, e[c][t:end], E[t:end])
        _move_own(h[s:t], up, down, r[s:t])
    if asked >= 0:
        h, c = responses[asked], classes[asked]
        s, t = within(begin, end, mu.starts, c)
        before = _wrong(h[begin:s], e[c][begin:s], r[begin:s])
        after = _wrong(h[t:end], e[c][t:end], r[t:end])
        minus, plus = _wrong(h[s:t], E[s:t], r[s:t])
        sums[piece, 0] = before[0] + after[0] + plus
        sums[piece, 1] = before[1] + after[1] + minus


@njit(cache=True, nogil=True)
def _renew(c: int, mu: PairWeights) -> None:
    """Make factors afresh that steps on class c may have brought near the ends of their range."""
    if mu.since_merge[c] > FAR:
        merge(mu)
    elif mu.since_sum[c] > LONG:
        add_up(mu)


@njit(cache=True, nogil=True, error_model="numpy")
def _divide(u: Floats, r: Floats, e: Floats, E: Floats) -> None:
    """e afresh from ``u = e r``."""
    for i in range(len(u)):
        new = u[i] / r[i]
        E[i] += new - e[i]
        e[i] = new


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
def _step_and_sum(g: Ints8, up: float, down: float, h: Ints8, u: Floats) -> tuple[float, float]:
    """Let mu of rows of other classes, u, follow a step of learner g; then V_+ and V_- of learner h over them."""
    plus = minus = 0.0
    for i in range(len(h)):
        mu, against = u[i] * (up if g[i] > 0 else down), np.float64(h[i] > 0)
        u[i] = mu
        plus += mu * (1.0 - against)
        minus += mu * against
    return plus, minus


@njit(cache=True, nogil=True)
def _sweep_class(responses: Ints8, c: int, weights: Floats, rule: StepRule, mu: PairWeights, u: Floats) -> int:
    """:func:`sweep` over variables of one class, whose mu is kept in u meanwhile: a step then reads and writes that.

    Returns how many it has come to before the factors of mu had to be computed again.
    """
    e, r, E = mu.e, mu.r, mu.E
    begin, end = mu.starts[c], mu.starts[c + 1]
    own, rest = r[begin:end], E[begin:end]
    # the rows of other classes are two slices; loops over slices begin at 0, or LLVM would not vectorise them
    for lo, hi in ((0, begin), (end, len(r))):
        multiply(e[c][lo:hi], r[lo:hi], u[lo:hi])
    up = down = 1.0
    g, j = responses[0], 0
    while j < len(weights) and mu.since_merge[c] <= FAR:
        h = responses[j]
        minus, plus = _wrong(h[begin:end], rest, own)
        for lo, hi in ((0, begin), (end, len(r))):
            more, less = _step_and_sum(g[lo:hi], up, down, h[lo:hi], u[lo:hi])
            plus, minus = plus + more, minus + less
        weight = next_weight(weights[j], plus, minus, rule)
        step = weight - weights[j]
        g, up, down = h, np.exp(step), np.exp(-step)
        _move_own(h[begin:end], up, down, own)
        _count_step(c, step, mu)
        weights[j] = weight
        j += 1
    for lo, hi in ((0, begin), (end, len(r))):
        _step_and_sum(g[lo:hi], up, down, g[lo:hi], u[lo:hi])
        _divide(u[lo:hi], r[lo:hi], e[c][lo:hi], E[lo:hi])
    _renew(c, mu)
    return j


@njit(cache=True, nogil=True)
def _count_step(c: int, step: float, mu: PairWeights) -> None:
    mu.since_sum[c] += abs(step)
    mu.since_merge[c] += abs(step)


@njit(cache=True, nogil=True)
def sweep(
    work_queue: Ints, responses: Ints8, classes: Ints32, weights: Floats, rule: StepRule, mu: PairWeights
) -> None:
    """Step on one variable after the other: weak learner ``responses[j]``, +1 or -1 a row, of class ``classes[j]``.

    Steps 5 to 10 of Lin et al. 2012, Algorithm 2. ``weights`` change in place. Several variables of a class in a row
    are half as dear. The step on a variable is carried out together with the sums of the next one.
    """
    n = len(mu.r)
    u = np.empty(n)
    # pieces of the same length, or one of two would wait for the other
    length = piece_length(n, -(-n // max(1, n // SPAN)))
    pieces = -(-n // length)
    sums = np.zeros((pieces, 2))
    moved, step, first = -1, 0.0, 0
    while first < len(classes) or moved >= 0:
        last = run_end(classes, first) if first < len(classes) else first
        asked = first if last == first + 1 else -1
        if moved >= 0 and (mu.since_sum[classes[moved]] > LONG or mu.since_merge[classes[moved]] > FAR):
            asked = -1
        if moved >= 0 or asked >= 0:
            parallel_for(work_queue, _move_and_sum, pieces, (length, responses, classes, moved, step, asked, mu, sums))
        if asked < 0:
            if moved >= 0:
                _renew(classes[moved], mu)
                moved = -1
            if last > first + 1:
                first += _sweep_class(responses[first:last], classes[first], weights[first:last], rule, mu, u)
            continue
        c, plus, minus = classes[first], 0.0, 0.0
        for piece in range(pieces):
            plus += sums[piece, 0]
            minus += sums[piece, 1]
        weight = next_weight(weights[first], plus, minus, rule)
        step, moved = weight - weights[first], -1
        if step != 0.0:
            moved, weights[first] = first, weight
            _count_step(c, step, mu)
        first = last


@njit(cache=True, nogil=True)
def _shift_tile(piece: int, length: int, responses: Ints8, classes: Ints32, steps: Floats, F: Floats) -> None:
    begin, end = piece * length, min((piece + 1) * length, F.shape[1])
    for j in range(len(classes)):
        f, h, step = F[classes[j]][begin:end], responses[j][begin:end], steps[j]
        for i in range(len(h)):
            f[i] += step if h[i] > 0 else -step


@njit(cache=True, nogil=True)
def shift(work_queue: Ints, responses: Ints8, classes: Ints32, steps: Floats, F: Floats) -> None:
    """Add ``steps[j] responses[j]`` to the scores of class ``classes[j]``."""
    n = F.shape[1]
    parallel_for(work_queue, _shift_tile, n_tiles(n), (piece_length(n, TILE), responses, classes, steps, F))
