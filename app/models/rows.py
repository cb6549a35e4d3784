"""Rows of a dataset as a model reads them."""

from collections.abc import Iterator, Sequence
from itertools import starmap

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.datasets.recipe_schemas import OTHER_LANGUAGE, TextRecipe
from app.errors import InvalidInput
from app.features.base import Features, InstanceError
from app.features.columns import SparseFeatures
from app.features.named_text import OF_TABLES, NamedTextFeatures
from app.features.scaled import ScaledFeatures
from app.features.text import TextFeatures
from app.formats.table import Texts
from app.models.row_kinds import HELD
from app.store.corpus import Corpus


class ChosenTexts:
    """The texts of some rows, decoded one at a time, as often as asked for."""

    def __init__(self, texts: Sequence[str] | Texts, rows: NDArray[np.int64]) -> None:
        self._texts = texts
        self._rows = rows

    def __iter__(self) -> Iterator[str]:
        for row in self._rows.tolist():
            yield self._texts[row]


class ChosenFields:
    """The texts of each column of some rows, in the order of `names`, read one row at a time, as often as asked for.

    Raises
    ------
    InvalidInput
        The dataset has the columns' texts joined, or lacks a column.
    """

    def __init__(self, corpus: Corpus, names: Sequence[str], rows: NDArray[np.int64]) -> None:
        own = () if corpus.columns is None else corpus.columns.texts
        if corpus.texts is None or not corpus.texts.has_fields:
            raise InvalidInput(
                "the dataset does not keep its text columns apart: upload a file with several text columns again"
            )
        lacking = next((name for name in names if name not in own), None)
        if lacking is not None:
            raise InvalidInput(f"the dataset has no text column '{lacking}'; it has {', '.join(own)}")
        self._texts, self._rows = corpus.texts, rows
        self._order = [own.index(name) for name in names]

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        for row in self._rows.tolist():
            texts = self._texts.fields(row)
            yield tuple(texts[at] for at in self._order)


def columns_apart(corpus: Corpus) -> tuple[str, ...]:
    """The text columns, where rows have several."""
    return corpus.columns.texts if corpus.columns is not None and len(corpus.columns.texts) > 1 else ()


def texts_of(corpus: Corpus, rows: NDArray[np.int64], recipe: TextRecipe) -> ChosenTexts | ChosenFields | None:
    """The texts of some rows as :meth:`TextFeatures.fit` reads them by a recipe; raises InvalidInput."""
    if recipe.fields and (columns := columns_apart(corpus)):
        return ChosenFields(corpus, columns, rows)
    return None if corpus.texts is None else ChosenTexts(corpus.texts, rows)


def cells(corpus: Corpus, rows: NDArray[np.int64]) -> tuple[csr_matrix, list[str]]:
    """The numbers and levels of some rows with their names; of texts none."""
    if corpus.X is None:
        return csr_matrix((len(rows), 0)), []
    return corpus.X[rows], corpus.feature_names or []


def matrix(corpus: Corpus, features: Features, rows: NDArray[np.int64]) -> csr_matrix:
    """The features of some rows, shape (len(rows), n_features); raises InvalidInput where they do not fit."""
    held = corpus.texts
    texts = None if held is None else ChosenTexts(held, rows)
    if isinstance(features, (TextFeatures, NamedTextFeatures)):
        if texts is None or corpus.kind == "table":
            raise InvalidInput(f"the model reads texts, and the dataset holds {HELD[corpus.kind]}")
        return features.transform(texts)
    if isinstance(features, OF_TABLES):
        columns, fields = features.terms.columns, features.terms.has_fields
        of_texts = not (columns.numbers or columns.categories)
        if not (of_texts and corpus.kind == "text") and (corpus.X is None or corpus.feature_names is None):
            raise InvalidInput(f"the model reads the columns of a table, and the dataset holds {HELD[corpus.kind]}")
        reported = corpus.columns
        if reported is not None and set(reported.texts) != set(columns.texts):
            raise InvalidInput("the dataset does not fit the model: its text is made of other columns")
        given = ChosenFields(corpus, columns.texts, rows) if fields else texts
        try:
            return features.transform(*cells(corpus, rows), given)
        except InstanceError as error:
            raise InvalidInput(f"the dataset does not fit the model: {error}") from None
    if corpus.X is None or corpus.kind == "table" or not isinstance(features, (SparseFeatures, ScaledFeatures)):
        raise InvalidInput(f"the model reads numbers, and the dataset holds {HELD[corpus.kind]}")
    try:
        return features.transform(corpus.X[rows], corpus.feature_names)
    except InstanceError as error:
        raise InvalidInput(f"the dataset does not fit the model: {error}") from None


def text_languages(corpus: Corpus, features: Features, rows: NDArray[np.int64]) -> list[str] | None:
    """The language in which most of each row's text is read; None where languages have no terms of their own."""
    if not isinstance(features, (TextFeatures, NamedTextFeatures, *OF_TABLES)) or corpus.texts is None:
        return None
    read: Iterator[str | None]
    if isinstance(features, OF_TABLES) and features.terms.has_fields:
        read = starmap(features.language, ChosenFields(corpus, features.terms.columns.texts, rows))
    else:
        read = map(features.language, ChosenTexts(corpus.texts, rows))
    first = next(read, None)
    return None if first is None else [first, *(language or OTHER_LANGUAGE for language in read)]
