"""The loop of the kernel machines: list the worst examples, solve them set by set, check the conditions, list again."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from solvers.kernel_svm.gram import CachedColumns
from solvers.kernel_svm.working_set import (
    BlockRule,
    Training,
    check_conditions,
    local_problem,
    solve_local,
    update_scores,
)
from solvers.numerics.array_types import Floats, Ints

# why the loop stops: a column of the Gram matrix is missing, a certificate is reported, the slice is spent
MISSING, MEASURED, SPENT = 0, 1, 2

# the state of the loop: block steps made, their number at the last reported certificate, place in the list of the worst
# examples, its length; and the sums of the last check of the optimality conditions
LOOP = np.dtype(
    [
        ("steps", np.int64),
        ("reported", np.int64),
        ("place", np.int64),
        ("length", np.int64),
        ("losses", np.float64),
        ("total", np.float64),
        ("products", np.float64),
    ]
)


class LoopSettings(NamedTuple):
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
        Block steps from one certificate that is reported to the next.
    tol : float
        A certificate with this relative gap is reported at once.
    cost, slice : int
        Products of a set, and those after which the loop returns.
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
def run_working_sets(
    rule: BlockRule,
    training: Training,
    settings: LoopSettings,
    cached: CachedColumns,
    F: Floats,
    alpha: Floats,
    listed: Ints,
    violations: Floats,
    loop: Any,
) -> int:
    """Go on until a set misses a column, a certificate is reported, whose sums are in ``loop``, or the slice is spent.

    Crammer and Singer 2002, Figure 4, a working set at a time. A certificate is reported after so many steps, and
    where the loop ends: at the gap, at the limit, or with nothing to list.
    """
    work = 0
    while True:
        if loop.place == loop.length or loop.steps >= settings.limit:
            loop.losses, loop.total, loop.products = check_conditions(rule, training, F, alpha, violations)
            primal = 0.5 * (loop.total - loop.products) + loop.losses
            dual = 0.5 * (loop.total + loop.products)
            loop.place, loop.length = 0, list_worst(violations, training.diagonal, settings, listed)
            ended = primal - dual <= settings.tol * primal or loop.steps >= settings.limit or loop.length == 0
            if ended or loop.steps - loop.reported >= settings.every:
                loop.reported = loop.steps
                return MEASURED
        picks = listed[loop.place : min(loop.place + settings.size, loop.length)]
        slots = np.empty(picks.shape[0], np.int64)
        for t in range(picks.shape[0]):
            slots[t] = cached.slot[picks[t]]
            if slots[t] < 0:
                return MISSING
        cached.uses[0] += 1
        for slot in slots:
            cached.last_use[slot] = cached.uses[0]
        local = local_problem(picks, slots, cached.store, F, alpha)
        budget = min(settings.budget * picks.shape[0], settings.limit - loop.steps)
        made = solve_local(rule, training, local, budget, settings.enough)
        update_scores(local, slots, cached.store, F, alpha)
        # a set that rounding alone called up counts too, so that the limit is reached in any case
        loop.steps += max(1, made)
        loop.place += picks.shape[0]
        work += settings.cost
        if work >= settings.slice and loop.steps < settings.limit:
            return SPENT


@njit(cache=True, nogil=True)
def list_worst(violations: Floats, diagonal: Floats, settings: LoopSettings, listed: Ints) -> int:
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
    size = min(max(settings.size, n // settings.share), count)
    # to sort all of them costs little beside the sets to come, and to select first seconds of compiling
    order = np.argsort(losses[:count], kind="mergesort")
    for t in range(size):
        listed[t] = found[order[t]]
    return int(size)
