"""Trials as jobs that belong to another, their tuning; that one is not claimed while some of them are not over.

So no worker waits for another, and one worker is enough. The tuning stays queued meanwhile, and is shown as running.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, case, cast, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from app.jobs.schemas import FINAL_STATES
from app.store import tables
from app.store.db import db_now

J = tables.Job
PHASE = "trials"
# the progress of a tuning while it waits for its trials
WAITING: dict[str, Any] = {"epoch": 0, "fraction": 0.0, "phase": PHASE}
_FINAL = sorted(FINAL_STATES)
# Of the table, not of the class: who may claim a tuning does not depend on what the session sees.
_TRIAL = tables.Job.__table__.alias("trial")


def waits(job: Any = J) -> ColumnElement[bool]:
    """Whether a job has trials that are not over; ``job`` has the columns of jobs."""
    # no EXISTS, which PostgreSQL may answer from a table of all trials that are not over
    unfinished = select(_TRIAL.c.id).where(_TRIAL.c.parent_id == job.id, _TRIAL.c.state.not_in(_FINAL)).limit(1)
    return and_(job.kind == "tune", unfinished.scalar_subquery().is_not(None))


def parked(job: Any = J) -> ColumnElement[bool]:
    """Whether a tuning has left its work to trials; ``job`` has the columns of jobs."""
    # as text, which no row that the database cannot read fails; a quote within a value would have a backslash before it
    in_trials = cast(job.progress, Text).contains(f'"phase": "{PHASE}"', autoescape=True)
    return and_(job.kind == "tune", job.state == "queued", in_trials)


def is_parked(row: tables.Job) -> bool:
    """As :func:`parked`, of one row."""
    return row.kind == "tune" and row.state == "queued" and (row.progress or {}).get("phase") == PHASE


def in_state(*states: str) -> ColumnElement[bool]:
    """Whether a job is in one of the states as they are shown; no trials."""
    kept: ColumnElement[bool] = J.state.in_(states)
    if "running" in states and "queued" not in states:
        # looked up by themselves, as no index is used for what is on one side of an OR alone
        job = aliased(J)
        of_these = job.state.in_([*states, "queued"])
        kept = J.id.in_(select(job.id).where(of_these, or_(job.state.in_(states), parked(job))))
    elif "queued" in states and "running" not in states:
        kept = and_(kept, ~parked())
    return and_(J.parent_id.is_(None), kept)


def has_unfinished(session: Session, id: str) -> bool:
    """Whether the job has trials that are not over, in the caller's transaction."""
    return bool(session.scalar(select(waits(J.__table__.c)).where(J.__table__.c.id == id)))


def counts(session: Session, ids: Iterable[str]) -> Mapping[str, tuple[int, int]]:
    """How many trials each tuning has, and how many of them are over."""
    over = func.sum(case((J.state.in_(_FINAL), 1), else_=0))
    query = select(J.parent_id, func.count(), over).where(J.parent_id.in_(list(ids))).group_by(J.parent_id)
    return {str(id): (int(n), int(done)) for id, n, done in session.execute(query)}


def seconds_left(session: Session, parent_id: str) -> float | None:
    """Until the budget or the time limit of a tuning is over; None where it has neither."""
    c = J.__table__.c
    row = session.execute(
        select(c.time_limit, c.request, (db_now() - c.started_at).label("spent")).where(c.id == parent_id)
    ).one()
    limits = [each for each in (row.time_limit, row.request.get("budget_seconds")) if each is not None]
    return min(limits) - (row.spent or 0.0) if limits else None


def cancel(session: Session, parent_id: str) -> None:
    """Cancel the trials of a tuning whose row is locked: those that wait at once, the others at their next step."""
    mine = J.parent_id == parent_id
    _set(session, mine, J.state == "queued", state="cancelled", finished_at=db_now())
    _set(session, mine, J.state == "running", state="cancelling")


def cancel_waiting(session: Session, parent_id: str, error: dict[str, Any]) -> None:
    """Cancel the trials that no worker has taken, and say why, in the caller's transaction."""
    session.execute(select(J.id).where(J.id == parent_id).with_for_update())
    mine = J.parent_id == parent_id
    _set(session, mine, J.state == "queued", state="cancelled", finished_at=db_now(), error=error)


def retry(session: Session, parent_id: str) -> list[str]:
    """Queue the trials of a tuning again that have failed or were cancelled; its row is locked. Returns their ids."""
    ids = list(
        session.scalars(
            select(J.id).where(J.parent_id == parent_id, J.state.in_(("failed", "cancelled"))).order_by(J.id)
        )
    )
    fresh = {"state": "queued", "losses": 0, "error": None, "progress": None}
    free = {"started_at": None, "finished_at": None, "worker": None, "lease_until": None, "notified_at": db_now()}
    _set(session, J.id.in_(ids), **fresh, **free)
    return ids


def set_priority(session: Session, parent_id: str, level: int) -> None:
    """Give the trials that wait the priority of their tuning."""
    _set(session, J.parent_id == parent_id, J.state == "queued", priority=level)


def _set(session: Session, *where: ColumnElement[bool], **values: Any) -> None:
    session.execute(update(J).where(*where).values(**values).execution_options(synchronize_session=False))
