"""Files of review queues: rows go out to be decided elsewhere, and come back with decisions."""

from pathlib import Path
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.predictions.model_cache import ModelCache
from app.reviews import file_decisions, label_studio
from app.reviews.label_search import load_if_kept
from app.reviews.schemas import ImportedDecisions, SheetFormat
from app.store import tables
from app.store.db import reading
from app.store.lookup import by_ref

R = tables.ReviewRow


class QueueFile(NamedTuple):
    """A file as it is sent."""

    name: str
    media_type: str
    content: bytes


def write(session: Session, cache: ModelCache, ref: str, state: str | None, format: SheetFormat) -> QueueFile:
    """The rows of a queue as a file for people, or what Label Studio needs to show them.

    Parameters
    ----------
    state : str, optional
        Only rows in this state.

    Raises
    ------
    NotFound
        There is no such queue.
    """
    with reading(session):
        review = by_ref(session, tables.Review, ref)
        stem = f"{review.name}-{review.model}-{review.version}"
        query = select(R).where(R.review_id == review.id)
        rows = session.scalars((query if state is None else query.where(R.state == state)).order_by(R.place)).all()
        if format == "xlsx":
            # imported here, and below: every process of the API would wait for what writes workbooks
            from app.reviews import sheets

            return QueueFile(f"{stem}.xlsx", sheets.MEDIA_TYPE, sheets.workbook(review, rows))
        alternatives = session.scalars(select(R.alternatives).where(R.review_id == review.id)).all()
    given = label_studio.choices(load_if_kept(session, cache, ref), alternatives)
    if format == "label-studio":
        return QueueFile(f"{stem}.json", "application/json", label_studio.tasks(review, rows, given))
    return QueueFile(f"{stem}.xml", "application/xml", label_studio.configuration(review, rows, given))


def read(session: Session, cache: ModelCache, ref: str, path: Path, new_labels: bool) -> ImportedDecisions:
    """Record the decisions of a file that was written by :func:`write` and edited, or annotated in Label Studio.

    Parameters
    ----------
    path : Path
        A workbook, a CSV file of it, or Label Studio's export in JSON or JSON-MIN.
    new_labels : bool
        Accept labels that the model does not know.

    Raises
    ------
    NotFound
        There is no such queue.
    Forbidden
        A clerk's file names other people, in a queue of two opinions.
    InvalidInput
        The file does not come from a review, or has too many decisions.
    """
    from app.reviews import sheets

    entries = label_studio.entries(path) if label_studio.is_export(path) else sheets.entries(path)
    return file_decisions.record(session, cache, ref, entries, new_labels)
