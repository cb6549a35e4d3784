"""Names of a vocabulary's concepts found in texts: columns of what their places in a text are like.

A name is sought as the set of its words, in any order within a sentence, also as a part of a compound; "(qualifiers)"
at its end do not count. So a model knows a concept by its name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from app.datasets.recipe_schemas import TextRecipe
from app.features.base import Row
from app.features.by_language import finds_in, recipes_by_language, term_of
from app.features.names import pack_names, unpack_names
from app.features.terms import TermColumns
from app.features.words import Words
from solvers.labels.name_block import MATCH_COLUMNS, N_COLUMNS, NameBlock
from solvers.subjects.lexicon import Lexicon, Matches, Name
from solvers.subjects.name_columns import MatchRows, alike_names

_TOKENS, _SHOWN, _LEXICON = "tokens.", "shown.", "lexicon."
_LENGTH = "number of words"
_SENTENCES = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+|\s¤\s")
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")
# letters of a part of a compound, and compounds that are remembered
_LEAST_PART, _MOST_REMEMBERED = 4, 1 << 17


class ConceptName(NamedTuple):
    """A name of the concept with a number, in one of the recipe's languages."""

    concept: int
    name: str
    language: str = ""


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


class ConceptNames:
    """The columns of names: some for each concept, and the number of words.

    Texts are those of a row's fields; of rows without fields there is one. Names in the title count more: it is the
    first field, or the first sentence or line where there is none or it is empty.

    Parameters
    ----------
    recipe : TextRecipe
        Of the texts.
    fields : sequence of str
        The names of a row's fields; empty if it has one text.
    shown : list of str
        How each concept is called in explanations.
    """

    def __init__(self, recipe: TextRecipe, fields: Sequence[str], lexicon: Lexicon, shown: list[str]) -> None:
        self._lexicon, self._shown = lexicon, shown
        self._rows = MatchRows(lexicon, len(shown))
        self._parts: dict[tuple[str, str], tuple[int, ...]] = {}
        recipes = [recipe.of_field(name) for name in fields] if fields else [recipe]
        self._columns = [TermColumns(each, lambda _: None) for each in recipes]
        self._has_title = bool(fields)

    @classmethod
    def build(
        cls, recipe: TextRecipe, fields: Sequence[str], names: Iterable[ConceptName], shown: Sequence[str]
    ) -> ConceptNames:
        """Index names; ``shown`` has one for each concept."""
        words = {language: Words(own) for language, own in recipes_by_language(recipe).items()}
        lexicon = Lexicon.build(
            Name(
                each.concept, [term_of(each.language, word) for word in words_of_name(words[each.language], each.name)]
            )
            for each in names
        )
        return cls(recipe, fields, lexicon, list(shown))

    @classmethod
    def from_arrays(
        cls, recipe: TextRecipe, fields: Sequence[str], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> ConceptNames:
        """The names whose :meth:`arrays` these are."""

        def part(prefix: str) -> dict[str, npt.NDArray[Any]]:
            return {name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)}

        tokens = {word: number for number, word in enumerate(unpack_names(part(_TOKENS)))}
        lexicon = Lexicon.from_arrays(tokens, part(_LEXICON))
        return cls(recipe, fields, lexicon, unpack_names(part(_SHOWN)))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The words of names, the names, and how concepts are called."""
        found: dict[str, npt.NDArray[Any]] = {
            f"{_LEXICON}{name}": each for name, each in self._lexicon.arrays().items()
        }
        for prefix, names in ((_TOKENS, list(self._lexicon.tokens)), (_SHOWN, self._shown)):
            found |= {f"{prefix}{name}": each for name, each in pack_names(names).items()}
        return found

    @property
    def n_columns(self) -> int:
        """Of a row."""
        return N_COLUMNS * len(self._shown) + 1

    def block(self, first: int) -> NameBlock:
        """Which names are alike; the columns begin at ``first``."""
        return NameBlock(first, len(self._shown), alike_names(self._lexicon, len(self._shown)))

    def names(self) -> list[str]:
        """``name of CONCEPT: hits`` and so on, then ``number of words``."""
        return [*(f"name of {each}: {column}" for each in self._shown for column in MATCH_COLUMNS), _LENGTH]

    def named(self, at: int) -> str:
        """The name of one column."""
        concept, column = divmod(at, N_COLUMNS)
        return _LENGTH if concept == len(self._shown) else f"name of {self._shown[concept]}: {MATCH_COLUMNS[column]}"

    def known(self, at: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Names once each."""
        return np.asarray((at >= 0) & (at % N_COLUMNS == 0) & (at < N_COLUMNS * len(self._shown)))

    def row(self, texts: Sequence[str]) -> Row:
        """The columns of the names in a row's texts, ascending, and their values."""
        words, sentence, n_title = _Words(), 0, 0
        for at, columns in enumerate(self._columns):
            text = columns.read(texts[at])
            for part in columns.parts(text):
                own = columns.of_language[part.language].words
                for piece in _SENTENCES.split(part.of(text)):
                    for some in own.split(piece):
                        for word in some:
                            self._add(word, sentence, words, part.language, own)
                    sentence += 1
                    if not n_title or (at == 0 and self._has_title):
                        n_title = words.n
        return self._rows.row(self._match(words), words.n, n_title)

    def matches(self, rows: Iterable[Sequence[str]]) -> csr_matrix[np.float64]:
        """Rows of one text, or of one for each field: shape (n_rows, n_columns)."""
        found = [self.row(row) for row in rows]
        bounds = np.cumsum([0, *(len(columns) for columns, _ in found)])
        values = np.concatenate([each for _, each in found]) if found else np.empty(0)
        columns = np.concatenate([each for each, _ in found]) if found else np.empty(0, np.int32)
        return csr_matrix((values, columns, bounds), shape=(len(found), self.n_columns))

    def spans(self, texts: Sequence[str], indices: Collection[int]) -> dict[int, list[tuple[int, int]]]:
        """Where the names of columns occur in texts, when those that are not empty are joined by line breaks."""
        wanted = {at // N_COLUMNS for at in indices}
        places: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
        matches, where = self._placed(texts)
        concepts = self._lexicon.concept[matches.name].tolist()
        for concept, begin, end in zip(concepts, matches.first.tolist(), matches.last.tolist(), strict=True):
            if concept in wanted:
                places[concept].add((where[begin][0], where[end][1]))
        return {at: sorted(here) for at in indices if (here := places.get(at // N_COLUMNS))}

    def _placed(self, texts: Sequence[str]) -> tuple[Matches, list[tuple[int, int]]]:
        words, spans, sentence = _Words(), list[tuple[int, int]](), 0
        begins = np.cumsum([0, *(len(text) + 1 if text else 0 for text in texts)]).tolist()
        for field, columns in enumerate(self._columns):
            read = columns.excerpt(texts[field])
            for part in columns.parts(read.text):
                text, at = part.of(read.text), 0
                own = columns.of_language[part.language].words
                stops = [(match.start(), match.end()) for match in _SENTENCES.finditer(text)]
                for stop, following in [*stops, (len(text), len(text))]:
                    piece = text[at:stop]
                    origins = own.reader.origins(piece)
                    for word, begin, end in chain(*own.placed(piece)):
                        self._add(word, sentence, words, part.language, own)
                        first, last = (begin, end) if origins is None else (origins[begin][0], origins[end - 1][1])
                        first, last = read.place(part.begin + at + first, part.begin + at + last)
                        spans.append((begins[field] + first, begins[field] + last))
                    sentence += 1
                    at = following
        return self._match(words), spans

    def _add(self, word: str, sentence: int, words: _Words, language: str, own: Words) -> None:
        """Add a word, and the parts of a compound in the same place."""
        number = self._lexicon.tokens.get(term_of(language, word), -1)
        words.add(number, sentence, False)
        if len(word) >= 2 * _LEAST_PART:
            for part in self._parts_of(word, language, own):
                if part != number:
                    words.add(part, sentence, True)
        words.n += 1

    def _parts_of(self, word: str, language: str, own: Words) -> tuple[int, ...]:
        """The longest known word at a word's end, and the longest at its beginning, as it is or in its form."""
        found = self._parts.get((language, word))
        if found is None:
            find, parts = finds_in(language, self._lexicon.tokens.get), list[int]()
            for at in range(_LEAST_PART, len(word) - _LEAST_PART + 1):
                if (number := find(word[at:])) is not None:
                    parts.append(number)
                    break
            for at in range(len(word) - _LEAST_PART, _LEAST_PART - 1, -1):
                forms = (*own.split(word[:at])[0][:1], word[:at])
                number = next((n for form in forms if (n := find(form)) is not None), None)
                if number is not None:
                    parts.append(number)
                    break
            found = tuple(parts)
            if len(self._parts) < _MOST_REMEMBERED:
                self._parts[language, word] = found
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
