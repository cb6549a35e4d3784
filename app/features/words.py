"""The words of a text, as a recipe says: how long, which are left out, and what stands in their place.

Words are runs of `min_word_length` or more word characters. Stop words are left out first; then stems, by Snowball's
rules of a language, or lemmas, by simplemma's dictionaries, take the words' places.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import version

import snowballstemmer
from simplemma import Lemmatizer
from simplemma.strategies import DefaultStrategy
from simplemma.strategies.dictionaries.dictionary_factory import DefaultDictionaryFactory

from app.schemas.datasets.texts import TextRecipe

_REMEMBERED = 1 << 17
# letters of a word that is remembered: longer ones hardly come again, and fill the memory
MOST_REMEMBERED = 40
# a dictionary takes seconds to load: every language's stays
_lemmatizer = Lemmatizer(0, lemmatization_strategy=DefaultStrategy(dictionary_factory=DefaultDictionaryFactory(1000)))
_stemming = threading.Lock()


class Words:
    """What a recipe takes for words."""

    def __init__(self, recipe: TextRecipe) -> None:
        self._lowercase = recipe.lowercase
        self._pattern = word_pattern(recipe)
        self._least = recipe.min_word_length
        assert not isinstance(recipe.stop_words, str), "the words of a language are looked up when a recipe is fitted"
        self._stop = frozenset(word.lower() if recipe.lowercase else word for word in recipe.stop_words)
        self._form = _form(recipe)

    def of(self, text: str) -> list[str]:
        """The words of a text, in its order."""
        words: list[str] = self._pattern.findall(text.lower() if self._lowercase else text)
        if self._stop:
            words = [word for word in words if word not in self._stop]
        return words if self._form is None else list(map(self._form, words))

    def kept(self, runs: list[str]) -> list[str | None]:
        """What runs of word characters, lowered where the recipe says so, are taken for; None where one is left out."""
        least, stop, form = self._least, self._stop, self._form
        kept = [run if len(run) >= least and run not in stop else None for run in runs]
        return kept if form is None else [run if run is None else form(run) for run in kept]

    def placed(self, text: str) -> list[tuple[str, int, int]]:
        """As :meth:`of`, each with its beginning and end in the text or, if the recipe says so, its lower case."""
        form = self._form or str
        found = self._pattern.finditer(text.lower() if self._lowercase else text)
        return [(form(match[0]), *match.span()) for match in found if match[0] not in self._stop]


def word_pattern(recipe: TextRecipe) -> re.Pattern[str]:
    """What a word is, stop words included."""
    return re.compile(rf"\b\w{{{recipe.min_word_length},}}\b")


def libraries(recipe: TextRecipe) -> dict[str, str]:
    """The version of the library that makes stems or lemmas, by its name; empty where words stay as they are."""
    name = "snowballstemmer" if recipe.stem is not None else "simplemma" if recipe.lemmas else None
    return {} if name is None else {name: version(name)}


def _form(recipe: TextRecipe) -> Callable[[str], str] | None:
    """What takes a word to its stem or its lemma; None where words stay as they are."""
    if recipe.stem is not None:
        stemmer = snowballstemmer.stemmer(recipe.stem)

        def stem(word: str) -> str:
            with _stemming:  # a stemmer has a state
                return str(stemmer.stemWord(word))

        return _remembering(stem)
    if recipe.lemmas:

        def lemma(word: str) -> str:
            found = str(_lemmatizer.lemmatize(word, recipe.lemmas))
            return found.lower() if recipe.lowercase else found

        lemma("word")  # loads the dictionary now, and not with the first request
        return _remembering(lemma)
    return None


def _remembering(form: Callable[[str], str]) -> Callable[[str], str]:
    remembered = lru_cache(_REMEMBERED)(form)
    return lambda word: remembered(word) if len(word) <= MOST_REMEMBERED else form(word)
