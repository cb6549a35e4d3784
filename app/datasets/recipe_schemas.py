"""Schemas of recipes: how texts and tables become features."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar, cast, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from app.values import ColumnType

Stemmer = Literal[
    "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french", "german", "greek",
    "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "porter", "portuguese",
    "romanian", "russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish",
]  # fmt: skip
Lemmas = Literal[
    "ar", "ast", "bg", "ca", "cs", "cy", "da", "de", "el", "en", "enm", "eo", "es", "et", "fa", "fi", "fr", "ga",
    "gd", "gl", "grc", "gv", "hbs", "he", "hi", "hu", "hy", "id", "is", "it", "ka", "la", "lb", "lt", "lv", "mk",
    "ml", "ms", "nb", "nl", "nn", "pl", "pt", "ro", "ru", "se", "sk", "sl", "sq", "sv", "sw", "tl", "tr", "uk",
]  # fmt: skip

# those of which there is a list of stop words, and whose words have blanks between them
STOP_LANGUAGES = {
    "af": "afrikaans", "ar": "arabic", "bg": "bulgarian", "bn": "bengali", "br": "breton", "ca": "catalan",
    "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english", "eo": "esperanto", "es": "spanish",
    "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish",
    "gl": "galician", "gu": "gujarati", "ha": "hausa", "he": "hebrew", "hi": "hindi", "hr": "croatian",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "ko": "korean", "ku": "kurdish",
    "la": "latin", "lt": "lithuanian", "lv": "latvian", "mr": "marathi", "ms": "malay", "nl": "dutch",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sk": "slovak",
    "sl": "slovenian", "so": "somali", "st": "sotho", "sv": "swedish", "sw": "swahili", "tl": "tagalog",
    "tr": "turkish", "uk": "ukrainian", "ur": "urdu", "vi": "vietnamese", "yo": "yoruba", "zu": "zulu",
}  # fmt: skip
# those that the detector of languages knows
DETECTED_LANGUAGES = frozenset({
    "ace", "af", "am", "an", "ar", "ary", "arz", "as", "az", "ba", "bcl", "be", "bg", "bn", "br", "bs", "ca", "crh",
    "cs", "cy", "da", "de", "dz", "el", "en", "eo", "es", "et", "eu", "ext", "fa", "fi", "fo", "fr", "fuv", "fy",
    "ga", "gcf", "gcr", "gd", "gl", "gom", "grc", "gu", "gug", "guw", "ha", "hbo", "he", "hi", "hr", "ht", "hu",
    "hy", "id", "ig", "is", "it", "ja", "jv", "ka", "kab", "kik", "kk", "km", "kn", "ko", "ku", "ky", "la", "lb",
    "lg", "lij", "ln", "lo", "lt", "ltg", "lv", "mg", "mk", "ml", "mn", "mr", "ms", "mt", "my", "ne", "nl", "nn",
    "no", "nso", "oc", "om", "or", "pa", "pcm", "pl", "ps", "pt", "qu", "ro", "ru", "rw", "sa", "sdh", "se", "si",
    "sk", "sl", "sn", "so", "sq", "sr", "st", "sv", "sw", "ta", "te", "tg", "th", "tk", "tl", "tr", "tt", "ug",
    "uk", "ur", "uz", "uzs", "vec", "vi", "vo", "wa", "wuu", "xh", "yo", "yue", "zh", "zu",
})  # fmt: skip
# texts in none of a recipe's languages
OTHER_LANGUAGE = "other"
# the fields of rows that have one text
TITLE_AND_BODY = ("title", "body")
_BY_NAME = {name: code for code, name in STOP_LANGUAGES.items()} | {"nb": "no", "nn": "no"}


def stop_language(name: str) -> str | None:
    """The code of a language's stop word list by tag or English name; None if there is no list.

    A tag is shortened from its end until it names a language (RFC 4647, section 3.4): pt-BR has the words of pt.
    """
    codes = (_BY_NAME.get(tag, tag) for tag in shortened(name))
    return next((code for code in codes if code in STOP_LANGUAGES), None)


# languages with a stemmer and without a list of stop words
_STEMMED = {"nepali": "ne", "porter": "en", "serbian": "sr", "tamil": "ta", "yiddish": "yi"}


def stem_language(stemmer: str) -> str:
    """The code of a stemmer's language."""
    return _STEMMED.get(stemmer) or _BY_NAME[stemmer]


def shortened(tag: str) -> Iterator[str]:
    """A language tag in lower case, followed by its prefixes without the last subtags."""
    subtags = tag.lower().split("-")
    while subtags:
        yield "-".join(subtags)
        subtags.pop()


_Recipe = TypeVar("_Recipe", "LanguageRecipe", "TextRecipe")
_Word = Annotated[str, Field(min_length=1, max_length=100)]
StopWords = Annotated[
    Annotated[str, Field(json_schema_extra={"enum": ["auto", *STOP_LANGUAGES, *_BY_NAME]}), Tag("language")]
    | Annotated[tuple[_Word, ...], Field(max_length=10_000), Tag("words")],
    Discriminator(lambda given: "language" if isinstance(given, str) else "words"),
]


def _ascending(lengths: tuple[int, int]) -> tuple[int, int]:
    if lengths[0] > lengths[1]:
        raise ValueError("the first length must not exceed the second")
    return lengths


_Length = Annotated[int, Field(ge=1, le=10)]
CharacterLengths = Annotated[tuple[_Length, _Length], AfterValidator(_ascending)]


Sources = Annotated[tuple[Literal["html", "pdf"], ...], AfterValidator(lambda given: tuple(sorted(set(given))))]


class FieldRecipe(BaseModel):
    """What one text column weighs, and what differs in it from the whole recipe, whose options it has otherwise."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    weight: float = Field(
        default=1.0,
        gt=0,
        le=1000,
        description="Weight of the field, whatever its number of words: with 2, a title of five words counts twice as "
        "much as an abstract of weight 1.",
    )
    clean: Sources | None = None
    max_characters: int | None = Field(default=None, ge=1)
    max_words: int | None = Field(default=None, ge=1)
    max_sentences: int | None = Field(default=None, ge=1)
    min_word_length: int | None = Field(default=None, ge=1, le=20)
    ngram_max: int | None = Field(default=None, ge=1, le=3)
    prefix: int | None = Field(default=None, ge=2, le=20)
    char_ngrams: CharacterLengths | None = None


def _of_language(given: str | tuple[str, ...]) -> str | tuple[str, ...]:
    if not isinstance(given, str) or given == "auto":
        return given
    code = stop_language(given)
    if code is None:
        known = ", ".join(f"{code} ({name})" for code, name in STOP_LANGUAGES.items())
        raise ValueError(
            "unknown list of stop words: give a list of words (on the command line, a comma follows a single "
            f"word), auto, or one of {known}"
        )
    return code


def _stem_by_tag(given: Any) -> Any:
    """Replace a language tag by the stemmer's name; the schema checks anything else."""
    names = (STOP_LANGUAGES.get(tag, tag) for tag in shortened(given)) if isinstance(given, str) else ()
    return next((name for name in names if name in get_args(Stemmer)), given)


def _lemmas_by_tag(given: Any) -> Any:
    """Shorten language tags to those with a dictionary: pt for pt-BR."""
    if not isinstance(given, list | tuple):
        return given
    known = get_args(Lemmas)
    return tuple(
        next((tag for tag in shortened(each) if tag in known), each) if isinstance(each, str) else each
        for each in given
    )


def _require_one_form(recipe: _Recipe) -> _Recipe:
    if recipe.stem is not None and recipe.lemmas:
        raise ValueError("give stem or lemmas, not both")
    return recipe


def dictionary_of(language: str) -> Lemmas | None:
    """The code of the dictionary of a language that is detected; None if there is none."""
    code = {"no": "nb", "hr": "hbs", "sr": "hbs", "bs": "hbs"}.get(language, language)
    return cast(Lemmas, code) if code in get_args(Lemmas) else None


def _detected(name: str) -> str:
    """The code of a language that the detector knows, by tag or English name; the name if there is none."""
    codes = (code for tag in shortened(name.strip()) for code in (tag, _BY_NAME.get(tag)))
    return next((code for code in codes if code in DETECTED_LANGUAGES), name)


class LanguageRecipe(BaseModel):
    """How texts in one language are read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stop_words: StopWords = ()
    stem: Stemmer | None = None
    lemmas: tuple[Lemmas, ...] = Field(default=(), max_length=8)

    _stop_list = field_validator("stop_words")(_of_language)
    _stemmer = field_validator("stem", mode="before")(_stem_by_tag)
    _dictionaries = field_validator("lemmas", mode="before")(_lemmas_by_tag)

    @classmethod
    def of(cls, language: str) -> Self:
        """Lemmas where there is a dictionary of the language, else stems where there is a stemmer."""
        lemmas = dictionary_of(language)
        if lemmas is not None:
            return cls(lemmas=(lemmas,))
        stem = _stem_by_tag(language)
        return cls(stem=stem if stem in get_args(Stemmer) else None)

    _one_form = model_validator(mode="after")(_require_one_form)


# pointers of errors leave out tags in angle brackets
Fields = Annotated[
    Annotated[Literal["auto"], Tag("<word>")]
    | Annotated[dict[Annotated[str, Field(min_length=1)], FieldRecipe], Field(max_length=100), Tag("<weights>")],
    Discriminator(lambda given: "<word>" if isinstance(given, str) else "<weights>"),
]


class TextRecipe(BaseModel):
    """How texts become TF-IDF features; fitted on the training part only."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_df: int = Field(default=2, ge=1, description="Minimum number of documents that contain a term.")
    max_df: float = Field(default=1.0, gt=0, le=1, description="Maximum share of documents that contain a term.")
    min_word_length: int = Field(
        default=2, ge=1, le=20, description="Minimum number of letters of a word; 1 keeps words such as C and D."
    )
    stop_words: StopWords = Field(
        default=(),
        description="Words to leave out, before stemming or lemmatization: the list of a language by tag (de, de-AT) "
        "or English name, auto for the language of most texts, or your own list.",
    )
    stem: Stemmer | None = Field(
        default=None,
        description="Stem words by Snowball's rules for a language, given by name or tag (de-AT).",
    )
    lemmas: tuple[Lemmas, ...] = Field(
        default=(),
        max_length=8,
        description="Lemmatize words with simplemma's dictionaries: language codes, most likely first.",
    )
    ngram_max: int = Field(default=1, ge=1, le=3, description="Maximum number of consecutive words in one term.")
    prefix: int | None = Field(
        default=None, ge=2, le=20, description="Add prefixes of this many letters of longer words as terms."
    )
    char_ngrams: CharacterLengths | None = Field(
        default=None,
        description="Add character n-grams within words, with lengths from the first number to the second; a blank "
        "marks each end of a word. Useful for codes, compounds and misspelt words; multiplies the number "
        "of features.",
    )
    clean: Sources = Field(
        default=(),
        description="Clean texts of these sources before reading them. html: remove tags, comments, scripts and "
        "styles, and decode entities. pdf, for text extracted from PDF files: join hyphenated words and wrapped "
        "lines, remove repeated headers and footers and page numbers, and replace ligatures.",
    )
    max_characters: int | None = Field(
        default=None, ge=1, description="Read only this many characters from the beginning of each text."
    )
    max_words: int | None = Field(
        default=None,
        ge=1,
        description="Read only this many words from the beginning of each text. In scripts without spaces between "
        "words, each character counts as a word.",
    )
    max_sentences: int | None = Field(
        default=None,
        ge=1,
        description="Read only this many sentences of each text: the first, and others spread evenly over the rest. "
        "Useful for whole documents.",
    )
    max_features: int | None = Field(
        default=None, ge=1, description="Maximum number of terms; the most frequent are kept."
    )
    hash_features: int | None = Field(
        default=None,
        ge=16,
        le=1 << 26,
        description="Hash terms into this many features, without a vocabulary; min_df and max_df then have no effect.",
    )
    weighting: Literal["tfidf", "bm25"] = Field(
        default="tfidf",
        description="Term weighting: tfidf, or bm25, which saturates counts and normalizes by text length.",
    )
    bm25_k1: float = Field(default=1.2, gt=0, le=100, description="BM25's k1: the larger, the more repetitions count.")
    bm25_b: float = Field(
        default=0.75, ge=0, le=1, description="BM25's b: how strongly the length of a text lowers its counts."
    )
    sublinear_tf: bool = Field(default=True, description="Use 1 + log(count) instead of the count; tfidf only.")
    lowercase: bool = Field(default=True, description="Ignore case, using Unicode case folding.")
    language: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$",
        description="Language of the texts, as a tag (tr, az-Latn), or auto for the language of most texts. It "
        "determines case folding: I folds to ı in Turkish and Azerbaijani, and to i in other languages. "
        "Default: the language of stop_words, stem or lemmas, if they have exactly one.",
    )
    normalization: Literal["NFC", "NFKC"] = Field(
        default="NFKC",
        description="Unicode form of the texts. NFKC also converts fullwidth letters, ligatures and Roman numerals "
        "to plain letters; NFC leaves them unchanged.",
    )
    unspaced: Literal["ngrams", "words"] = Field(
        default="ngrams",
        description="How to split scripts without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, "
        "Burmese). ngrams: terms are runs of one or two ideographs or kana, or one to three characters "
        "of the other scripts. words: your own segmenter has put spaces between words.",
    )
    reader: Literal[1, 2] = Field(
        default=2,
        description="Version of the tokenizer. 2 follows Unicode (UAX 29): combining marks belong to words, and "
        "texts are normalised. 1 is for models of earlier releases: words are runs of \\w, and language, "
        "normalization and unspaced have no effect.",
    )

    by_language: dict[str, LanguageRecipe] = Field(
        default={},
        max_length=20,
        description="Keep the terms of these languages apart, which makes a model for each language in one version: "
        "each paragraph is read with the lemmas, stems and stop words of its own language, and answers name the "
        "language. Texts in other languages have terms of their own, too. A list of languages, such as fi,sv,en, takes "
        "each one's lemmas, or stems if there is no dictionary.",
    )
    fields: Fields = Field(
        default={},
        description="Weights of text columns, by name, and options that differ in them. Each column's terms "
        "are then weighted on their own. Rows with one text have the columns title and body: the title is the first "
        "line, or what precedes ' ¤ ' in Annif's corpora. auto compares the joined text with weights 0.5, 0.7, 1 and 2 "
        "of the shortest column on some of the training rows, and keeps the joined text unless another is clearly "
        "better. "
        "Default: auto for auto and subjects, unless it would make a model read records in place of texts; otherwise "
        "the columns are joined into one text.",
    )

    _stop_list = field_validator("stop_words")(_of_language)
    _stemmer = field_validator("stem", mode="before")(_stem_by_tag)
    _dictionaries = field_validator("lemmas", mode="before")(_lemmas_by_tag)

    @field_validator("by_language", mode="before", json_schema_input_type=list[str] | dict[str, LanguageRecipe | None])
    @classmethod
    def _by_default(cls, given: Any) -> Any:
        """Replace a list of languages, or null for one of them, by their default recipes."""
        languages = dict.fromkeys(given) if isinstance(given, list | tuple) else given
        if not isinstance(languages, dict) or not all(isinstance(each, str) for each in languages):
            return given
        languages = {_detected(each): own for each, own in languages.items()}
        unknown = sorted(set(languages) - DETECTED_LANGUAGES)
        if unknown:
            raise ValueError(
                f"unknown languages: {', '.join(unknown)}; give codes such as fi, sv and en, or English names"
            )
        return {each: LanguageRecipe.of(each) if own is None else own for each, own in languages.items()}

    _one_form = model_validator(mode="after")(_require_one_form)

    @model_validator(mode="after")
    def _one_language(self) -> Self:
        if self.by_language and (self.stem or self.lemmas or self.language):
            raise ValueError(
                "by_language has the stem, lemmas and case folding of each language: leave out stem, lemmas and "
                "language"
            )
        return self

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.hash_features is not None and self.max_features is not None:
            raise ValueError("give max_features or hash_features, not both")
        return self

    def of_language(self, language: str) -> "TextRecipe":
        """The recipe of texts in one of the languages; words stay as they are in other languages."""
        own = self.by_language.get(language)
        if own is None:
            return self.model_copy(update={"by_language": {}})
        words = own.stop_words or self.stop_words
        forms = {"stem": own.stem, "lemmas": own.lemmas, "stop_words": words}
        return self.model_copy(update={"by_language": {}, "language": language, **forms})

    @property
    def own_fields(self) -> dict[str, FieldRecipe]:
        """The fields that are given; none where they are still to be chosen."""
        return {} if self.fields == "auto" else self.fields

    def field(self, name: str) -> FieldRecipe:
        """What one text column weighs, and what differs in it."""
        return self.own_fields.get(name, FieldRecipe())

    def of_field(self, name: str) -> "TextRecipe":
        """The recipe of one text column."""
        own = self.field(name).model_dump(exclude={"weight"}, exclude_none=True)
        return self.model_copy(update={"fields": {}, **own})

    @property
    def text_language(self) -> str | None:
        """The language of case folding: as given, else the language of stop words, stems or lemmas."""
        if self.language is not None:
            return self.language
        if isinstance(self.stop_words, str) and self.stop_words != "auto":
            return self.stop_words
        if self.stem is not None:
            return stem_language(self.stem)
        return self.lemmas[0] if len(self.lemmas) == 1 else None

    def summary(self) -> str:
        """Options that differ from their defaults, as name=value; ``words`` if none does."""
        changed = self.model_dump(exclude_defaults=True)
        if self.by_language:
            changed["by_language"] = ",".join(self.by_language)
        return ", ".join(f"{name}={value}" for name, value in changed.items()) or "words"


# weights that a dense model may have by the default recipe of auto, and terms in any case
_MOST_WEIGHTS, _MOST_TERMS, _FEW_TERMS = 200_000_000, 200_000, 20_000


def default_recipe(
    solver: str, n_labels: int, languages: Sequence[str] = (), *, named: bool = False, fields: bool = False
) -> TextRecipe:
    """The default recipe of a job on texts in some languages, the main one first.

    Names of concepts (``named``) are found by lemmas of the languages that have a dictionary, if the main one has.
    Weights of text columns (``fields``) are chosen by the methods that look for good answers.

    Along with words, pairs of words and runs of three characters lower the error more than the choice of the machine
    does. Of more terms those are dropped that are the rarest.
    """
    known = get_args(Lemmas)
    lemmas = tuple(cast(Lemmas, each) for each in languages if each in known) if named else ()
    if lemmas[:1] != tuple(languages[:1]):
        lemmas = ()  # names in all languages are found, as they are written
    weights: Literal["auto"] | dict[str, FieldRecipe] = "auto" if fields and solver in ("auto", "subjects") else {}
    if solver != "auto":
        return TextRecipe(lemmas=lemmas, fields=weights)
    most = min(_MOST_TERMS, max(_FEW_TERMS, _MOST_WEIGHTS // n_labels))
    return TextRecipe(ngram_max=2, char_ngrams=(3, 3), max_features=most, lemmas=lemmas, fields=weights)


class TableColumns(BaseModel):
    """Roles of the columns of a dataset's file, apart from label, split, weight and id."""

    model_config = ConfigDict(frozen=True)

    texts: tuple[str, ...] = Field(default=(), description="Text columns, joined by newlines into one text.")
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    left_out: dict[str, str] = Field(default={}, description="Columns that are left out, with the reason.")
    missing: bool = Field(default=False, description="Whether numbers and categories may be missing.")
    inferred: bool = Field(default=False, description="Whether column types were inferred.")
    types: dict[str, ColumnType] = Field(
        default={},
        description="Types of category columns: boolean, number, date or text. Absent for datasets imported by an "
        "earlier version.",
    )


class ColumnRecipe(BaseModel):
    """How numbers and categories become features; fitted on the training part only."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scaling: Literal["standard", "robust", "max_abs", "unit_norm", "power_of_two", "none"] = Field(
        default="standard",
        description="Scaling of numbers: standard gives mean 0 and standard deviation 1; robust gives median 0 and "
        "interquartile range 1; max_abs scales to [-1, 1] and keeps zeros; unit_norm scales each row to "
        "length 1; power_of_two divides all columns by one power of two, so that the largest number is "
        "between 1 and 2.",
    )
    missing: Literal["median", "mean", "zero"] = Field(
        default="median",
        description="Replacement of missing numbers, computed from the training rows that have a value.",
    )
    mark_missing: bool = Field(
        default=True,
        description="Add a feature for each column with missing numbers that marks where they are missing.",
    )
    min_level_rows: int = Field(
        default=2,
        ge=1,
        description="Minimum number of training rows per level of a category; rarer levels, and levels first seen in "
        "predictions, share one level.",
    )
    vector_weight: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | Literal["auto"] | None = Field(
        default=None,
        description="Weight of columns of lists, such as embeddings, beside a text or other columns of weight 1: each "
        "list is scaled to length 1 and multiplied by it, and a missing list is all zeros. auto chooses it among "
        "0.25, 0.5, 1, 2 and 4 by the log loss on held-out training rows. Without it, elements are scaled one by one, "
        "as numbers are. Default: auto for tables with texts, otherwise none.",
    )

    @property
    def trial_vector_weight(self) -> float | None:
        """The weight of lists, 1 where it is still to be chosen."""
        return 1.0 if self.vector_weight == "auto" else self.vector_weight


class ColumnSummary(BaseModel):
    """One column as it was imported."""

    name: str
    role: Literal["text", "number", "category", "left out"]
    why: str | None = Field(default=None, description="Reason why the column is left out.")
    missing: int = Field(default=0, description="Rows without a value.")
    levels: int | None = Field(default=None, description="Categories only: number of distinct values.")
    least: float | None = Field(
        default=None, description="Numbers only, like most and mean: computed over the rows that have a value."
    )
    most: float | None = None
    mean: float | None = None
