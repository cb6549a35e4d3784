"""Training rows that are like an instance."""

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from app.schemas.predictions.predictions import Instance


class NearestRequest(BaseModel):
    """One instance, and which rows to look among."""

    model_config = ConfigDict(extra="forbid")

    instance: SkipValidation[Instance] = Field(description="As for a prediction.")
    label: str | None = Field(default=None, min_length=1, max_length=1000, description="By default the predicted one.")
    limit: int = Field(default=5, ge=1, le=100, description="How many rows to name.")
    version: int | None = Field(default=None, ge=1, lt=2**31, description="The latest by default.")


class NearRow(BaseModel):
    """One row of the dataset."""

    row: int = Field(description="Counted from 0, in the dataset.")
    similarity: float = Field(description="The cosine of the angle between the rows as the model reads them.")
    labels: list[str]
    text: str | None = Field(default=None, description="First 500 characters.")
    features: list[tuple[int, float]] | None = Field(default=None, description="First 50 (index, value) pairs.")
    record: dict[str, float | str | None] | None = Field(default=None, description="First 50 columns of a table.")


class NearestRows(BaseModel):
    """The rows that are the most like an instance, the nearest first."""

    model: str
    version: int
    label: str
    dataset: str = Field(description="Name.")
    n_rows: int = Field(description="Rows that were trained on and have the label.")
    n_compared: int = Field(description="Of them; more than 20,000 are sampled evenly.")
    rows: list[NearRow]
