"""The binary machines of a code's columns, trained as one problem of the base method."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from solvers.core.base import State, Step
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.core.sharded_linear_model import ShardedLinearModel
from solvers.numerics.array_types import Ints32
from solvers.output_codes import codes
from solvers.output_codes.codes import Code
from solvers.output_codes.columns.models import ColumnModel, ColumnModels
from solvers.sharding.exchange import Exchange
from solvers.sharding.shardable import Arrays, ModelPart, shardable


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
