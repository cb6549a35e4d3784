"""Training of the binary machines of a code's columns: all at once where the base method can, else one by one.

The columns do not depend on each other, so their primal and dual values add up: the sum of the dual values is a lower
bound on the sum of the objectives.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from solvers.core.base import Solver, State, Step
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.core.sharded_linear_model import ShardedLinearModel
from solvers.numerics.array_types import Floats, Ints32
from solvers.output_codes import codes
from solvers.output_codes.codes import Code
from solvers.output_codes.columns.models import ColumnModel, ColumnModels
from solvers.output_codes.columns.one_by_one import Build, OneByOne
from solvers.sharding.exchange import Exchange
from solvers.sharding.shardable import Arrays, ModelPart, shardable

# an example that takes part in fewer columns than this share is better trained for each column alone
DENSE = 1 / 16
AT_ONCE_BYTES = 1 << 32


class ColumnTraining(Protocol):
    """The machines of all columns while they are trained; in shards, each has some of them."""

    def steps(self, state: State | None) -> Iterator[Step]:
        """Steps whose values are the sums over all columns."""

    def rescaled(self, state: State, ratio: float) -> State:
        """A state to train from at another C, ``ratio`` times the one that ``state`` ended at."""

    def nonzero_duals(self, state: State) -> float:
        """The share of the dual variables that are not zero; nan if the base method does not report it."""

    def models(self, state: State) -> ColumnModels:
        """The machines of a state."""

    def partition(self, size: int) -> Ints32:
        """The rank that owns each column; raises ValueError for more shards than columns."""

    def sharded(self, exchange: Exchange, state: State | None) -> Iterator[Step]:
        """As :meth:`solvers.sharding.shardable.Shardable.sharded`, of columns."""

    def part(self, state: State) -> ModelPart:
        """What the shard of a state has of the machines."""

    def joined(self, owner: Ints32, arrays: Arrays, reports: Sequence[Mapping[str, Any]]) -> tuple[ColumnModels, float]:
        """The machines of all shards, from what their parts gave, and the share of dual variables that are not zero."""


def training_of(
    problem: Problem,
    code: Code,
    build: Build,
    threads: int,
    confidence: Floats | None = None,
    most_bytes: int = AT_ONCE_BYTES,
) -> ColumnTraining:
    """The way to train a code's columns.

    Parameters
    ----------
    code : int8 array of -1, 0 and +1, shape (n_classes, n_columns)
    build : callable
        Makes a solver of the base method, given its number of threads.
    confidence : float64 array, shape (n_classes, n_columns), optional
        What the weights of a class's examples are multiplied by in a column; positive where the code is not 0.
    most_bytes : int
        Columns that would take more all at once are trained one by one.
    """
    solver = build(threads=threads)
    n_used = int(np.count_nonzero(np.bincount(problem.X.indices)))
    mean = float(codes.participants(code, problem.y).mean())
    if confidence is None and trains_at_once(solver, code, problem.n_samples, n_used, mean, most_bytes):
        return AtOnce(problem, solver.of_code(code), code)
    return OneByOne(problem, code, build, threads, confidence)


def trains_at_once(
    solver: Solver[Any], code: Code, n_samples: int, n_features: int, mean: float, most_bytes: int
) -> bool:
    """Whether columns in which so many examples take part, on the mean, are trained as one problem."""
    able = solver.trains_columns and not getattr(solver.params, "class_weight", None)
    dense = mean >= DENSE * n_samples
    return able and dense and bytes_at_once(n_samples, n_features, code.shape[1]) <= most_bytes


def bytes_at_once(n_samples: int, n_features: int, n_columns: int) -> int:
    """What weights and dual variables of all columns take."""
    return 8 * n_columns * (n_samples + n_features)


class AtOnce:
    """All columns as one problem of a machine that :meth:`solvers.core.base.Solver.of_code` has made for them."""

    def __init__(self, problem: Problem, machine: Any, code: Code) -> None:
        self._problem = problem
        self._machine = machine
        self._code = code

    def steps(self, state: State | None) -> Iterator[Step]:
        steps: Iterator[Step] = self._machine.steps(self._problem, state)
        return steps

    def rescaled(self, state: State, ratio: float) -> State:
        rescaled: State = self._machine.rescale(self._machine.prepared(self._problem), state, ratio)
        return rescaled

    def nonzero_duals(self, state: State) -> float:
        return float(self._machine.nonzero_duals(self._machine.prepared(self._problem), state))

    def models(self, state: State) -> ColumnModels:
        return self._models(self._machine.model(self._problem, state))

    def partition(self, size: int) -> Ints32:
        return shardable(self._machine).partition(self._problem, size)

    def sharded(self, exchange: Exchange, state: State | None) -> Iterator[Step]:
        return shardable(self._machine).sharded(self._problem, exchange, state)

    def part(self, state: State) -> ModelPart:
        return shardable(self._machine).part(self._problem, state)

    def joined(self, owner: Ints32, arrays: Arrays, reports: Sequence[Mapping[str, Any]]) -> tuple[ColumnModels, float]:
        names = tuple(str(t) for t in range(self._code.shape[1]))
        blocks = {**arrays, "owner": owner}
        model = ShardedLinearModel.from_arrays(names, self._problem.n_features, blocks).gathered()
        sizes = np.bincount(owner, codes.participants(self._code, self._problem.y))
        return self._models(model), float(np.average([part["nonzero_duals"] for part in reports], weights=sizes))

    def _models(self, model: Model) -> ColumnModels:
        n_columns = self._code.shape[1]
        return ColumnModels(model.n_features, n_columns, (ColumnModel(model, np.arange(n_columns), 0.0),))
