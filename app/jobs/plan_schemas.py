"""Schemas of plans, what a job would need, and of previews, the features that a recipe makes of a row."""

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from app.datasets.recipe_schemas import ColumnRecipe, TextRecipe

N = TypeVar("N", int, float)
# each takes memory of the service while it answers
MOST_HASHED = 1 << 22


class ShardPlan(BaseModel):
    """The part of the work that one shard does."""

    shard: int
    pool: str | None = Field(description="Next pool for the shard; absent if there are too few pools.")
    classes: int = Field(description="Number of classes of the shard; for an output code, number of columns.")
    examples: int = Field(
        description="Number of training rows of these classes; for an output code, the sum over the columns of the "
        "rows that take part. Every shard reads all rows."
    )
    memory_bytes: int | None = Field(
        description="Memory for the arrays of this shard. Absent for texts, because their features are known only "
        "in training."
    )


class Span(BaseModel, Generic[N]):
    """Lower and upper bound; equal if the value can be counted."""

    least: N
    most: N


class Assumptions(BaseModel):
    """Assumptions of the forecast."""

    batch: Span[float] = Field(description="Average number of rows per round; depends on the data.")
    once: Span[float] = Field(
        description="Bytes per row and epoch that are sent once, independent of the number of shards; depends on "
        "the data."
    )
    message: Span[float] = Field(
        description="Bytes per row and epoch that each further shard adds if it has very many classes; depends on "
        "the data."
    )
    products: float = Field(description="Multiply-adds per second and thread.")
    bandwidth: float = Field(description="Bytes per second between a shard and Redis.")
    round_trip: float = Field(description="Seconds per round, without the time to send its bytes.")


class EarlierJobs(BaseModel):
    """The ten latest successful trainings of the same dataset by the same method."""

    n_jobs: int
    seconds: Span[float] = Field(description="Duration of these jobs, from start to end.")


class JobPlan(BaseModel):
    """How a job would be divided into shards, and the cost of an epoch over all rows; unknown values are absent."""

    shards: list[ShardPlan] = Field(description="Plan of each shard; empty for a job without shards.")
    pools: int = Field(description="Number of running pools; a job needs one per shard.")
    rounds_per_epoch: Span[int] | None = Field(
        description="Forecast of the rounds per epoch; the job's steps report the actual number."
    )
    bytes_per_epoch: Span[int] | None = Field(description="Bytes sent by all shards together.")
    seconds_per_epoch: Span[float] | None = Field(
        description="Time of computation and exchange; absent for texts and for methods without an estimate."
    )
    seconds_without_shards: float | None = Field(
        default=None,
        description="Computation time of an epoch in one worker, at the same rates; absent in the same cases.",
    )
    advice: str | None = Field(
        default=None,
        description="Reason why shards do not pay, or may not. It considers the time of an epoch, not memory.",
    )
    assumptions: Assumptions | None
    memory_bytes: int | None = Field(
        default=None,
        description="Memory for all arrays of a job without shards. For texts, an upper bound from the number of "
        "features that the recipe keeps. Absent if the recipe keeps all features, and for methods "
        "without an estimate.",
    )
    scaling: str | None = Field(
        default=None,
        description="Scaling of numbers that was selected because the request does not specify one, with the "
        "reason. Absent if numbers are unchanged or the request specifies the scaling.",
    )
    text_columns: str | None = Field(
        default=None,
        description="How the weights of text columns will be chosen; absent if the request or the default fixes them.",
    )
    earlier: EarlierJobs | None = Field(
        default=None, description="Durations of earlier jobs of this kind; absent if there are none."
    )


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
