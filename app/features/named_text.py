"""Texts as weighted terms and as names of a vocabulary's concepts found in them.

The terms are those of :mod:`app.features.text`. A name is sought as the set of its words, in any order within a
sentence, also as a part of a compound; "(qualifiers)" at its end do not count. So a model knows a concept by its name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack

from app.datasets.recipe_schemas import TextRecipe
from app.features.base import Instance, Row
from app.features.names import pack_names, unpack_names
from app.features.text import TextFeatures
from app.features.words import Words
from solvers.labels.name_block import MATCH_COLUMNS, N_COLUMNS, NameBlock
from solvers.subjects.lexicon import Lexicon, Matches, Name
from solvers.subjects.name_columns import MatchRows, alike_names

_TEXT, _TOKENS, _SHOWN = "text.", "tokens.", "shown."
_LENGTH = "number of words"
_SENTENCES = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")
# letters of a part of a compound, and compounds that are remembered
_LEAST_PART, _MOST_REMEMBERED = 4, 1 << 17


class ConceptName(NamedTuple):
    """A name of the concept with a number."""

    concept: int
    name: str


class _Words:
    """The words of a text as names are sought in it, ``n`` of them; parts of a compound have its place."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.sentences: list[int] = []
        self.parts: list[bool] = []
        self.places: list[int] = []
        self.n = 0

    def add(self, number: int, sentence: int, part: bool) -> None:
        """Add a word, or a part of one, in the place ``n``."""
        self.numbers.append(number)
        self.sentences.append(sentence)
        self.parts.append(part)
        self.places.append(self.n)


class NamedTextFeatures:
    """Terms, then for each concept what its names' places in the text are like, then the number of words.

    Parameters
    ----------
    text : TextFeatures
    lexicon : Lexicon
    shown : list of str
        How each concept is called in explanations.
    """

    kind: ClassVar[str] = "named_text"

    def __init__(self, text: TextFeatures, lexicon: Lexicon, shown: list[str]) -> None:
        self._text, self._lexicon, self._shown = text, lexicon, shown
        self._words = Words(text.params)
        self._rows = MatchRows(lexicon, len(shown))
        self._parts: dict[str, tuple[int, ...]] = {}

    @classmethod
    def fit(
        cls, texts: Iterable[str], params: TextRecipe, names: Iterable[ConceptName], shown: Sequence[str]
    ) -> tuple[NamedTextFeatures, csr_matrix[np.float64]]:
        """Learn terms from texts, and index names.

        Parameters
        ----------
        texts : iterable of str
            Read twice.
        params : TextRecipe
        names : iterable of ConceptName
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
        text, terms = TextFeatures.fit(texts, params)
        words = Words(text.params)
        lexicon = Lexicon.build(Name(each.concept, words_of_name(words, each.name)) for each in names)
        features = cls(text, lexicon, list(shown))
        return features, features._beside(terms, texts)

    @classmethod
    def from_arrays(cls, params: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> NamedTextFeatures:
        """The features whose `params_json` and `arrays` these are."""

        def part(prefix: str) -> dict[str, npt.NDArray[Any]]:
            return {name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)}

        tokens = {word: number for number, word in enumerate(unpack_names(part(_TOKENS)))}
        lexicon = Lexicon.from_arrays(tokens, part("lexicon."))
        return cls(TextFeatures.from_arrays(params, part(_TEXT)), lexicon, unpack_names(part(_SHOWN)))

    def block(self) -> NameBlock:
        """Where the names begin among the columns, and which names are alike."""
        return NameBlock(self._text.n_features, len(self._shown), alike_names(self._lexicon, len(self._shown)))

    @property
    def terms(self) -> TextFeatures:
        """The terms without the names."""
        return self._text

    @property
    def params(self) -> TextRecipe:
        """The recipe of the terms."""
        return self._text.params

    @property
    def columns(self) -> None:
        """None: an instance is no record."""

    @property
    def n_features(self) -> int:
        """Length of a row."""
        return self._text.n_features + N_COLUMNS * len(self._shown) + 1

    @property
    def n_given(self) -> int:
        """As many as rows have."""
        return self.n_features

    def names(self) -> list[str]:
        """The terms, then ``name of CONCEPT: hits`` and so on, then ``number of words``."""
        terms = self._text.names() or [str(index) for index in range(self._text.n_features)]
        return [*terms, *(f"name of {each}: {column}" for each in self._shown for column in MATCH_COLUMNS), _LENGTH]

    def named(self, index: int) -> str | int:
        """The term, or the name's column."""
        at = index - self._text.n_features
        if at < 0:
            return self._text.named(index)
        concept, column = divmod(at, N_COLUMNS)
        return _LENGTH if concept == len(self._shown) else f"name of {self._shown[concept]}: {MATCH_COLUMNS[column]}"

    def known_terms(self, indices: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """The terms of training texts, and names once each."""
        at = indices - self._text.n_features
        known = (at >= 0) & (at % N_COLUMNS == 0) & (at < N_COLUMNS * len(self._shown))
        terms = at < 0
        known[terms] = self._text.known_terms(indices[terms])
        return np.asarray(known)

    def spans(self, instance: Instance, indices: Collection[int]) -> dict[int, list[tuple[int, int]]]:
        """The places of terms and names in the instance's text: beginnings and ends, in characters."""
        first = self._text.n_features
        found = self._text.spans(instance, [index for index in indices if index < first])
        wanted = {(index - first) // N_COLUMNS for index in indices if index >= first}
        assert isinstance(instance, Mapping)
        text = instance["text"]
        places: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
        if wanted:
            matches, where = self._read(text)
            concepts = self._lexicon.concept[matches.name].tolist()
            for concept, begin, end in zip(concepts, matches.first.tolist(), matches.last.tolist(), strict=True):
                if concept in wanted:
                    places[concept].add((where[begin][0], where[end][1]))
        for index in indices:
            if index >= first and (here := places.get((index - first) // N_COLUMNS)):
                found[index] = sorted(here)
        return found

    def params_json(self) -> dict[str, Any]:
        """Those of the terms."""
        return self._text.params_json()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Those of the terms, the words of names, the names, and how concepts are called."""
        found = {f"{_TEXT}{name}": each for name, each in self._text.arrays().items()}
        found |= {f"lexicon.{name}": each for name, each in self._lexicon.arrays().items()}
        for prefix, names in ((_TOKENS, list(self._lexicon.tokens)), (_SHOWN, self._shown)):
            found |= {f"{prefix}{name}": each for name, each in pack_names(names).items()}
        return found

    def as_given(self, instance: Instance) -> dict[str, Any]:
        """The text."""
        return self._text.as_given(instance)

    def row(self, instance: Instance) -> Row:
        """Indices and values of `{"text": ...}`; raises InstanceError if the instance is of another kind."""
        indices, values = self._text.row(instance)
        assert isinstance(instance, Mapping)
        return self._joined(indices, values, instance["text"])

    def text_row(self, text: str) -> Row:
        """Indices (k,), increasing, and values (k,) of one text."""
        return self._joined(*self._text.text_row(text), text)

    def transform(self, texts: Iterable[str]) -> csr_matrix[np.float64]:
        """Rows of texts, which are read twice: shape (n_texts, n_features)."""
        return self._beside(self._text.transform(texts), texts)

    def _joined(self, indices: npt.NDArray[np.int32], values: npt.NDArray[np.float64], text: str) -> Row:
        columns, found = self._name_row(text)
        first = np.int32(self._text.n_features)
        return np.concatenate([indices, columns + first]).astype(np.int32), np.concatenate([values, found])

    def _beside(self, terms: csr_matrix[np.float64], texts: Iterable[str]) -> csr_matrix[np.float64]:
        rows = [self._name_row(text) for text in texts]
        bounds = np.cumsum([0, *(len(columns) for columns, _ in rows)])
        shape = (len(rows), N_COLUMNS * len(self._shown) + 1)
        values = np.concatenate([found for _, found in rows]) if rows else np.empty(0)
        columns = np.concatenate([each for each, _ in rows]) if rows else np.empty(0, np.int32)
        return csr_matrix(hstack([terms, csr_matrix((values, columns, bounds), shape=shape)], format="csr"))

    def _name_row(self, text: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """The columns of the names in a text, from 0, and their values."""
        words, n_title = _Words(), 0
        for sentence, piece in enumerate(_SENTENCES.split(text)):
            for some in self._words.split(piece):
                for word in some:
                    self._add(word, sentence, words)
            n_title = n_title or words.n
        return self._rows.row(self._match(words), words.n, n_title)

    def _read(self, text: str) -> tuple[Matches, list[tuple[int, int]]]:
        """The names in a text, and the places of its words."""
        words, spans, at = _Words(), list[tuple[int, int]](), 0
        bounds = [*((match.start(), match.end()) for match in _SENTENCES.finditer(text)), (len(text), len(text))]
        for sentence, (stop, following) in enumerate(bounds):
            piece = text[at:stop]
            origins = self._words.reader.origins(piece)
            for word, begin, end in chain(*self._words.placed(piece)):
                self._add(word, sentence, words)
                first, last = (begin, end) if origins is None else (origins[begin][0], origins[end - 1][1])
                spans.append((at + first, at + last))
            at = following
        return self._match(words), spans

    def _add(self, word: str, sentence: int, words: _Words) -> None:
        """Add a word, and the parts of a compound in the same place."""
        number = self._lexicon.tokens.get(word, -1)
        words.add(number, sentence, False)
        if len(word) >= 2 * _LEAST_PART:
            for part in self._parts_of(word):
                if part != number:
                    words.add(part, sentence, True)
        words.n += 1

    def _parts_of(self, word: str) -> tuple[int, ...]:
        """The longest known word at a word's end, and the longest at its beginning, as it is or in its form."""
        found = self._parts.get(word)
        if found is None:
            find, parts = self._lexicon.tokens.get, []
            for at in range(_LEAST_PART, len(word) - _LEAST_PART + 1):
                if (number := find(word[at:])) is not None:
                    parts.append(number)
                    break
            for at in range(len(word) - _LEAST_PART, _LEAST_PART - 1, -1):
                forms = (*self._words.split(word[:at])[0][:1], word[:at])
                number = next((n for form in forms if (n := find(form)) is not None), None)
                if number is not None:
                    parts.append(number)
                    break
            found = tuple(parts)
            if len(self._parts) < _MOST_REMEMBERED:
                self._parts[word] = found
        return found

    def _match(self, words: _Words) -> Matches:
        numbers, sentences, places = (
            np.array(each, np.int32) for each in (words.numbers, words.sentences, words.places)
        )
        return self._lexicon.match(numbers, sentences, np.array(words.parts, bool), places)


def words_of_name(words: Words, name: str) -> list[str]:
    """The words of a name without a qualifier at its end; all, where nothing else is left."""
    found, grams = words.split(_QUALIFIER.sub("", name))
    if found or grams:
        return [*found, *grams]
    found, grams = words.split(name)
    return [*found, *grams]
