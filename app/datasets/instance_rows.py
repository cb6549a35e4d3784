"""Instances with their labels as rows of JSON lines, which are appended to a dataset as any other file."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson
from sqlalchemy.orm import Session

from app.datasets.appending import append
from app.datasets.recipe_schemas import TableColumns
from app.datasets.schemas import NewRows
from app.datasets.statistics_schemas import DatasetStatistics
from app.errors import Conflict
from app.jobs.schemas import Job
from app.store import tables
from app.store.corpus import Corpus, open_corpus
from app.store.files import files

Row = dict[str, Any]
_LABEL = "label"
# per job: their ids are in one statement
MOST_ROWS = 10_000


def rows_for(dataset: tables.Dataset) -> tuple[Callable[[dict[str, Any], list[str]], Row | None], NewRows]:
    """Return a function and the options of an append job, for rows of a dataset.

    The function makes a row of an instance and its labels, or None where the instance does not fit the dataset. The
    options say how the append job reads these rows.

    Raises
    ------
    Conflict
        The dataset is not ready.
    """
    if dataset.state != "ready":
        raise Conflict(f"the dataset is {dataset.state}; rows can be appended to a ready one")
    assert dataset.path is not None
    corpus = open_corpus(files(), dataset.path)
    label = _LABEL
    while corpus.columns is not None and label in (*corpus.columns.numbers, *corpus.columns.categories):
        label += "_"
    options = {name: field.default for name, field in NewRows.model_fields.items()}
    options |= {"format": "jsonl", "label_column": label}
    return _row_of(dataset, corpus, label), NewRows.model_validate(options | _columns(corpus))


def append_rows(
    session: Session,
    dataset: tables.Dataset,
    new: NewRows,
    rows: Sequence[Row],
    n_feedback: int,
    then: Callable[[tables.Job], None],
) -> Job:
    """Queue the job that appends rows to a dataset; parameters and errors as :func:`app.datasets.appending.append`."""
    upload = files().upload()
    try:
        for row in rows:
            upload.write(orjson.dumps(row) + b"\n")
        upload.finish()
        return append(session, dataset.id, new, upload, n_feedback, then)
    finally:
        upload.abort()


def _columns(corpus: Corpus) -> dict[str, Any]:
    """The options that rows of a table or of several columns of texts need."""
    columns = _columns_of(corpus)
    if columns is None:
        return {}
    return {
        "text_columns": columns.texts,
        "number_columns": columns.numbers,
        "category_columns": columns.categories,
        "missing": "keep" if columns.missing else "refuse",
    }


def _columns_of(corpus: Corpus) -> TableColumns | None:
    """The columns of a table, or of texts in several columns."""
    several = corpus.columns is not None and len(corpus.columns.texts) > 1
    return corpus.columns if corpus.kind == "table" or several else None


def _row_of(dataset: tables.Dataset, corpus: Corpus, label: str) -> Callable[[dict[str, Any], list[str]], Row | None]:
    sets = DatasetStatistics.model_validate(dataset.statistics).labels_per_row is not None
    form = "indices" if corpus.feature_names is None else "features"
    columns = _columns_of(corpus)
    form = "record" if columns is not None else "text" if corpus.kind == "text" else form

    def row_of(instance: dict[str, Any], labels: list[str]) -> Row | None:
        if form == "features" and "record" in instance:  # a record of numbers alone
            instance = {form: instance["record"]}
        if columns is not None and "text" in instance:  # of a model that reads them joined
            instance = {"record": dict.fromkeys(columns.texts) | {columns.texts[0]: instance["text"]}}
        if form not in instance or not (sets or len(labels) == 1):
            return None
        if columns is not None:
            record = instance["record"]
            kept = (*columns.texts, *columns.numbers, *columns.categories)
            instance = {name: record.get(name) for name in kept}
        return {label: labels if sets else labels[0], **instance}

    return row_of
