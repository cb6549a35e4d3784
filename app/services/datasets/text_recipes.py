"""The language of a recipe's stop words, by the texts of the dataset that the recipe is for."""

from app.errors import InvalidInput, Item
from app.schemas.datasets.statistics import DatasetStatistics
from app.schemas.datasets.texts import TextRecipe, stop_language


def with_language(recipe: TextRecipe, statistics: DatasetStatistics, pointer: str = "/text") -> TextRecipe:
    """The recipe with a language in the place of auto: the one that most texts are in.

    Raises
    ------
    InvalidInput
        That language is not known, or there is no list of stop words for it.
    """
    if recipe.stop_words != "auto":
        return recipe
    shares = [] if statistics.languages is None else statistics.languages.shares
    if not shares:
        detail = "fewer than 20 of the dataset's texts are long enough to tell their language: name it"
    elif (code := stop_language(shares[0].language)) is not None:
        return recipe.model_copy(update={"stop_words": code})
    else:
        detail = (
            f"most texts are in the language {shares[0].language}, of which there is no list of stop words: name "
            "another language, or give the words"
        )
    raise InvalidInput("the request does not fit the dataset", [Item(detail, f"{pointer}/stop_words")])
