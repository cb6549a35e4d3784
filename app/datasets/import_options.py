"""Import options: resolved and checked before the file is read."""

from collections.abc import Collection

from app.datasets.formats import FORMATS
from app.datasets.recipe_schemas import TITLE_AND_BODY, TextRecipe, stem_language, stop_language
from app.datasets.schemas import ImportOptions
from app.datasets.statistics_schemas import DatasetStatistics
from app.errors import InvalidInput, Item
from app.features.language_detection import is_among

# why a format may not support an option
_REASONS = {
    "label_column": "its labels are not in a column",
    "label_columns": "its labels are not in columns",
    "unlabelled": "its rows always have labels",
    "zero_based": "its features have no indices, or their indices begin at 0",
    "weight_column": "its weights are not in a column",
    "label_separator": "rows with several labels use lists",
    "label_lists": "its labels are never lists",
    "without_label": "its rows always have labels",
    "languages": "it has no texts",
    "text_columns": "it has no text columns",
    "text_fields": "its rows are not bibliographic records",
    "label_fields": "its rows are not bibliographic records",
    "ignore_columns": "it has no columns",
    "number_columns": "it has no columns",
    "category_columns": "it has no columns",
    "column_types": "it has no columns",
    "id_column": "its rows have no ids",
    "other_columns": "it has no columns",
    "infer_columns": "it has no columns",
    "missing": "it has no missing values",
    "missing_values": "it has no missing values",
    "encoding": "it is not a text format",
    "delimiter": "it has no delimiters",
    "decimal": "its numbers use decimal points",
    "quotes": "it has no quoted cells",
    "sheet": "it has no sheets",
}


def formats_of(name: str) -> frozenset[str]:
    """Return the formats that support an option."""
    return frozenset(format for format in FORMATS if _supports(format, name))


def _supports(format: str, name: str) -> bool:
    return name not in _REASONS or name in FORMATS[format].options


def check_options(options: ImportOptions, format: str) -> None:
    """Reject options that a format does not support.

    Raises
    ------
    InvalidInput
    """
    default = ImportOptions()
    for name, reason in _REASONS.items():
        if not _supports(format, name) and getattr(options, name) != getattr(default, name):
            detail = f"{format}: {reason}"
            if name == "weight_column" and format == "svmlight":
                detail = "svmlight rows give their weight as cost:number, not in a column"
            raise InvalidInput("the format does not support this option", [Item(detail, f"/{name}")])
    if options.label_columns and (options.unlabelled or options.label_separator or options.label_lists):
        raise InvalidInput(
            "label_columns are the only source of labels",
            [
                Item(
                    "label_columns cannot be combined with unlabelled, label_separator or label_lists", "/label_columns"
                )
            ],
        )
    if options.weight_column == options.label_column:
        raise InvalidInput(
            "weight_column and label_column must differ",
            [Item("one column cannot hold both labels and weights", "/weight_column")],
        )
    for name, (only, reason) in FORMATS[format].fixed.items():
        if getattr(options, name) not in (None, only):
            raise InvalidInput(f"{format} supports only one {name}", [Item(f"{format}: {reason}", f"/{name}")])


# a language that fewer of the texts are in is not the language of any
_LEAST_SHARE = 0.05


def main_language(statistics: DatasetStatistics) -> str | None:
    """The language of most texts, as a tag; None if it is not known."""
    return statistics.languages.shares[0].language if statistics.languages and statistics.languages.shares else None


def languages_of_names(statistics: DatasetStatistics, named: Collection[str]) -> tuple[str, ...]:
    """The languages in which names are sought in texts: that of most texts, and others that texts and names have.

    Parameters
    ----------
    statistics : DatasetStatistics
    named : collection of str
        The languages of the names, as tags.

    Returns
    -------
    tuple of str
        The language of most texts first; others only if a twentieth of the texts is in them. Empty if it is not known.
    """
    main = main_language(statistics)
    if main is None or statistics.languages is None:
        return ()
    bases = {tag.partition("-")[0].lower() for tag in named}
    others = (each for each in statistics.languages.shares if each.share >= _LEAST_SHARE and each.language in bases)
    return tuple(dict.fromkeys((main, *(each.language for each in others))))


def with_language(recipe: TextRecipe, statistics: DatasetStatistics, pointer: str = "/text") -> TextRecipe:
    """The recipe with auto replaced by the language of most texts.

    Raises
    ------
    InvalidInput
        That language is not known, or there is no list of stop words for it; stop words, stems or lemmas are of a
        language that the texts are not in; or a field is no text column.
    """
    recipe = _resolved(recipe, statistics, pointer)
    _check_fields(recipe, statistics, pointer)
    for field, of in _languages(recipe).items():
        if recipe.language is not None:
            if not is_among(recipe.language, of):
                detail = (
                    f"{field} is for {', '.join(sorted(of))}, but language is {recipe.language}: use the same "
                    "language for both"
                )
                raise _fault(detail, f"{pointer}/{field}")
        elif _foreign(of, statistics):
            shares = [] if statistics.languages is None else statistics.languages.shares
            detail = (
                f"{field} is for {', '.join(sorted(of))}, but {shares[0].share:.0%} of the texts are in the language "
                f"{shares[0].language}: choose it for that language, or leave it out"
                f"{'' if recipe.by_language else f', or set the language of the texts (language={min(of)})'}"
            )
            raise _fault(detail, f"{pointer}/{field}")
    return recipe


def _check_fields(recipe: TextRecipe, statistics: DatasetStatistics, pointer: str) -> None:
    """Raise InvalidInput where a recipe has fields that are neither text columns nor title and body of one text."""
    columns = [column.name for column in statistics.columns or [] if column.role == "text"]
    several = len(columns) > 1
    for name in recipe.own_fields:
        if name not in (columns if several else TITLE_AND_BODY):
            known = f"text columns are {', '.join(columns)}" if several else "rows have one text: title and body"
            raise _fault(f"no text column '{name}'; the dataset's {known}", f"{pointer}/fields/{name}")


def _resolved(recipe: TextRecipe, statistics: DatasetStatistics, pointer: str) -> TextRecipe:
    if recipe.by_language:
        return _with_own_stop_words(recipe)
    if "auto" not in (recipe.stop_words, recipe.language):
        return recipe
    field = "stop_words" if recipe.stop_words == "auto" else "language"
    shares = [] if statistics.languages is None else statistics.languages.shares
    if not shares:
        unclear = statistics.languages is not None
        why = "not clearly in one language" if unclear else "too few or too short to detect their language"
        detail = f"the texts of the dataset are {why}: name the language"
        raise _fault(detail, f"{pointer}/{field}")
    first = shares[0].language
    if recipe.language == "auto":
        recipe = recipe.model_copy(update={"language": first})
    if recipe.stop_words == "auto":
        code = stop_language(first)
        if code is None:
            detail = (
                f"most texts are in the language {first}, which has no list of stop words: name another language, or "
                "give the words"
            )
            raise _fault(detail, f"{pointer}/stop_words")
        recipe = recipe.model_copy(update={"stop_words": code})
    return recipe


def _with_own_stop_words(recipe: TextRecipe) -> TextRecipe:
    """Recipe with each language's own list in the place of auto; none where there is no list."""
    own = {
        language: each.model_copy(update={"stop_words": stop_language(language) or ()})
        if "auto" in (each.stop_words, each.stop_words or recipe.stop_words)
        else each
        for language, each in recipe.by_language.items()
    }
    shared = () if recipe.stop_words == "auto" else recipe.stop_words
    return recipe.model_copy(update={"by_language": own, "stop_words": shared})


def _languages(recipe: TextRecipe) -> dict[str, set[str]]:
    """The languages of stop words, stems and lemmas."""
    found: dict[str, set[str]] = {}
    if isinstance(recipe.stop_words, str):
        found["stop_words"] = {recipe.stop_words}
    if recipe.stem is not None:
        found["stem"] = {stem_language(recipe.stem)}
    if recipe.lemmas:
        found["lemmas"] = set(recipe.lemmas)
    if recipe.by_language:
        found["by_language"] = set(recipe.by_language)
    return found


def _foreign(languages: set[str], statistics: DatasetStatistics) -> bool:
    """Whether almost no text is in one of these languages or a closely related one."""
    if statistics.languages is None or not statistics.languages.shares:
        return False
    share = sum(
        each.share
        for each in statistics.languages.shares
        if each.language == "other" or is_among(each.language, languages)
    )
    return share < _LEAST_SHARE


def _fault(detail: str, pointer: str) -> InvalidInput:
    return InvalidInput("the request does not fit the dataset", [Item(detail, pointer)])
