"""Dual ascent on a few examples at a time: violations, exact block steps within a working set, update of all scores."""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.numerics.array_types import Floats, Ints, Ints32
from solvers.numerics.block_roots import box_root, simplex_root

TILE = 512
NEGLIGIBLE = 1e-12
NO_LENGTH = 1e-200


class BlockRule(NamedTuple):
    """The three numbers in which the all-in-one machines differ.

    The margin of a wrong class c is violated by ``g_c = 1 + f_c - own f_y``. With the kernel value K of an example
    with itself and the sum S of its dual variables, a step that brings them to ``a`` changes g_c by
    ``-K (a_c - alpha_c + gamma (sum a - S))``.

    Attributes
    ----------
    own : float
        1 if the true class's score counts, 0 if only the wrong classes' do.
    gamma : float
        1, or -1/n_classes where the scores of all classes sum to zero by constraint.
    largest : bool
        The loss is the largest violation, so that the variables of an example sum to C at most; else it is the sum of
        them, and each variable lies in [0, C].
    """

    own: float
    gamma: float
    largest: bool


class Training(NamedTuple):
    """What stays fixed: true classes, C of each example, K(x_i, x_i)."""

    y: Ints32
    bounds: Floats
    diagonal: Floats


class LocalProblem(NamedTuple):
    """A working set by itself: its examples, the Gram matrix among them, their scores and dual variables by row."""

    picks: Ints
    gram: Floats
    f: Floats
    alpha: Floats
    moved: Floats


@njit(cache=True, nogil=True)
def check_conditions(
    rule: BlockRule, training: Training, F: Floats, alpha: Floats, violations: Floats
) -> tuple[float, float, float]:
    """Sums over all examples of loss, dual variables and alpha' g; each example's KKT violation in place.

    For the largest-violation loss that is psi of Crammer and Singer 2002: the best gradient less the worst among
    classes that hold weight, the true class with gradient 0 standing for what is left of C.
    """
    k, n = F.shape
    own, high, low = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    loss, held, total = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    losses, sums, products = 0.0, 0.0, 0.0
    for begin in range(0, n, TILE):
        size = min(TILE, n - begin)
        y, C = training.y[begin : begin + size], training.bounds[begin : begin + size]
        for t in range(size):
            own[t] = 1.0 - rule.own * F[y[t], begin + t]
            high[t], low[t], loss[t], held[t], total[t] = 0.0, np.inf, 0.0, 0.0, 0.0
        for c in range(k):
            f, a = F[c, begin : begin + size], alpha[c, begin : begin + size]
            if rule.largest:
                for t in range(size):
                    g = own[t] + f[t] if y[t] != c else 0.0
                    high[t] = g if g > high[t] else high[t]
                    holds = g if a[t] > 0.0 else np.inf
                    low[t] = holds if holds < low[t] else low[t]
                    held[t] += a[t] * g
                    total[t] += a[t]
            else:
                for t in range(size):
                    g = own[t] + f[t] if y[t] != c else 0.0
                    rises = g if a[t] < C[t] else 0.0
                    falls = g if a[t] > 0.0 else 0.0
                    high[t] = rises if rises > high[t] else high[t]
                    low[t] = falls if falls < low[t] else low[t]
                    loss[t] += g if g > 0.0 else 0.0
                    held[t] += a[t] * g
                    total[t] += a[t]
        for t in range(size):
            if rule.largest:
                loss[t] = high[t]
                if total[t] < C[t] * (1.0 - 1e-9):
                    low[t] = min(low[t], 0.0)
                violations[begin + t] = max(high[t] - low[t], 0.0)
            else:
                violations[begin + t] = max(high[t], -low[t])
            losses += C[t] * loss[t]
            sums += total[t]
            products += held[t]
    return losses, sums, products


@njit(cache=True, nogil=True)
def local_problem(picks: Ints, slots: Ints, store: Floats, F: Floats, alpha: Floats) -> LocalProblem:
    """The Gram matrix, scores and dual variables of the working set ``picks``."""
    q, k = picks.shape[0], F.shape[0]
    local = LocalProblem(picks, np.empty((q, q)), np.empty((q, k)), np.empty((q, k)), np.zeros((q, k)))
    for s in range(q):
        for t in range(q):
            local.gram[s, t] = store[slots[s], picks[t]]
        for c in range(k):
            local.f[s, c] = F[c, picks[s]]
            local.alpha[s, c] = alpha[c, picks[s]]
    return local


@njit(cache=True, nogil=True)
def solve_local(rule: BlockRule, training: Training, local: LocalProblem, budget: int, share: float) -> int:
    """Exact block steps in turn until all violations are below a share of the first worst one; how many were made.

    local.f, local.alpha and local.moved (changes of the coefficients) change in place.
    """
    q, k = local.f.shape
    b, v = np.empty(k), np.empty(k)
    steps, first = 0, -1.0
    while True:
        worst = 0.0
        for s in range(q):
            i = local.picks[s]
            y, C, K = training.y[i], training.bounds[i], local.gram[s, s]
            psi = _violation(rule, y, C, local.f[s], local.alpha[s])
            worst = max(worst, psi)
            if psi <= max(0.0, share * first):
                continue
            if steps == budget:
                return steps
            steps += 1
            _block_step(rule, y, C, K, local.f[s], local.alpha[s], b)
            changed = _coefficients(rule, y, local.alpha[s], b, v)
            for c in range(k):
                local.alpha[s, c] = b[c]
                local.moved[s, c] += v[c]
            if changed:
                for t in range(q):
                    K_st = local.gram[s, t]
                    for c in range(k):
                        local.f[t, c] += K_st * v[c]
        if first < 0.0:
            first = worst
        elif worst <= share * first:
            return steps


@njit(cache=True, nogil=True)
def update_scores(local: LocalProblem, slots: Ints, store: Floats, F: Floats, alpha: Floats) -> None:
    """F += moved' K and the new dual variables in place; four columns a pass, so that F is read a quarter as often."""
    q, k = local.f.shape
    n = F.shape[1]
    movers = np.empty((k, q), np.int64)
    count = np.zeros(k, np.int64)
    for s in range(q):
        for c in range(k):
            alpha[c, local.picks[s]] = local.alpha[s, c]
            if local.moved[s, c] != 0.0:
                movers[c, count[c]] = s
                count[c] += 1
    for begin in range(0, n, TILE):
        end = min(begin + TILE, n)
        for c in range(k):
            f = F[c, begin:end]
            at = 0
            while at + 4 <= count[c]:
                s0, s1, s2, s3 = movers[c, at], movers[c, at + 1], movers[c, at + 2], movers[c, at + 3]
                v0, v1, v2, v3 = local.moved[s0, c], local.moved[s1, c], local.moved[s2, c], local.moved[s3, c]
                K0, K1 = store[slots[s0], begin:end], store[slots[s1], begin:end]
                K2, K3 = store[slots[s2], begin:end], store[slots[s3], begin:end]
                for t in range(end - begin):
                    f[t] += v0 * K0[t] + v1 * K1[t] + v2 * K2[t] + v3 * K3[t]
                at += 4
            while at < count[c]:
                v0, K0 = local.moved[movers[c, at], c], store[slots[movers[c, at]], begin:end]
                for t in range(end - begin):
                    f[t] += v0 * K0[t]
                at += 1


@njit(cache=True, nogil=True)
def _violation(rule: BlockRule, y: int, C: float, f: Floats, alpha: Floats) -> float:
    """The KKT violation of one example, as :func:`check_conditions` has it."""
    own = 1.0 - rule.own * f[y]
    high, low, total = 0.0, np.inf if rule.largest else 0.0, 0.0
    for c in range(f.shape[0]):
        if c != y:
            g = own + f[c]
            total += alpha[c]
            if rule.largest or alpha[c] < C:
                high = max(high, g)
            if alpha[c] > 0.0:
                low = min(low, g)
    if rule.largest and total < C * (1.0 - 1e-9):
        low = min(low, 0.0)
    return max(high - low, 0.0) if rule.largest else max(high, -low)


@njit(cache=True, nogil=True)
def _block_step(rule: BlockRule, y: int, C: float, K: float, f: Floats, alpha: Floats, b: Floats) -> None:
    """b = the best dual variables of one example, all others held.

    Crammer and Singer 2002, equation 37, for the largest violation; its solution is that of their equation 38.
    """
    k = f.shape[0]
    own, S0, top = 1.0 - rule.own * f[y], 0.0, 0
    for c in range(k):
        S0 += alpha[c]
    if K <= NO_LENGTH:
        # without a length nothing it does moves a score: what pays goes to its bound
        best = 0.0
        for c in range(k):
            g = own + f[c] if c != y else 0.0
            b[c] = C if g > 0.0 and not rule.largest else 0.0
            if g > best:
                best, top = g, c
        if rule.largest and best > 0.0:
            b[top] = C
        return
    for c in range(k):
        b[c] = (own + f[c]) / K + alpha[c] + rule.gamma * S0 if c != y else -np.inf
    if rule.largest:
        theta = simplex_root(b, k, C)
        for c in range(k):
            b[c] = max(b[c] - theta, 0.0)
    else:
        S = box_root(b, k, C, rule.gamma, S0)
        for c in range(k):
            b[c] = min(max(b[c] - rule.gamma * S, 0.0), C)


@njit(cache=True, nogil=True)
def _coefficients(rule: BlockRule, y: int, alpha: Floats, b: Floats, v: Floats) -> bool:
    """v = how the coefficients of one example change; false, and b = alpha, where by rounding only."""
    k, changed, sum_of_changes = alpha.shape[0], False, 0.0
    for c in range(k):
        change = b[c] - alpha[c]
        if abs(change) > NEGLIGIBLE * max(b[c], alpha[c]):
            changed = True
        else:
            b[c], change = alpha[c], 0.0
        v[c] = -change
        sum_of_changes += change
    if rule.own != 0.0:
        v[y] = sum_of_changes
    else:
        for c in range(k):
            v[c] += sum_of_changes / k
    return changed
