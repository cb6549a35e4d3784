"""Shards of an output code, each of which trains some of its columns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.core.base import State, Step
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.linear.sharded.linear_shards import memory_bytes
from solvers.numerics.array_types import Array, Ints, Ints32
from solvers.output_codes import codes
from solvers.output_codes.columns.progress import gathered, is_one_by_one
from solvers.output_codes.columns.training import ColumnTraining, trains_at_once
from solvers.sharding.exchange import Exchange
from solvers.sharding.plan import Forecast, Rates, forecast_independent
from solvers.sharding.shardable import Arrays, ModelPart, Shardable, shardable


class OutputCodeShards(Shardable):
    """Shards of any base method under an output code.

    Columns that are trained one by one become the machines of a single worker, bit by bit; those that are trained at
    once reach the same optimum, as one-vs-rest in shards does.
    """

    trains = "columns"
    exchange_kind = "bounds"

    def forecast(self, counts: Ints, n_features: int, nnz: int, size: int, rates: Rates | None = None) -> Forecast:
        """Predict a training in shards of columns; as :meth:`solvers.sharding.shardable.Shardable.forecast`.

        Raises
        ------
        ProblemError
            There is no such code of so many classes, or it takes too much memory.
        """
        solver = self.solver
        n, k, base = int(counts.sum()), len(counts), solver.base()
        solver.check_memory(n, n_features, k)
        y = np.repeat(np.arange(k, dtype=np.int32), counts)
        code = solver.code(Problem(sp.csr_matrix((n, 0)), y, tuple(map(str, range(k))), np.ones(n)))
        sizes = codes.participants(code, y)
        mean = float(sizes.mean())
        itemsize = base.weight_bytes

        def memory(n_own: int) -> int:
            if trains_at_once(base, code, n, n_features, mean, solver.at_once_bytes()):
                return int(code.nbytes) + memory_bytes(n, n_features, nnz, n_own, n_own, itemsize, "bounds")
            at_work = min(solver.threads, n_own)
            each = base.bytes_needed(int(mean), n_features, 2)
            # the rows, and of each column in work a copy of its own; of a machine that is done, its weights
            rows = int((12 * nnz + 8 * n) * (1 + at_work * mean / n))
            return int(code.nbytes + rows + at_work * each + itemsize * n_features * n_own)

        return forecast_independent(sizes, nnz / n * itemsize / 4, size, memory, solver.threads, rates, "columns")

    def most_shards(self, n_classes: int) -> int:
        return int(self.solver.count_columns(n_classes))

    def partition(self, problem: Problem, size: int) -> Ints32:
        return self._columns(problem).partition(size)

    def sharded(self, problem: Problem, exchange: Exchange, state: State | None = None) -> Iterator[Step]:
        return self._columns(problem).sharded(exchange, state)

    def split(self, state: State) -> tuple[dict[str, Array], dict[str, Array]]:
        if is_one_by_one(state):
            return {name: np.asarray(array) for name, array in state.items()}, {}
        return self._base().split(state)

    def gathered(self, parts: Sequence[Arrays], own: Ints32) -> dict[str, Array]:
        return gathered(parts, own) if is_one_by_one(parts[0]) else self._base().gathered(parts, own)

    def part(self, problem: Problem, state: State) -> ModelPart:
        return self._columns(problem).part(state)

    def assembled(self, problem: Problem, owner: Ints32, arrays: Arrays, reports: Sequence[Mapping[str, Any]]) -> Model:
        joined = self._columns(problem).joined(owner, arrays, reports)
        model: Model = self.solver.decoded(self.solver.prepared(problem), *joined)
        return model

    def _columns(self, problem: Problem) -> ColumnTraining:
        columns: ColumnTraining = self.solver.columns_of(self.solver.prepared(problem))
        return columns

    def _base(self) -> Shardable:
        return shardable(self.solver.base())
