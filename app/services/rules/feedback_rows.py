"""Feedback becomes rows: a file of it is appended to a dataset as any other."""

from collections.abc import Callable
from typing import Any

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import Conflict
from app.schemas.datasets.datasets import NewRows
from app.schemas.datasets.statistics import DatasetStatistics
from app.schemas.jobs.jobs import Job
from app.schemas.rules.feedback import FeedbackRowsRequest
from app.services.common.lookup import by_ref
from app.services.datasets.appending import append
from app.services.models.models import model_row, version_row
from app.services.rules.feedback import F, claim, waiting
from app.store import tables
from app.store.corpus import Corpus, open_corpus
from app.store.db import reading
from app.store.files import files

# that a job takes; the ids stand in one statement
MOST_ROWS = 10_000
_LABEL = "label"


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
        Somebody else made the dataset.
    Conflict
        The model's dataset was deleted, or it is not ready; and as NoFeedback where nothing waits that fits.
    """
    with reading(session):
        model = model_row(session, ref)
        dataset_ref = request.dataset or version_row(session, ref).dataset_id
        if dataset_ref is None:
            raise Conflict("the dataset of the latest version was deleted; name another")
        dataset = by_ref(session, tables.Dataset, dataset_ref)
        if dataset.state != "ready":
            raise Conflict(f"the dataset is {dataset.state}; rows can be appended to a ready one")
        assert dataset.path is not None
        corpus = open_corpus(files(), dataset.path)
        label = _LABEL
        while corpus.columns is not None and label in (*corpus.columns.numbers, *corpus.columns.categories):
            label += "_"
        row_of = _rows_for(dataset, corpus, label)
        found = session.scalars(select(F).where(F.model_id == model.id, waiting()).order_by(F.id).limit(MOST_ROWS))
        given = [(each.id, row_of(each.instance, each.labels)) for each in found]
    rows = {id: row for id, row in given if row is not None}
    if not rows:
        why = f"none of the {len(given)} that wait fits the dataset" if given else "none waits"
        raise NoFeedback(f"there is no feedback to make rows of: {why}")
    options = {name: field.default for name, field in NewRows.model_fields.items()}
    options |= {"format": "jsonl", "label_column": label, "part": request.part}
    new = NewRows.model_validate(options | _columns(corpus))

    def claim_and(job: tables.Job) -> None:
        claim(session, list(rows), job.id)
        then(job)

    upload = files().upload()
    try:
        for row in rows.values():
            upload.write(orjson.dumps(row) + b"\n")
        upload.finish()
        return append(session, dataset.id, new, upload, len(rows), claim_and)
    finally:
        upload.abort()


def _columns(corpus: Corpus) -> dict[str, Any]:
    """The options that a table's rows need."""
    if corpus.kind != "table" or corpus.columns is None:
        return {}
    columns = corpus.columns
    return {
        "text_columns": columns.texts,
        "number_columns": columns.numbers,
        "category_columns": columns.categories,
        "missing": "keep" if columns.missing else "refuse",
    }


def _rows_for(
    dataset: tables.Dataset, corpus: Corpus, label: str
) -> Callable[[dict[str, Any], list[str]], dict[str, Any] | None]:
    """What makes rows of JSON lines for a dataset; None of what does not fit it."""
    sets = DatasetStatistics.model_validate(dataset.statistics).labels_per_row is not None
    form = "indices" if corpus.feature_names is None else "features"
    form = {"text": "text", "table": "record"}.get(corpus.kind, form)
    columns = None if corpus.kind != "table" else corpus.columns

    def row_of(instance: dict[str, Any], labels: list[str]) -> dict[str, Any] | None:
        if form not in instance or not (sets or len(labels) == 1):
            return None
        if columns is not None:
            record = instance["record"]
            kept = (*columns.texts, *columns.numbers, *columns.categories)
            instance = {name: record.get(name) for name in kept}
        return {label: labels if sets else labels[0], **instance}

    return row_of
