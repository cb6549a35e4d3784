"""Feedback becomes rows: a file of it is appended to a dataset as any other."""

from collections.abc import Callable

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets.instance_rows import MOST_ROWS, append_rows, rows_for
from app.errors import Conflict
from app.jobs.schemas import Job
from app.models.service import model_row, version_row
from app.rules.feedback import F, claim, waiting
from app.rules.schemas import FeedbackRowsRequest
from app.store import tables
from app.store.db import reading
from app.store.lookup import by_ref


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
    Forbidden
        Another key made the dataset.
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
