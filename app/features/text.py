"""Texts as weighted terms: words and what else the recipe takes, with TF-IDF or BM25 weights, rows of length one.

A row has one text, or a text for each of several fields: title, abstract, keywords. The fields have their terms in
common, so that what a word in a title says is learnt from abstracts, too. A row is then scaled to length 1: the sum
over the fields f of w_f x_f, where x_f are the weights of field f's terms, of length 1. A title of five words counts as
much as an abstract of five hundred. Where the recipe has fields and rows have one text, the fields are `title` and
`body` (:mod:`app.features.excerpts`).

What words are is said in :mod:`app.features.words`, what terms are in :mod:`app.features.terms`, and what they weigh in
:mod:`app.features.term_weights`. With the default recipe this is what scikit-learn's TfidfVectorizer computes; it is
done here because a request must not pay for building one, and a server that only predicts need not import one. A recipe
may add the beginnings of words, named ``begin*``, and runs of characters within words, named ``~run``; or it hashes
terms into a fixed number of features, which have no names and need no vocabulary.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import structlog
from scipy.sparse import csr_matrix

from app.datasets.recipe_schemas import TITLE_AND_BODY, TextRecipe
from app.features.base import FitError, Instance, InstanceError, Row
from app.features.by_language import main_language
from app.features.excerpts import Text, split_text
from app.features.names import pack_names, unpack_names
from app.features.stop_words import with_stop_words
from app.features.term_counts import count_terms, select_terms, widened
from app.features.term_weights import TermWeights
from app.features.terms import TermColumns
from app.features.words import libraries

_LIBRARIES = "libraries"

Indices = npt.NDArray[np.int64]

log = structlog.get_logger()


class TextFeatures:
    """Terms with their fitted weights.

    Parameters
    ----------
    vocabulary : list of str, or None
        The terms, sorted; None where they are hashed.
    columns : sequence of str
        The text columns of a row, of which those that are not among the recipe's fields have the weight 1. Empty where
        a row has one text.
    """

    kind: ClassVar[str] = "text"

    def __init__(
        self, params: TextRecipe, vocabulary: list[str] | None, weights: TermWeights, columns: Sequence[str] = ()
    ) -> None:
        if vocabulary is not None and len(vocabulary) != len(weights):
            raise ValueError(f"{len(vocabulary)} terms for {len(weights)} weights")
        self.params = params
        self._vocabulary = vocabulary
        self._weights = weights
        self._find: Callable[[str], int | None]
        if vocabulary is None:
            assert params.hash_features is not None
            self._find = _hashed(params.hash_features)
        else:
            self._find = {term: index for index, term in enumerate(vocabulary)}.get
        self.fields = fields_of(params, columns)
        self._weight_of, recipes = _by_field(params, self.fields)
        self._columns = [TermColumns(recipe, self._find) for recipe in recipes]

    @classmethod
    def fit(
        cls, texts: Iterable[Text], params: TextRecipe, columns: Sequence[str] = ()
    ) -> tuple[TextFeatures, csr_matrix[np.float64]]:
        """Learn terms and their weights from texts, and weigh these.

        Parameters
        ----------
        texts : iterable of str, or of sequence of str
            Of each row one text, or one for each of `columns`. Read once for each field.
        params : TextRecipe
            Terms as frequent as one another at the edge of `max_features` are kept in alphabetical order. Where it
            names the language of its stop words, the features' own params have the words.
        columns : sequence of str
            The text columns of a row that has several.

        Returns
        -------
        features : TextFeatures
        X : csr_matrix, shape (n_texts, n_features), float64
            The same as `features.transform(texts)`.

        Raises
        ------
        FitError
            If no term is left.
        """
        params = with_stop_words(params)
        features, by_field = cls._fit(texts, params, columns)
        return features, _summed(by_field, features._weight_of)

    @classmethod
    def rows_by(
        cls, texts: Iterable[Text], recipes: Sequence[TextRecipe], columns: Sequence[str]
    ) -> list[csr_matrix[np.float64]]:
        """The rows that each of several recipes makes, which differ in nothing but the weights of fields.

        Parameters are those of :meth:`fit`, and so are the errors; texts are read as often as by one fit.
        """
        features, by_field = cls._fit(texts, with_stop_words(recipes[0]), columns)
        return [_summed(by_field, _by_field(recipe, features.fields)[0]) for recipe in recipes]

    @classmethod
    def _fit(
        cls, texts: Iterable[Text], params: TextRecipe, columns: Sequence[str]
    ) -> tuple[TextFeatures, list[csr_matrix[np.float64]]]:
        """The features, and of each field its rows of length 1."""
        fields = fields_of(params, columns)
        ids: defaultdict[str, int] = defaultdict()
        ids.default_factory = ids.__len__
        n_hashed = params.hash_features
        find = ids.__getitem__ if n_hashed is None else _hashed(n_hashed)
        by_field = [
            count_terms(_of_field(texts, fields, at), TermColumns(recipe, find))
            for at, recipe in enumerate(_by_field(params, fields)[1])
        ]
        if n_hashed is not None:
            counts = _together(by_field, n_hashed)
            if counts.nnz == 0:
                raise FitError(_no_terms(counts.shape[0], params))
            wide = widened(counts, n_hashed)
            found, in_texts = np.unique(wide.indices, return_counts=True)
            weights = TermWeights.fit(params, wide, in_texts, np.full(len(in_texts), counts.shape[0]), found)
            of_fields = [wide] if len(by_field) == 1 else [widened(each, n_hashed) for each in by_field]
            return cls(params, None, weights, columns), [weights.weigh(each) for each in of_fields]
        counts = _together(by_field, len(ids))
        terms = sorted(ids)
        order = np.fromiter(map(ids.__getitem__, terms), dtype=np.int64, count=len(terms))
        in_texts = np.bincount(counts.indices, minlength=len(ids))[order]
        n_texts = _n_texts(counts, terms, order) if params.by_language else np.full(len(ids), counts.shape[0])
        kept = np.flatnonzero((in_texts >= params.min_df) & (in_texts <= params.max_df * n_texts))
        if params.max_features is not None and len(kept) > params.max_features:
            in_all = np.bincount(counts.indices, weights=counts.data, minlength=len(ids))[order[kept]]
            kept = np.sort(kept[np.argsort(-in_all, kind="stable")[: params.max_features]])
        if not ids:
            raise FitError(_no_terms(counts.shape[0], params))
        if len(kept) == 0:
            raise FitError(
                f"none of {len(ids)} terms in {counts.shape[0]} texts remains; a term must be in at least "
                f"{params.min_df} texts and at most {params.max_df:.0%} of the texts"
            )
        selected = select_terms(counts, order[kept])
        weights = TermWeights.fit(params, selected, in_texts[kept], n_texts[kept])
        of_fields = [selected] if len(by_field) == 1 else [select_terms(each, order[kept]) for each in by_field]
        return cls(params, [terms[k] for k in kept], weights, columns), [weights.weigh(each) for each in of_fields]

    @classmethod
    def from_arrays(
        cls, params: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], columns: Sequence[str] = ()
    ) -> TextFeatures:
        """The features whose `params_json` and `arrays` these are; logs a warning if stems or lemmas may differ."""
        # recipes of earlier releases have no version of the reader
        recipe = TextRecipe.model_validate({"reader": 1} | {k: params[k] for k in params if k != _LIBRARIES})
        made_with, here = params.get(_LIBRARIES), libraries(recipe)
        if made_with is not None and made_with != here:
            log.warning("features.other_libraries", made_with=made_with, here=here)
        vocabulary = None if recipe.hash_features is not None else unpack_names(arrays)
        return cls(recipe, vocabulary, TermWeights.from_arrays(recipe, arrays), columns)

    @property
    def columns(self) -> None:
        """None: an instance is no record."""

    @property
    def text_recipe(self) -> TextRecipe:
        """The recipe."""
        return self.params

    def texts_of(self, instance: Instance) -> tuple[str, ...]:
        """The texts of an instance's fields, or its one text."""
        assert isinstance(instance, Mapping)
        return self.split(instance["text"])

    def split(self, text: Text) -> tuple[str, ...]:
        """The texts of a row's fields, or its one text."""
        return split_text(text, self.fields)

    @property
    def n_features(self) -> int:
        """Number of terms, or of what they are hashed into."""
        return len(self._weights)

    @property
    def n_given(self) -> int:
        """As many as rows have."""
        return self.n_features

    def names(self) -> list[str] | None:
        """The terms, sorted; None where they are hashed."""
        return self._vocabulary

    def named(self, index: int) -> str | int:
        """The term; the feature's index where terms are hashed."""
        return index if self._vocabulary is None else self._vocabulary[index]

    def known_terms(self, indices: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """All, but hashed terms whose column no training text has."""
        return self._weights.known(indices)

    def text_language(self, instance: Instance) -> str | None:
        """The language of most of the instance's text, where languages have terms of their own."""
        return self.language(*self.texts_of(instance))

    def language(self, *texts: str) -> str | None:
        """As :meth:`text_language`, of one text or those of the fields."""
        languages = tuple(self.params.by_language)
        if not languages:
            return None
        row = self.split(texts[0] if len(texts) == 1 else texts)
        return main_language([columns.read(text) for text, columns in zip(row, self._columns, strict=True)], languages)

    def spans(self, instance: Instance, indices: Collection[int]) -> dict[int, list[tuple[int, int]]]:
        """Where terms occur in the instance's text: start and end, in characters, in the order of the text."""
        assert isinstance(instance, Mapping)
        return self.spans_in(self.split(instance["text"]), indices)

    def spans_in(self, texts: Sequence[str], indices: Collection[int]) -> dict[int, list[tuple[int, int]]]:
        """As :meth:`spans`, of texts of which those that are not empty are joined by one character."""
        wanted, begin = set(indices), 0
        found: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
        for text, columns in zip(texts, self._columns, strict=True):
            for index, first, last in columns.places(text):
                if index in wanted:
                    found[index].add((first + begin, last + begin))
            begin += len(text) + 1 if text else 0
        return {index: sorted(spans) for index, spans in found.items()}

    def params_json(self) -> dict[str, Any]:
        """The params as JSON values and, where words become stems or lemmas, the version of what makes them."""
        used = libraries(self.params)
        # options that are not used are left out, as before there were any
        later = {name for name in ("clean", "by_language") if not getattr(self.params, name)}
        params = self.params.model_dump(mode="json", exclude=later)
        return params | ({_LIBRARIES: used} if used else {})

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """`names_blob` (uint8), `names_offsets` (int64, n_features + 1) where terms are not hashed; their weights."""
        return ({} if self._vocabulary is None else pack_names(self._vocabulary)) | self._weights.arrays()

    def as_given(self, instance: Instance) -> dict[str, Any]:
        """The text."""
        assert isinstance(instance, Mapping)
        return {"text": instance["text"]}

    def row(self, instance: Instance) -> Row:
        """Indices and values of `{"text": ...}`.

        Raises
        ------
        InstanceError
            If the instance is of another kind.
        """
        if not isinstance(instance, Mapping) or "text" not in instance:
            raise InstanceError('this model takes texts: an instance needs {"text": ...}')
        return self.text_row(instance["text"])

    def text_row(self, text: Text) -> Row:
        """Indices (k,), increasing, and values (k,) of one row: those of :meth:`transform`, to the bit."""
        rows = [
            self._weights.row(columns.find_all(columns.read(each)))
            for each, columns in zip(self.split(text), self._columns, strict=True)
        ]
        return rows[0] if len(rows) == 1 else _summed_row(rows, self._weight_of)

    def transform(self, texts: Iterable[Text]) -> csr_matrix[np.float64]:
        """Rows of texts, which are read once for each field, shape (n_texts, n_features).

        A text without a known term is a row of zeros.
        """
        counted = (count_terms(_of_field(texts, self.fields, at), columns) for at, columns in enumerate(self._columns))
        return _summed([self._weights.weigh(widened(each, self.n_features)) for each in counted], self._weight_of)


def _summed(rows: Sequence[csr_matrix[np.float64]], weights: Sequence[float]) -> csr_matrix[np.float64]:
    """The weighted sum of the fields' rows, scaled to length 1; one field's rows as they are."""
    if len(rows) == 1:
        return rows[0]
    weighed = [weight * X for weight, X in zip(weights, rows, strict=True)]
    X = csr_matrix(sum(weighed[1:], weighed[0]))
    X.sort_indices()
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    squares = np.bincount(row, X.data**2, minlength=X.shape[0])
    X.data /= np.sqrt(np.where(squares > 0.0, squares, 1.0))[row]
    return X


def _summed_row(rows: Sequence[Row], weights: Sequence[float]) -> Row:
    """As :func:`_summed`, of one row."""
    indices, at = np.unique(np.concatenate([each for each, _ in rows]), return_inverse=True)
    weighed = np.concatenate([weight * values for weight, (_, values) in zip(weights, rows, strict=True)])
    values = np.bincount(at, weighed, minlength=len(indices))
    squares = np.bincount(np.zeros(len(values), np.int64), values**2, minlength=1)[0]
    return indices, values / np.sqrt(squares if squares > 0.0 else 1.0)


def _together(counts: Sequence[csr_matrix[np.float64]], n_columns: int) -> csr_matrix[np.float64]:
    """The counts of a row's fields, which have up to `n_columns` columns, summed."""
    if len(counts) == 1:
        return counts[0]
    wide = [csr_matrix((each.data, each.indices, each.indptr), shape=(each.shape[0], n_columns)) for each in counts]
    return csr_matrix(sum(wide[1:], wide[0]))


def _n_texts(counts: csr_matrix[np.float64], terms: Sequence[str], order: Indices) -> Indices:
    """How many texts have terms of each term's language; counts have the term t in the column ``order[t]``."""
    languages, of_term = np.unique([term.partition(":")[0] for term in terms], return_inverse=True)
    of_column = np.empty(len(order), np.int64)
    of_column[order] = of_term
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    there = np.unique(row * len(languages) + of_column[counts.indices])
    return np.bincount(there % len(languages), minlength=len(languages))[of_term]


def _no_terms(n_texts: int, params: TextRecipe) -> str:
    reason = "stop_words removes all words, or the texts have none"
    if params.min_word_length > 1:
        reason = (
            f"words of fewer than {params.min_word_length} letters are left out: pass min_word_length=1 to keep "
            "single letters"
        )
    return f"the {n_texts} texts contain no terms; {reason}"


def _hashed(n_features: int) -> Callable[[str], int]:
    """What hashes a term, by CRC-32: the same in every process and program."""
    crc32 = zlib.crc32
    return lambda term: crc32(term.encode("utf-8", "surrogatepass")) % n_features


def fields_of(params: TextRecipe, columns: Sequence[str]) -> tuple[str, ...]:
    """The fields of a row's texts: its text columns, title and body of its one text, or none."""
    return (tuple(columns) or TITLE_AND_BODY) if params.fields else ()


def _by_field(params: TextRecipe, fields: Sequence[str]) -> tuple[list[float], list[TextRecipe]]:
    """The weights and the recipes of fields; of a row without fields those of its one text."""
    if not fields:
        return [1.0], [params]
    return [params.field(name).weight for name in fields], [params.of_field(name) for name in fields]


def _of_field(texts: Iterable[Text], fields: Sequence[str], at: int) -> Iterable[str]:
    return (split_text(text, fields)[at] for text in texts)
