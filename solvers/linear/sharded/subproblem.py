"""The exact maximum over the dual variables of one example, as one compiled function for all coupled machines."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.numerics.block_roots import box_root, simplex_root

BOX = 0
SIMPLEX = 1


@njit(cache=True, nogil=True)
def solve(
    kind: int,
    b: NDArray[np.float64],
    old: NDArray[np.float64],
    new: NDArray[np.float64],
    n: int,
    bound: float,
    S0: float,
    K: float,
    tally: NDArray[np.float64],
) -> None:
    """New values of the first n variables; tally gathers gap, loss and violation at the old ones.

    BOX: 0 <= alpha_c <= bound, new = clip(b - S, 0, bound). SIMPLEX: alpha >= 0 and sum alpha <= bound,
    new = (b - theta)_+. In both b_c = g_c / K + old_c + S0 with g the gradient of the dual and S0 = sum_c old_c.
    """
    if kind == BOX:
        S = box_root(b, n, bound, 1.0, S0)
        for t in range(n):
            g = (b[t] - old[t] - S0) * K
            tally[0] += bound * max(g, 0.0) - old[t] * g
            tally[1] += bound * max(g, 0.0)
            if (g > 0.0 and old[t] < bound) or (g < 0.0 and old[t] > 0.0):
                tally[2] = max(tally[2], abs(g))
            new[t] = min(max(b[t] - S, 0.0), bound)
        return
    theta = simplex_root(b, n, bound)
    worst, held, low = 0.0, 0.0, np.inf
    for t in range(n):
        g = (b[t] - old[t] - S0) * K
        worst = max(worst, g)
        held += old[t] * g
        if old[t] > 0.0:
            low = min(low, g)
        new[t] = max(b[t] - theta, 0.0)
    tally[0] += bound * worst - held
    tally[1] += bound * worst
    # the slack bound - sum alpha is one more variable, of gradient 0 (Crammer and Singer 2002, equation 24)
    if bound * (1.0 - 1e-9) > S0:
        low = min(low, 0.0)
    if low < worst:
        tally[2] = max(tally[2], worst - low)
