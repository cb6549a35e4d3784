"""Results of jobs that suggest rows to label, and what those of all jobs about a dataset's rows are shown from."""

from typing import Any, NamedTuple

import pyarrow.parquet as pq
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.curation.schemas import Alternative, SuggestedRow, SuggestedRows
from app.datasets import rows as dataset_rows
from app.datasets import versions as dataset_versions
from app.errors import Conflict, NotFound
from app.predictions import batch_predictions
from app.store import tables
from app.store.corpus import Corpus, open_corpus
from app.store.db import reading
from app.store.files import files
from app.store.lookup import by_id

MAX_SHOWN = 200
_OF_SETS = ("labels", "names", "probabilities", "scores")
_OF_OTHERS = ("alternatives", "alternative_names", "alternative_probabilities", "alternative_scores")


def decided_rows(session: Session, dataset_id: str | None, corpus: Corpus) -> list[int]:
    """Numbers, in a version of a dataset, of the rows that review queues have decided."""
    R, Q = tables.ReviewRow, tables.Review
    decided = select(Q.dataset_version, R.row).join(R, Q.id == R.review_id)
    decided = decided.where(Q.dataset_id == dataset_id, R.state == "decided").distinct()
    of_version: dict[int, list[int]] = {}
    with reading(session):
        for version, row in session.execute(decided):
            of_version.setdefault(version, []).append(row)
        found = {version: dataset_versions.find(session, dataset_id, version) for version in of_version}
    rows: set[int] = set()
    for version, numbers in of_version.items():
        reviewed = found[version]
        if reviewed is not None:
            rows.update(open_corpus(files(), reviewed.path).places_in(corpus)[numbers].tolist())
    return sorted(rows - {-1})


class Finished(NamedTuple):
    """A job about a dataset's rows that has succeeded, its file, and the version of the dataset that it read."""

    job: tables.Job
    file: batch_predictions.PredictionFile
    dataset: tables.Dataset
    rows: tables.DatasetVersion


def finished(session: Session, job_id: str, kind: str, otherwise: str) -> Finished:
    """A job of a kind with what its rows are shown from.

    Raises
    ------
    NotFound
        No such job, it is of another kind (``otherwise`` is the message), or its file was removed.
    Conflict
        The job has not succeeded, or its dataset was deleted.
    """
    with reading(session):
        job = by_id(session, tables.Job, job_id)
        if job.kind != kind:
            raise NotFound(otherwise)
        dataset = None if job.dataset_id is None else session.get(tables.Dataset, job.dataset_id)
        rows = dataset_versions.find(session, job.dataset_id, job.request["dataset_version"])
    file = batch_predictions.of_job(session, job_id)
    if dataset is None or rows is None:
        raise Conflict("the dataset of the job was deleted; its rows cannot be shown")
    return Finished(job, file, dataset, rows)


def suggested_rows(session: Session, job_id: str, offset: int = 0, limit: int = 20) -> SuggestedRows:
    """Rows that a job suggests, the most useful first.

    Raises
    ------
    NotFound
        No such job, it suggests no rows, or its file was removed.
    Conflict
        The job has not succeeded, or its dataset was deleted.
    """
    job, file, dataset, rows = finished(session, job_id, "suggest_rows", "the job suggests no rows")
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
    return SuggestedRow(
        row=row,
        id=found.get("id"),
        reason=found["reason"],
        margin=found["margin"],
        labels=corpus.names(row) if corpus.labels else [],
        alternatives=_of_set(found) if "labels" in found else _of_one(found),
        **dataset_rows.content(corpus, row),
    )


def _of_one(found: dict[str, Any]) -> list[Alternative]:
    suffixes = ["", *(name.removeprefix("label") for name in found if name.startswith("label_"))]
    fields = ("label", "name", "probability", "score")
    given = [{field: found[f"{field}{suffix}"] for field in fields} for suffix in suffixes]
    return [Alternative(**each) for each in given if each["label"] is not None]


def _of_set(found: dict[str, Any]) -> list[Alternative]:
    """The labels of the predicted set, and then the next best."""
    both = []
    for predicted, columns in ((True, _OF_SETS), (False, _OF_OTHERS)):
        for label, name, probability, score in zip(*(found.get(column) or [] for column in columns), strict=True):
            each = Alternative(label=label, name=name, probability=probability, score=score, predicted=predicted)
            both.append(each)
    return both
