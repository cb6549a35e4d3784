"""Jobs as the API shows them: with their places in the queue, and how far their trials have come."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.jobs import queue as queue_order
from app.jobs import trials as trial_jobs
from app.jobs.schemas import Job, QueuePlace
from app.store import tables
from app.store.db import db_now
from app.store.lookup import to_schema


def one(session: Session, row: tables.Job) -> Job:
    """A job as it is shown, in the caller's transaction."""
    return every(session, [row])[0]


def every(session: Session, rows: Sequence[tables.Job]) -> list[Job]:
    """Jobs as they are shown, in the caller's transaction."""
    places = queue_order.places(session, rows)
    parked = [row.id for row in rows if trial_jobs.is_parked(row)]
    trials = trial_jobs.counts(session, parked) if parked else {}
    now = float(session.scalars(select(db_now())).one()) if parked else 0.0
    return [_show(row, places.get(row.id), trials.get(row.id), now) for row in rows]


def _show(row: tables.Job, place: QueuePlace | None, trials: tuple[int, int] | None, now: float) -> Job:
    parked = trial_jobs.is_parked(row)
    return to_schema(
        Job,
        row,
        parent=row.parent_id,
        state="running" if parked else row.state,
        dataset=row.dataset_id,
        hierarchy=row.hierarchy_id,
        priority=queue_order.priority_of(row.priority),
        tags=row.tags or {},
        time_limit_seconds=row.time_limit,
        queue=None if parked else place,
        progress=_progress(row, trials, now),
        result=None if row.result is None else _result(row.result),
    )


def _result(stored: dict[str, Any]) -> Any:
    # jobs of earlier versions made one version, and named that alone
    version = stored.get("version")
    return stored if version is None or stored.get("versions") else {**stored, "versions": [version]}


def _progress(row: tables.Job, trials: tuple[int, int] | None, now: float) -> Any:
    if row.progress is None or trials is None:
        return row.progress
    n, done = trials
    eta = None
    if done and row.started_at is not None:
        eta = (now - row.started_at) * (n - done) / done
    return {**row.progress, "fraction": done / n, "eta_seconds": eta, "trials": n, "trials_done": done}
