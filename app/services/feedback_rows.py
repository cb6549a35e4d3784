"""Feedback becomes rows: a file of it is appended to a dataset as any other."""

from collections.abc import Callable
from typing import Any

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import Conflict
from app.schemas.datasets import DatasetStatistics, NewRows
from app.schemas.feedback import FeedbackRowsRequest
from app.schemas.jobs import Job
from app.services.appending import append
from app.services.feedback import F, waiting
from app.services.lookup import by_ref
from app.services.models import model_row, version_row
from app.store import tables
from app.store.corpus import open_corpus
from app.store.db import reading
from app.store.files import files

# that a job takes; the ids stand in one statement
MOST_ROWS = 10_000
_LABEL = "label"


def append_feedback(session: Session, ref: str, request: FeedbackRowsRequest) -> Job:
    """Queue a job that appends what waits of a model's feedback and fits the dataset, the oldest first.

    Raises
    ------
    NotFound
        No such model or dataset.
    Forbidden
        Somebody else made the dataset.
    Conflict
        Nothing waits that fits, the model's dataset was deleted, or it is not ready.
    """
    with reading(session):
        model = model_row(session, ref)
        dataset_ref = request.dataset or version_row(session, ref).dataset_id
        if dataset_ref is None:
            raise Conflict("the dataset of the latest version was deleted; name another")
        dataset = by_ref(session, tables.Dataset, dataset_ref)
        if dataset.state != "ready":
            raise Conflict(f"the dataset is {dataset.state}; rows can be appended to a ready one")
        row_of = _rows_for(dataset)
        found = session.scalars(select(F).where(F.model_id == model.id, waiting()).order_by(F.id).limit(MOST_ROWS))
        given = [(each.id, row_of(each.instance, each.labels)) for each in found]
    rows = {id: row for id, row in given if row is not None}
    if not rows:
        why = f"none of the {len(given)} that wait fits the dataset" if given else "none waits"
        raise Conflict(f"there is no feedback to make rows of: {why}")
    options = {name: field.default for name, field in NewRows.model_fields.items()}
    new = NewRows.model_validate(options | {"format": "jsonl", "label_column": _LABEL, "part": request.part})
    upload = files().upload()
    try:
        for row in rows.values():
            upload.write(orjson.dumps(row) + b"\n")
        upload.finish()
        return append(session, dataset.id, new, upload, list(rows))
    finally:
        upload.abort()


def _rows_for(dataset: tables.Dataset) -> Callable[[dict[str, Any], list[str]], dict[str, Any] | None]:
    """What makes rows of JSON lines for a dataset; None of what does not fit it."""
    assert dataset.path is not None
    corpus = open_corpus(files(), dataset.path)
    sets = DatasetStatistics.model_validate(dataset.statistics).labels_per_row is not None
    form = "text" if corpus.kind == "text" else "indices" if corpus.feature_names is None else "features"

    def row_of(instance: dict[str, Any], labels: list[str]) -> dict[str, Any] | None:
        if form not in instance or not (sets or len(labels) == 1):
            return None
        return {_LABEL: labels if sets else labels[0], **instance}

    return row_of
