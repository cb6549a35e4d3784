"""What jobs have recorded: the newest lines of their logs, and their convergence curves."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from app.errors import InvalidInput
from app.jobs.schemas import JobLog, JobLogLine, JobStep, JobSteps
from app.store import tables
from app.store.db import new_id, reading
from app.store.lookup import by_id, to_schema

L = tables.JobLogLine
KEPT, MOST_LINES = 1000, 1000
_LONGEST, _MOST_FIELDS = 500, 20
Line = Mapping[str, Any]
MAX_STEPS = 10_000


def line(level: str, event: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A line that has happened now: its values are numbers, or texts cut to what a row may have."""
    kept = {str(name)[:64]: _plain(value) for name, value in list(fields.items())[:_MOST_FIELDS]}
    return {"id": new_id(), "level": level, "event": event[:200], "fields": kept}


def write(session: Session, job_id: str, attempt: int, lines: Sequence[Line]) -> None:
    """Add lines in the caller's transaction, and remove what is more than a job may keep."""
    if not lines:
        return
    session.execute(
        insert(L), [{**each, "job_id": job_id, "attempt": attempt, "at": _at(each["id"])} for each in lines]
    )
    oldest = select(L.id).where(L.job_id == job_id).order_by(L.id.desc()).offset(KEPT).limit(1)
    found = session.scalars(oldest).first()
    if found is not None:
        session.execute(delete(L).where(L.job_id == job_id, L.id <= found).execution_options(synchronize_session=False))


def note(session: Session, job_id: str, attempt: int, level: str, event: str, **fields: Any) -> None:
    """Add one line in the caller's transaction."""
    write(session, job_id, attempt, [line(level, event, fields)])


def read(session: Session, id: str, after: str | None = None, limit: int = 200) -> JobLog:
    """Up to ``limit`` lines with ids above ``after``, oldest first.

    Raises
    ------
    NotFound
        No such job.
    InvalidInput
        The limit is out of range.
    """
    if not 1 <= limit <= MOST_LINES:
        raise InvalidInput(f"limit must be from 1 to {MOST_LINES}; got {limit}")
    with reading(session):
        by_id(session, tables.Job, id)
        query = select(L).where(L.job_id == id)
        if after is not None:
            query = query.where(L.id > after)
        return JobLog(lines=[to_schema(JobLogLine, row) for row in session.scalars(query.order_by(L.id).limit(limit))])


def _at(id: str) -> float:
    return int(id[:16], 16) / 1e9


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | None) else str(value)[:_LONGEST]


def steps(session: Session, id: str, after: int = -1, limit: int = 1000) -> JobSteps:
    """Up to ``limit`` steps with numbers above ``after``; raises NotFound."""
    if not 1 <= limit <= MAX_STEPS:
        raise InvalidInput(f"limit must be from 1 to {MAX_STEPS}; got {limit}")
    with reading(session):
        by_id(session, tables.Job, id)
        query = select(tables.Step).where(tables.Step.job_id == id, tables.Step.number > after)
        rows = session.scalars(query.order_by(tables.Step.number).limit(limit))
        return JobSteps(steps=[to_schema(JobStep, row, measures=row.measures or {}) for row in rows])
