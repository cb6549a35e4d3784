"""Texts as TF-IDF: words and word n-grams, their inverse document frequencies, rows of length one.

For a term found n times in a text, the weight is (1 + ln n) idf, or n idf if not sublinear, with idf = ln((1 +
n_texts) / (1 + n_texts_with_the_term)) + 1; each row is then divided by its Euclidean length. What words are is said
in :mod:`app.features.words`. This is what scikit-learn's TfidfVectorizer computes; it is done here because a request
must not pay for building one, and a server that only predicts need not import one. A recipe may add the beginnings of
words, named ``begin*``, and runs of characters within words, named ``~run``.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import structlog
from scipy.sparse import csr_matrix, vstack

from app.features.base import FitError, Instance, InstanceError, Row
from app.features.names import pack_names, unpack_names
from app.features.words import MOST_REMEMBERED, Words, libraries
from app.schemas.texts import TextRecipe

# words whose terms are remembered, and columns that are summed at a time
_MOST_WORDS, _BLOCK = 100_000, 1 << 22
_LIBRARIES = "libraries"

log = structlog.get_logger()


class TextFeatures:
    """A fitted vocabulary with its inverse document frequencies."""

    kind: ClassVar[str] = "text"

    def __init__(self, params: TextRecipe, vocabulary: list[str], idf: npt.NDArray[np.float64]) -> None:
        self.params = params
        self._vocabulary = vocabulary
        self._idf = idf
        self._ids = {term: index for index, term in enumerate(vocabulary)}
        self._columns = _Columns(params, self._ids.get)

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
        counts = _count(texts, _Columns(params, ids.__getitem__))
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
        """The features whose `params_json` and `arrays` these are; the log tells where stems or lemmas may differ."""
        idf = np.asarray(arrays["idf"], dtype=np.float64)
        recipe = TextRecipe.model_validate({name: params[name] for name in params if name != _LIBRARIES})
        made_with, here = params.get(_LIBRARIES), libraries(recipe)
        if made_with is not None and made_with != here:
            log.warning("features.other_libraries", made_with=made_with, here=here)
        return cls(recipe, unpack_names(arrays), idf)

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
        for term, begin, end in _placed_terms(text, self.params, self._columns.words):
            index = self._ids.get(term)
            if index in wanted:
                at = (begin, end) if places is None else (places[begin], places[end - 1] + 1)
                found[index].append(at)
        return {index: sorted(set(spans)) for index, spans in found.items()}

    def params_json(self) -> dict[str, Any]:
        """The params as JSON values and, where words become stems or lemmas, the version of what makes them."""
        used = libraries(self.params)
        return self.params.model_dump(mode="json") | ({_LIBRARIES: used} if used else {})

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """`names_blob` (uint8) and `names_offsets` (int64, n_features + 1): the terms; `idf` (float64, n_features)."""
        return {**pack_names(self._vocabulary), "idf": self._idf}

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
            raise InstanceError('this model reads texts: an instance is {"text": ...}')
        return self.text_row(instance["text"])

    def text_row(self, text: str) -> Row:
        """Indices (k,), increasing, and values (k,) of one text."""
        found = Counter(self._columns.of(text))
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
        return self._weigh(_select(_count(texts, self._columns), np.arange(self.n_features)))

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


def _placed_terms(text: str, params: TextRecipe, words_of: Words) -> Iterator[tuple[str, int, int]]:
    """The terms of a text, each with its beginning and end in the text or, if params say so, its lower case."""
    words = words_of.placed(text)
    yield from words
    for length in range(2, params.ngram_max + 1):
        for start in range(len(words) - length + 1):
            run = words[start : start + length]
            yield " ".join(word for word, _, _ in run), run[0][1], run[-1][2]
    for word, begin, end in words:
        if params.prefix is not None and len(word) > params.prefix:
            yield f"{word[: params.prefix]}*", begin, min(end, begin + params.prefix)
        if params.char_ngrams is not None:
            for start, term in _placed_runs(word, *params.char_ngrams):
                # the first and the last may be the blanks around the word; a lemma may be longer than its word
                first = min(max(begin, begin + start - 1), end - 1)
                yield term, first, max(first + 1, min(end, begin + start - 1 + len(term) - 1))


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


class _Columns:
    """The columns of the terms of texts; words come again and again, so theirs are remembered.

    Parameters
    ----------
    params : TextRecipe
    find : callable
        A term's column, or None to leave it out.
    """

    def __init__(self, params: TextRecipe, find: Callable[[str], int | None]) -> None:
        self._params, self._find = params, find
        self.words = Words(params)
        self._of_word: dict[str, list[int]] = {}

    def of(self, text: str) -> list[int]:
        """One for each time that a term is there."""
        params, find, of_word = self._params, self._find, self._of_word
        words = self.words.of(text)
        columns: list[int] = []
        for word in words:
            found = of_word.get(word)
            if found is None:
                found = [column for term in _parts(word, params) if (column := find(term)) is not None]
                if len(of_word) >= _MOST_WORDS:
                    of_word.clear()
                if len(word) <= MOST_REMEMBERED:
                    of_word[word] = found
            columns += found
        if params.ngram_max > 1:
            columns += [column for run in _word_runs(words, params) if (column := find(run)) is not None]
        return columns


def _count(texts: Iterable[str], columns: _Columns) -> csr_matrix[np.float64]:
    """How often each column is in each text."""
    ends, found = array("q", [0]), array("i")
    blocks: list[csr_matrix[np.float64]] = []
    for text in texts:
        found.extend(columns.of(text))
        ends.append(len(found))
        if len(found) > _BLOCK:
            blocks.append(_summed(ends, found))
            ends, found = array("q", [0]), array("i")
    blocks.append(_summed(ends, found))
    if len(blocks) == 1:
        return blocks[0]
    n_columns = max(block.shape[1] for block in blocks)
    widened = [csr_matrix((b.data, b.indices, b.indptr), shape=(b.shape[0], n_columns)) for b in blocks]
    return csr_matrix(vstack(widened, format="csr"))


def _summed(ends: array[int], columns: array[int]) -> csr_matrix[np.float64]:
    """Of the columns of each text, one after the other, how often each is there."""
    indices = np.frombuffer(columns, np.int32)
    n_columns = int(indices.max()) + 1 if len(indices) else 0
    found = csr_matrix(
        (np.ones(len(indices)), indices, np.frombuffer(ends, np.int64)), shape=(len(ends) - 1, n_columns)
    )
    found.sum_duplicates()
    return found


def _parts(word: str, params: TextRecipe) -> list[str]:
    """The terms that a word brings wherever it stands: itself, its beginning, and runs of its characters."""
    terms = [word]
    if params.prefix is not None and len(word) > params.prefix:
        terms.append(f"{word[: params.prefix]}*")
    if params.char_ngrams is not None:
        terms += _character_runs(word, *params.char_ngrams)
    return terms


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
