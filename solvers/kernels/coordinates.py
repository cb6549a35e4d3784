"""Coordinate steps on the exponential loss of all pairs of an example and a wrong class (Lin et al. 2012, Algorithm 2).

``mu_iq = omega_i exp(F_q(x_i) - F_y(x_i))`` is kept as a product ``e[q, i] r[i]``: a step on class c changes row c of e
and, where c is the true class, r; so it costs O(n), in contiguous loops. Rows are sorted by their class: class c owns
those from ``starts[c]`` to ``starts[c + 1]``, where e[c] means nothing. ``E[i]`` is the sum of e[q, i] over the wrong
classes q; it follows the steps, and is added up afresh before it can have fallen to a thousandth, when rounding would
show: it falls no faster than the fastest of its terms, and the steps of every class are added up in ``way[0, c]``.
``way[1, c]`` adds them up as well, until e or r may be near the end of the floats' range; the factors of r then go to
e. The scores F themselves are moved apart, once for all steps on a variable.

Sums may be reordered (``reassoc``), or LLVM would not vectorise them: fifteen times the speed, and still one result on
one machine, as the loops do not depend on the number of threads. These share out the rows, in pieces of a fixed length
(:mod:`solvers.kernels.team`). Functions that reorder sums are always inlined: a linker that finds several copies of
one, optimised differently, takes that which was loaded first.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.kernels.stumps import scale
from solvers.kernels.team import MOST, spread
from solvers.kernels.whole_lanes import LANES, interleave

LONG, FAR = 6.9, 230.0
# rows of a piece: of all classes at once, which then stay in the cache, and of a single one
TILE, SPAN = 1024, 1800
SUMS = {"reassoc", "nsz", "contract"}


@njit(cache=True, nogil=True)
def _length(n: int, least: int) -> int:
    """Rows of a piece, so that there are not too many pieces."""
    return max(least, -(-n // (MOST - 1)))


@njit(cache=True, nogil=True)
def n_tiles(n: int) -> int:
    """How many pieces n rows of all classes are cut into."""
    return int(-(-n // _length(n, TILE)))


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


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
def _wrong(h: NDArray[np.int8], e: NDArray[np.float64], r: NDArray[np.float64]) -> tuple[float, float]:
    """V_+ and V_- over rows of other classes: their margin grows where h is -1."""
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
def _within(begin: int, end: int, starts: NDArray[np.int64], c: int) -> tuple[int, int]:
    """The rows of class c among the rows [begin, end), which may be none."""
    return min(max(starts[c], begin), end), min(max(starts[c + 1], begin), end)


@njit(cache=True, nogil=True)
def _move_and_sum(
    piece: int,
    length: int,
    sides: NDArray[np.int8],
    classes: NDArray[np.int32],
    moved: int,
    step: float,
    asked: int,
    starts: NDArray[np.int64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Let e, r and E of one piece follow the step of variable ``moved`` (equation 20); then the sums of ``asked``.

    ``sums[piece]`` are its V_+ and V_- over these rows at the current mu (equation 9). -1 stands for no variable.
    """
    begin, end = piece * length, min((piece + 1) * length, len(r))
    if moved >= 0:
        h, c = sides[moved], classes[moved]
        s, t = _within(begin, end, starts, c)
        up, down = np.exp(step), np.exp(-step)
        _move_wrong(h[begin:s], up, down, e[c][begin:s], E[begin:s])
        _move_wrong(h[t:end], up, down, e[c][t:end], E[t:end])
        _move_own(h[s:t], up, down, r[s:t])
    if asked >= 0:
        h, c = sides[asked], classes[asked]
        s, t = _within(begin, end, starts, c)
        before = _wrong(h[begin:s], e[c][begin:s], r[begin:s])
        after = _wrong(h[t:end], e[c][t:end], r[t:end])
        minus, plus = _wrong(h[s:t], E[s:t], r[s:t])
        sums[piece, 0] = before[0] + after[0] + plus
        sums[piece, 1] = before[1] + after[1] + minus


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


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
def _step_and_sum(
    g: NDArray[np.int8], up: float, down: float, h: NDArray[np.int8], u: NDArray[np.float64]
) -> tuple[float, float]:
    """Let mu of rows of other classes, u, follow a step of learner g; then V_+ and V_- of learner h over them."""
    plus = minus = 0.0
    for i in range(len(h)):
        mu, against = u[i] * (up if g[i] > 0 else down), np.float64(h[i] > 0)
        u[i] = mu
        plus += mu * (1.0 - against)
        minus += mu * against
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
    board: NDArray[np.int64],
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
    half as dear. The step on a variable is carried out together with the sums of the next one.
    """
    n = len(r)
    u = np.empty(n)
    # pieces of the same length, or one of two would wait for the other
    length = _length(n, -(-n // max(1, n // SPAN)))
    pieces = -(-n // length)
    sums = np.zeros((pieces, 2))
    moved, step, first = -1, 0.0, 0
    while first < len(classes):
        c, last = classes[first], _run_end(classes, first)
        single = last == first + 1
        if moved >= 0 and (not single or way[0, classes[moved]] > LONG or way[1, classes[moved]] > FAR):
            spread(board, _move_and_sum, pieces, (length, sides, classes, moved, step, -1, starts, e, r, E, sums))
            _settle(classes[moved], starts, e, r, E, way)
            moved = -1
        if not single:
            first += _sweep_class(sides[first:last], c, weights[first:last], a, share, signed, starts, e, r, E, way, u)
            continue
        spread(board, _move_and_sum, pieces, (length, sides, classes, moved, step, first, starts, e, r, E, sums))
        plus, minus = 0.0, 0.0
        for piece in range(pieces):
            plus += sums[piece, 0]
            minus += sums[piece, 1]
        weight = next_weight(weights[first], plus, minus, a, share, signed)
        step, moved = weight - weights[first], -1
        if step != 0.0:
            moved, weights[first] = first, weight
            way[:, c] += abs(step)
        first = last
    if moved >= 0:
        spread(board, _move_and_sum, pieces, (length, sides, classes, moved, step, -1, starts, e, r, E, sums))
        _settle(classes[moved], starts, e, r, E, way)


@njit(cache=True, nogil=True)
def _shift_tile(
    piece: int,
    length: int,
    sides: NDArray[np.int8],
    classes: NDArray[np.int32],
    steps: NDArray[np.float64],
    F: NDArray[np.float64],
) -> None:
    begin, end = piece * length, min((piece + 1) * length, F.shape[1])
    for j in range(len(classes)):
        f, h, step = F[classes[j]][begin:end], sides[j][begin:end], steps[j]
        for i in range(len(h)):
            f[i] += step if h[i] > 0 else -step


@njit(cache=True, nogil=True)
def shift(
    board: NDArray[np.int64],
    sides: NDArray[np.int8],
    classes: NDArray[np.int32],
    steps: NDArray[np.float64],
    F: NDArray[np.float64],
) -> None:
    """Add ``steps[j] sides[j]`` to the scores of class ``classes[j]``."""
    n = F.shape[1]
    spread(board, _shift_tile, n_tiles(n), (_length(n, TILE), sides, classes, steps, F))


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
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


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
def _pull_wrong(
    F: NDArray[np.float64],
    own: NDArray[np.float64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    ahead: NDArray[np.float64],
) -> tuple[float, float]:
    """Sums of mu and of mu log(mu / omega) over rows of other classes; ``ahead`` grows to the class's lead."""
    total = entropy = 0.0
    for i in range(len(F)):
        mu, lead = e[i] * r[i], F[i] - own[i]
        total += mu
        entropy += mu * lead
        ahead[i] = max(ahead[i], lead)
    return total, entropy


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
def _pull_own(r: NDArray[np.float64], E: NDArray[np.float64]) -> float:
    """Sum of S over a class's own rows."""
    total = 0.0
    for i in range(len(r)):
        total += r[i] * E[i]
    return total


@njit(cache=True, nogil=True)
def _pull_tile(
    piece: int,
    length: int,
    starts: NDArray[np.int64],
    y: NDArray[np.int32],
    F: NDArray[np.float64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    sums: NDArray[np.float64],
    n_wrong: NDArray[np.int64],
) -> None:
    begin, end = piece * length, min((piece + 1) * length, len(r))
    n = end - begin
    # of classes before the true one and of those behind it: one that is before it wins if it scores as much
    own, before, behind = np.empty(n), np.full(n, -np.inf), np.full(n, -np.inf)
    for i in range(n):
        own[i] = F[y[begin + i], begin + i]
    for c in range(F.shape[0]):
        f, g = F[c], e[c]
        s, t = _within(begin, end, starts, c)
        a, b = s - begin, t - begin
        m0, l0 = _pull_wrong(f[begin:s], own[:a], g[begin:s], r[begin:s], behind[:a])
        m1, l1 = _pull_wrong(f[t:end], own[b:], g[t:end], r[t:end], before[b:])
        sums[piece, c, 0], sums[piece, c, 1] = m0 + m1, l0 + l1
        sums[piece, c, 2] = m0 + m1 + _pull_own(r[s:t], E[s:t])
    total = 0
    for i in range(n):
        total += int(before[i] >= 0.0 or behind[i] > 0.0)
    n_wrong[piece] = total


@njit(cache=True, nogil=True)
def pull(
    board: NDArray[np.int64],
    starts: NDArray[np.int64],
    y: NDArray[np.int32],
    F: NDArray[np.float64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> int:
    """Sums over the rows for all classes: of mu_ic, of mu_ic log(mu_ic / omega_i), and of |u_ic|; shape (n_classes, 3).

    ``u_ic = S_i`` in the rows of class c, ``-mu_ic`` elsewhere. Returns how many of the rows are wrong.
    """
    n = len(r)
    pieces = n_tiles(n)
    parts, n_wrong = np.empty((pieces, F.shape[0], 3)), np.empty(pieces, np.int64)
    spread(board, _pull_tile, pieces, (_length(n, TILE), starts, y, F, e, r, E, parts, n_wrong))
    sums[:] = 0.0
    for piece in range(pieces):
        sums += parts[piece]
    return int(n_wrong.sum())


@njit(cache=True, nogil=True)
def _round(e: NDArray[np.float64], r: NDArray[np.float64], scale: float, q: NDArray[Any]) -> int:
    """``q = e r scale`` as whole numbers; returns their sum."""
    total = 0
    for i in range(len(e)):
        whole = np.int64(np.rint(e[i] * r[i] * scale))
        q[i] = whole
        total += int(whole)
    return total


@njit(cache=True, nogil=True)
def _load_tile(
    piece: int,
    length: int,
    starts: NDArray[np.int64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    scales: NDArray[np.float64],
    U: NDArray[Any],
    totals: NDArray[np.int64],
) -> None:
    begin, end = piece * length, min((piece + 1) * length, len(r))
    q = np.empty((LANES, end - begin), U.dtype)
    for block in range(U.shape[0]):
        first = block * LANES
        lanes = min(LANES, e.shape[0] - first)
        for lane in range(lanes):
            c = first + lane
            s, t = _within(begin, end, starts, c)
            own = _round(E[s:t], r[s:t], scales[c], q[lane][s - begin : t - begin])
            before = _round(e[c][begin:s], r[begin:s], -scales[c], q[lane][: s - begin])
            totals[piece, c] = own + before + _round(e[c][t:end], r[t:end], -scales[c], q[lane][t - begin :])
        interleave(q[:lanes], begin, end - begin, U[block : block + 1])


@njit(cache=True, nogil=True)
def load(
    board: NDArray[np.int64],
    starts: NDArray[np.int64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    scales: NDArray[np.float64],
    U: NDArray[Any],
    totals: NDArray[Any],
) -> None:
    """``u_ic scales[c]``, rounded, to lane c of U; ``totals`` become the lanes' sums."""
    n = len(r)
    pieces = n_tiles(n)
    parts = np.zeros((pieces, totals.size), np.int64)
    spread(board, _load_tile, pieces, (_length(n, TILE), starts, e, r, E, scales, U, parts))
    totals[:] = parts.sum(axis=0).reshape(totals.shape)


@njit(cache=True, nogil=True)
def survey(
    board: NDArray[np.int64],
    starts: NDArray[np.int64],
    y: NDArray[np.int32],
    F: NDArray[np.float64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    top: float,
    masses: NDArray[np.float64],
    scales: NDArray[np.float64],
    slack: NDArray[np.float64],
    U: NDArray[Any],
    totals: NDArray[Any],
) -> tuple[float, float, int]:
    """Load U with numbers up to ``top``; returns the sums of mu and of mu log(mu / omega), and how many are wrong."""
    sums = np.empty((F.shape[0], 3))
    n_wrong = pull(board, starts, y, F, e, r, E, sums)
    mass = entropy = 0.0
    for c in range(len(sums)):
        mass, entropy, masses[c] = mass + sums[c, 0], entropy + sums[c, 1], sums[c, 2]
    scale(masses, len(r), top, scales, slack)
    load(board, starts, e, r, E, scales, U, totals)
    return mass, entropy, n_wrong
