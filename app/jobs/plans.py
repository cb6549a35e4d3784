"""What a training job will take, before it runs."""

import math

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets.recipe_schemas import default_recipe
from app.errors import InvalidInput, Item
from app.jobs import slots
from app.jobs.plan_schemas import Assumptions, EarlierJobs, JobPlan, ShardPlan, Span
from app.jobs.schemas import TrainRequest
from app.jobs.training_requests import Resolved, resolve
from app.store import tables
from app.store.db import reading
from solvers.sharding.plan import LEAST, MOST, Forecast, Rates

# how many trainings of a dataset are searched for those by one method, and how many of these are used
_LOOKED_AT, _EARLIER = 200, 10


def plan(session: Session, request: TrainRequest) -> JobPlan:
    """The shares of all shards, the cost of an epoch, and what earlier jobs took; nothing is queued.

    Raises
    ------
    NotFound, Conflict, InvalidInput
        As for a job; that too few pools are running is reported, and refuses nothing.
    """
    with reading(session):
        resolved = resolve(session, request)
        pools = list(slots.pools(session))
        earlier = _earlier(session, request, resolved)
    if request.shards is None:
        return _whole(request, resolved, len(pools), earlier)
    known = _is_counted(resolved)
    least, most = (_forecast(request, resolved, request.shards, rates) for rates in (LEAST, MOST))
    # one worker exchanges nothing
    alone = _forecast(request, resolved, 1, MOST._replace(round_trip=0.0, bandwidth=math.inf)).seconds
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
        seconds_without_shards=alone if known else None,
        advice=_advice(request.shards, alone, least, most) if known else None,
        assumptions=Assumptions(
            batch=Span(least=MOST.batch, most=LEAST.batch),
            once=Span(least=LEAST.once, most=MOST.once),
            message=Span(least=LEAST.message, most=MOST.message),
            products=MOST.products,
            bandwidth=MOST.bandwidth,
            round_trip=MOST.round_trip,
        ),
        scaling=_scaling(resolved),
        text_columns=_text_columns(request, resolved),
        earlier=earlier,
    )


def _scaling(resolved: Resolved) -> str | None:
    if resolved.scaling is None:
        return None
    recipe, intercept = resolved.scaling.recipe, resolved.scaling.params
    how = f"scaling={recipe.scaling}" if recipe.vector_weight is None else f"vector_weight={recipe.vector_weight}"
    beside = f", with {', '.join(f'{name}={value:g}' for name, value in intercept.items())}" if intercept else ""
    return f"Numbers are scaled by default (columns.{how}{beside}): {resolved.scaling.reason}."


def _text_columns(request: TrainRequest, resolved: Resolved) -> str | None:
    """That the weights of text columns will be chosen, if so."""
    recipe = resolved.text
    if recipe is None and resolved.holds_texts:
        recipe = resolved.default_text
    if recipe is None or recipe.fields != "auto":
        return None
    names = [column.name for column in resolved.statistics.columns or [] if column.role == "text"]
    what = f"Text columns ({', '.join(names)})" if len(names) > 1 else "Titles and bodies of texts"
    by = "by default " if request.text is None else ""
    return f"{what} are {by}joined or weighted as training rows decide (text.fields=auto)."


def _advice(size: int, alone: float, least: Forecast, most: Forecast) -> str | None:
    """Why a job should not be in shards, if its epochs take longer so; None where they are quicker in any case."""
    if most.seconds < alone:
        return None
    compared = (
        f"an epoch takes about {alone:.2g} s in one worker, and {least.seconds:.2g} to {most.seconds:.2g} s in {size} "
        f"shards, which exchange {least.rounds:,} to {most.rounds:,} rounds; shards that exchange scores also take "
        "more epochs on small data, 2.5 times as many on some hundred rows"
    )
    if least.seconds >= alone:
        return f"Shards do not pay but for memory: {compared}."
    return f"Shards may not pay but for memory: {compared}."


def _whole(request: TrainRequest, resolved: Resolved, n_pools: int, earlier: EarlierJobs | None) -> JobPlan:
    """The plan of a job without shards: its arrays are those of one shard that has all classes."""
    memory_bytes = None
    if resolved.solver.shards_fault is None and _is_counted(resolved):
        (share,) = _forecast(request, resolved, 1, MOST).shares
        memory_bytes = share.memory_bytes
    else:
        memory_bytes = _most_bytes(resolved)
    return JobPlan(
        shards=[],
        pools=n_pools,
        rounds_per_epoch=None,
        bytes_per_epoch=None,
        seconds_per_epoch=None,
        assumptions=None,
        memory_bytes=memory_bytes,
        scaling=_scaling(resolved),
        text_columns=_text_columns(request, resolved),
        earlier=earlier,
    )


def _most_bytes(resolved: Resolved) -> int | None:
    """What training takes at most: texts have no more features than their recipe keeps; None if nothing bounds them."""
    n_labels, hierarchy = len(resolved.counts.labels), resolved.hierarchy
    if hierarchy is not None:
        # of sets, a search trains the labels that rows have and those above them
        some = resolved.solver.chooses and resolved.statistics.labels_per_row is not None
        used = sum(min(count, n_labels) for count in hierarchy.levels)
        n_labels = used if some else max(n_labels, hierarchy.n_nodes)
    n_features = resolved.statistics.n_features
    if n_features is None:
        n_features = (resolved.text or default_recipe(resolved.solver.name, n_labels)).max_features
    if n_features is None:
        return None
    return resolved.solver.bytes_needed(resolved.statistics.n_rows, n_features, n_labels) or None


def _is_counted(resolved: Resolved) -> bool:
    """Whether the features are known before the training, as those of texts are not."""
    return resolved.statistics.n_features is not None and resolved.statistics.nnz is not None


def _forecast(request: TrainRequest, resolved: Resolved, size: int, rates: Rates) -> Forecast:
    statistics = resolved.statistics
    constant = int(resolved.solver.params.bias > 0)
    held_out = 0.0 if statistics.n_test else request.test_fraction
    every = resolved.counts.train[resolved.counts.train > 0]
    counts = np.maximum(np.rint(every * (1.0 - held_out)), 1).astype(np.int64)
    n_features, nnz, n_rows = statistics.n_features or 0, statistics.nnz or 0, int(counts.sum())
    entries = int(nnz * n_rows / max(statistics.n_rows, 1)) + n_rows * constant
    try:
        return resolved.shardable.forecast(counts, n_features + constant, entries, size, rates)
    except ValueError as error:
        raise InvalidInput("the job cannot be trained with this request", [Item(str(error), "/params")]) from None


def _earlier(session: Session, request: TrainRequest, resolved: Resolved) -> EarlierJobs | None:
    """What the latest trainings took; one in shards, or along a path of Cs, says nothing about other trainings."""
    J = tables.Job
    ended = select(J.request, J.started_at, J.finished_at).where(
        J.kind == "train", J.state == "succeeded", J.dataset_id == resolved.dataset.id
    )
    took = [
        finished - started
        for asked, started, finished in session.execute(ended.order_by(J.id.desc()).limit(_LOOKED_AT))
        if (asked.get("solver"), asked.get("shards")) == (resolved.solver.name, request.shards)
        and (asked.get("path") is None) == (request.path is None)
        and (asked.get("every_c") is None) == (request.every_c is None)
        and started is not None
        and finished is not None
    ][:_EARLIER]
    return EarlierJobs(n_jobs=len(took), seconds=Span(least=min(took), most=max(took))) if took else None
