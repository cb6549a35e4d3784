"""Which shard has what of a training that is cut into parts."""

from collections.abc import Callable, Iterator

import numpy as np

from solvers.core.base import State, Step
from solvers.numerics.array_types import Ints, Ints32
from solvers.sharding.exchange import Exchange, gather


def balanced(counts: Ints, size: int, what: str = "classes") -> Ints32:
    """The rank that owns each part of a training.

    Parts by falling number of examples go to the shard with the fewest parts, of equal ones to that with the fewest
    examples, so that both are balanced.

    Parameters
    ----------
    counts : int64 array, shape (n_parts,)
        Examples of each class, or of whatever ``what`` names.
    size : int
        Number of shards.
    what : str
        For the message.

    Returns
    -------
    int32 array, shape (n_parts,)

    Raises
    ------
    ValueError
        More shards than parts.
    """
    if size > len(counts):
        raise ValueError(f"{size} shards for {len(counts)} {what}; each needs at least one")
    owner = np.empty(len(counts), np.int32)
    load = [[0, 0] for _ in range(size)]
    for part in np.argsort(-counts, kind="stable"):
        rank = min(range(size), key=lambda r: (*load[r], r))
        owner[part] = rank
        load[rank][0] += 1
        load[rank][1] += int(counts[part])
    return owner


def partition_classes(y: Ints32, n_classes: int, size: int) -> Ints32:
    """The rank that owns each class, by the classes' numbers of examples; raises as :func:`balanced`."""
    return balanced(np.bincount(y, minlength=n_classes), size)


def together(steps: Iterator[Step], exchange: Exchange, state: Callable[[Step, int], State]) -> Iterator[Step]:
    """The steps of all shards, each of which trains by itself, as the steps of one training.

    Parameters
    ----------
    steps : iterator of Step
        Of this shard alone. It ends where its own gap is closed, or at a limit; then the shard waits for the others:
        where the gap of each is at most a share of its primal, that of their sum is. If one shard has no step at all,
        none has.
    state : callable
        From a step of this shard and the epoch of all, the state of the shard.

    Raises
    ------
    ExchangeError
        A peer is lost.
    """
    last: Step | None = None
    while True:
        step = None if last is not None and last.converged else next(steps, None)
        last = step or last
        if last is None:
            mine = [np.nan, np.nan, 0.0, np.nan, 0.0, 0.0]
        else:
            mine = [last.primal, last.dual, last.converged, last.violation, last.epoch, step is not None]
        figures = np.array([part[0] for part in gather(exchange, [np.array(mine, np.float64)])])
        if not figures[:, 5].any() or last is None:
            return
        epoch, violation = int(figures[:, 4].max()), float(np.fmax.reduce(figures[:, 3]))
        primal, dual, converged = figures[:, 0].sum(), figures[:, 1].sum(), bool(figures[:, 2].all())
        yield Step(epoch, float(primal), float(dual), violation, converged, state(last, epoch))
        if converged:
            return
