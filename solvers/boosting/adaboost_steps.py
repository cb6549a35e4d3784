"""What the AdaBoost methods share: weights of weak learners, when to stop, and steps on outputs and colourings.

Outputs are right or wrong each by themselves; colourings divide the classes. The loss of output l on row i is
``w[l, i] = omega_i exp(-Y[l, i] f[l, i])``; Y is +1, -1, or 0 where the output does not count. Sums may be reordered,
as in :mod:`solvers.boosting.pairs.pair_weights`.
"""

from collections.abc import Mapping

import numpy as np
from numba import njit

from solvers.boosting.pairs.pair_weights import SUMS, TILE, accumulate
from solvers.boosting.simd import interleave
from solvers.numerics.array_types import Array, Floats, Ints, Ints8, Ints32

QUIET = 10
SPARE = 1e-5


@njit(cache=True, nogil=True)
def fill_channels(
    begin: int, end: int, Y: Ints8, w: Floats, outputs: Ints, signs: Ints8, scales: Floats, U: Array, totals: Ints
) -> None:
    """Channel j of the rows [begin, end) = w of output ``outputs[j]``, as whole numbers; adds to the totals.

    Where ``signs[j]`` is 0 with the sign of Y, else only of the rows of that Y. Output -1: an empty channel.
    """
    q = np.empty((len(outputs), TILE), U.dtype)
    for first in range(begin, end, TILE):
        last = min(first + TILE, end)
        for j in range(len(outputs)):
            part = q[j][: last - first]
            if outputs[j] < 0:
                part[:] = 0
            else:
                y, x = Y[outputs[j]][first:last], w[outputs[j]][first:last]
                totals[j] += _round(y, x, signs[j], scales[j], part)
        interleave(q, first, last - first, U)


@njit(cache=True, nogil=True)
def _round(y: Ints8, w: Floats, sign: int, scale: float, q: Array) -> int:
    total = 0
    for i in range(len(y)):
        value = w[i] * scale
        signed = value * y[i]
        kept = value if y[i] == sign else 0.0
        whole = np.int64(np.rint(signed if sign == 0 else kept))
        q[i] = whole
        total += int(whole)
    return total


@njit(cache=True, nogil=True, fastmath=SUMS)
def split_mass(h: Ints8, y: Ints8, w: Floats) -> tuple[float, float, float, float]:
    """Sums of w where h is +1 and Y is +1, +1 and -1, -1 and +1, -1 and -1."""
    pp = pm = mp = mm = 0.0
    for i in range(len(h)):
        up, right = 0.5 + 0.5 * h[i], w[i] * (0.5 * y[i] * y[i] + 0.5 * y[i])
        wrong = w[i] * (0.5 * y[i] * y[i] - 0.5 * y[i])
        pp += up * right
        pm += up * wrong
        mp += (1.0 - up) * right
        mm += (1.0 - up) * wrong
    return pp, pm, mp, mm


@njit(cache=True, nogil=True)
def move(h: Ints8, plus: float, minus: float, y: Ints8, f: Floats, w: Floats) -> None:
    """Add ``plus`` to f where h is +1, ``minus`` where it is -1."""
    up_right, up_wrong, down_right, down_wrong = np.exp(-plus), np.exp(plus), np.exp(-minus), np.exp(minus)
    for i in range(len(h)):
        up, right = h[i] > 0, y[i] > 0
        f[i] += plus if up else minus
        above = up_right if right else up_wrong
        below = down_right if right else down_wrong
        w[i] *= above if up else below


@njit(cache=True, nogil=True)
def restart(omega: Floats, Y: Ints8, f: Floats, w: Floats) -> None:
    """w afresh from f."""
    for l in range(Y.shape[0]):
        for i in range(Y.shape[1]):
            w[l, i] = omega[i] * np.exp(-Y[l, i] * f[l, i]) if Y[l, i] != 0 else 0.0


@njit(cache=True, nogil=True)
def count_wrong(F: Floats, y: Ints32) -> int:
    """Rows whose largest score, the first of equals, is not that of their class."""
    wrong = 0
    for i in range(len(y)):
        own = F[y[i], i]
        for q in range(F.shape[0]):
            if F[q, i] > own or (F[q, i] == own and q < y[i]):
                wrong += 1
                break
    return wrong


@njit(cache=True, nogil=True)
def weigh_colouring(starts: Ints, colours: Ints8, D: Floats, u: Floats) -> None:
    """u[i] = the colour of the row's class times the sum of D[q, i] over the classes q of the other colour."""
    for c in range(len(colours)):
        s, t = starts[c], starts[c + 1]
        u[s:t] = 0.0
        for q in range(len(colours)):
            if colours[q] != colours[c]:
                accumulate(D[q][s:t], u[s:t])
        for i in range(s, t):
            u[i] *= colours[c]


@njit(cache=True, nogil=True)
def _scale(h: Ints8, up: float, down: float, x: Floats) -> None:
    for i in range(len(h)):
        x[i] *= up if h[i] > 0 else down


@njit(cache=True, nogil=True)
def _shift(h: Ints8, step: float, x: Floats) -> None:
    for i in range(len(h)):
        x[i] += step if h[i] > 0 else -step


@njit(cache=True, nogil=True)
def move_colours(h: Ints8, alpha: float, starts: Ints, colours: Ints8, F: Floats, D: Floats) -> None:
    """Add ``alpha h`` times its colour to the scores of every class; D[q, i] follows as exp((F_q - F_y) / 2)."""
    up, down = np.exp(alpha), np.exp(-alpha)
    for q in range(len(colours)):
        _shift(h, alpha * colours[q], F[q])
        for c in range(len(colours)):
            if colours[q] != colours[c]:
                s, t = starts[c], starts[c + 1]
                _scale(h[s:t], down if colours[c] > 0 else up, up if colours[c] > 0 else down, D[q][s:t])


@njit(cache=True, nogil=True)
def restart_pairs(omega: Floats, y: Ints32, F: Floats, D: Floats) -> None:
    """D[q, i] = omega_i exp((F_q - F_y) / 2) afresh; 0 for the true class."""
    for i in range(len(y)):
        own = F[y[i], i]
        for q in range(F.shape[0]):
            D[q, i] = omega[i] * np.exp(0.5 * (F[q, i] - own)) if q != y[i] else 0.0


def half_log_odds(right: float, wrong: float, total: float) -> float:
    """AdaBoost's weight of a learner: half the logarithm of right over wrong.

    A small share of all losses, ``total``, is added to both, so that it is finite (Schapire and Singer 1999, section
    4.2, who add 1 / (n k); a share that does not count rows makes weights of examples equal to repetitions).
    """
    spare = SPARE * total
    return 0.5 * float(np.log(right + spare) - np.log(wrong + spare)) if spare > 0 else 0.0


class LossPlateau:
    """Detects that a loss hardly falls any more: by less than ``tol`` of itself in each of ten rounds.

    Attributes
    ----------
    last_loss : float
    n_quiet : int
        How many rounds in a row have lowered it by less.
    """

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self.last_loss, self.n_quiet = np.inf, 0

    def reached(self, loss: float) -> bool:
        """Take notice of the loss after a round; whether to stop."""
        quiet = self.last_loss < np.inf and self.last_loss - loss < self.tol * self.last_loss
        self.last_loss, self.n_quiet = loss, self.n_quiet + 1 if quiet else 0
        return loss <= 0 or self.n_quiet >= QUIET

    def arrays(self) -> dict[str, Array]:
        """What has to be kept."""
        return {"last_loss": np.array(self.last_loss), "n_quiet": np.array(self.n_quiet)}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Take back what :meth:`arrays` gave."""
        self.last_loss, self.n_quiet = float(arrays["last_loss"]), int(arrays["n_quiet"])
