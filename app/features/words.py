"""The words of a text by a recipe: minimum length, stop words, stems and lemmas.

:mod:`app.features.reading` cuts a text into words of `min_word_length` or more letters. Stop words are left out first;
then stems, by Snowball's rules of a language, or lemmas, by simplemma's dictionaries, take the words' places.
"""

import threading
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import version

import snowballstemmer
from simplemma import Lemmatizer
from simplemma.strategies import DefaultStrategy
from simplemma.strategies.dictionaries.dictionary_factory import DefaultDictionaryFactory

from app.datasets.recipe_schemas import LanguageRecipe, TextRecipe
from app.features.reading import Placed, Reader, reader

_REMEMBERED = 1 << 17
# letters of a word that is remembered: longer ones hardly come again, and fill the memory
MOST_REMEMBERED = 40
# a dictionary takes seconds to load: every language's stays
dictionaries = DefaultStrategy(dictionary_factory=DefaultDictionaryFactory(1000))
_lemmatizer = Lemmatizer(0, lemmatization_strategy=dictionaries)
_stemming = threading.Lock()


class Words:
    """What a recipe takes for words."""

    def __init__(self, recipe: TextRecipe) -> None:
        self._reader = reader(recipe.model_dump(mode="json") | {"language": recipe.text_language})
        self._least = recipe.min_word_length
        assert not isinstance(recipe.stop_words, str), "the words of a language are looked up when a recipe is fitted"
        self._stop = frozenset(map(self._reader.fold, recipe.stop_words))
        self._form = _form(recipe)

    @property
    def reader(self) -> Reader:
        """What reads the texts."""
        return self._reader

    def split(self, text: str) -> tuple[list[str], list[str]]:
        """The words of a text, in its order, and its runs of characters where scripts have no blanks."""
        words, grams = self._reader.read(text)
        if self._stop:
            words = [word for word in words if word not in self._stop]
            grams = [gram for gram in grams if gram not in self._stop]
        return words if self._form is None else list(map(self._form, words)), grams

    def kept(self, runs: list[str]) -> list[str | None]:
        """What runs of ASCII word characters, lowered where the recipe says so, become; None where one is left out."""
        least, stop, form = self._least, self._stop, self._form
        kept = [run if len(run) >= least and run not in stop else None for run in runs]
        return kept if form is None else [run if run is None else form(run) for run in kept]

    def placed(self, text: str) -> tuple[Placed, Placed]:
        """As :meth:`split`, each with its beginning and end in the text as the reader folds it."""
        words, grams = self._reader.placed(text)
        form = self._form or str
        return (
            [(form(word), begin, end) for word, begin, end in words if word not in self._stop],
            [gram for gram in grams if gram[0] not in self._stop],
        )


def libraries(recipe: TextRecipe) -> dict[str, str]:
    """The versions of the libraries that make stems and lemmas and detect languages, by their names."""
    forms: list[TextRecipe | LanguageRecipe] = [recipe, *recipe.by_language.values()]
    used = {
        "py3langid": bool(recipe.by_language),
        "simplemma": bool(recipe.by_language) or any(each.lemmas for each in forms),
        "snowballstemmer": any(each.stem is not None for each in forms),
    }
    return {name: version(name) for name, here in used.items() if here}


def _form(recipe: TextRecipe) -> Callable[[str], str] | None:
    """What takes a word to its stem or its lemma; None where words stay as they are."""
    if recipe.stem is not None:
        stemmer = snowballstemmer.stemmer(recipe.stem)

        def stem(word: str) -> str:
            with _stemming:  # a stemmer has a state
                return str(stemmer.stemWord(word))

        return _remembering(stem)
    if recipe.lemmas:
        folded = str.lower if recipe.reader == 1 else str.casefold

        def lemma(word: str) -> str:
            found = str(_lemmatizer.lemmatize(word, recipe.lemmas))
            return folded(found) if recipe.lowercase else found

        lemma("word")  # loads the dictionary now, and not with the first request
        return _remembering(lemma)
    return None


def _remembering(form: Callable[[str], str]) -> Callable[[str], str]:
    remembered = lru_cache(_REMEMBERED)(form)
    return lambda word: remembered(word) if len(word) <= MOST_REMEMBERED else form(word)
