"""Features of tables: numbers, categories and texts side by side, learnt from the training part."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack

from app.datasets.recipe_schemas import ColumnRecipe, TableColumns, TextRecipe
from app.features.base import Instance, InstanceError, Row
from app.features.excerpts import Text
from app.features.levels import CategoryLevels
from app.features.names import found_as, list_numbers, list_widths, shorten, unrolled
from app.features.scaling import NumberScaling
from app.features.text import TextFeatures
from app.plurals import counted
from app.values import ColumnType, canonical, column_type, written

_TEXT = "text."


class TableFeatures:
    """Rows are the scaled numbers and their marks, the levels of categories, and the terms of the text.

    An instance is `{"record": {column: value}}`; what it lacks, or has as null, is missing. A column of lists has a
    list there, as in the file, or each of its elements by its name, as `v.0`.
    """

    kind: ClassVar[str] = "table"

    def __init__(
        self,
        columns: TableColumns,
        recipe: ColumnRecipe,
        scaling: NumberScaling,
        levels: CategoryLevels,
        text: TextFeatures | None,
    ) -> None:
        self._columns, self._recipe, self._scaling, self._levels, self._text = columns, recipe, scaling, levels, text
        self._known = {*columns.texts, *columns.numbers, *columns.categories, *columns.left_out}
        self._lists = list_widths(columns.numbers)

    @classmethod
    def fit(
        cls,
        columns: TableColumns,
        names: Sequence[str],
        X: csr_matrix[np.float64],
        texts: Iterable[Text] | None,
        recipe: ColumnRecipe,
        text_recipe: TextRecipe,
    ) -> tuple[TableFeatures, csr_matrix[np.float64]]:
        """Learn from training rows, and make features of them.

        Parameters
        ----------
        names : sequence of str
            Of the columns of X.
        X : csr_matrix, shape (n, n_columns)
            Numbers, NaN where one is missing, and then a 1 for the level of each category.
        texts : iterable of str, or None
            Where the recipe has fields, of sequences of str: of each row a text for each of `columns.texts`.

        Raises
        ------
        FitError
            No term of the texts is left.
        """
        n_numbers = len(columns.numbers)
        columns = columns.model_copy(update={"types": _types(columns, names[n_numbers:])})
        names = [*names[:n_numbers], *_canonical(columns, names[n_numbers:])]
        scaling = NumberScaling.fit(X[:, :n_numbers], recipe, list_numbers(columns.numbers))
        levels = CategoryLevels.fit(columns.categories, names[n_numbers:], X[:, n_numbers:], recipe.min_level_rows)
        text, terms = None, None
        if texts is not None:
            text, terms = TextFeatures.fit(texts, text_recipe, _apart(columns))
        features = cls(columns, recipe, scaling, levels, text)
        return features, features._beside(X, names, terms)

    @classmethod
    def from_arrays(cls, params: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> TableFeatures:
        """The features whose `params_json` and `arrays` these are."""
        columns = TableColumns.model_validate(params["columns"])
        recipe = ColumnRecipe.model_validate(params["recipe"])
        text: TextFeatures | None = None
        if params["text"] is not None:
            of_text = {name.removeprefix(_TEXT): array for name, array in arrays.items() if name.startswith(_TEXT)}
            text = TextFeatures.from_arrays(params["text"], of_text, _apart(columns))
        scaling = NumberScaling.from_arrays(recipe, arrays, list_numbers(columns.numbers))
        return cls(columns, recipe, scaling, CategoryLevels.from_arrays(columns.categories, arrays), text)

    @property
    def terms(self) -> TableFeatures:
        """These, which have no columns of names beside them."""
        return self

    @property
    def n_features(self) -> int:
        """Length of a row."""
        return self._first_term + (0 if self._text is None else self._text.n_features)

    @property
    def n_given(self) -> int:
        """How many columns a record has."""
        columns = self._columns
        return len(columns.texts) + len(columns.numbers) + len(columns.categories)

    @property
    def columns(self) -> TableColumns:
        """What a record has."""
        return self._columns

    @property
    def vectors(self) -> npt.NDArray[np.int64]:
        """The features that are elements of lists with a weight of their own; int64, ascending."""
        return self._scaling.vectors

    @property
    def vector_weight(self) -> float | Literal["auto"] | None:
        """The weight of lists."""
        return self._recipe.vector_weight

    def weighed(self, vector_weight: float) -> TableFeatures:
        """The same features with another weight of lists."""
        recipe = self._recipe.model_copy(update={"vector_weight": vector_weight})
        return TableFeatures(self._columns, recipe, self._scaling.weighed(recipe), self._levels, self._text)

    @property
    def has_fields(self) -> bool:
        """Whether columns of texts have features of their own."""
        return bool(self.fields) and len(self._columns.texts) > 1

    @property
    def text_recipe(self) -> TextRecipe:
        """Of the texts, where there are any."""
        assert self._text is not None
        return self._text.params

    @property
    def fields(self) -> tuple[str, ...]:
        """The columns of texts that have features of their own, or title and body of one; none where texts are one."""
        return () if self._text is None else self._text.fields

    def texts_of(self, instance: Instance) -> tuple[str, ...]:
        """The texts of a record's `fields`, or all of them as one."""
        return self.split(self._text_of(self._record(instance)))

    def split(self, text: Text) -> tuple[str, ...]:
        """The texts of a row's `fields`, or its one text."""
        return (text if isinstance(text, str) else "",) if self._text is None else self._text.split(text)

    def _text_of(self, record: Mapping[str, Any]) -> Text:
        texts = self._texts(record)
        return texts if self.has_fields else "\n".join(filter(None, texts))

    @property
    def _first_term(self) -> int:
        return self._scaling.n_features + self._levels.n_features

    def names(self) -> list[str] | None:
        """Name of each feature: column, ``column (missing)``, ``column=level``, ``column of texts: term``."""
        numbers = self._columns.numbers
        marks = [f"{numbers[at]} (missing)" for at in np.flatnonzero(self._scaling.marked)]
        terms = range(self._first_term, self.n_features)
        return [*numbers, *marks, *self._levels.names(), *(str(self.named(index)) for index in terms)]

    def named(self, index: int) -> str | int:
        """The name of one feature."""
        numbers = self._columns.numbers
        if index < len(numbers):
            return numbers[index]
        if index < self._scaling.n_features:
            return f"{numbers[np.flatnonzero(self._scaling.marked)[index - len(numbers)]]} (missing)"
        if index < self._first_term:
            return self._levels.names()[index - self._scaling.n_features]
        assert self._text is not None
        return f"{'+'.join(self._columns.texts)}: {self._text.named(index - self._first_term)}"

    def known_terms(self, indices: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_] | None:
        """Of the text."""
        if self._text is None:
            return None
        known = np.asarray(indices >= self._first_term)
        known[known] = self._text.known_terms(indices[known] - self._first_term)
        return known

    def text_language(self, instance: Instance) -> str | None:
        """Of the record's texts."""
        has_languages = self._text is not None and self._text.params.by_language
        return self.language(*self.texts_of(instance)) if has_languages else None

    def language(self, *texts: str) -> str | None:
        """Of the texts of a row's `fields`, or of all as one."""
        return None if self._text is None else self._text.language(*texts)

    def spans(self, instance: Instance, indices: Collection[int]) -> dict[int, list[tuple[int, int]]]:
        """Where terms occur in the record's text; several texts count as one, joined by line breaks."""
        if self._text is None:
            return {}
        first = self._first_term
        wanted = [index - first for index in indices if index >= first]
        found = self._text.spans_in(self.texts_of(instance), wanted)
        return {index + first: spans for index, spans in found.items()}

    def params_json(self) -> dict[str, Any]:
        """The columns and both recipes."""
        return {
            "columns": self._columns.model_dump(mode="json"),
            "recipe": self._recipe.model_dump(mode="json"),
            "text": None if self._text is None else self._text.params_json(),
        }

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What numbers, categories and, with ``text.`` before their names, texts have learnt."""
        text = {} if self._text is None else self._text.arrays()
        return self._scaling.arrays() | self._levels.arrays() | {f"{_TEXT}{name}": each for name, each in text.items()}

    def as_given(self, instance: Instance) -> dict[str, Any]:
        """The record."""
        return {"record": dict(self._record(instance))}

    def row(self, instance: Instance) -> Row:
        """Indices (k,), increasing, and values (k,) of one record.

        Raises
        ------
        InstanceError
            It is no record, has a column that is not known or a value that does not fit, or lacks a number or a
            category that no row of the dataset might lack.
        """
        record = self._record(instance)
        numbers = np.array([self._number(record.get(name), name) for name in self._columns.numbers], dtype=np.float64)
        levels = [f"{name}={self._level(record.get(name), name)}" for name in self._columns.categories]
        X = csr_matrix(np.concatenate([numbers, np.ones(len(levels))])[None, :])
        terms = None if self._text is None else self._text.transform([self._text_of(record)])
        made = self._beside(X, [*self._columns.numbers, *levels], terms)
        return made.indices, made.data

    def unknown(self, instance: Instance) -> list[str]:
        """The levels of a record, `column=level`, that no training row has."""
        record = self._record(instance)
        return self._levels.unknown(
            [f"{name}={self._level(record.get(name), name)}" for name in self._columns.categories]
        )

    def unknown_levels(self, X: csr_matrix[np.float64], names: Sequence[str]) -> list[list[str]]:
        """As :meth:`unknown`, of each row of a dataset; X and names as for :meth:`transform`."""
        X, names = self._with_levels(X, self._in_own_form(names))
        levelled = set(self._columns.categories)
        forms = self._forms([name if name.partition("=")[0] in levelled else "" for name in names])
        unknown = set(self._levels.unknown(forms)) - {""}
        if not unknown:
            return [[] for _ in range(X.shape[0])]
        is_unknown = np.array([form in unknown for form in forms])
        rows = np.split(X.indices, X.indptr[1:-1])
        return [[forms[at] for at in row[is_unknown[row]].tolist()] for row in rows]

    def transform(
        self,
        X: csr_matrix[np.float64],
        names: Sequence[str],
        texts: Iterable[Text] | None,
    ) -> csr_matrix[np.float64]:
        """Rows of a dataset of the same columns, shape (n, n_features).

        Parameters
        ----------
        X : csr_matrix
            As for `fit`, of columns with these names, in any order.
        texts : iterable of str, or None

        Raises
        ------
        InstanceError
            A number is missing that might not be, or the dataset lacks a column, or has numbers where this model reads
            texts or dates as categories.
        """
        X, names = self._with_levels(X, self._in_own_form(names))
        place = {name: at for at, name in enumerate(names)}
        lacking = [name for name in self._columns.numbers if name not in place]
        levelled = {name.partition("=")[0] for name in names}
        lacking += [name for name in self._columns.categories if name not in levelled]
        if lacking:
            raise InstanceError(f"the data lacks {counted(len(lacking), 'column')}, such as '{shorten(lacking[0])}'")
        first = set(self._columns.numbers)
        order = [place[name] for name in self._columns.numbers]
        categories = set(self._columns.categories)
        rest = [at for at, name in enumerate(names) if name not in first and name.partition("=")[0] in categories]
        ordered = csr_matrix(X[:, order + rest])
        if not self._columns.missing and np.isnan(ordered.data).any():
            raise InstanceError("a number is missing, but the training dataset had no missing numbers")
        terms = None
        if self._text is not None:
            nothing: Text = [""] * len(self._columns.texts) if self.has_fields else ""
            terms = self._text.transform(texts or [nothing] * X.shape[0])
        return self._beside(ordered, self._forms([names[at] for at in order + rest]), terms)

    def _in_own_form(self, names: Sequence[str]) -> list[str]:
        """A dataset's names, of which those of columns are as this model has them."""
        columns = {name if name in self._known else name.partition("=")[0] for name in names}
        own = found_as(columns, self._known)
        found = []
        for name in names:
            column, mark, level = name.partition("=")
            found.append(own[name] if name in own else f"{own[column]}{mark}{level}")
        return found

    def _with_levels(
        self, X: csr_matrix[np.float64], names: Sequence[str]
    ) -> tuple[csr_matrix[np.float64], Sequence[str]]:
        """The columns of numbers that are categories here as a column for each level, beside the others."""
        categories = set(self._columns.categories)
        as_numbers = [at for at, name in enumerate(names) if name in categories]
        if not as_numbers:
            return X, names
        others = [at for at, name in enumerate(names) if name not in categories]
        parts, found = [csr_matrix(X[:, others])], [names[at] for at in others]
        for at in as_numbers:
            name = names[at]
            if self._columns.types.get(name) not in ("boolean", "number"):
                # 007 has come as 7
                detail = "the model reads categories of text, and the data has numbers: upload it in category_columns"
                raise InstanceError(f"column '{shorten(name)}': {detail}")
            values, codes = np.unique(X[:, [at]].toarray().ravel(), return_inverse=True)
            if np.isnan(values).any():
                self._missing(name)
            row = np.arange(X.shape[0])
            parts.append(csr_matrix((np.ones(len(row)), (row, codes)), shape=(len(row), len(values))))
            found += [f"{name}={written(value)}" for value in values.tolist()]
        return csr_matrix(hstack(parts, format="csr")), found

    def _beside(
        self, X: csr_matrix[np.float64], names: Sequence[str], terms: csr_matrix[np.float64] | None
    ) -> csr_matrix[np.float64]:
        n_numbers = len(self._columns.numbers)
        given = csr_matrix(X[:, n_numbers:])
        places = self._levels.places(names[n_numbers:])[given.indices]
        row = np.repeat(np.arange(X.shape[0]), np.diff(given.indptr))
        there = places >= 0
        shape = (X.shape[0], self._levels.n_features)
        levels = csr_matrix((np.ones(int(there.sum())), (row[there], places[there])), shape=shape)
        parts = [self._scaling.transform(csr_matrix(X[:, :n_numbers])), levels, *([] if terms is None else [terms])]
        made = csr_matrix(hstack(parts, format="csr"))
        made.sort_indices()
        made.indices = made.indices.astype(np.int32, copy=False)
        return made

    def _forms(self, names: Sequence[str]) -> list[str]:
        if self._columns.types:
            return _canonical(self._columns, names)
        # a model of before reads values as they are written, and datasets have them in their canonical forms by now
        levels = self._levels.names()
        types = _types(self._columns, levels)
        older = self._columns.model_copy(update={"types": types})
        own = dict(zip(_canonical(older, levels), levels, strict=True))
        known = set(levels)
        forms = _canonical(older, names)
        return [name if name in known else own.get(form, name) for name, form in zip(names, forms, strict=True)]

    def _record(self, instance: Instance) -> Mapping[str, Any]:
        if not isinstance(instance, Mapping) or "record" not in instance:
            raise InstanceError('this model takes records: an instance needs {"record": {column: value}}')
        record: Mapping[str, Any] = instance["record"]
        if not all(name in self._known for name in record):
            own = found_as(record, {*self._known, *self._lists})
            record = {own[name]: value for name, value in record.items()}
        if not self._lists.keys().isdisjoint(record):
            record = unrolled(record, self._lists, self._known)
        unknown = [name for name in record if name not in self._known]
        if unknown:
            named = ", ".join(f"'{shorten(name)}'" for name in unknown[:3])
            read = (*self._columns.texts, *self._columns.numbers, *self._columns.categories)
            known = ", ".join(f"'{shorten(name)}'" for name in read[:10]) + (", ..." if len(read) > 10 else "")
            raise InstanceError(f"{counted(len(unknown), 'unknown column')}: {named}; the model takes {known}")
        return record

    def _texts(self, record: Mapping[str, Any]) -> list[str]:
        texts = [record.get(name) for name in self._columns.texts]
        for name, text in zip(self._columns.texts, texts, strict=True):
            if text is not None and type(text) is not str:
                raise InstanceError(f"column '{shorten(name)}': a text is required")
        return [text or "" for text in texts]

    def _number(self, value: Any, name: str) -> float:
        if value is None:
            return self._missing(name)
        if type(value) not in (int, float, bool):
            raise InstanceError(f"column '{shorten(name)}': a number is required")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise InstanceError(f"column '{shorten(name)}': the number is not finite")
        return number

    def _level(self, value: Any, name: str) -> str:
        if value is None or value == "":
            self._missing(name)
            return ""
        type_of_column = self._columns.types.get(name)
        if type_of_column is not None:
            if type(value) not in (str, int, float, bool):
                raise InstanceError(f"column '{shorten(name)}': a string, a number or a boolean is required")
            level = canonical(written(value), type_of_column)
            if not level:
                self._missing(name)
            return level
        if type(value) is bool:
            return str(value).lower()
        if type(value) is float and value.is_integer():
            return str(int(value))
        if type(value) not in (str, int, float):
            raise InstanceError(f"column '{shorten(name)}': a string or a number is required")
        return str(value).strip()

    def _missing(self, name: str) -> float:
        if not self._columns.missing:
            raise InstanceError(
                f"column '{shorten(name)}': the value is missing, but no value was missing in the training dataset"
            )
        return math.nan


def _apart(columns: TableColumns) -> Sequence[str]:
    """The columns of texts, where there are several."""
    return columns.texts if len(columns.texts) > 1 else ()


def _types(columns: TableColumns, levels: Sequence[str]) -> dict[str, ColumnType]:
    """The type of each category: that of the import, or of all its levels in a dataset of before."""
    own: dict[str, list[str]] = {name: [] for name in columns.categories}
    for name in levels:
        column, _, level = name.partition("=")
        own.get(column, []).append(level)
    return {name: columns.types.get(name) or column_type(found) for name, found in own.items()}


def _canonical(columns: TableColumns, names: Sequence[str]) -> list[str]:
    """Names of which those of levels, `column=level`, have the canonical form of their value."""
    forms = []
    for name in names:
        column, mark, level = name.partition("=")
        type = columns.types.get(column) if mark else None
        forms.append(name if type is None else f"{column}={canonical(level, type)}")
    return forms
