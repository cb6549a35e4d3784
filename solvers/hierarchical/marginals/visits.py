"""Visits of H-M3's examples, the certificate over all of them, and what else goes over their masses.

A visit takes exact steps on the masses of one example: Rousu et al. 2005, Algorithm 1, lines 5 to 8, with steps of
single masses and groups of them beside those of Algorithm 2.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from solvers.hierarchical.marginals.closed_sets import (
    ascend_on_sets,
    best_set,
    blank_groups,
    gradient_on_sets,
    losses_of_sets,
)
from solvers.hierarchical.marginals.example import Example, MarkovTree, Sets, blank_example, load_masses
from solvers.hierarchical.marginals.graph_sets import (
    Search,
    ascend_on_graph,
    best_set_of_graph,
    blank_search,
    gradient_on_graph,
    losses_in_graph,
)
from solvers.hierarchical.marginals.labelings import (
    ascend_on_labelings,
    best_labeling,
    blank_edges,
    gradient_on_labelings,
    losses_of_labelings,
)
from solvers.numerics.array_types import Bytes, Floats, Ints32
from solvers.numerics.coefficients import Coefficients, put
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import Rows

# what the visits of an epoch have met: the examples' parts of the duality gap, the largest of them per bound
VISITED = np.dtype([("gap", "f8"), ("violation", "f8")])


class Sums(NamedTuple):
    """Over all examples: losses, the linear part of the dual, a constant of both bounds, the largest gap per bound.

    The constant is that of examples without a length: at their optimum all mass is on the worst set.
    """

    losses: float
    linear: float
    constant: float
    violation: float


@njit(cache=True, nogil=True)
def look(
    rows: Rows, tree: MarkovTree, sets: Sets, i: int, A: Floats, pool: Coefficients, example: Example, search: Search
) -> float:
    """Example i at the vectors A: scores, losses, masses, gradient, the best set; returns what that is worth."""
    sum_rows(A, rows.indices, rows.data, rows.indptr[i], rows.indptr[i + 1], example.scores)
    if sets.edges:
        losses_of_labelings(tree, sets, i, example)
        load_masses(sets, pool, i, example)
        gradient_on_labelings(tree, example)
        value: float = best_labeling(tree, example)
    elif tree.edges.below.shape[0] > 0:
        losses_in_graph(tree, sets, i, example)
        load_masses(sets, pool, i, example)
        gradient_on_graph(tree, example)
        value = best_set_of_graph(tree, example, search)
    else:
        losses_of_sets(tree, sets, i, example)
        load_masses(sets, pool, i, example)
        gradient_on_sets(tree, example)
        value = best_set(tree, example)
    return value


@njit(cache=True, nogil=True)
def visit(
    rows: Rows,
    tree: MarkovTree,
    sets: Sets,
    damping: float,
    negligible: float,
    order: Ints32,
    begin: int,
    stop: int,
    E: Floats,
    pool: Coefficients,
    unchanged: Bytes,
    visited: Any,
) -> int:
    """Exact steps on the examples order[begin:stop], until the pool is full; the place of the first not visited.

    E (n_features, n_columns) gives the scores, and follows the masses ``damping`` times. An example whose gap is
    negligible is left as it is. ``visited`` is a record of ``VISITED``.
    """
    m = tree.parent.shape[0]
    example, groups, edges = blank_example(tree, sets, E.shape[1]), blank_groups(m), blank_edges(m)
    search = blank_search(tree)
    p, g, q, before, is_true = example.mass, example.gradient, example.direction, example.before, example.is_true
    indptr, indices, data, _ = rows
    n = p.shape[0]
    changed, held, values = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n)
    for at in range(begin, stop):
        if pool.used[0] + n > pool.classes.shape[0]:
            return at
        i = np.int64(order[at])
        bound, K = sets.bound[i], rows.squares[i] * damping
        gap = bound * look(rows, tree, sets, i, E, pool, example, search)
        for j in range(n):
            gap -= p[j] * g[j]
            before[j] = p[j]
        visited.gap += max(gap, 0.0)
        visited.violation = max(visited.violation, gap / bound)
        if gap <= negligible:
            unchanged[i] = min(unchanged[i], 254) + 1
            continue
        unchanged[i] = 0
        if sets.edges:
            ascend_on_labelings(tree, bound, K, gap, example, edges)
        elif tree.edges.below.shape[0] > 0:
            ascend_on_graph(tree, bound, K, gap, example, groups)
        else:
            ascend_on_sets(tree, bound, K, gap, example, groups)
        n_changed, n_held = 0, 0
        for j in range(n):
            if p[j] != before[j]:
                changed[n_changed] = j
                q[n_changed] = damping * (before[j] - p[j])
                n_changed += 1
            if p[j] != (bound if is_true[j] else 0.0):
                held[n_held], values[n_held] = j, p[j]
                n_held += 1
        for e in range(indptr[i], indptr[i + 1]):
            a, x = E[indices[e]], data[e]
            for t in range(n_changed):
                a[changed[t]] += x * q[t]
        put(pool, i, held, values, n_held)
    return stop


@njit(cache=True, nogil=True)
def certify(rows: Rows, tree: MarkovTree, sets: Sets, A: Floats, pool: Coefficients, gaps: Floats) -> Sums:
    """The sums at the vectors A of the dual variables; ``gaps`` takes each example's part of the duality gap."""
    example, search = blank_example(tree, sets, A.shape[1]), blank_search(tree)
    p, g, lam, is_true = example.mass, example.gradient, example.loss, example.is_true
    losses, linear, constant, largest = 0.0, 0.0, 0.0, 0.0
    for i in range(sets.bound.shape[0]):
        bound = sets.bound[i]
        loss = look(rows, tree, sets, i, A, pool, example, search)
        won, gap = 0.0, 0.0
        for j in range(p.shape[0]):
            if is_true[j]:
                loss -= g[j]
            shift = p[j] - (bound if is_true[j] else 0.0)
            won += lam[j] * shift
            gap -= g[j] * shift
        if rows.squares[i] == 0.0:
            constant += bound * loss
            gaps[i] = 0.0
            continue
        losses += bound * loss
        linear += won
        gaps[i] = max(gap + bound * loss, 0.0)
        largest = max(largest, gaps[i] / bound)
    return Sums(losses, linear, constant, largest)


@njit(cache=True, nogil=True)
def rebuild(rows: Rows, tree: MarkovTree, sets: Sets, pool: Coefficients, A: Floats) -> None:
    """A afresh from the masses, free of the rounding that many small changes have left."""
    m = tree.parent.shape[0]
    A[:] = 0.0
    is_true = np.zeros(m, np.bool_)
    for i in range(sets.bound.shape[0]):
        true_nodes = sets.nodes[sets.indptr[i] : sets.indptr[i + 1]]
        for j in true_nodes:
            is_true[j] = True
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            a, x = A[rows.indices[e]], rows.data[e]
            for at in range(pool.start[i], pool.start[i] + pool.length[i]):
                j = pool.classes[at]
                # the mass of an edge starts where its node's does
                a[j] += x * ((sets.bound[i] if is_true[j % m] else 0.0) - pool.values[at])
        for j in true_nodes:
            is_true[j] = False


@njit(cache=True, nogil=True)
def scale(tree: MarkovTree, sets: Sets, ratio: float, factor: float, pool: Coefficients) -> None:
    """Make masses of bounds ``ratio`` times smaller those of the bounds of ``sets``, A then ``factor`` times as long.

    The factor is at most the ratio. Over closed sets a child's mass is kept from rising above its parents' by rounding.
    """
    m = tree.parent.shape[0]
    several, (start, above) = tree.edges.below.shape[0] > 0, tree.edges.parents
    p, is_true = np.zeros(2 * m), np.zeros(m, np.bool_)
    for i in range(sets.bound.shape[0]):
        bound, true_nodes = sets.bound[i], sets.nodes[sets.indptr[i] : sets.indptr[i + 1]]
        held = range(pool.start[i], pool.start[i] + pool.length[i])
        for j in true_nodes:
            is_true[j] = True
            p[j] = bound
        for at in held:
            j = pool.classes[at]
            true = bound if is_true[j % m] else 0.0
            p[j] = min(max(true - factor * (true / ratio - pool.values[at]), 0.0), bound)
        # what is held ascends, so that parents come first
        for at in held:
            j = pool.classes[at]
            if j < m and not sets.edges and tree.parent[j] >= 0:
                p[j] = min(p[j], p[tree.parent[j]])
                if several:
                    for e in range(start[j], start[j + 1]):
                        p[j] = min(p[j], p[above[e]])
            pool.values[at] = p[j]
        for j in true_nodes:
            is_true[j] = False
            p[j] = 0.0
        for at in held:
            p[pool.classes[at]] = 0.0
