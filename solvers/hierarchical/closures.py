"""Closures of largest weight in a directed acyclic graph: closed sets u that maximise ``sum_j g_j u_j``.

A set is closed if it has with a node all its parents. A node of positive weight with one parent is in the best set with
that parent, and a node without parents for itself; a node that is worth nothing, and below which nothing else is left
to decide, is not. On a tree that decides everything, as dynamic programming does. What is left, below nodes with
several parents, is a minimum cut (Picard 1976): nodes of positive weight send flow up the edges, without limit, to
nodes of negative weight, which take as much as they weigh; the nodes that can still send are the best set. Flows are
found by Dinic's algorithm. Of several best sets it is the smallest.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.labels.tree_paths import Adjacency
from solvers.numerics.array_types import Bools, Floats, Ints, Ints32

_CERTAIN, _LEFT_OUT = -1, -2


class Cut(NamedTuple):
    """Scratch of one search.

    ``worth`` is a node's weight with what has joined it, later what it can still send, or take if it is negative.
    ``joined`` is the node that each has joined, perhaps itself; -1 if it is certainly chosen, -2 if it is left out.
    The nodes of the network are the first of ``left``.
    Arcs of the network go from child to parent: those of one tail lie between ``first_arc`` and ``end_arc``, those of
    one head are a linked list.
    """

    worth: Floats
    joined: Ints32
    undecided_below: Bools
    left: Ints32
    first_arc: Ints
    end_arc: Ints
    arc_tail: Ints32
    arc_head: Ints32
    flow: Floats
    first_by_head: Ints
    next_by_head: Ints
    distance: Ints32
    next_up: Ints
    next_down: Ints
    queue: Ints32
    way: Ints


@njit(cache=True, nogil=True)
def blank_cut(n_nodes: int, n_edges: int) -> Cut:
    """Room for searches in a graph."""
    return Cut(
        np.empty(n_nodes), np.empty(n_nodes, np.int32), np.empty(n_nodes, np.bool_), np.empty(n_nodes, np.int32),
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes, np.int64), np.empty(n_edges, np.int32), np.empty(n_edges, np.int32), np.empty(n_edges),
        np.empty(n_nodes, np.int64), np.empty(n_edges, np.int64), np.empty(n_nodes, np.int32),
        np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int32),
        np.empty(n_nodes, np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def best_closure(
    parents: Adjacency, weights: Floats, nodes: Ints32, part: Ints32, number: int, chosen: Bools, cut: Cut
) -> float:
    """The closure of largest weight within a part of a graph, and its weight.

    Parameters
    ----------
    parents : Adjacency
        Those of every node, which have smaller numbers.
    weights : float64 array, shape (n_nodes,)
    nodes : int32 array
        The part, ascending.
    part : int32 array, shape (n_nodes,)
        ``number`` for the nodes of the part alone; edges from elsewhere are left aside.
    number : int
    chosen : bool array, shape (n_nodes,)
        Set for the nodes of the part.
    cut : Cut
    """
    undecided = _join(parents, weights, nodes, part, number, cut)
    if undecided:
        n_left = _lay_arcs(parents, nodes, part, number, cut)
        _send(cut.left[:n_left], cut)
    joined, distance, total = cut.joined, cut.distance, 0.0
    for j in nodes:
        to = joined[j]
        chosen[j] = to == _CERTAIN or (undecided and to >= 0 and distance[to] >= 0)
        if chosen[j]:
            total += weights[j]
    return total


@njit(cache=True, nogil=True)
def _join(parents: Adjacency, weights: Floats, nodes: Ints32, part: Ints32, number: int, cut: Cut) -> bool:
    """Decide nodes without a cut, or join them to a parent; returns whether some are left."""
    start, above = parents
    worth, joined, undecided_below = cut.worth, cut.joined, cut.undecided_below
    for j in nodes:
        worth[j] = weights[j]
        undecided_below[j] = False
    for at in range(len(nodes) - 1, -1, -1):
        j = nodes[at]
        n, only = 0, -1
        for e in range(start[j], start[j + 1]):
            if part[above[e]] == number:
                n += 1
                only = above[e]
        if worth[j] > 0.0 and n <= 1:
            joined[j] = only
            if n == 1:
                worth[only] += worth[j]
                undecided_below[only] |= undecided_below[j]
        elif worth[j] > 0.0 or undecided_below[j]:
            joined[j] = j
            for e in range(start[j], start[j + 1]):
                undecided_below[above[e]] = True
        else:
            joined[j] = _LEFT_OUT
    undecided = False
    for j in nodes:
        if joined[j] >= 0 and joined[j] != j:
            joined[j] = joined[joined[j]]
        elif joined[j] == j and worth[j] > 0.0:
            certain = True
            for e in range(start[j], start[j + 1]):
                if part[above[e]] == number and joined[above[e]] != _CERTAIN:
                    certain = False
            if certain:
                joined[j] = _CERTAIN
            else:
                undecided = True
    return undecided


@njit(cache=True, nogil=True)
def _lay_arcs(parents: Adjacency, nodes: Ints32, part: Ints32, number: int, cut: Cut) -> int:
    """The nodes and arcs of the network; returns how many nodes there are."""
    start, above = parents
    joined, first_arc, end_arc, tail, head = cut.joined, cut.first_arc, cut.end_arc, cut.arc_tail, cut.arc_head
    first_by_head, next_by_head, flow, left = cut.first_by_head, cut.next_by_head, cut.flow, cut.left
    n, n_left = 0, 0
    for j in nodes:
        if joined[j] == j:
            left[n_left] = j
            n_left += 1
            first_arc[j], first_by_head[j] = n, -1
            # parents come first
            for e in range(start[j], start[j + 1]):
                if part[above[e]] == number:
                    to = joined[above[e]]
                    if to >= 0:
                        tail[n], head[n], flow[n] = j, to, 0.0
                        next_by_head[n] = first_by_head[to]
                        first_by_head[to] = n
                        n += 1
            end_arc[j] = n
    return n_left


@njit(cache=True, nogil=True)
def _send(left: Ints32, cut: Cut) -> None:
    """Send as much flow as goes; afterwards ``distance`` is 0 or more for the nodes that can still send, else -1."""
    worth, distance = cut.worth, cut.distance
    next_up, next_down, first_arc, first_by_head = cut.next_up, cut.next_down, cut.first_arc, cut.first_by_head
    while _measure(left, cut):
        for j in left:
            next_up[j], next_down[j] = first_arc[j], first_by_head[j]
        for j in left:
            while worth[j] > 0.0 and distance[j] == 0 and _send_from(j, cut):
                pass


@njit(cache=True, nogil=True)
def _measure(left: Ints32, cut: Cut) -> bool:
    """Distances in the residual network from the nodes that can still send; whether one that can take is reached."""
    worth, distance, queue, flow, tail, head = cut.worth, cut.distance, cut.queue, cut.flow, cut.arc_tail, cut.arc_head
    first_arc, end_arc, first_by_head, next_by_head = cut.first_arc, cut.end_arc, cut.first_by_head, cut.next_by_head
    n, reached = 0, False
    for j in left:
        distance[j] = -1
        if worth[j] > 0.0:
            distance[j] = 0
            queue[n] = j
            n += 1
    at = 0
    while at < n:
        j = queue[at]
        at += 1
        if worth[j] < 0.0:
            reached = True
        for e in range(first_arc[j], end_arc[j]):
            to = head[e]
            if distance[to] < 0:
                distance[to] = distance[j] + 1
                queue[n] = to
                n += 1
        e = first_by_head[j]
        while e >= 0:
            to = tail[e]
            if flow[e] > 0.0 and distance[to] < 0:
                distance[to] = distance[j] + 1
                queue[n] = to
                n += 1
            e = next_by_head[e]
    return reached


@njit(cache=True, nogil=True)
def _send_from(source: int, cut: Cut) -> bool:
    """Send what one shortest way from a node takes; False where no such way is left.

    The way has arcs by number, and those that are gone against their direction by -1 less the number.
    """
    worth, distance, flow, tail, head = cut.worth, cut.distance, cut.flow, cut.arc_tail, cut.arc_head
    way, end_arc, next_up, next_down, next_by_head = cut.way, cut.end_arc, cut.next_up, cut.next_down, cut.next_by_head
    j, n = source, 0
    while worth[j] >= 0.0:
        found = False
        while next_up[j] < end_arc[j]:
            e = next_up[j]
            if distance[head[e]] == distance[j] + 1:
                found = True
                break
            next_up[j] += 1
        if found:
            way[n] = next_up[j]
            j = head[way[n]]
            n += 1
            continue
        while next_down[j] >= 0:
            e = next_down[j]
            if flow[e] > 0.0 and distance[tail[e]] == distance[j] + 1:
                found = True
                break
            next_down[j] = next_by_head[e]
        if found:
            way[n] = -1 - next_down[j]
            j = tail[-1 - way[n]]
            n += 1
            continue
        if n == 0:
            return False
        n -= 1
        if way[n] >= 0:
            j = tail[way[n]]
            next_up[j] += 1
        else:
            j = head[-1 - way[n]]
            next_down[j] = next_by_head[-1 - way[n]]
    amount = min(worth[source], -worth[j])
    for t in range(n):
        if way[t] < 0:
            amount = min(amount, flow[-1 - way[t]])
    for t in range(n):
        if way[t] >= 0:
            flow[way[t]] += amount
        else:
            flow[-1 - way[t]] -= amount
    worth[source] -= amount
    worth[j] += amount
    return True
