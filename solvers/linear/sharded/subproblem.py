"""The exact step on some dual variables of one example, and what its visit tells of the gap before the step."""

from numba import njit

from solvers.linear.steps import block_step
from solvers.numerics.array_types import Array, Floats


@njit(cache=True, nogil=True)
def solve(
    b: Floats, old: Floats, new: Floats, n: int, C: float, S0: float, K: float, largest_loss: bool, statistics: Array
) -> None:
    """New values of the first n variables; ``statistics[0]`` gathers gap, loss and violation at the old ones.

    The notation is that of :mod:`solvers.linear.steps.block_step`: ``b_c = g_c / K + old_c + S0``, ``S0 = sum old``.
    """
    found = statistics[0]
    worst, held = 0.0, 0.0
    for t in range(n):
        g = (b[t] - old[t] - S0) * K
        if largest_loss:
            worst = max(worst, g)
            held += old[t] * g
        else:
            found.gap += C * max(g, 0.0) - old[t] * g
            found.loss += C * max(g, 0.0)
    if largest_loss:
        found.gap += C * worst - held
        found.loss += C * worst
    found.violation = max(found.violation, block_step.violation_of(b, old, n, S0, K, C, largest_loss))
    block_step.solve(b, n, C, S0, largest_loss, new)
