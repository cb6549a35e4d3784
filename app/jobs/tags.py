"""Jobs found by their tags: these have rows of their own, as no index finds a name within the column that is shown."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Select, delete, insert
from sqlalchemy.orm import Session

from app.store import tables

_TAG = tables.JobTag


def write(session: Session, job: tables.Job, tags: Mapping[str, str] | None) -> None:
    """Let a job be found by these tags alone, in the caller's transaction."""
    session.execute(delete(_TAG).where(_TAG.job_id == job.id).execution_options(synchronize_session=False))
    rows = [{"job_id": job.id, "name": name, "value": value} for name, value in (tags or {}).items()]
    if rows:
        session.execute(insert(_TAG), [{**row, "workspace": job.workspace} for row in rows])


def having(query: Select[Any], tag: str) -> Select[Any]:
    """Those of a query of jobs that have a tag: its name, or ``NAME=VALUE``."""
    name, sign, value = tag.partition("=")
    query = query.join(_TAG, _TAG.job_id == tables.Job.id).where(_TAG.workspace == tables.Job.workspace)
    query = query.where(_TAG.name == name)
    return query.where(_TAG.value == value) if sign else query
