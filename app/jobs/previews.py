"""Previews the features of one row, with the recipe fitted on a sample of the training rows."""

import threading

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from app.datasets.import_options import with_language
from app.datasets.number_scaling import default_recipe
from app.datasets.recipe_schemas import ColumnRecipe
from app.datasets.rows import corpus_of, statistics
from app.errors import InvalidInput, Item, Unavailable
from app.features.base import Features, FitError
from app.features.columns import SparseFeatures
from app.features.scaled import ScaledFeatures
from app.features.tables import TableFeatures
from app.features.text import TextFeatures
from app.formats.labels import TRAIN
from app.jobs.schemas import MOST_HASHED, FeaturePreview, FeatureValue, PreviewRequest
from app.jobs.training_requests import check_columns
from app.models.rows import cells, matrix, texts_of
from app.store.corpus import Corpus

_MOST_ROWS, _FEWEST_ROWS = 2000, 20
# characters of the sample's texts, and numbers of its rows where none of them may be zero after scaling
_MOST_CHARACTERS, _MOST_CELLS = 2_000_000, 20_000_000
_LISTED = 200
# each takes a processor, and memory, while it answers: so many at a time in a process
MOST_AT_ONCE = 4
_places = threading.BoundedSemaphore(MOST_AT_ONCE)


def preview(session: Session, ref: str, request: PreviewRequest) -> FeaturePreview:
    """The features of a row.

    Raises
    ------
    NotFound
        No such dataset.
    Conflict
        It is not ready.
    InvalidInput
        It has no such row, or the recipe does not fit it, leaves no feature, or hashes terms into too many.
    Unavailable
        As many rows are previewed as may be at a time.
    """
    if not _places.acquire(blocking=False):
        raise Unavailable("Too many previews are running; retry in a few seconds.")
    try:
        corpus = corpus_of(session, ref)
        if corpus.texts is not None:
            recipe = with_language(request.text, statistics(session, ref))
            request = request.model_copy(update={"text": recipe})
        if request.columns is None:
            columns = default_recipe(corpus.kind, statistics(session, ref))
            request = request.model_copy(update={"columns": columns})
        return _preview(corpus, request)
    finally:
        _places.release()


def _preview(corpus: Corpus, request: PreviewRequest) -> FeaturePreview:
    check_columns(corpus.kind, request.columns)
    if request.row >= corpus.n_rows:
        raise InvalidInput(f"the dataset has the rows 0 to {corpus.n_rows - 1:,}; got row {request.row:,}")
    if (request.text.hash_features or 0) > MOST_HASHED:
        detail = f"a preview hashes terms into at most {MOST_HASHED:,} features"
        raise InvalidInput(detail, [Item(detail, "/text/hash_features")])
    rows = _sample(corpus)
    try:
        features = _fitted(corpus, rows, request)
    except FitError as error:
        raise InvalidInput(str(error)) from None
    row = matrix(corpus, features, np.array([request.row]))
    order = np.argsort(-np.abs(row.data), kind="stable")[:_LISTED].tolist()
    return FeaturePreview(
        row=request.row,
        n_fitted=len(rows),
        n_features=features.n_features,
        n_values=int(row.nnz),
        features=[
            FeatureValue(feature=features.named(int(row.indices[at])), value=float(row.data[at])) for at in order
        ],
    )


def _sample(corpus: Corpus) -> NDArray[np.int64]:
    """Training rows, drawn at random, as many as are fitted fast; ascending."""
    train = np.arange(corpus.n_rows) if corpus.split is None else np.flatnonzero(corpus.split == TRAIN)
    rows = np.random.default_rng(0).permutation(train)[:_MOST_ROWS]
    if corpus.X is not None:
        rows = rows[: max(_FEWEST_ROWS, _MOST_CELLS // corpus.X.shape[1])]
    if corpus.texts is not None:
        ends = np.cumsum([len(corpus.texts[row]) for row in rows.tolist()])
        rows = rows[: max(1, int(np.searchsorted(ends, _MOST_CHARACTERS, "right")))]
    return np.sort(rows)


def _fitted(corpus: Corpus, rows: NDArray[np.int64], request: PreviewRequest) -> Features:
    """The features that a job would make of such training rows; raises FitError where no term is left."""
    if corpus.columns is not None and (corpus.kind == "table" or request.text.fields):
        X, names = cells(corpus, rows)
        texts_of_columns = texts_of(corpus, rows, request.text)
        recipe = request.columns or ColumnRecipe()
        return TableFeatures.fit(corpus.columns, names, X, texts_of_columns, recipe, request.text)[0]
    texts = None if corpus.texts is None else [corpus.texts[row] for row in rows.tolist()]
    if corpus.X is None:
        assert texts is not None
        return TextFeatures.fit(texts, request.text)[0]
    n_features = int(corpus.X.shape[1])
    given = SparseFeatures(n_features, corpus.feature_names)
    return given if request.columns is None else ScaledFeatures.fit(given, corpus.X[rows], request.columns)[0]
