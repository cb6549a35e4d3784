"""Jobs found by what they name: a model, a dataset or hierarchy that is to be deleted, or a tag.

PostgreSQL fails a whole query that looks into JSON which it cannot read. So requests are read as text and parsed here,
and one that cannot be read hides none of the others. Tags have rows of their own, as no index finds a name within JSON.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Text, cast, delete, insert, or_, select
from sqlalchemy.orm import Session

from app.errors import Conflict
from app.jobs.schemas import FINAL_STATES
from app.plurals import counted
from app.store import tables

J = tables.Job
_TAG = tables.JobTag


class RequestedJob(NamedTuple):
    """A job with its request."""

    id: str
    kind: str
    state: str
    attempt: int
    request: dict[str, Any]


def requested(session: Session, *where: ColumnElement[bool]) -> Iterator[RequestedJob]:
    """Jobs by id, oldest first, without those whose request is unreadable."""
    query = select(J.id, J.kind, J.state, J.attempt, cast(J.request, Text)).where(*where).order_by(J.id)
    for id, kind, state, attempt, text in session.execute(query):
        try:
            request = json.loads(text)
        except ValueError:
            continue
        if isinstance(request, dict):
            yield RequestedJob(id, kind, state, attempt, request)


def of_model(session: Session, names: Sequence[str], *where: ColumnElement[bool]) -> Iterator[RequestedJob]:
    """As :func:`requested` those whose request names a model by one of ``names``, its name or id."""
    text = cast(J.request, Text)
    mentioned = or_(*(text.contains(f'"{name}"', autoescape=True) for name in names))
    return (job for job in requested(session, *where, mentioned) if job.request.get("model") in names)


def refuse_in_use(session: Session, what: str, of_job: Any, of_version: Any, id: str, force: bool) -> None:
    """Raise Conflict where a job that is not over names the id, or, unless ``force``, a model came from it.

    ``of_job`` and ``of_version`` are the columns of jobs and of models' versions that may name it, ``what`` the word
    for it in the message.
    """
    unfinished = select(tables.Job.id).where(of_job == id, tables.Job.state.not_in(sorted(FINAL_STATES)))
    job_id = session.scalars(unfinished.limit(1)).first()
    if job_id is not None:
        raise Conflict(f"the job {job_id} uses the {what}; cancel it first")
    models = session.scalars(
        select(tables.Model.name)
        .join(tables.ModelVersion, tables.ModelVersion.model_id == tables.Model.id)
        .where(of_version == id, tables.ModelVersion.deleted_at.is_(None))
        .distinct()
        .order_by(tables.Model.name)
    ).all()
    if models and not force:
        raise Conflict(
            f"{counted(len(models), 'model')} came from the {what}, such as {models[0]!r}; force=true deletes "
            f"the {what} and keeps the models"
        )


def write_tags(session: Session, job: tables.Job, tags: Mapping[str, str] | None) -> None:
    """Let a job be found by these tags alone, in the caller's transaction."""
    session.execute(delete(_TAG).where(_TAG.job_id == job.id).execution_options(synchronize_session=False))
    rows = [{"job_id": job.id, "name": name, "value": value} for name, value in (tags or {}).items()]
    if rows:
        session.execute(insert(_TAG), [{**row, "workspace": job.workspace} for row in rows])


def having_tag(query: Select[Any], tag: str) -> Select[Any]:
    """Those of a query of jobs that have a tag: its name, or ``NAME=VALUE``."""
    name, sign, value = tag.partition("=")
    query = query.join(_TAG, _TAG.job_id == tables.Job.id).where(_TAG.workspace == tables.Job.workspace)
    query = query.where(_TAG.name == name)
    return query.where(_TAG.value == value) if sign else query
