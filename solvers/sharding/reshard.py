"""States of shards divided again: a training that ran in S shards continues in T.

A method names the arrays that have a column for each class of their shard, its weights above all; whatever else is in
a state is the same in all shards. So the state of a new shard is that common part, and the columns of its classes from
whatever old shards had them.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from solvers.core.base import State
from solvers.numerics.array_types import Array, Ints32

OWN = "own"


def split(state: State, columns: Sequence[str]) -> tuple[dict[str, Array], dict[str, Array]]:
    """What the shard alone has (its classes and their columns, without padding), and what all shards have alike."""
    own = np.asarray(state[OWN])
    alone = {OWN: own, **{name: np.asarray(state[name])[:, : len(own)] for name in columns if name in state}}
    return alone, {name: np.asarray(array) for name, array in state.items() if name not in alone}


def gather_columns(parts: Sequence[Mapping[str, Array]], own: Ints32) -> dict[str, Array]:
    """The columns of the classes ``own`` from parts that together have all classes, as :func:`split` makes them.

    Parameters
    ----------
    parts : sequence of mapping
        Arrays may be memory-mapped: only what is needed is read.
    own : int32 array, shape (n_own,)
        Ascending.

    Returns
    -------
    mapping with ``own`` and an array of shape (n_rows, n_own) by each other name of the parts

    Raises
    ------
    ValueError
        A class is in no part, or the parts differ in names or rows.
    """
    shapes = [{name: (array.shape[0], array.dtype) for name, array in part.items() if name != OWN} for part in parts]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError("the parts differ; all shards must have the same rows")
    gathered = {
        name: np.empty((rows, len(own)), dtype) for name, (rows, dtype) in (shapes[0] if shapes else {}).items()
    }
    found = np.zeros(len(own), bool)
    for part in parts:
        _, at, of = np.intersect1d(own, part[OWN], assume_unique=True, return_indices=True)
        if len(at):
            for name, array in gathered.items():
                array[:, at] = part[name][:, of]
            found[at] = True
    if not found.all():
        raise ValueError(f"class {own[~found][0]} is missing from all parts")
    return {OWN: own, **gathered}
