"""Decided rows become rows of a dataset's next version."""

from sqlalchemy import select, update
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import ColumnElement

from app.datasets.instance_rows import MOST_ROWS, append_rows, rows_for
from app.errors import Conflict
from app.jobs.schemas import Job
from app.models.service import version_row
from app.reviews.decisions import LOST
from app.reviews.schemas import DecidedRowsRequest
from app.store import tables
from app.store.db import reading
from app.store.lookup import by_ref

R, J = tables.ReviewRow, tables.Job


def append_decided(session: Session, ref: str, request: DecidedRowsRequest) -> Job:
    """Queue the job that appends decided rows to a dataset, those that no other job has appended.

    Raises
    ------
    NotFound
        No such queue, model or dataset.
    Forbidden
        Another key made the dataset.
    Conflict
        The dataset was deleted or is not ready, no decided row that fits it is left, or another request appends the
        same rows.
    """
    with reading(session):
        review = by_ref(session, tables.Review, ref)
        dataset_ref = request.dataset or version_row(session, review.model, review.version).dataset_id
        if dataset_ref is None:
            raise Conflict("the dataset of the reviewed version was deleted; name another")
        dataset = by_ref(session, tables.Dataset, dataset_ref)
        row_of, new = rows_for(dataset)
        query = select(R).where(R.review_id == review.id, R.state == "decided", _waiting())
        found = session.scalars(query.order_by(R.row).limit(MOST_ROWS)).all()
        given = [(each.row, row_of(_instance(each), each.labels or [])) for each in found]
    rows = {number: row for number, row in given if row is not None}
    if not rows:
        why = f"none of the {len(given)} decided rows fits the dataset" if given else "no decided row is left to append"
        raise Conflict(f"{why}; decide rows first, or name another dataset")

    def claim(job: tables.Job) -> None:
        chosen = R.review_id == review.id, R.row.in_(list(rows)), R.state == "decided", _waiting()
        if len(session.scalars(update(R).where(*chosen).values(job_id=job.id).returning(R.row)).all()) != len(rows):
            raise Conflict("another request appends or changes the same rows; try again")

    new = new.model_copy(update={"part": request.part})
    return append_rows(session, dataset, new, list(rows.values()), 0, claim)


def _waiting() -> ColumnElement[bool]:
    """Of rows that no job has appended, or is about to."""
    taken = select(J.id).where(J.id == R.job_id, J.state.not_in(LOST)).exists()
    return ~taken


def _instance(row: tables.ReviewRow) -> dict[str, object]:
    given = {"text": row.text, "record": row.record}
    return {form: value for form, value in given.items() if value is not None}
