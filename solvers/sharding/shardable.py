"""What a method has to offer to be trained in class shards: the steps of one shard, and its part of the model."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.base import State, Step
from solvers.problem import Problem
from solvers.sharding.exchange import Exchange


class Part(NamedTuple):
    """What one shard holds of a linear model.

    Attributes
    ----------
    features : int64 array, shape (n_rows,)
        The features that have a row, ascending; the same in every shard.
    own : int32 array, shape (n_own,)
        The shard's classes, ascending.
    W : float array, shape (n_rows, n_own)
    bias : float
        Not 0: the last feature is a constant of this value, which no example to be scored has.
    nonzero_duals : float
        The share of the dual variables that are not zero, among examples that are not empty: its mean over the shards,
        weighted by their classes, is that of the model.
    """

    features: NDArray[np.int64]
    own: NDArray[np.int32]
    W: NDArray[Any]
    bias: float
    nonzero_duals: float


class Shardable(ABC):
    """A solver that shards of one gang can run together; ``handles.shards`` says so, too.

    Attributes
    ----------
    columns : tuple of str
        The arrays of a state that have a column for each class of the shard (and padding): all others are the same in
        every shard, but for ``own``, the shard's classes in ascending order. Beside ``W``, those have a row an example.
    exchanges_scores : bool
        Whether the shards exchange scores of every batch; otherwise they train apart, and tell their bounds each epoch.
    """

    columns: ClassVar[tuple[str, ...]] = ("W",)
    exchanges_scores: ClassVar[bool] = True

    @abstractmethod
    def sharded(self, problem: Problem, exchange: Exchange, state: State | None = None) -> Iterator[Step]:
        """The steps of the shard at this end of the exchange; all shards yield the same, each with its own state.

        Parameters
        ----------
        problem : Problem
            The whole problem, the same in every shard.
        exchange : Exchange
        state : mapping of str to array, optional
            Of this shard at an earlier step; the columns may come without padding.

        Raises
        ------
        ExchangeError
            A peer is lost.
        ValueError
            More shards than classes.
        """

    @abstractmethod
    def part(self, problem: Problem, state: State) -> Part:
        """What the shard of that state holds of the model."""
