"""The training rows of a label that are the most like an instance: what an answer rests on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session, defer

from app.datasets import rows as dataset_rows
from app.datasets import versions as dataset_versions
from app.errors import InvalidInput, Item, NotFound
from app.features.base import InstanceError
from app.models import service as models
from app.models.rows import matrix
from app.models.warm_starts import saved_split
from app.predictions.inspection_schemas import NearestRequest, NearestRows, NearRow
from app.predictions.model_cache import LoadedModel
from app.predictions.service import read_row
from app.store import tables
from app.store.corpus import Corpus, open_corpus
from app.store.db import reading
from app.store.files import files

MOST_COMPARED = 20_000
_AT_ONCE = 2_000
_TRAIN = 0


def nearest(session: Session, loaded: LoadedModel, request: NearestRequest) -> NearestRows:
    """The nearest of them.

    Raises
    ------
    InvalidInput
        The model cannot take the instance.
    NotFound
        The dataset was deleted, or no row of it has the label.
    """
    given: Any = request.instance
    try:
        row = read_row(loaded, given)
    except InstanceError as error:
        raise InvalidInput("The instance does not fit the model.", [Item(str(error), "/instance")]) from None
    label = request.label or loaded.model.classes[int(loaded.model.top(*row, 1)[0][0])]
    name, corpus, split = _trained_on(session, loaded)
    rows = _with_label(corpus, label)
    if split is not None:
        rows = rows[split[rows] == _TRAIN]
    if len(rows) == 0:
        raise NotFound(f"no training row of the dataset {name!r} has the label {label!r:.80}")
    compared = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_COMPARED)).astype(np.int64))]
    similarity = _cosines(loaded, corpus, compared, row)
    best = np.argsort(-similarity, kind="stable")[: request.limit].tolist()
    return NearestRows(
        model=loaded.version.model,
        version=loaded.version.version,
        label=label,
        dataset=name,
        n_rows=len(rows),
        n_compared=len(compared),
        rows=[_near(corpus, int(compared[at]), float(similarity[at])) for at in best],
    )


def _trained_on(session: Session, loaded: LoadedModel) -> tuple[str, Corpus, NDArray[np.int8] | None]:
    """The dataset's name, its rows, and which part each is of, where that is known."""
    version = loaded.version
    with reading(session):
        row = None
        if version.dataset is not None:
            row = session.get(tables.Dataset, version.dataset, options=[defer(tables.Dataset.statistics)])
        found = None if row is None else dataset_versions.find(session, row.id, version.request.get("dataset_version"))
    if row is None or found is None:
        raise NotFound(f"the dataset that version {version.version} was trained on was deleted")
    corpus = open_corpus(files(), found.path)
    kept = saved_split(files(), models.folder(session, version.id))
    split = corpus.split if kept is None else kept
    return row.name, corpus, None if split is None or len(split) != corpus.n_rows else np.asarray(split)


def _with_label(corpus: Corpus, label: str) -> NDArray[np.int64]:
    if label not in corpus.labels:
        return np.empty(0, np.int64)
    held = np.flatnonzero(np.asarray(corpus.y) == list(corpus.labels).index(label))
    if corpus.label_indptr is None:
        return held
    return np.unique(np.searchsorted(np.asarray(corpus.label_indptr), held, side="right") - 1)


def _cosines(loaded: LoadedModel, corpus: Corpus, rows: NDArray[np.int64], row: tuple[Any, Any]) -> NDArray[np.float64]:
    """Of rows of the dataset with one row; 0 for one without a feature."""
    direction = np.zeros(loaded.features.n_features)
    direction[row[0]] = row[1]
    direction /= max(float(np.linalg.norm(direction)), np.finfo(float).tiny)
    found = []
    for begin in range(0, len(rows), _AT_ONCE):
        X = matrix(corpus, loaded.features, rows[begin : begin + _AT_ONCE])
        lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        found.append((X @ direction) / np.maximum(lengths, np.finfo(float).tiny))
    return np.concatenate(found)


def _near(corpus: Corpus, row: int, similarity: float) -> NearRow:
    return NearRow(row=row, similarity=similarity, labels=corpus.names(row), **dataset_rows.content(corpus, row))
