"""Jobs that suggest rows to label: requests resolved, and their results."""

from typing import Any

import pyarrow.parquet as pq
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.curation.schemas import Alternative, SuggestedRow, SuggestedRows, SuggestRowsRequest
from app.datasets import rows as dataset_rows
from app.datasets import versions as dataset_versions
from app.errors import Conflict, InvalidInput, Item, NotFound
from app.models import row_kinds
from app.models import service as models
from app.predictions import batch_predictions
from app.store import tables
from app.store.corpus import Corpus, open_corpus
from app.store.db import reading
from app.store.files import files
from app.store.lookup import by_id, by_ref

MAX_SHOWN = 200


def resolve_suggestion(session: Session, request: SuggestRowsRequest) -> tuple[tables.Dataset, SuggestRowsRequest]:
    """The dataset that a request names, held to the end of the transaction, and the request with resolved versions.

    Raises
    ------
    NotFound
        No such model, version, alias or dataset.
    Conflict
        The dataset is not ready.
    InvalidInput
        The dataset has no such part, or its rows are of another kind than those trained on.
    """
    version = models.version_row(session, request.model, request.version, request.alias, lock=True)
    dataset = by_ref(session, tables.Dataset, request.dataset, lock=True)
    rows = dataset_versions.resolve_version(session, dataset, request.dataset_version)
    row_kinds.require_same(session, version, dataset, rows)
    if request.part in ("test", "validation") and rows.n_train == rows.n_rows:
        detail = f"all rows of the dataset are for training; part {request.part} needs a split of its own"
        raise InvalidInput("the dataset has no such part", [Item(detail, "/part")])
    named = {"version": version.number, "alias": None, "dataset_version": rows.number}
    return dataset, request.model_copy(update=named)


def decided_rows(session: Session, dataset_id: str | None) -> list[int]:
    """Numbers of a dataset's rows that review queues have decided."""
    R, Q = tables.ReviewRow, tables.Review
    decided = select(R.row).join(Q, Q.id == R.review_id).where(Q.dataset_id == dataset_id, R.state == "decided")
    with reading(session):
        return sorted(set(session.scalars(decided)))


def suggested_rows(session: Session, job_id: str, offset: int = 0, limit: int = 20) -> SuggestedRows:
    """Rows that a job suggests, the most useful first.

    Raises
    ------
    NotFound
        No such job, it suggests no rows, or its file was removed.
    Conflict
        The job has not succeeded, or its dataset was deleted.
    """
    with reading(session):
        job = by_id(session, tables.Job, job_id)
        if job.kind != "suggest_rows":
            raise NotFound("the job suggests no rows")
        dataset = None if job.dataset_id is None else session.get(tables.Dataset, job.dataset_id)
        rows = dataset_versions.find(session, job.dataset_id, job.request["dataset_version"])
    file = batch_predictions.of_job(session, job_id)
    if dataset is None or rows is None:
        raise Conflict("the dataset of the job was deleted; its rows cannot be shown")
    found, corpus = pq.read_table(file.path), open_corpus(files(), rows.path)
    return SuggestedRows(
        rows=[_shown(each, corpus) for each in found.slice(offset, limit).to_pylist()],
        n_rows=found.num_rows,
        dataset=dataset.name,
        dataset_version=rows.number,
        model=(job.result or {})["model"],
        version=job.request["version"],
    )


def _shown(found: dict[str, Any], corpus: Corpus) -> SuggestedRow:
    row = found["row"]
    suffixes = ["", *(name.removeprefix("label") for name in found if name.startswith("label_"))]
    fields = ("label", "name", "probability", "score")
    given = [{field: found[f"{field}{suffix}"] for field in fields} for suffix in suffixes]
    return SuggestedRow(
        row=row,
        id=found.get("id"),
        reason=found["reason"],
        margin=found["margin"],
        labels=corpus.names(row) if corpus.labels else [],
        alternatives=[Alternative(**each) for each in given if each["label"] is not None],
        **dataset_rows.content(corpus, row),
    )
