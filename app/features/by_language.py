"""Texts of several languages, each with terms of its own: as a model for each language, in one version.

A paragraph of a text is in the most probable of a recipe's languages, or in another one where all others together are
more probable. A short paragraph is in the language of the text's beginning; a short text is in the language whose
dictionary has most of its words, if that has more than half. A term is named after its language: ``fi:talo`` is the
word ``talo`` of a Finnish text.

A linear machine that is regularised by the squares of its weights, without an intercept, is then the machine of each
language alone: its weights are those of the languages side by side, for no row has terms that two languages share.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from simplemma import LanguageDetector

from app.datasets.recipe_schemas import OTHER_LANGUAGE, TextRecipe, dictionary_of
from app.features.language_detection import language_scores, n_letters
from app.features.words import dictionaries

_PARAGRAPH = re.compile(r"[^\n]+\n*|\n+")
# letters from which on a paragraph has a language of its own, and a text may be in another language
_FEWEST_LETTERS = 40
# characters by which a language is detected: more hardly change it
_READ = 500


class Part(NamedTuple):
    """A part of a text in one language."""

    language: str
    begin: int
    end: int

    def of(self, text: str) -> str:
        """The part of the text."""
        return text[self.begin : self.end]


def language_parts(text: str, languages: Sequence[str]) -> tuple[Part, ...]:
    """The parts of a text, which follow each other, by their languages; OTHER_LANGUAGE if it is none of these."""
    return _parts(text, tuple(languages)) if languages else (Part("", 0, len(text)),)


def main_language(texts: Iterable[str], languages: Sequence[str]) -> str | None:
    """The language of most of a row's texts; None if there are no languages."""
    lengths = Counter[str]()
    for text in texts:
        for part in language_parts(text, languages):
            lengths[part.language] += part.end - part.begin
    return lengths.most_common(1)[0][0] or None


def recipes_by_language(recipe: TextRecipe) -> dict[str, TextRecipe]:
    """The recipe of each language's texts; one without languages is that of ``""``."""
    if not recipe.by_language:
        return {"": recipe}
    return {each: recipe.of_language(each) for each in (*recipe.by_language, OTHER_LANGUAGE)}


def term_of(language: str, term: str) -> str:
    """What a term of a language is called."""
    return f"{language}:{term}" if language else term


def finds_in(language: str, find: Callable[[str], int | None]) -> Callable[[str], int | None]:
    """What finds the terms of a language, as those of all languages are found."""
    return (lambda term: find(term_of(language, term))) if language else find


# one request reads a text several times: for its terms, for names of concepts, and for the answer
@lru_cache(64)
def _parts(text: str, languages: tuple[str, ...]) -> tuple[Part, ...]:
    whole = partial(_language, text[:_READ], languages)
    found: list[Part] = []
    for begin, end in (match.span() for match in _PARAGRAPH.finditer(text)):
        paragraph = text[begin : min(end, begin + _READ)]
        language = _language(paragraph, languages) if n_letters(paragraph) >= _FEWEST_LETTERS else whole()
        if found and found[-1].language == language:
            begin = found.pop().begin
        found.append(Part(language, begin, end))
    return tuple(found) or (Part(whole(), 0, 0),)


@lru_cache(1 << 15)
def _language(read: str, languages: tuple[str, ...]) -> str:
    scores = language_scores(read, languages)
    if n_letters(read) >= _FEWEST_LETTERS:
        return OTHER_LANGUAGE if scores[None] > 0.5 else max(languages, key=lambda language: scores[language])
    known = _known_words(read, languages)
    return max(languages, key=lambda language: (known.get(language, 0.0), scores[language]))


def _known_words(read: str, languages: tuple[str, ...]) -> dict[str, float]:
    """The shares of a text's words that the languages' dictionaries have, where they have more than half."""
    of_dictionary = {code: each for each in languages if (code := dictionary_of(each)) is not None}
    if not of_dictionary:
        return {}
    found = _detector(tuple(of_dictionary)).proportion_in_each_language(read)
    return {language: found[code] for code, language in of_dictionary.items() if found.get(code, 0.0) > 0.5}


@lru_cache
def _detector(codes: tuple[str, ...]) -> LanguageDetector:
    return LanguageDetector(codes, lemmatization_strategy=dictionaries)
