"""How texts become features."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

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
_BY_NAME = {name: code for code, name in STOP_LANGUAGES.items()} | {"nb": "no", "nn": "no"}


def stop_language(name: str) -> str | None:
    """The code, as stop words go by it, of a language's tag or English name; None where there is no list of it.

    A tag is shortened from its end until it names a language (RFC 4647, section 3.4): pt-BR has the words of pt.
    """
    codes = (_BY_NAME.get(tag, tag) for tag in shortened(name))
    return next((code for code in codes if code in STOP_LANGUAGES), None)


def shortened(tag: str) -> Iterator[str]:
    """A language's tag in lower case, and what is left of it as its subtags are taken from its end."""
    subtags = tag.lower().split("-")
    while subtags:
        yield "-".join(subtags)
        subtags.pop()


_Word = Annotated[str, Field(min_length=1, max_length=100)]
StopWords = Annotated[
    Annotated[str, Field(json_schema_extra={"enum": ["auto", *STOP_LANGUAGES, *_BY_NAME]}), Tag("language")]
    | Annotated[tuple[_Word, ...], Field(max_length=10_000), Tag("words")],
    Discriminator(lambda given: "language" if isinstance(given, str) else "words"),
]


class TextRecipe(BaseModel):
    """How texts become TF-IDF features; fitted on the training part alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_df: int = Field(default=2, ge=1, description="Documents that a term must be in.")
    max_df: float = Field(default=1.0, gt=0, le=1, description="Largest share of the documents that a term may be in.")
    min_word_length: int = Field(
        default=2, ge=1, le=20, description="Letters that a word must have; 1 keeps the language C, and vitamin D."
    )
    stop_words: StopWords = Field(
        default=(),
        description="Words that are left out, before stems or lemmas are made: those of a language, by its tag "
        "(de, de-AT) or its English name, or of the language that most texts of the dataset are in (auto), or a list "
        "of your own.",
    )
    stem: Stemmer | None = Field(
        default=None,
        description="Words become their stems, by Snowball's rules of a language, which a tag (de-AT) may name, too.",
    )
    lemmas: tuple[Lemmas, ...] = Field(
        default=(),
        max_length=8,
        description="Words become their lemmas, by simplemma's dictionaries: codes of languages, the likeliest first.",
    )
    ngram_max: int = Field(default=1, ge=1, le=3, description="Longest run of words taken as one term.")
    prefix: int | None = Field(
        default=None, ge=2, le=20, description="Also the first so many letters of longer words, as terms of their own."
    )
    char_ngrams: tuple[Annotated[int, Field(ge=1, le=10)], Annotated[int, Field(ge=1, le=10)]] | None = Field(
        default=None,
        description="Also runs of characters within words, from the first number of them to the second; a blank marks "
        "either end of a word. For codes, compounds and misspelt words; several times as many features.",
    )
    max_features: int | None = Field(default=None, ge=1, description="Keep only the most frequent terms.")
    hash_features: int | None = Field(
        default=None,
        ge=16,
        le=1 << 26,
        description="Hash terms into so many features, and keep no vocabulary; min_df and max_df then drop nothing.",
    )
    weighting: Literal["tfidf", "bm25"] = Field(
        default="tfidf", description="bm25: counts are damped by their number and by the length of the text."
    )
    bm25_k1: float = Field(default=1.2, gt=0, le=100, description="How far repetitions count: the larger, the further.")
    bm25_b: float = Field(default=0.75, ge=0, le=1, description="How much the length of a text lowers its counts.")
    sublinear_tf: bool = Field(default=True, description="1 + log(count) in place of the count; of tfidf alone.")
    lowercase: bool = Field(default=True, description="Capital letters are taken as small ones.")

    @field_validator("stop_words")
    @classmethod
    def _of_language(cls, given: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if not isinstance(given, str) or given == "auto":
            return given
        code = stop_language(given)
        if code is None:
            known = ", ".join(f"{code} ({name})" for code, name in STOP_LANGUAGES.items())
            raise ValueError(
                "no list of stop words has that name: give words as a list, a single one, too (on the command line "
                f"with a comma behind it), or auto, or one of {known}"
            )
        return code

    @field_validator("stem", mode="before")
    @classmethod
    def _stem_by_tag(cls, given: Any) -> Any:
        """The name of a language whose tag was given; what else there is is left to the schema."""
        names = (STOP_LANGUAGES.get(tag, tag) for tag in shortened(given)) if isinstance(given, str) else ()
        return next((name for name in names if name in get_args(Stemmer)), given)

    @field_validator("lemmas", mode="before")
    @classmethod
    def _lemmas_by_tag(cls, given: Any) -> Any:
        """Tags of languages as far as there are dictionaries of them: pt for pt-BR."""
        if not isinstance(given, list | tuple):
            return given
        known = get_args(Lemmas)
        return tuple(
            next((tag for tag in shortened(each) if tag in known), each) if isinstance(each, str) else each
            for each in given
        )

    @field_validator("char_ngrams")
    @classmethod
    def _ascends(cls, lengths: tuple[int, int] | None) -> tuple[int, int] | None:
        if lengths is not None and lengths[0] > lengths[1]:
            raise ValueError("the shorter length comes first")
        return lengths

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.stem is not None and self.lemmas:
            raise ValueError("give stem or lemmas, not both")
        return self

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.hash_features is not None and self.max_features is not None:
            raise ValueError("give max_features or hash_features, not both")
        return self

    def summary(self) -> str:
        """What is not as by default, as name=value; ``words`` where all is."""
        changed = self.model_dump(exclude_defaults=True)
        return ", ".join(f"{name}={value}" for name, value in changed.items()) or "words"


# weights that a dense model may have by the default recipe of auto, and terms in any case
_MOST_WEIGHTS, _MOST_TERMS, _FEW_TERMS = 200_000_000, 200_000, 20_000


def default_recipe(solver: str, n_labels: int) -> TextRecipe:
    """The recipe of a job that names none.

    Along with words, pairs of words and runs of three characters lower the error more than the choice of the machine
    does. Of more terms those are dropped that are the rarest.
    """
    if solver != "auto":
        return TextRecipe()
    most = min(_MOST_TERMS, max(_FEW_TERMS, _MOST_WEIGHTS // n_labels))
    return TextRecipe(ngram_max=2, char_ngrams=(3, 3), max_features=most)
