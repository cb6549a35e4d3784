"""The stop words of a language, as a recipe's words are cut.

English has scikit-learn's list, which its users expect, and which has fewer words that a label may hang on; all other
languages have those of stopwords-iso.
"""

import re
from collections.abc import Callable

from app.datasets.recipe_schemas import OTHER_LANGUAGE, TextRecipe
from app.features.reading import reader


def with_stop_words(recipe: TextRecipe) -> TextRecipe:
    """The recipe with the words themselves where it names their language.

    Features keep these, so that they give the same rows whatever the lists of a later version are. A listed word that
    is split in texts, as at an apostrophe, drops its pieces; listed phrases are not taken.

    Parameters
    ----------
    recipe : TextRecipe
        Its `stop_words` are words, or a language, but not auto, which a dataset makes a language of.
    """
    if recipe.by_language:
        words = {name: with_stop_words(recipe.of_language(name)).stop_words for name in recipe.by_language}
        own = {name: each.model_copy(update={"stop_words": words[name]}) for name, each in recipe.by_language.items()}
        other = with_stop_words(recipe.of_language(OTHER_LANGUAGE)).stop_words
        return recipe.model_copy(update={"by_language": own, "stop_words": other})
    if not isinstance(recipe.stop_words, str):
        return recipe
    read = reader(recipe.model_dump(mode="json") | {"language": recipe.text_language}).read
    cut = {word for listed in _listed(recipe.stop_words) for word in _pieces(read, listed)}
    return recipe.model_copy(update={"stop_words": tuple(sorted(cut)), "language": recipe.text_language})


def _pieces(read: Callable[[str], tuple[list[str], list[str]]], listed: str) -> list[str]:
    return [] if re.search(r"[\s-]", listed) else read(listed)[0]


def _listed(language: str) -> frozenset[str] | set[str]:
    # either takes a while to load, which a process that fits no such recipe need not wait for
    if language == "en":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        english: frozenset[str] = ENGLISH_STOP_WORDS
        return english
    from stopwordsiso import stopwords

    return stopwords(language)
