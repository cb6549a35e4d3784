"""How texts become features."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator


class TextRecipe(BaseModel):
    """How texts become TF-IDF features; fitted on the training part alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_df: int = Field(default=2, ge=1, description="Documents that a term must be in.")
    max_df: float = Field(default=1.0, gt=0, le=1, description="Largest share of the documents that a term may be in.")
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
    sublinear_tf: bool = Field(default=True, description="1 + log(count) in place of the count.")
    lowercase: bool = Field(default=True, description="Capital letters are taken as small ones.")

    @field_validator("char_ngrams")
    @classmethod
    def _ascends(cls, lengths: tuple[int, int] | None) -> tuple[int, int] | None:
        if lengths is not None and lengths[0] > lengths[1]:
            raise ValueError("the shorter length comes first")
        return lengths


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
