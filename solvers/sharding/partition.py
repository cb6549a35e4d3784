"""Which shard has what of a training that is cut into parts."""

import numpy as np

from solvers.numerics.array_types import Ints, Ints32


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
