"""Review queues: created from the answers of prediction jobs, shown and deleted."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete as sql_delete
from sqlalchemy import func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.curation.schemas import SuggestRowsRequest
from app.datasets import versions as dataset_versions
from app.errors import Conflict, NotFound
from app.formats.label_sets import separator_for
from app.models.service import version_row
from app.predictions import batch_predictions
from app.predictions.schemas import BatchPredictRequest
from app.reviews import progress
from app.reviews.job_rows import rows_of_job
from app.reviews.schemas import Review, ReviewRequest
from app.schemas import Page
from app.store import tables
from app.store.db import db_now, new_id, reading, writing
from app.store.lookup import by_id, by_ref, newest, require_owner, to_schema

_AT_ONCE = 1000


def create(session: Session, request: ReviewRequest) -> Review:
    """Create a queue from the rows of a prediction job that are not sure, and a random share of the sure ones.

    Rows of a job that suggests rows, or that predicts sets and marks no labels as sure, all go into the queue.

    Raises
    ------
    NotFound
        No such job, it makes no predictions, or its file was removed.
    Conflict
        The job has not succeeded, its dataset was deleted, or the name is taken.
    InvalidInput
        The job's file does not say which rows are sure, or more rows than a queue may have are not.
    """
    taken = Conflict(f"a review is named {request.name!r} already; choose another name")
    file = batch_predictions.of_job(session, request.job)
    with reading(session):
        job = by_id(session, tables.Job, request.job)
        asked = _asked(job)
        if session.scalars(select(tables.Review.id).where(tables.Review.name == request.name)).first() is not None:
            raise taken
        dataset = dataset_versions.find(session, job.dataset_id, asked.dataset_version)
    if dataset is None:
        raise Conflict(
            "the rows of the job are not stored any more; predict them again (code deletes the rows of its file: use "
            "code --review)"
        )
    rows, sets = rows_of_job(file, asked, request, dataset.path)
    separator = _separator(session, job, rows) if sets else None
    result = job.result or {}
    with writing(session):
        now: float = session.scalars(select(db_now())).one()
        review = tables.Review(
            id=new_id(),
            name=request.name,
            job_id=job.id,
            model=result["model"],
            version=result["version"],
            dataset_id=job.dataset_id,
            dataset_version=asked.dataset_version or 1,
            sure_share=request.sure_share,
            seed=request.seed,
            opinions=request.opinions,
            promised=_promised(result.get("sure") or {}),
            label_separator=separator,
            created_at=now,
        )
        session.add(review)
        try:
            session.flush()
        except IntegrityError:
            session.rollback()
            raise taken from None
        for begin in range(0, len(rows), _AT_ONCE):
            some = [row | {"review_id": review.id} for row in rows[begin : begin + _AT_ONCE]]
            session.execute(insert(tables.ReviewRow), some)
        return _show(session, review)


def get(session: Session, ref: str) -> Review:
    """A queue by id or name, with its progress; raises NotFound."""
    with reading(session):
        return _show(session, by_ref(session, tables.Review, ref))


def page(session: Session, page_size: int = 100, page_token: str | None = None) -> Page[Review]:
    """Queues, newest first."""
    with reading(session):
        rows, token = newest(session, tables.Review, select(tables.Review), page_size, page_token)
        return Page[Review](items=[_show(session, row) for row in rows], next_page_token=token)


def delete(session: Session, ref: str) -> None:
    """Delete a queue with its rows and decisions.

    Raises
    ------
    NotFound
        There is none.
    Forbidden
        Another key made it.
    """
    with writing(session):
        review = by_ref(session, tables.Review, ref, lock=True)
        require_owner(session, review)
        for table in (tables.ReviewOpinion, tables.ReviewRow):
            session.execute(sql_delete(table).where(table.review_id == review.id))
        session.delete(review)


def _asked(job: tables.Job) -> BatchPredictRequest | SuggestRowsRequest:
    kind = SuggestRowsRequest if job.kind == "suggest_rows" else BatchPredictRequest
    return kind.model_validate(job.request)


def _separator(session: Session, job: tables.Job, rows: Sequence[dict[str, Any]]) -> str:
    """What separates the labels of a row in a spreadsheet: the dataset's separator, unless a label has it."""
    result = job.result or {}
    with reading(session):
        try:
            trained = version_row(session, result["model"], result["version"]).dataset_id
        except NotFound:
            trained = None
        preferred = batch_predictions.separator(session, [job.dataset_id, trained])
    labels = {each["label"] for row in rows for each in row["alternatives"]}
    if preferred is None or preferred.isspace() or any(preferred in label for label in labels):
        return separator_for(labels, None)
    return preferred


def _promised(sure: Mapping[str, Any]) -> float | None:
    """The precision of sure labels; None where held-out rows give the precision of nodes alone."""
    nodes = isinstance(sure.get("sure_level"), int) or sure.get("counted") == "nodes"
    return sure.get("label_precision") if nodes else sure.get("precision")


def language_of(session: Session, row: tables.Review) -> str | None:
    """The language of names that the job of a queue was asked for."""
    asked = progress.asked_of_job(session, row).get("language")
    return asked if isinstance(asked, str) else None


def _show(session: Session, row: tables.Review) -> Review:
    n_rows = select(func.count()).select_from(tables.ReviewRow).where(tables.ReviewRow.review_id == row.id)
    return to_schema(
        Review,
        row,
        job=row.job_id,
        dataset=row.dataset_id,
        language=language_of(session, row),
        sure_level=progress.sure_level(session, row),
        n_rows=session.scalars(n_rows).one(),
        states=progress.states(session, row.id),
        people=progress.people(session, row.id),
        agreement=progress.agreement(session, row),
        promised_precision=row.promised,
        measured_precision=progress.measured(session, row),
    )
