"""The convergence curves of jobs."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import InvalidInput
from app.jobs.schemas import JobStep, JobSteps
from app.store import tables
from app.store.db import reading
from app.store.lookup import by_id, to_schema

MAX_STEPS = 10_000


def steps(session: Session, id: str, after: int = -1, limit: int = 1000) -> JobSteps:
    """Up to ``limit`` steps with numbers above ``after``; raises NotFound."""
    if not 1 <= limit <= MAX_STEPS:
        raise InvalidInput(f"limit must be from 1 to {MAX_STEPS}; got {limit}")
    with reading(session):
        by_id(session, tables.Job, id)
        query = select(tables.Step).where(tables.Step.job_id == id, tables.Step.number > after)
        rows = session.scalars(query.order_by(tables.Step.number).limit(limit))
        return JobSteps(steps=[to_schema(JobStep, row, measures=row.measures or {}) for row in rows])
