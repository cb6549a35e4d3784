"""What a training of a linear machine in shards is given, and how a shard holds it."""

from typing import Any, NamedTuple

import numpy as np

from solvers.numerics.array_types import Array, Floats, Ints32
from solvers.numerics.rows import Rows


class Plan(NamedTuple):
    """How to train.

    Attributes
    ----------
    C, tol : float
    max_epochs : int
    dtype : dtype
        Of the weights and the scores.
    seed : int
    loss_at_zero : float
        The loss of an example without features.
    largest_loss : bool
        The variables of an example share one bound, as its loss is the largest violation; else each has its own.
    batch : int, optional
        Examples a batch at first; it grows and shrinks as the steps of its examples agree.
    inner_passes : bool
        Visit, between the passes over all examples, those that gain most.
    width : int
        Candidates of an example beside the held classes, at most.
    memory_mb : int, optional
        The megabytes that the weights of a shard may take; None: those that its machine has.
    """

    C: float
    tol: float
    max_epochs: int
    dtype: np.dtype[Any]
    seed: int
    loss_at_zero: float
    largest_loss: bool = False
    batch: int | None = None
    inner_passes: bool = True
    width: int = 128
    memory_mb: int | None = None


class Examples(NamedTuple):
    """The examples as every shard holds them; ``owner[c]`` is the rank of the shard that owns class c."""

    rows: Rows
    y: Ints32
    bounds: Floats
    owner: Ints32


class Shard(NamedTuple):
    """What a shard owns: ``own`` lists its classes in rising order, ``local[c]`` is the column of class c or -1.

    ``W`` has the weights of its classes, one row a feature: all features, or the most frequent ones.
    """

    own: Ints32
    local: Ints32
    W: Array
