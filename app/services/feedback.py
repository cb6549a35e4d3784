"""Feedback: the right labels of instances, kept until they are rows of a dataset."""

from typing import Any

import orjson
from sqlalchemy import ColumnElement, and_, delete, or_, select, update
from sqlalchemy.orm import Session

from app.errors import Conflict, InvalidInput, Item, NotFound
from app.features.base import InstanceError
from app.formats.labels import label_problem
from app.schemas.feedback import Feedback, FeedbackRequest
from app.schemas.pages import Page
from app.services import quotas
from app.services.lookup import by_id, moment, newest, require_owner
from app.services.model_cache import LoadedModel
from app.services.models import model_row
from app.services.predictions import read_row
from app.store import tables
from app.store.db import db_now, new_id, reading, writing

F, J = tables.Feedback, tables.Job
_ENDED = ("failed", "cancelled")


def report(session: Session, loaded: LoadedModel, request: FeedbackRequest) -> Feedback:
    """Keep the right labels of an instance; they are in the database once this returns.

    Parameters
    ----------
    loaded : LoadedModel
        The version that answered, or might have.

    Raises
    ------
    InvalidInput
        The model cannot take the instance, or no row could have these labels.
    StorageFull
        The workspace may not store that much more.
    """
    instance, labels = _checked(loaded, request)
    size = len(orjson.dumps([instance, labels, request.note]))
    with writing(session):
        quotas.require_room(session, size)
        version = session.get(tables.ModelVersion, loaded.version.id)
        if version is None or version.deleted_at is not None:
            raise NotFound("the version was deleted")
        row = F(
            id=new_id(),
            model_id=version.model_id,
            number=version.number,
            answer=request.answer,
            instance=instance,
            labels=labels,
            note=request.note,
            size_bytes=size,
            created_at=db_now(),
        )
        session.add(row)
        session.flush()
        session.refresh(row)
        return _show(row, loaded.version.model)


def get(session: Session, ref: str, id: str) -> Feedback:
    """One report; raises NotFound."""
    with reading(session):
        model = model_row(session, ref)
        return _show(_of_model(session, model, id), model.name)


def page(
    session: Session, ref: str, page_size: int = 100, page_token: str | None = None, is_waiting: bool | None = None
) -> Page[Feedback]:
    """What was reported of a model, newest first: all, what no job has taken, or what one has; raises NotFound."""
    with reading(session):
        model = model_row(session, ref)
        query = select(F).where(F.model_id == model.id)
        if is_waiting is not None:
            query = query.where(waiting() if is_waiting else ~waiting())
        rows, token = newest(session, F, query, page_size, page_token)
        return Page[Feedback](items=[_show(row, model.name) for row in rows], next_page_token=token)


def remove(session: Session, ref: str, id: str) -> None:
    """Delete a report; rows that were made of it stay in their dataset.

    Raises
    ------
    NotFound
        There is none.
    Forbidden
        Somebody else reported it.
    Conflict
        A job is making a row of it.
    """
    with writing(session):
        row = _of_model(session, model_row(session, ref), id)
        require_owner(session, row)
        gone = session.execute(delete(F).where(F.id == id, or_(waiting(), _appended())).returning(F.id)).first()
        if gone is None:
            raise Conflict(f"the job {row.job_id} is making a row of it; wait for its end")


def waiting() -> ColumnElement[bool]:
    """Of feedback that no job has taken: none that may still come to something."""
    at_work = select(J.id).where(J.id == F.job_id, J.state.not_in(_ENDED)).exists()
    return or_(F.job_id.is_(None), ~at_work)


def claim(session: Session, ids: list[str], job_id: str) -> None:
    """Let a job have feedback, in the caller's transaction; raises Conflict where another has some of it."""
    taken = session.scalars(update(F).where(F.id.in_(ids), waiting()).values(job_id=job_id).returning(F.id)).all()
    if len(taken) != len(ids):
        raise Conflict("another request makes rows of the same feedback")


def _checked(loaded: LoadedModel, request: FeedbackRequest) -> tuple[dict[str, Any], list[str]]:
    given: Any = request.instance
    faults, instance = [], {}
    try:
        read_row(loaded, given)
        instance = loaded.features.as_given(given)
    except InstanceError as error:
        faults.append(Item(str(error), "/instance"))
    labels = list(dict.fromkeys(label.strip() for label in request.labels))
    for at, label in enumerate(labels):
        problem = label_problem(label)
        if problem is None and loaded.model.tree is not None and label not in loaded.nodes:
            problem = "the model's label tree has no such label"
        if problem is not None:
            faults.append(Item(problem, f"/labels/{at}"))
    if len(labels) > 1 and not loaded.model.names_sets:
        faults.append(Item("the model names one label", "/labels"))
    if faults:
        raise InvalidInput("The feedback does not fit the model.", faults)
    return instance, labels


def _of_model(session: Session, model: tables.Model, id: str) -> tables.Feedback:
    row = by_id(session, F, id)
    if row.model_id != model.id:
        raise NotFound(f"the model {model.name!r} has no feedback with the id {id!r:.80}")
    return row


def _appended() -> ColumnElement[bool]:
    return select(J.id).where(and_(J.id == F.job_id, J.state == "succeeded")).exists()


def _show(row: tables.Feedback, model: str) -> Feedback:
    return Feedback(
        id=row.id,
        model=model,
        version=row.number,
        answer=row.answer,
        key=row.owner,
        instance=row.instance,
        labels=row.labels,
        note=row.note,
        job=row.job_id,
        created_at=moment(row.created_at),
    )
