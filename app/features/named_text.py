"""Texts, alone or in tables, with the names of a vocabulary's concepts that occur in them.

The first columns are those of :mod:`app.features.text` or :mod:`app.features.tables`; behind them are the columns of
:mod:`app.features.concept_names`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack

from app.datasets.recipe_schemas import ColumnRecipe, TableColumns, TextRecipe
from app.features.base import Instance, Row
from app.features.concept_names import ConceptName, ConceptNames
from app.features.excerpts import Text
from app.features.tables import TableFeatures
from app.features.text import TextFeatures
from solvers.labels.name_block import NameBlock

# before the names of the arrays of the features without names
_TERMS = "text."


_Features = TypeVar("_Features", TextFeatures, TableFeatures)


class _WithNames(Generic[_Features]):
    """Features of texts, then the columns of concepts' names.

    Parameters
    ----------
    terms : TextFeatures or TableFeatures
    """

    def __init__(self, terms: _Features, names: ConceptNames) -> None:
        self._terms: _Features = terms
        self._names = names

    def with_names(self, names: Iterable[ConceptName], shown: Sequence[str]) -> Self:
        """The same terms with other names; parameters as of `fit`."""
        return type(self)(self._terms, _built(self._terms, names, shown))

    def matches(self, texts: Iterable[Text]) -> csr_matrix[np.float64]:
        """The columns behind the terms alone: shape (n_texts, n_features - n_terms)."""
        return self._names.matches(map(self._terms.split, texts))

    def block(self) -> NameBlock:
        """Where the names begin among the columns, and which names are alike."""
        return self._names.block(self._terms.n_features)

    @property
    def terms(self) -> _Features:
        """The features without the names."""
        return self._terms

    @property
    def text_recipe(self) -> TextRecipe:
        """The recipe of the texts."""
        return self._terms.text_recipe

    @property
    def columns(self) -> TableColumns | None:
        """As of the features without names."""
        return self._terms.columns

    @property
    def n_features(self) -> int:
        """Length of a row."""
        return self._terms.n_features + self._names.n_columns

    @property
    def n_given(self) -> int:
        """Columns of a record; of texts as many as rows have."""
        return self.n_features if self.columns is None else self._terms.n_given

    def names(self) -> list[str]:
        """The terms, then ``name of CONCEPT: hits`` and so on, then ``number of words``."""
        own: list[str] = self._terms.names() or [str(index) for index in range(self._terms.n_features)]
        return [*own, *self._names.names()]

    def named(self, index: int) -> str | int:
        """The term, or the name's column."""
        at = index - self._terms.n_features
        return self._terms.named(index) if at < 0 else self._names.named(at)

    def known_terms(self, indices: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """The terms of training texts, and names once each."""
        at = indices - self._terms.n_features
        known, of_terms = self._names.known(at), at < 0
        known[of_terms] = self._terms.known_terms(indices[of_terms])
        return known

    def text_language(self, instance: Instance) -> str | None:
        """As of the features without names."""
        return self._terms.text_language(instance)

    def language(self, *texts: str) -> str | None:
        """As of the features without names."""
        return self._terms.language(*texts)

    def spans(self, instance: Instance, indices: Collection[int]) -> dict[int, list[tuple[int, int]]]:
        """The places of terms and names in the instance's text: beginnings and ends, in characters."""
        first = self._terms.n_features
        found = self._terms.spans(instance, [index for index in indices if index < first])
        if named := [index - first for index in indices if index >= first]:
            of_names = self._names.spans(self._terms.texts_of(instance), named)
            found |= {at + first: places for at, places in of_names.items()}
        return found

    def params_json(self) -> dict[str, Any]:
        """Those of the features without names."""
        return self._terms.params_json()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Those of the terms, the words of names, the names, and how concepts are called."""
        return {f"{_TERMS}{name}": each for name, each in self._terms.arrays().items()} | self._names.arrays()

    def as_given(self, instance: Instance) -> dict[str, Any]:
        """As of the features without names."""
        return self._terms.as_given(instance)

    def row(self, instance: Instance) -> Row:
        """Indices and values of an instance; raises InstanceError if it is of another kind."""
        return self._joined(self._terms.row(instance), self._terms.texts_of(instance))

    def _joined(self, terms: Row, texts: Sequence[str]) -> Row:
        columns, found = self._names.row(texts)
        first = np.int32(self._terms.n_features)
        return np.concatenate([terms[0], columns + first]).astype(np.int32), np.concatenate([terms[1], found])

    def _beside(self, terms: csr_matrix[np.float64], texts: Iterable[Text]) -> csr_matrix[np.float64]:
        return csr_matrix(hstack([terms, self.matches(texts)], format="csr"))


class NamedTextFeatures(_WithNames[TextFeatures]):
    """Terms of texts, then the columns of concepts' names."""

    kind: ClassVar[str] = "named_text"

    @classmethod
    def fit(
        cls, texts: Iterable[str], params: TextRecipe, names: Iterable[ConceptName], shown: Sequence[str]
    ) -> tuple[NamedTextFeatures, csr_matrix[np.float64]]:
        """Learn terms from texts, and index names.

        Parameters
        ----------
        texts : iterable of str
            Read twice.
        shown : sequence of str
            One for each concept.

        Returns
        -------
        features : NamedTextFeatures
        X : csr_matrix, shape (n_texts, n_features), float64

        Raises
        ------
        FitError
            If no term is left.
        """
        terms, X = TextFeatures.fit(texts, params)
        features = cls(terms, _built(terms, names, shown))
        return features, features._beside(X, texts)

    @classmethod
    def from_arrays(cls, params: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> NamedTextFeatures:
        """The features whose `params_json` and `arrays` these are."""
        terms = TextFeatures.from_arrays(params, _of_terms(arrays))
        return cls(terms, ConceptNames.from_arrays(terms.text_recipe, terms.fields, arrays))

    def text_row(self, text: str) -> Row:
        """Indices (k,), increasing, and values (k,) of one text."""
        return self._joined(self._terms.text_row(text), self._terms.split(text))

    def transform(self, texts: Iterable[str]) -> csr_matrix[np.float64]:
        """Rows of texts, which are read twice: shape (n_texts, n_features)."""
        return self._beside(self._terms.transform(texts), texts)


class NamedTableFeatures(_WithNames[TableFeatures]):
    """Columns of a table with texts, then the columns of concepts' names."""

    kind: ClassVar[str] = "named_table"

    @classmethod
    def fit(
        cls,
        columns: TableColumns,
        column_names: Sequence[str],
        X: csr_matrix[np.float64],
        texts: Iterable[Text],
        recipe: ColumnRecipe,
        text_recipe: TextRecipe,
        names: Iterable[ConceptName],
        shown: Sequence[str],
    ) -> tuple[NamedTableFeatures, csr_matrix[np.float64]]:
        """Learn from training rows as :meth:`TableFeatures.fit`, and index names as :meth:`NamedTextFeatures.fit`."""
        terms, rows = TableFeatures.fit(columns, column_names, X, texts, recipe, text_recipe)
        features = cls(terms, _built(terms, names, shown))
        return features, features._beside(rows, texts)

    @classmethod
    def from_arrays(cls, params: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> NamedTableFeatures:
        """The features whose `params_json` and `arrays` these are."""
        terms = TableFeatures.from_arrays(params, _of_terms(arrays))
        return cls(terms, ConceptNames.from_arrays(terms.text_recipe, terms.fields, arrays))

    def weighed(self, vector_weight: float) -> NamedTableFeatures:
        """As of the table."""
        return NamedTableFeatures(self._terms.weighed(vector_weight), self._names)

    def transform(
        self,
        X: csr_matrix[np.float64],
        names: Sequence[str],
        texts: Iterable[Text] | None,
    ) -> csr_matrix[np.float64]:
        """As :meth:`TableFeatures.transform`; texts are read twice."""
        rows = self._terms.transform(X, names, texts)
        nothing = ("",) * max(1, len(self._terms.fields))
        return self._beside(rows, [nothing] * rows.shape[0] if texts is None else texts)


# features whose instances are records
OF_TABLES = (TableFeatures, NamedTableFeatures)


def _built(terms: TextFeatures | TableFeatures, names: Iterable[ConceptName], shown: Sequence[str]) -> ConceptNames:
    return ConceptNames.build(terms.text_recipe, terms.fields, names, shown)


def _of_terms(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    return {name.removeprefix(_TERMS): each for name, each in arrays.items() if name.startswith(_TERMS)}
