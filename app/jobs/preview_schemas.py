"""Schemas of previews: the features that a recipe makes of a row."""

from pydantic import BaseModel, ConfigDict, Field

from app.datasets.recipe_schemas import ColumnRecipe, TextRecipe

# each takes memory of the service while it answers
MOST_HASHED = 1 << 22


class PreviewRequest(BaseModel):
    """A row and a job's recipe for features."""

    model_config = ConfigDict(extra="forbid")

    row: int = Field(default=0, ge=0, lt=2**63, description="Row number from 0, in the order of the file.")
    text: TextRecipe = Field(
        default_factory=TextRecipe,
        description=f"How texts become features; with at most {MOST_HASHED:,} for `hash_features`.",
    )
    columns: ColumnRecipe | None = Field(
        default=None,
        description="How numbers and categories become features. By default, numbers of a dataset without "
        "categories are unchanged.",
    )


class FeatureValue(BaseModel):
    """One feature of a row."""

    feature: str | int = Field(description="Name of the feature, or its number if it has none.")
    value: float


class CleaningPreview(BaseModel):
    """What cleaning changes in texts; of a dataset with several text columns, in all of them together."""

    n_texts: int = Field(description="Number of training rows that were cleaned; large datasets are sampled.")
    n_changed: int = Field(description="Number of those whose text changes.")
    characters_before: int = Field(description="Characters of these texts.")
    characters_after: int = Field(description="Characters of these texts after cleaning.")
    changes: dict[str, int] = Field(description="Number of changes of each kind, in descending order.")
    before: str | None = Field(
        description="Part of the row's text around the first change, up to 2,000 characters; absent if it is unchanged."
    )
    after: str | None = Field(description="The same part after cleaning, up to 500 characters.")


class FeaturePreview(BaseModel):
    """The features of a row."""

    row: int
    n_fitted: int = Field(
        description="Number of training rows that the recipe was fitted on; large datasets are sampled."
    )
    n_features: int = Field(description="Number of features of the fitted recipe; all training rows may give more.")
    n_values: int = Field(description="Number of nonzero features in the row.")
    features: list[FeatureValue] = Field(description="The first 200 of them, in descending order of magnitude.")
    cleaning: CleaningPreview | None = Field(
        default=None, description="What the recipe's `clean` changes; absent without it."
    )
