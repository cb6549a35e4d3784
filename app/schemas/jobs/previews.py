"""What a recipe makes of one row, before anything is trained."""

from pydantic import BaseModel, ConfigDict, Field

from app.schemas.datasets.tables import ColumnRecipe
from app.schemas.datasets.texts import TextRecipe

# each takes memory of the service while it answers
MOST_HASHED = 1 << 22


class PreviewRequest(BaseModel):
    """A row, and the recipe of a job."""

    model_config = ConfigDict(extra="forbid")

    row: int = Field(default=0, ge=0, lt=2**63, description="Counted from 0, in the order of the file.")
    text: TextRecipe = Field(
        default_factory=TextRecipe,
        description=f"How texts become features; with at most {MOST_HASHED:,} for `hash_features`.",
    )
    columns: ColumnRecipe | None = Field(
        default=None, description="How numbers and categories do; left out, numbers of a dataset without others stay."
    )


class FeatureValue(BaseModel):
    """One feature of a row."""

    feature: str | int = Field(description="Its name, or its number where it has none.")
    value: float


class FeaturePreview(BaseModel):
    """The features of a row."""

    row: int
    n_fitted: int = Field(description="Training rows that the recipe was fitted on: a sample, where there are many.")
    n_features: int = Field(description="Of the fitted recipe; all training rows may give more.")
    n_values: int = Field(description="How many of them are not zero in the row.")
    features: list[FeatureValue] = Field(description="The first 200 of those, by falling magnitude.")
