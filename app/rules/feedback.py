"""Feedback: the right labels of instances, kept until they are appended to a dataset as rows."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson
from sqlalchemy import ColumnElement, and_, delete, or_, select, update
from sqlalchemy.orm import Session

from app.access import quotas
from app.datasets.instance_rows import MOST_ROWS, append_rows, rows_for
from app.errors import MAX_ITEMS, Conflict, InvalidInput, Item, NotFound
from app.features.base import InstanceError
from app.formats.label_names import label_problem
from app.hierarchies.label_facts import name_key
from app.hierarchies.version_labels import VersionLabels
from app.jobs.schemas import Job
from app.models.service import model_row, version_row
from app.predictions.model_cache import LoadedModel
from app.predictions.service import read_row
from app.rules.schemas import Feedback, FeedbackRequest, FeedbackRowsRequest
from app.schemas import Page
from app.store import tables
from app.store.db import db_now, new_id, reading, writing
from app.store.lookup import by_id, by_ref, newest, require_owner, to_schema

F, J = tables.Feedback, tables.Job
_ENDED = ("failed", "cancelled")
# concepts of one name in an error
_SHOWN = 3


def report(session: Session, loaded: LoadedModel, request: FeedbackRequest) -> Feedback:
    """Keep the right labels of an instance; as :func:`report_all` of one."""
    return report_all(session, loaded, [request])[0]


def report_all(
    session: Session, loaded: LoadedModel, requests: Sequence[FeedbackRequest], pointers: Sequence[str] = ("",)
) -> list[Feedback]:
    """Keep the right labels of instances, all or none; they are in the database once this returns.

    Parameters
    ----------
    loaded : LoadedModel
        The version that answered, or might have.
    pointers : sequence of str
        Where each is in the request, for error messages.

    Raises
    ------
    InvalidInput
        The model cannot take an instance, or no row could have its labels.
    StorageFull
        The workspace may not store that much more.
    """
    checked = [_checked(loaded, request, pointer) for request, pointer in zip(requests, pointers, strict=True)]
    faults = [fault for _, _, found in checked for fault in found]
    if faults:
        raise InvalidInput("The feedback does not fit the model.", faults[:MAX_ITEMS])
    sizes = [
        len(orjson.dumps([instance, labels, request.note]))
        for request, (instance, labels, _) in zip(requests, checked, strict=True)
    ]
    with writing(session):
        quotas.require_room(session, sum(sizes))
        version = session.get(tables.ModelVersion, loaded.version.id)
        if version is None or version.deleted_at is not None:
            raise NotFound("the version was deleted")
        rows = [
            F(
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
            for request, (instance, labels, _), size in zip(requests, checked, sizes, strict=True)
        ]
        session.add_all(rows)
        session.flush()
        for row in rows:
            session.refresh(row)
        return [_show(row, loaded.version.model) for row in rows]


def withdraw(session: Session, ref: str, answer: str) -> None:
    """Delete the waiting reports of one answer by the session's key; raises NotFound."""
    with writing(session):
        model = model_row(session, ref)
        rows = session.scalars(select(F).where(F.model_id == model.id, F.answer == answer, waiting())).all()
        for row in rows:
            require_owner(session, row)
            session.execute(delete(F).where(F.id == row.id, waiting()))


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
        Another key reported it.
    Conflict
        A job is making a row of it.
    """
    with writing(session):
        row = _of_model(session, model_row(session, ref), id)
        require_owner(session, row)
        gone = session.execute(delete(F).where(F.id == id, or_(waiting(), _appended())).returning(F.id)).first()
        if gone is None:
            raise Conflict(f"the job {row.job_id} is making a row of it; wait until the job ends")


def waiting() -> ColumnElement[bool]:
    """Of feedback that no job has taken: none that may still come to something."""
    at_work = select(J.id).where(J.id == F.job_id, J.state.not_in(_ENDED)).exists()
    return or_(F.job_id.is_(None), ~at_work)


def claim(session: Session, ids: list[str], job_id: str) -> None:
    """Let a job have feedback, in the caller's transaction; raises Conflict where another has some of it."""
    taken = session.scalars(update(F).where(F.id.in_(ids), waiting()).values(job_id=job_id).returning(F.id)).all()
    if len(taken) != len(ids):
        raise Conflict("another request is appending the same feedback")


def _checked(
    loaded: LoadedModel, request: FeedbackRequest, pointer: str
) -> tuple[dict[str, Any], list[str], list[Item]]:
    """The instance as it is kept, the labels, and what is wrong with them."""
    given: Any = request.instance
    faults, instance = [], {}
    try:
        read_row(loaded, given)
        instance = loaded.features.as_given(given)
        if _is_empty(instance.get("text", instance.get("record", 0))):
            raise InstanceError("the instance is empty: a row without content teaches nothing")
    except InstanceError as error:
        faults.append(Item(str(error), f"{pointer}/instance"))
    written = [loaded.label_form(label.strip()) for label in request.labels]
    labels = [loaded.labels.node_of(label) for label in written]
    for at, label in enumerate(labels):
        problem = label_problem(label) or _ambiguity(loaded.labels, label)
        if problem is None and loaded.model.tree is not None and label not in loaded.nodes:
            problem = f"the model's label tree has no label {label!r:.80}"
        if problem is not None:
            faults.append(Item(problem, f"{pointer}/labels/{at}"))
    labels = list(dict.fromkeys(labels))
    if len(labels) != 1 and not loaded.model.names_sets:
        faults.append(Item("the model names one label", f"{pointer}/labels"))
    return instance, labels, faults


def _ambiguity(labels: VersionLabels, label: str) -> str | None:
    """What is wrong with the name of several concepts."""
    concepts = [] if label in labels.nodes else labels.by_name.get(name_key(label), [])
    if len(concepts) < 2:
        return None
    some = ", ".join(concepts[:_SHOWN]) + (", ..." if len(concepts) > _SHOWN else "")
    return f"{len(concepts)} concepts are called {label!r:.80}: {some}; give one of these"


def _is_empty(content: Any) -> bool:
    """Whether a text, or each value of a record, is absent or blank; numbers are content."""
    if isinstance(content, dict):
        return all(map(_is_empty, content.values()))
    return content is None or (isinstance(content, str) and not content.strip())


def _of_model(session: Session, model: tables.Model, id: str) -> tables.Feedback:
    row = by_id(session, F, id)
    if row.model_id != model.id:
        raise NotFound(f"the model {model.name!r} has no feedback with the id {id!r:.80}")
    return row


def _appended() -> ColumnElement[bool]:
    return select(J.id).where(and_(J.id == F.job_id, J.state == "succeeded")).exists()


def _show(row: tables.Feedback, model: str) -> Feedback:
    return to_schema(Feedback, row, model=model, version=row.number, key=row.owner, job=row.job_id)


class NoFeedback(Conflict):
    """Nothing waits that fits the dataset."""


def append_feedback(
    session: Session, ref: str, request: FeedbackRowsRequest, then: Callable[[tables.Job], None] = lambda _: None
) -> Job:
    """Queue a job that appends what waits of a model's feedback and fits the dataset, the oldest first.

    ``then`` is called with the job in the transaction that makes it.

    Raises
    ------
    NotFound
        No such model or dataset.
    Conflict
        The model's dataset was deleted, or it is not ready; and as NoFeedback where nothing waits that fits.
    """
    with reading(session):
        model = model_row(session, ref)
        dataset_ref = request.dataset or version_row(session, ref).dataset_id
        if dataset_ref is None:
            raise Conflict("the dataset of the latest version was deleted; name another")
        dataset = by_ref(session, tables.Dataset, dataset_ref)
        row_of, new = rows_for(dataset)
        found = session.scalars(select(F).where(F.model_id == model.id, waiting()).order_by(F.id).limit(MOST_ROWS))
        given = [(each.id, row_of(each.instance, each.labels)) for each in found]
    rows = {id: row for id, row in given if row is not None}
    if not rows:
        why = f"none of the {len(given)} that wait fits the dataset" if given else "none waits"
        raise NoFeedback(f"no feedback can become rows: {why}")

    def claim_and(job: tables.Job) -> None:
        claim(session, list(rows), job.id)
        then(job)

    new = new.model_copy(update={"part": request.part})
    return append_rows(session, dataset, new, list(rows.values()), len(rows), claim_and)
