"""How texts become features."""

from pydantic import BaseModel, ConfigDict, Field


class TextRecipe(BaseModel):
    """How texts become TF-IDF features; fitted on the training part alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_df: int = Field(default=2, ge=1, description="Documents that a term must be in.")
    max_df: float = Field(default=1.0, gt=0, le=1, description="Largest share of the documents that a term may be in.")
    ngram_max: int = Field(default=1, ge=1, le=3, description="Longest run of words taken as one term.")
    max_features: int | None = Field(default=None, ge=1, description="Keep only the most frequent terms.")
    sublinear_tf: bool = Field(default=True, description="1 + log(count) in place of the count.")
    lowercase: bool = True
