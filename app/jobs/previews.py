"""Previews the features of one row, with the recipe fitted on a sample of the training rows."""

import threading
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from app.datasets.import_options import with_language
from app.datasets.number_scaling import default_recipe
from app.datasets.recipe_schemas import ColumnRecipe, TextRecipe
from app.datasets.rows import corpus_of, statistics
from app.errors import InvalidInput, Item, Unavailable
from app.features.base import Features, FitError
from app.features.cleaning import Cleaned
from app.features.columns import SparseFeatures
from app.features.excerpts import split_text
from app.features.scaled import ScaledFeatures
from app.features.tables import TableFeatures
from app.features.text import TextFeatures, fields_of
from app.formats.labels import TRAIN
from app.jobs.plan_schemas import MOST_HASHED, CleaningPreview, FeaturePreview, FeatureValue, PreviewRequest
from app.jobs.training_requests import check_columns
from app.models.rows import cells, columns_apart, matrix, texts_of
from app.store.corpus import Corpus

_MOST_ROWS, _FEWEST_ROWS = 2000, 20
# characters of the sample's texts, and numbers of its rows where none of them may be zero after scaling
_MOST_CHARACTERS, _MOST_CELLS = 2_000_000, 20_000_000
_LISTED = 200
# characters that are shown of a cleaned text, of those before its first change, and of the text as it was
_MOST_SHOWN, _SHOWN_UNCHANGED, _MOST_UNCLEANED = 500, 80, 2000
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
    if request.text.fields == "auto":
        # a preview is fitted on too few rows to choose weights
        request = request.model_copy(update={"text": request.text.model_copy(update={"fields": {}})})
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
        cleaning=_cleaning(corpus, rows, request),
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
    if corpus.columns is not None and (corpus.kind == "table" or (request.text.fields and columns_apart(corpus))):
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


def _cleaning(corpus: Corpus, rows: NDArray[np.int64], request: PreviewRequest) -> CleaningPreview | None:
    """What cleaning changes in these rows and in the one that is asked for; None where nothing is to be cleaned."""
    recipe = request.text
    if corpus.texts is None or not (recipe.clean or any(own.clean for own in recipe.own_fields.values())):
        return None
    changes: Counter[str] = Counter()
    n_changed = before = after = 0
    for row in _cleaned(corpus, rows, recipe):
        n_changed += any(text != cleaned.text for text, cleaned in row)
        for text, cleaned in row:
            before, after = before + len(text), after + len(cleaned.text)
            changes += cleaned.counts()
    (asked,) = _cleaned(corpus, np.array([request.row]), recipe)
    shown = next((_around_first_change(*each) for each in asked if each[0] != each[1].text), (None, None))
    return CleaningPreview(
        n_texts=len(rows),
        n_changed=n_changed,
        characters_before=before,
        characters_after=after,
        changes=dict(changes.most_common()),
        before=shown[0],
        after=shown[1],
    )


def _cleaned(corpus: Corpus, rows: NDArray[np.int64], recipe: TextRecipe) -> Iterator[list[tuple[str, Cleaned]]]:
    """The texts of each row, before and after cleaning: one, or those of the columns that the recipe keeps apart."""
    texts = texts_of(corpus, rows, recipe)
    assert texts is not None
    fields = fields_of(recipe, columns_apart(corpus))
    sources = [recipe.of_field(name).clean for name in fields] or [recipe.clean]
    for row in texts:
        yield [(text, Cleaned(text, each)) for text, each in zip(split_text(row, fields), sources, strict=True)]


def _around_first_change(text: str, cleaned: Cleaned) -> tuple[str, str]:
    """A part of a text, and what cleaning leaves of it; from the beginning where nothing is left."""
    if not cleaned.text:
        return text[:_MOST_UNCLEANED], ""
    same = next((at for at, (a, b) in enumerate(zip(text, cleaned.text, strict=False)) if a != b), len(cleaned.text))
    begin = max(0, min(same - _SHOWN_UNCHANGED, len(cleaned.text) - 1))
    after = cleaned.text[begin : begin + _MOST_SHOWN]
    first, last = cleaned.place(begin, begin + len(after))
    # what is removed at either end of the text has no place in what is left
    if begin == 0:
        first = max(0, first - _SHOWN_UNCHANGED)
    if begin + len(after) == len(cleaned.text):
        last = min(len(text), last + _SHOWN_UNCHANGED)
    return text[first : min(last, first + _MOST_UNCLEANED)], after
