"""Texts of several columns, each with a weight of its own: title, abstract, keywords.

The columns have their terms in common, so that what a word in a title says is learnt from abstracts, too. A row is
scaled to length 1: the sum over the columns f of w_f x_f, where x_f are the weights of column f's terms, of length 1
as :mod:`app.features.text` makes them. A title of five words counts as much as an abstract of five hundred.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from app.datasets.recipe_schemas import FieldRecipe, TextRecipe
from app.features.by_language import main_language
from app.features.text import TextFeatures


class FieldFeatures:
    """Terms of the texts of several columns with their fitted weights.

    Parameters
    ----------
    names : sequence of str
        Of the columns, in the order of a row's texts.
    text : TextFeatures
        Of all columns; its params have the columns' recipes.
    """

    def __init__(self, names: Sequence[str], text: TextFeatures) -> None:
        self._text = text
        self._own = _own(names, text.params)
        self._columns = [text.columns_by(text.params.of_field(name)) for name in names]

    @classmethod
    def fit(
        cls, names: Sequence[str], texts: Iterable[Sequence[str]], recipe: TextRecipe
    ) -> tuple[FieldFeatures, csr_matrix[np.float64]]:
        """Learn terms and their weights.

        Parameters
        ----------
        names : sequence of str
            Of the columns.
        texts : iterable of sequence of str
            Of each row a text for each column; read once for each column.
        recipe : TextRecipe
            Columns that are not among its `fields` have the weight 1.

        Raises
        ------
        FitError
            If no term is left.
        """
        own = _own(names, recipe)
        text, rows = TextFeatures.fit_fields({name: _column(texts, at) for at, name in enumerate(names)}, recipe)
        return cls(names, text), _summed(rows, own)

    @classmethod
    def rows_by(
        cls, names: Sequence[str], texts: Iterable[Sequence[str]], recipes: Sequence[TextRecipe]
    ) -> list[csr_matrix[np.float64]]:
        """The rows that each of several recipes makes, which differ in nothing but the weights of fields.

        Parameters are those of :meth:`fit`, and so are the errors; texts are read as often as by one fit.
        """
        _, rows = TextFeatures.fit_fields({name: _column(texts, at) for at, name in enumerate(names)}, recipes[0])
        return [_summed(rows, _own(names, recipe)) for recipe in recipes]

    @property
    def n_features(self) -> int:
        """Number of terms, or of what they are hashed into."""
        return self._text.n_features

    def named(self, index: int) -> str | int:
        """The term; the feature's index where terms are hashed."""
        return self._text.named(index)

    def known_terms(self, indices: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """As of one text."""
        return self._text.known_terms(indices)

    def language(self, *texts: str) -> str | None:
        """The language of most of a row's texts, where languages have terms of their own."""
        languages = tuple(self.params.by_language)
        if not languages:
            return None
        return main_language(
            [columns.read(text) for text, columns in zip(texts, self._columns, strict=True)], languages
        )

    def spans(self, texts: Sequence[str], indices: Collection[int]) -> dict[int, list[tuple[int, int]]]:
        """Where terms occur in a row's texts, when those that are not empty are joined by line breaks."""
        found: dict[int, list[tuple[int, int]]] = {}
        begin = 0
        for text, columns in zip(texts, self._columns, strict=True):
            for index, spans in self._text.spans_by(text, indices, columns).items():
                found.setdefault(index, []).extend((start + begin, end + begin) for start, end in spans)
            begin += len(text) + 1 if text else 0
        return found

    @property
    def params(self) -> TextRecipe:
        """The recipe, with those of the columns."""
        return self._text.params

    def params_json(self) -> dict[str, Any]:
        """Those of the terms."""
        return self._text.params_json()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Those of the terms."""
        return self._text.arrays()

    def transform(self, texts: Iterable[Sequence[str]]) -> csr_matrix[np.float64]:
        """Rows of texts, shape (n_rows, n_features); read once for each column."""
        rows = [self._text.transform_by(_column(texts, at), columns) for at, columns in enumerate(self._columns)]
        return _summed(rows, self._own)


def _own(names: Sequence[str], recipe: TextRecipe) -> list[FieldRecipe]:
    return [recipe.field(name) for name in names]


def _column(texts: Iterable[Sequence[str]], at: int) -> Iterator[str]:
    return (row[at] for row in texts)


def _summed(rows: Sequence[csr_matrix[np.float64]], own: Sequence[FieldRecipe]) -> csr_matrix[np.float64]:
    """The weighted sum of the columns' rows, scaled to length 1."""
    weighed = [each.weight * X for each, X in zip(own, rows, strict=True)]
    X = csr_matrix(sum(weighed[1:], weighed[0]))
    X.sort_indices()
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    squares = np.bincount(row, X.data**2, minlength=X.shape[0])
    X.data /= np.sqrt(np.where(squares > 0.0, squares, 1.0))[row]
    return X
