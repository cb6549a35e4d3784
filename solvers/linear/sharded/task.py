"""What a training of a linear machine in shards is given, and how a shard holds it."""

from typing import Any, NamedTuple

import numpy as np

from solvers.core.problem import Problem
from solvers.numerics.array_types import Array, Floats, Ints32
from solvers.numerics.rows import Rows, arrange, weights
from solvers.sharding.partition import partition_classes


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


class Examples(NamedTuple):
    """The examples as every shard holds them; ``owner[c]`` is the rank of the shard that owns class c."""

    rows: Rows
    y: Ints32
    bounds: Floats
    owner: Ints32


class Shard(NamedTuple):
    """What a shard owns: ``own`` lists its classes in rising order, ``local[c]`` is the column of class c or -1."""

    own: Ints32
    local: Ints32
    W: Array


def partitioned(problem: Problem, plan: Plan, rank: int, size: int) -> tuple[Examples, Shard]:
    """The examples, and what the shard of that rank has of the classes; raises ValueError for too many shards."""
    rows, _ = arrange(problem.X, plan.dtype)
    owner = partition_classes(problem.y, problem.n_classes, size)
    own = np.flatnonzero(owner == rank).astype(np.int32)
    local = np.full(problem.n_classes, -1, np.int32)
    local[own] = np.arange(len(own), dtype=np.int32)
    n_rows = max(int(rows.indices.max(initial=0)) + 1, 1)
    shard = Shard(own, local, weights(n_rows, len(own), plan.dtype))
    return Examples(rows, problem.y, plan.C * problem.weights, owner), shard
