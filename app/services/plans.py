"""What a training job in class shards will take, before it runs."""

import numpy as np
from sqlalchemy.orm import Session

from app.errors import InvalidInput, Item
from app.schemas.datasets import DatasetStatistics
from app.schemas.jobs import TrainRequest
from app.schemas.plans import Assumptions, JobPlan, ShardPlan
from app.services import jobs, slots
from app.store.db import reading
from solvers import registry
from solvers.ascent import AscentParams, precision
from solvers.sharding.plan import Rates, forecast
from solvers.sharding.shardable import Shardable


def plan(session: Session, request: TrainRequest) -> JobPlan:
    """The shares of all shards and the cost of an epoch; nothing is queued.

    Raises
    ------
    NotFound, Conflict, InvalidInput
        As for a job; that too few pools are running is told, and refuses nothing.
    """
    if request.shards is None:
        raise InvalidInput("there is nothing to plan", [Item("a job without shards runs in one worker", "/shards")])
    with reading(session):
        dataset, _, params = jobs.check(session, request)
        pools = list(slots.pools(session))
    solver = registry.find(request.solver)
    assert isinstance(params, AscentParams)
    assert issubclass(solver, Shardable)
    statistics = DatasetStatistics.model_validate(dataset.statistics)
    held_out = 0.0 if statistics.n_test else request.test_fraction
    every = np.array([count.train for count in sorted(statistics.classes, key=lambda count: count.label)], np.int64)
    every = every[every > 0]
    counts = np.maximum(np.rint(every * (1.0 - held_out)), 1).astype(np.int64)
    known = statistics.n_features is not None and statistics.nnz is not None
    n_features, nnz = statistics.n_features or 0, statistics.nnz or 0
    rates = Rates()
    found = forecast(
        counts,
        n_features + (params.bias > 0),
        int(nnz * counts.sum() / max(statistics.n_rows, 1)) + int(counts.sum()) * (params.bias > 0),
        request.shards,
        precision(params).itemsize,
        request.threads,
        rates,
        dense_duals=len(solver.columns) - 1,
        exchanges_scores=solver.exchanges_scores,
    )
    shards = [
        ShardPlan(
            shard=rank,
            pool=pools[rank] if rank < len(pools) else None,
            classes=share.classes,
            examples=share.examples,
            memory_bytes=share.memory_bytes if known else None,
        )
        for rank, share in enumerate(found.shares)
    ]
    return JobPlan(
        shards=shards,
        pools=len(pools),
        rounds_per_epoch=found.rounds,
        bytes_per_epoch=found.bytes,
        seconds_per_epoch=found.seconds if known else None,
        assumptions=Assumptions(**rates._asdict()),
    )
