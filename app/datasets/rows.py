"""Rows of datasets for display, and their statistics."""

from functools import lru_cache
from typing import Any

from sqlalchemy.orm import Session

from app.datasets.schemas import DatasetRow, DatasetRows
from app.datasets.statistics_schemas import DatasetStatistics, Languages
from app.datasets.versions import require_ready
from app.formats.labels import PARTS
from app.store import tables
from app.store.corpus import MOST_LISTED, ClassCounts, Corpus, open_corpus
from app.store.db import reading
from app.store.files import files
from app.store.languages import languages
from app.store.lookup import by_ref, check_range

MAX_ROWS = 1000
MAX_WHOLE_ROWS = 20
_TEXT = 500
_FEATURES = 50
_LABELS = 50


def statistics(session: Session, ref: str, offset: int = 0, limit: int = MOST_LISTED) -> DatasetStatistics:
    """Statistics of a ready dataset, with the classes ``offset`` to ``offset + limit``.

    Raises
    ------
    NotFound
        The dataset does not exist.
    Conflict
        It is not ready.
    """
    with reading(session):
        row = _ready(session, ref)
    found = version_statistics(row)
    if min(offset + limit, found.n_classes) <= len(found.classes):
        found.classes = found.classes[offset : offset + limit]
    else:
        assert row.path is not None
        found.classes = ClassCounts.from_rows(open_corpus(files(), row.path)).listed(offset, offset + limit)
    found.test_only_labels = found.test_only_labels[:MOST_LISTED]
    return found


def version_statistics(row: tables.DatasetVersion | tables.Dataset) -> DatasetStatistics:
    """Statistics of the rows of a version, or of a dataset's newest one, with the languages of its texts."""
    found = DatasetStatistics.model_validate(row.statistics)
    if row.path is None or found.languages is not None:
        return found
    return found.model_copy(update={"languages": languages_at(row.path)})


@lru_cache(maxsize=1024)
def languages_at(path: str) -> Languages | None:
    """The languages of the texts in a corpus, of which earlier releases have stored none; None if they have none."""
    texts = open_corpus(files(), path).texts
    return None if texts is None else languages(texts)


def class_counts(row: tables.DatasetVersion) -> ClassCounts:
    """Number of rows of a version with each label."""
    found = DatasetStatistics.model_validate(row.statistics)
    if len(found.classes) == found.n_classes:
        return ClassCounts.of_listed(found.classes)
    return ClassCounts.from_rows(open_corpus(files(), row.path))


def rows(session: Session, ref: str, offset: int = 0, limit: int = 20, whole: bool = False) -> DatasetRows:
    """Rows ``offset`` to ``offset + limit``, shortened, or the first of them in full.

    Raises NotFound, Conflict and InvalidInput.
    """
    check_range(offset, limit, MAX_ROWS)
    limit = min(limit, MAX_WHOLE_ROWS) if whole else limit
    corpus = corpus_of(session, ref)
    return DatasetRows(
        rows=[
            DatasetRow(
                row=i,
                label=corpus.names(i)[0] if corpus.label_indptr is None else None,
                labels=None if corpus.label_indptr is None else corpus.names(i, None if whole else _LABELS),
                split=None if corpus.split is None else PARTS[corpus.split[i]],
                weight=None if corpus.weights is None else float(corpus.weights[i]),
                **content(corpus, i, whole),
                id=None if corpus.ids is None else corpus.ids[i],
            )
            for i in range(offset, min(offset + limit, corpus.n_rows))
        ],
        n_rows=corpus.n_rows,
    )


def corpus_of(session: Session, ref: str) -> Corpus:
    """All rows of a dataset's newest version; raises NotFound and Conflict as :func:`statistics` does."""
    with reading(session):
        path = _ready(session, ref).path
    assert path is not None
    return open_corpus(files(), path)


def content(corpus: Corpus, row: int, whole: bool = False) -> dict[str, Any]:
    """A row's text and features, shortened unless ``whole``."""
    text = None if corpus.texts is None else corpus.texts[row]
    text = text if text is None or whole else text[:_TEXT]
    n_features = None if whole else _FEATURES
    has_record = corpus.kind == "table" or (corpus.columns is not None and len(corpus.columns.texts) > 1)
    return {
        "text": text,
        "features": corpus.features(row, n_features) if corpus.kind == "sparse" else None,
        "record": _record(corpus, row, text, n_features) if has_record else None,
    }


def _record(corpus: Corpus, row: int, text: str | None, limit: int | None) -> dict[str, float | str | None]:
    """A row of a table as a record, with up to ``limit`` numbers and categories."""
    record = corpus.record(row, limit)
    texts = () if corpus.columns is None else corpus.columns.texts
    if text is not None and len(texts) == 1:
        record = {texts[0]: text, **record}
    elif corpus.texts is not None and corpus.texts.has_fields:  # earlier versions joined them for good
        shown = None if limit is None else _TEXT
        fields = zip(texts, corpus.texts.fields(row), strict=True)
        record = {**{name: each[:shown] for name, each in fields}, **record}
    return record


def _ready(session: Session, ref: str) -> tables.Dataset:
    row = by_ref(session, tables.Dataset, ref)
    require_ready(row)
    return row
