"""Texts as TF-IDF: words and word n-grams, their inverse document frequencies, rows of length one.

For a term found n times in a text, the weight is (1 + ln n) idf, or n idf if not sublinear, with
idf = ln((1 + n_texts) / (1 + n_texts_with_the_term)) + 1; each row is then divided by its Euclidean length. Words are
runs of two or more word characters. This is what scikit-learn's TfidfVectorizer computes; it is done here because a
request must not pay for building one, and a server that only predicts need not import one. A recipe may add the
beginnings of words, named ``begin*``, and runs of characters within words, named ``~run``.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from app.features.base import FitError, Instance, InstanceError, Row
from app.features.names import pack_names, unpack_names
from app.schemas.texts import TextRecipe

_word = re.compile(r"\b\w\w+\b")
_words = _word.findall


class TextFeatures:
    """A fitted vocabulary with its inverse document frequencies."""

    kind: ClassVar[str] = "text"

    def __init__(self, params: TextRecipe, vocabulary: list[str], idf: npt.NDArray[np.float64]) -> None:
        self.params = params
        self._vocabulary = vocabulary
        self._idf = idf
        self._ids = {term: index for index, term in enumerate(vocabulary)}

    @classmethod
    def fit(cls, texts: Iterable[str], params: TextRecipe) -> tuple[TextFeatures, csr_matrix[np.float64]]:
        """Learn a vocabulary from texts, and weigh them.

        Parameters
        ----------
        texts : iterable of str
            Read once.
        params : TextRecipe
            Terms as frequent as one another at the edge of `max_features` are kept in alphabetical order.

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
        ids: defaultdict[str, int] = defaultdict()
        ids.default_factory = ids.__len__
        counts = _count(texts, params, ids.__getitem__)
        terms = sorted(ids)
        order = np.fromiter((ids[term] for term in terms), dtype=np.int64, count=len(terms))
        n_texts = counts.shape[0]
        in_texts = np.bincount(counts.indices, minlength=len(ids))[order]
        kept = np.flatnonzero((in_texts >= params.min_df) & (in_texts <= params.max_df * n_texts))
        if params.max_features is not None and len(kept) > params.max_features:
            in_all = np.bincount(counts.indices, weights=counts.data, minlength=len(ids))[order[kept]]
            kept = np.sort(kept[np.argsort(-in_all, kind="stable")[: params.max_features]])
        if len(kept) == 0:
            raise FitError(
                f"no term is left of {len(ids)} in {n_texts} texts; at least {params.min_df} texts and at most "
                f"{params.max_df:.0%} of the texts must have it"
            )
        idf = np.log((1 + n_texts) / (1 + in_texts[kept])) + 1.0
        features = cls(params, [terms[k] for k in kept], idf)
        return features, features._weigh(_select(counts, order[kept]))

    @classmethod
    def from_arrays(cls, params: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> TextFeatures:
        """The features whose `params_json` and `arrays` these are."""
        idf = np.asarray(arrays["idf"], dtype=np.float64)
        return cls(TextRecipe.model_validate(params), unpack_names(arrays), idf)

    @property
    def n_features(self) -> int:
        """Number of terms."""
        return len(self._vocabulary)

    @property
    def n_given(self) -> int:
        """As many as rows have."""
        return self.n_features

    def names(self) -> list[str]:
        """The terms, sorted."""
        return self._vocabulary

    def named(self, index: int) -> str | int:
        """The term."""
        return self._vocabulary[index]

    def spans(self, instance: Instance, indices: Collection[int]) -> dict[int, list[tuple[int, int]]]:
        """Where terms stand in the instance's text: beginnings and ends, in characters, in the order of the text."""
        wanted, found = set(indices), defaultdict(list)
        assert isinstance(instance, Mapping)
        text = instance["text"]
        places = _places(text) if self.params.lowercase else None
        for term, begin, end in _placed_terms(text, self.params):
            index = self._ids.get(term)
            if index in wanted:
                at = (begin, end) if places is None else (places[begin], places[end - 1] + 1)
                found[index].append(at)
        return {index: sorted(set(spans)) for index, spans in found.items()}

    def params_json(self) -> dict[str, Any]:
        """The params as JSON values."""
        return self.params.model_dump(mode="json")

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """`names_blob` (uint8) and `names_offsets` (int64, n_features + 1): the terms; `idf` (float64, n_features)."""
        return {**pack_names(self._vocabulary), "idf": self._idf}

    def row(self, instance: Instance) -> Row:
        """Indices and values of `{"text": ...}`.

        Raises
        ------
        InstanceError
            If the instance is of another kind.
        """
        if not isinstance(instance, Mapping) or "text" not in instance:
            raise InstanceError('this model reads texts: an instance is {"text": ...}')
        return self.text_row(instance["text"])

    def text_row(self, text: str) -> Row:
        """Indices (k,), increasing, and values (k,) of one text."""
        ids = self._ids
        found = {ids[term]: count for term, count in Counter(_terms(text, self.params)).items() if term in ids}
        indices = np.array(sorted(found), dtype=np.int32)
        values = np.array([found[index] for index in indices.tolist()], dtype=np.float64)
        if self.params.sublinear_tf:
            values = np.log(values) + 1.0
        values *= self._idf[indices]
        if len(values):
            values /= np.sqrt(values @ values)
        return indices, values

    def transform(self, texts: Iterable[str]) -> csr_matrix[np.float64]:
        """Rows of texts, shape (n_texts, n_features); a text without a known term is a row of zeros."""
        return self._weigh(_select(_count(texts, self.params, self._ids.get), np.arange(self.n_features)))

    def _weigh(self, counts: csr_matrix[np.float64]) -> csr_matrix[np.float64]:
        """Counts become weights, in place."""
        if self.params.sublinear_tf:
            np.log(counts.data, out=counts.data)
            counts.data += 1.0
        counts.data *= self._idf[counts.indices]
        lengths = np.diff(counts.indptr)
        squares = np.bincount(np.repeat(np.arange(len(lengths)), lengths), counts.data**2, minlength=len(lengths))
        counts.data /= np.repeat(np.sqrt(squares), lengths)
        return counts


def _terms(text: str, params: TextRecipe) -> list[str]:
    """Words, then runs of two words, then of three, then beginnings and runs of characters, as far as the params go."""
    words: list[str] = _words(text.lower() if params.lowercase else text)
    terms = words if params.ngram_max == 1 else words + _word_runs(words, params)
    if params.prefix is not None:
        length = params.prefix
        terms = terms + [f"{word[:length]}*" for word in words if len(word) > length]
    if params.char_ngrams is not None:
        terms = terms + [run for word in words for run in _character_runs(word, *params.char_ngrams)]
    return terms


def _placed_terms(text: str, params: TextRecipe) -> Iterator[tuple[str, int, int]]:
    """The terms of :func:`_terms`, each with its beginning and end in the text or, if params say so, its lower case."""
    words = [(match[0], *match.span()) for match in _word.finditer(text.lower() if params.lowercase else text)]
    yield from words
    for length in range(2, params.ngram_max + 1):
        for start in range(len(words) - length + 1):
            run = words[start : start + length]
            yield " ".join(word for word, _, _ in run), run[0][1], run[-1][2]
    for word, begin, end in words:
        if params.prefix is not None and len(word) > params.prefix:
            yield f"{word[: params.prefix]}*", begin, begin + params.prefix
        if params.char_ngrams is not None:
            for start, term in _placed_runs(word, *params.char_ngrams):
                # the first and the last may be the blanks around the word
                yield term, max(begin, begin + start - 1), min(end, begin + start - 1 + len(term) - 1)


def _placed_runs(word: str, shortest: int, longest: int) -> Iterator[tuple[int, str]]:
    n = len(word) + 2
    starts = (start for length in range(shortest, longest + 1) for start in range(n - length + 1))
    return zip(starts, _character_runs(word, shortest, longest), strict=True)


def _places(text: str) -> list[int] | None:
    """Which character of a text each one of its lower case comes from; None where that is its own."""
    if len(text.lower()) == len(text):
        return None
    return [place for place, character in enumerate(text) for _ in character.lower()]


def _character_runs(word: str, shortest: int, longest: int) -> list[str]:
    """Runs of so many characters of a word with a blank at either end, ``~`` before each."""
    padded = f" {word} "
    return [
        f"~{padded[start : start + length]}"
        for length in range(shortest, longest + 1)
        for start in range(len(padded) - length + 1)
    ]


def _word_runs(words: list[str], params: TextRecipe) -> list[str]:
    return [
        " ".join(words[start : start + length])
        for length in range(2, params.ngram_max + 1)
        for start in range(len(words) - length + 1)
    ]


def _count(texts: Iterable[str], params: TextRecipe, find: Callable[[str], int | None]) -> csr_matrix[np.float64]:
    """How often each term is in each text; `find` gives a term's column, or None to leave it out."""
    lengths, indices, counts = array("q"), array("i"), array("d")
    for text in texts:
        before = len(indices)
        for term, count in Counter(_terms(text, params)).items():
            index = find(term)
            if index is not None:
                indices.append(index)
                counts.append(count)
        lengths.append(len(indices) - before)
    indptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.frombuffer(lengths, dtype=np.int64), out=indptr[1:])
    columns = np.frombuffer(indices, dtype=np.int32)
    n_columns = int(columns.max()) + 1 if len(columns) else 0
    return csr_matrix((np.frombuffer(counts), columns, indptr), shape=(len(lengths), n_columns))


def _select(counts: csr_matrix[np.float64], columns: npt.NDArray[np.int64]) -> csr_matrix[np.float64]:
    """A copy with `columns` alone, in their order, indices sorted."""
    place = np.full(max(counts.shape[1], len(columns)), -1, dtype=np.int32)
    place[columns] = np.arange(len(columns), dtype=np.int32)
    indices = place[counts.indices]
    kept = indices >= 0
    indptr = np.concatenate([[0], np.cumsum(kept)])[counts.indptr]
    selected = csr_matrix((counts.data[kept], indices[kept], indptr), shape=(counts.shape[0], len(columns)))
    selected.sort_indices()
    return selected
