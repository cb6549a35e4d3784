"""Instances with their labels as rows of JSON lines, which are appended to a dataset as any other file."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

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
_LABEL, _ID = "label", "id"
# per job: their ids are in one statement
MOST_ROWS = 10_000


class MakeRow(Protocol):
    """Makes a row of an instance, its labels and perhaps its id; None where the instance does not fit the dataset."""

    def __call__(self, instance: dict[str, Any], labels: list[str], id: str | None = None) -> Row | None: ...


def rows_for(dataset: tables.Dataset) -> tuple[MakeRow, NewRows]:
    """Return what makes rows of a dataset, and the options with which the append job reads these rows.

    Raises
    ------
    Conflict
        The dataset is not ready.
    """
    if dataset.state != "ready":
        raise Conflict(f"the dataset is {dataset.state}; rows can be appended to a ready one")
    assert dataset.path is not None
    corpus = open_corpus(files(), dataset.path)
    columns = corpus.columns
    taken = () if columns is None else (*columns.texts, *columns.numbers, *columns.categories)
    label, id_key = (_free(name, taken) for name in (_LABEL, _ID))
    options = {name: field.default for name, field in NewRows.model_fields.items()}
    options |= {"format": "jsonl", "label_column": label, "id_column": id_key}
    return _row_of(dataset, corpus, label, id_key), NewRows.model_validate(options | _columns(corpus))


def append_rows(
    session: Session,
    dataset: tables.Dataset,
    new: NewRows,
    rows: Sequence[Row],
    n_feedback: int,
    then: Callable[[tables.Job], None],
    corrects: bool = False,
) -> Job:
    """Queue the job that appends rows to a dataset; parameters and errors as :func:`app.datasets.appending.append`."""
    upload = files().upload()
    try:
        for row in rows:
            upload.write(orjson.dumps(row) + b"\n")
        upload.finish()
        return append(session, dataset.id, new, upload, n_feedback, then, corrects)
    finally:
        upload.abort()


def _free(name: str, taken: Collection[str]) -> str:
    """The name, or with underscores behind it one that no column has."""
    while name in taken:
        name += "_"
    return name


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


def _row_of(dataset: tables.Dataset, corpus: Corpus, label: str, id_key: str) -> MakeRow:
    sets = DatasetStatistics.model_validate(dataset.statistics).labels_per_row is not None
    form = "indices" if corpus.feature_names is None else "features"
    columns = _columns_of(corpus)
    form = "record" if columns is not None else "text" if corpus.kind == "text" else form

    def row_of(instance: dict[str, Any], labels: list[str], id: str | None = None) -> Row | None:
        if form == "features" and "record" in instance:  # a record of numbers alone
            instance = {form: instance["record"]}
        if columns is not None and columns.texts and "text" in instance:  # joined, perhaps beside the other columns
            record = instance.get("record", {})
            if record.keys().isdisjoint(columns.texts):
                record = record | dict.fromkeys(columns.texts) | {columns.texts[0]: instance["text"]}
            instance = {"record": record}
        if form not in instance or not (sets or len(labels) == 1):
            return None
        if columns is not None:
            record = instance["record"]
            kept = (*columns.texts, *columns.numbers, *columns.categories)
            instance = {name: record.get(name) for name in kept}
        return {label: labels if sets else labels[0], **({id_key: id} if id else {}), **instance}

    return row_of
