"""What the shards of Alber et al. 2017 exchange: weights in a tournament, and the mean of all weights.

The service exchanges scores and sums in their place, which take fewer epochs and bytes. Both stay here, to be measured
beside them.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

from benchmarks.papers.exchanges.mean import MeanTraining
from benchmarks.papers.exchanges.tournament import TournamentTraining
from solvers.core.base import State, Step
from solvers.core.problem import Problem
from solvers.linear.relative_margins import RelativeMargins
from solvers.linear.sharded.training import train
from solvers.linear.sum_to_zero import SumToZero
from solvers.methods.weston_watkins import WestonWatkins
from solvers.sharding.exchange import Exchange
from solvers.sharding.shardable import shardable

Kind = Literal["scores", "sums", "bounds", "weights", "mean"]


def kinds(machine: Any) -> tuple[Kind, ...]:
    """What the shards of a solver or its class may exchange, the service's own first."""
    kind = machine if isinstance(machine, type) else type(machine)
    if issubclass(kind, WestonWatkins):
        return ("scores", "weights")
    if issubclass(kind, SumToZero):
        return ("sums", "mean")
    return ("scores",) if issubclass(kind, RelativeMargins) else ("bounds",)


def sharded(
    solver: Any, problem: Problem, exchange: Exchange, state: State | None, kind: Kind | None
) -> Iterator[Step]:
    """As :meth:`solvers.sharding.shardable.Shardable.sharded`, by any of the kinds."""
    shards: Any = shardable(solver)
    if kind in (None, shards.exchange_kind):
        return shardable(solver).sharded(problem, exchange, state)
    assert kind in kinds(solver)
    problem = solver.prepared(problem)
    given = problem, shards.plan(problem)
    if kind == "mean":
        return train(partial(MeanTraining, *given, solver.margins(problem.n_classes), exchange), solver.threads, state)
    return train(partial(TournamentTraining, *given, exchange), solver.threads, state)
