"""What a method has to offer to be trained in shards: what is whose, the steps of one shard, and its part of the model.

A shard has classes of its own; or, of a method whose independent parts are something else, some of those: columns of a
code.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from solvers.core.base import Solver, State, Step
from solvers.core.model import Model
from solvers.core.problem import Problem, ProblemError
from solvers.numerics.array_types import Array, Ints, Ints32
from solvers.sharding import reshard
from solvers.sharding.exchange import Exchange, ExchangeKind
from solvers.sharding.plan import Forecast, Rates

Arrays = Mapping[str, Array]


class ModelPart(Protocol):
    """What one shard holds of a model."""

    @property
    def own(self) -> Ints32:
        """The shard's classes, ascending."""

    def files(self, rank: int) -> Arrays:
        """The arrays that the shard of that rank gives, by names that no other shard gives."""

    def report(self) -> dict[str, Any]:
        """What else the whole needs to know, as JSON."""


def shardable(solver: Solver[Any]) -> "Shardable":
    """How shards train what the solver trains alone; raises ProblemError where they cannot."""
    if not solver.handles.shards:
        raise ProblemError(f"{solver.name} cannot be trained in shards")
    module, _, member = solver.shards.partition(":")
    kind: type[Shardable] = getattr(importlib.import_module(module), member)
    return kind(solver)


class Shardable(ABC):
    """How shards of one gang train together what a solver trains alone.

    Parameters
    ----------
    solver : Solver

    Attributes
    ----------
    trains : str
        What is partitioned: classes, or columns of a code. Where a docstring here says classes, it is these.
    columns : tuple of str
        The arrays of a state that have a column for each class of the shard (and padding): all others are the same in
        every shard, but for ``own``, the shard's classes in ascending order. Beside ``W``, those have a row an example.
    exchange_kind : str
        What the shards exchange.
    """

    trains: ClassVar[str] = "classes"
    columns: ClassVar[tuple[str, ...]] = ("W",)
    exchange_kind: ClassVar[ExchangeKind] = "scores"

    def __init__(self, solver: Any) -> None:
        self.solver = solver

    @abstractmethod
    def partition(self, problem: Problem, size: int) -> Ints32:
        """The rank that owns each class, shape (n_classes,); raises ValueError for more shards than classes."""

    def most_shards(self, n_classes: int) -> int:
        """Shards that a problem of so many classes can be trained in."""
        return n_classes

    @abstractmethod
    def forecast(self, counts: Ints, n_features: int, nnz: int, size: int, rates: Rates | None = None) -> Forecast:
        """Predict a training in shards; as :func:`solvers.linear.sharded.linear_shards.forecast`."""

    @abstractmethod
    def sharded(self, problem: Problem, exchange: Exchange, state: State | None = None) -> Iterator[Step]:
        """The steps of the shard at this end of the exchange; all shards yield the same, each with its own state.

        Parameters
        ----------
        problem : Problem
            The whole problem, the same in every shard.
        state : mapping of str to array, optional
            Of this shard at an earlier step; the columns may come without padding.

        Raises
        ------
        ExchangeError
            A peer is lost.
        ValueError
            More shards than classes.
        """

    def split(self, state: State) -> tuple[dict[str, Array], dict[str, Array]]:
        """What of its state the shard alone has, ``own`` among it, and what all shards have alike."""
        return reshard.split(state, self.columns)

    def gathered(self, parts: Sequence[Arrays], own: Ints32) -> dict[str, Array]:
        """What a shard with the classes ``own`` alone has, from what those had that :meth:`split` was asked for.

        Parameters
        ----------
        parts : sequence of mapping
            Arrays may be memory-mapped.
        own : int32 array, shape (n_own,)
            Ascending.

        Raises
        ------
        ValueError
            A class is in no part, or the parts do not belong together.
        """
        return reshard.gather_columns(parts, own)

    @abstractmethod
    def part(self, problem: Problem, state: State) -> ModelPart:
        """What the shard of that state holds of the model."""

    @abstractmethod
    def assembled(self, problem: Problem, owner: Ints32, arrays: Arrays, reports: Sequence[Mapping[str, Any]]) -> Model:
        """The model of all shards.

        Parameters
        ----------
        owner : int32 array
            The rank of each class.
        arrays : mapping
            The files of all parts; they may be memory-mapped.
        reports : sequence of mapping
            What they report, by rank.
        """
