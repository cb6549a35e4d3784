"""Chooses the parent that the tree keeps for labels with several parents."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

TreeRule = Literal["refuse", "first", "deepest", "graph"]

Parents = Mapping[str, Sequence[str]]


def longest_ways(parents: Parents) -> dict[str, int]:
    """How many steps the longest way up from each node has; nodes in or below a cycle are left out.

    Parameters
    ----------
    parents : mapping of str to sequence of str
        Of every node; names that are no key themselves are tops, at 0.
    """
    below: dict[str, list[str]] = {}
    open_: dict[str, int] = {}
    for child, above in parents.items():
        inner = [parent for parent in above if parent in parents]
        open_[child] = len(inner)
        for parent in inner:
            below.setdefault(parent, []).append(child)
    ways = {child: 1 for child, n_open in open_.items() if n_open == 0}
    waiting = list(ways)
    for node in waiting:  # grows on the way
        for child in below.get(node, ()):
            open_[child] -= 1
            if open_[child] == 0:
                ways[child] = 1 + max(ways.get(parent, 0) for parent in parents[child])
                waiting.append(child)
    return ways


def cycles(parents: Parents) -> Iterator[list[str]]:
    """Cycles, child before parent, so many that without their nodes there are none; no node is in two of them."""
    ways = longest_ways(parents)
    left = {
        child: [parent for parent in above if parent in parents and parent not in ways]
        for child, above in parents.items()
        if child not in ways
    }
    settled: set[str] = set()
    for begin in left:
        trail: dict[str, Iterator[str]] = {}
        node: str | None = begin if begin not in settled else None
        while node is not None:
            if node in trail:
                nodes = list(trail)
                yield nodes[nodes.index(node) :]
                settled.update(trail)
                break
            trail[node] = iter(left[node])
            node = _next_up(trail, settled)


def chosen(parents: Sequence[str], rule: TreeRule, ways: Mapping[str, int]) -> str:
    """The parent that the tree keeps: the first of the file, or the first of those with the longest way up."""
    if rule == "deepest":
        return max(parents, key=lambda parent: ways.get(parent, 0))
    return parents[0]


def _next_up(trail: dict[str, Iterator[str]], settled: set[str]) -> str | None:
    """Where to go from the end of a trail, or from the last place that has another way."""
    while trail:
        last = next(reversed(trail))
        for parent in trail[last]:
            if parent not in settled:
                return parent
        settled.add(last)
        del trail[last]
    return None
