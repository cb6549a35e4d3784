"""Finds the jobs and models that prevent the deletion of an object."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import Conflict
from app.jobs.schemas import FINAL_STATES
from app.plurals import counted
from app.store import tables


def refuse(session: Session, what: str, of_job: Any, of_version: Any, id: str, force: bool) -> None:
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
        raise Conflict(f"{counted(len(models), 'model')} came from the {what}, as {models[0]!r}; force=true deletes it")
