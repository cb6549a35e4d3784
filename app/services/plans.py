"""What a training job in class shards will take, before it runs."""

import numpy as np
from sqlalchemy.orm import Session

from app.errors import InvalidInput, Item
from app.schemas.jobs import TrainRequest
from app.schemas.plans import Assumptions, JobPlan, ShardPlan, Span
from app.services import slots
from app.services.training_requests import resolve
from app.store.db import reading
from solvers.sharding.plan import LEAST, MOST


def plan(session: Session, request: TrainRequest) -> JobPlan:
    """The shares of all shards and the cost of an epoch; nothing is queued.

    Raises
    ------
    NotFound, Conflict, InvalidInput
        As for a job; that too few pools are running is reported, and refuses nothing.
    """
    if request.shards is None:
        raise InvalidInput("there is nothing to plan", [Item("a job without shards runs in one worker", "/shards")])
    with reading(session):
        resolved = resolve(session, request)
        pools = list(slots.pools(session))
    solver, statistics = resolved.shardable, resolved.statistics
    constant = int(solver.params.bias > 0)
    held_out = 0.0 if statistics.n_test else request.test_fraction
    every = resolved.counts.train[resolved.counts.train > 0]
    counts = np.maximum(np.rint(every * (1.0 - held_out)), 1).astype(np.int64)
    known = statistics.n_features is not None and statistics.nnz is not None
    n_features, nnz = statistics.n_features or 0, statistics.nnz or 0
    n_rows = int(counts.sum())
    entries = int(nnz * n_rows / max(statistics.n_rows, 1)) + n_rows * constant
    try:
        least, most = (
            solver.forecast(counts, n_features + constant, entries, request.shards, rates, request.exchange)
            for rates in (LEAST, MOST)
        )
    except ValueError as error:
        raise InvalidInput("the job cannot be trained so", [Item(str(error), "/params")]) from None
    shards = [
        ShardPlan(
            shard=rank,
            pool=pools[rank] if rank < len(pools) else None,
            classes=share.classes,
            examples=share.examples,
            memory_bytes=share.memory_bytes if known else None,
        )
        for rank, share in enumerate(most.shares)
    ]
    return JobPlan(
        shards=shards,
        pools=len(pools),
        rounds_per_epoch=Span(least=least.rounds, most=most.rounds),
        bytes_per_epoch=Span(least=least.bytes, most=most.bytes),
        seconds_per_epoch=Span(least=least.seconds, most=most.seconds) if known else None,
        assumptions=Assumptions(
            batch=Span(least=MOST.batch, most=LEAST.batch),
            message=Span(least=LEAST.message, most=MOST.message),
            products=MOST.products,
            bandwidth=MOST.bandwidth,
            round_trip=MOST.round_trip,
        ),
    )
