"""The loop of the kernel machines: list the worst examples, take them up set by set, survey, list again."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.kernel_svm.gram import Held
from solvers.kernel_svm.working_set import BlockRule, Training, ascend, cut_out, spread, survey

# why the loop stops
MISSING, MEASURED, SPENT = 0, 1, 2
# of the clock: block steps made, their number at the last survey that was handed out, place in the list, its length
STEPS, HANDED, PLACE, LENGTH = 0, 1, 2, 3


class Rules(NamedTuple):
    """What the loop goes by.

    Attributes
    ----------
    size : int
        Examples of a working set.
    share : int
        One example in so many is listed, at least a working set of them.
    enough : float
        A set is left once its violations are below this share of the first worst one.
    budget : int
        Block steps of a set, by example.
    limit : int
        Block steps of all.
    every : int
        Block steps from one survey that is handed out to the next.
    tol : float
        A survey with this relative gap is handed out at once.
    cost, slice : int
        Products of a set, and those after which the loop hands back.
    """

    size: int
    share: int
    enough: float
    budget: int
    limit: int
    every: int
    tol: float
    cost: int
    slice: int


@njit(cache=True, nogil=True)
def climb(
    machine: BlockRule,
    training: Training,
    rules: Rules,
    held: Held,
    F: NDArray[np.float64],
    alpha: NDArray[np.float64],
    listed: NDArray[np.int64],
    violations: NDArray[np.float64],
    clock: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> int:
    """Go on until a set misses a column, a survey is due, whose sums are in ``sums``, or the slice is spent.

    A survey is due after so many steps, and where the loop ends: at the gap, at the limit, or with nothing to list.
    """
    work = 0
    while True:
        if clock[PLACE] == clock[LENGTH] or clock[STEPS] >= rules.limit:
            sums[0], sums[1], sums[2] = survey(machine, training, F, alpha, violations)
            primal, dual = 0.5 * (sums[1] - sums[2]) + sums[0], 0.5 * (sums[1] + sums[2])
            clock[PLACE], clock[LENGTH] = 0, list_worst(violations, training.diagonal, rules, listed)
            ended = primal - dual <= rules.tol * primal or clock[STEPS] >= rules.limit or clock[LENGTH] == 0
            if ended or clock[STEPS] - clock[HANDED] >= rules.every:
                clock[HANDED] = clock[STEPS]
                return MEASURED
        picks = listed[clock[PLACE] : min(clock[PLACE] + rules.size, clock[LENGTH])]
        slots = np.empty(picks.shape[0], np.int64)
        for t in range(picks.shape[0]):
            slots[t] = held.slot[picks[t]]
            if slots[t] < 0:
                return MISSING
        held.clock[0] += 1
        for slot in slots:
            held.asked[slot] = held.clock[0]
        local = cut_out(picks, slots, held.store, F, alpha)
        budget = min(rules.budget * picks.shape[0], rules.limit - clock[STEPS])
        made = ascend(machine, training, local, budget, rules.enough)
        spread(local, slots, held.store, F, alpha)
        # a set that rounding alone called up counts too, so that the limit is reached in any case
        clock[STEPS] += max(1, made)
        clock[PLACE] += picks.shape[0]
        work += rules.cost
        if work >= rules.slice and clock[STEPS] < rules.limit:
            return SPENT


@njit(cache=True, nogil=True)
def list_worst(
    violations: NDArray[np.float64], diagonal: NDArray[np.float64], rules: Rules, listed: NDArray[np.int64]
) -> int:
    """The worst violators in ``listed``, worst first, those of a lower number first among equals; how many there are.

    A step along one violated pair gains in proportion to its square over K(x_i, x_i); examples without a length gain
    without limit.
    """
    n = violations.shape[0]
    found, count = np.empty(n, np.int64), 0
    losses = np.empty(n)
    for i in range(n):
        if violations[i] > 0.0:
            found[count] = i
            losses[count] = -(violations[i] ** 2) / diagonal[i] if diagonal[i] > 0.0 else -np.inf
            count += 1
    size = min(max(rules.size, n // rules.share), count)
    # to sort all of them costs little beside the sets to come, and to select first seconds of compiling
    order = np.argsort(losses[:count], kind="mergesort")
    for t in range(size):
        listed[t] = found[order[t]]
    return int(size)
