"""The terms of texts and their columns: words, runs of words, beginnings of words, runs of characters in them.

Scripts without blanks have runs of characters in the place of words. These join in no run of words.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import cast

from app.datasets.recipe_schemas import TextRecipe
from app.features.by_language import Part, finds_in, language_parts, recipes_by_language
from app.features.excerpts import Excerpt, excerpt
from app.features.words import MOST_REMEMBERED, Words

# words whose terms are remembered
_MOST_WORDS = 100_000


def placed_terms(text: str, params: TextRecipe, words_of: Words) -> Iterator[tuple[str, int, int]]:
    """The terms of a text, each with its beginning and end in the text as its reader folds it."""
    words, grams = words_of.placed(text)
    yield from words
    yield from grams
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


class TermColumns:
    """The columns of the terms of texts, by the language that each part of a text is in.

    Parameters
    ----------
    find : callable
        A term's column, or None to leave it out.
    """

    def __init__(self, params: TextRecipe, find: Callable[[str], int | None]) -> None:
        self.params = params
        self.of_language = {
            language: LanguageColumns(recipe, finds_in(language, find))
            for language, recipe in recipes_by_language(params).items()
        }
        reading = {"clean", "max_characters", "max_words", "max_sentences"}
        self._reading = params.model_dump(include=reading, exclude_defaults=True)

    def excerpt(self, text: str) -> Excerpt:
        """What is read of a text."""
        return excerpt(text, self._reading)

    def read(self, text: str) -> str:
        """The text of :meth:`excerpt`."""
        return excerpt(text, self._reading).text if self._reading else text

    def parts(self, text: str) -> Sequence[Part]:
        """The parts of a text that :meth:`read` has returned, by their languages."""
        return language_parts(text, tuple(self.params.by_language))

    def find_all(self, text: str) -> list[int]:
        """One for each time that a term is in a text that :meth:`read` has returned."""
        if not self.params.by_language:
            return self.of_language[""].find_all(text)
        return [at for part in self.parts(text) for at in self.of_language[part.language].find_all(part.of(text))]

    def places(self, text: str) -> Iterator[tuple[int, int, int]]:
        """The column of each term of a text, and its beginning and end in characters."""
        read = self.excerpt(text)
        for part in self.parts(read.text):
            for column, begin, end in self.of_language[part.language].places(part.of(read.text)):
                yield column, *read.place(part.begin + begin, part.begin + end)


class LanguageColumns:
    """Finds the columns of the terms of texts in one language, and remembers those of words, which repeat.

    Parameters
    ----------
    params : TextRecipe
        Without languages.
    find : callable
        A term's column, or None to leave it out.
    """

    def __init__(self, params: TextRecipe, find: Callable[[str], int | None]) -> None:
        self.params, self.find = params, find
        self.words = Words(params)
        self._of_word: dict[str, list[int]] = {}

    @property
    def lowercase(self) -> bool:
        """Whether capital letters are taken as small ones."""
        return self.params.lowercase

    def ascii_alike(self, text: str) -> bool:
        """Whether an ASCII text reads as runs of its letters, digits and underscores."""
        return text.isascii() and self.words.reader.ascii_alike(text)

    @property
    def longest_run(self) -> int:
        """Words of the longest run of them that is one term."""
        return self.params.ngram_max

    @property
    def one_each(self) -> bool:
        """Whether a word brings no term but itself, wherever it is."""
        return self.params.prefix is None and self.params.char_ngrams is None

    def find_all(self, text: str) -> list[int]:
        """One for each time that a term is in a text."""
        params, find, of_word = self.params, self.find, self._of_word.get
        words, grams = self.words.split(text)
        if self.one_each and params.hash_features is None:
            columns = [column for column in map(find, words) if column is not None]
        else:
            known = list(map(of_word, words))
            of_each = list(map(self.of_word, words)) if None in known else cast(list[list[int]], known)
            columns = list(chain.from_iterable(of_each))
        if params.ngram_max > 1:
            columns += [column for run in _word_runs(words, params) if (column := find(run)) is not None]
        if grams:
            columns += [column for column in map(find, grams) if column is not None]
        return columns

    def places(self, text: str) -> Iterator[tuple[int, int, int]]:
        """The column of each term of a text, and its beginning and end in characters."""
        origins = self.words.reader.origins(text)
        for term, begin, end in placed_terms(text, self.params, self.words):
            if (column := self.find(term)) is not None:
                yield column, *((begin, end) if origins is None else (origins[begin][0], origins[end - 1][1]))

    def of_word(self, word: str) -> list[int]:
        """Those that a word brings wherever it is."""
        found = self._of_word.get(word)
        if found is None:
            found = [column for term in _parts(word, self.params) if (column := self.find(term)) is not None]
            if len(self._of_word) >= _MOST_WORDS:
                self._of_word.clear()
            if len(word) <= MOST_REMEMBERED:
                self._of_word[word] = found
        return found


def _parts(word: str, params: TextRecipe) -> list[str]:
    """The terms that a word brings wherever it is: itself, its beginning, and runs of its characters."""
    terms = [word]
    if params.prefix is not None and len(word) > params.prefix:
        terms.append(f"{word[: params.prefix]}*")
    if params.char_ngrams is not None:
        terms += _character_runs(word, *params.char_ngrams)
    return terms
