"""Feedback: what people say is right of what a model has answered."""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, SkipValidation

from app.schemas.common.names import Name
from app.schemas.predictions.predictions import Instance

MAX_LABELS, MAX_NOTE = 1000, 2000

_Text = Annotated[str, Field(min_length=1, max_length=1000)]


class FeedbackRequest(BaseModel):
    """The right labels of one instance."""

    model_config = ConfigDict(extra="forbid")

    instance: SkipValidation[Instance] = Field(description="As it was given to the model to predict.")
    labels: list[_Text] = Field(
        min_length=1,
        max_length=MAX_LABELS,
        description="What is right: one label, unless the model names sets. It may be new to the model.",
    )
    version: int | None = Field(
        default=None, ge=1, lt=2**31, description="Which version answered; by default the latest."
    )
    answer: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9._:-]{1,64}(/[0-9]{1,9})?$",
        description="The `id` of the answer, with `/` and the place of the prediction behind it, from 0, where it had "
        "several.",
    )
    note: str | None = Field(default=None, max_length=MAX_NOTE, pattern=r"^[^\x00]*$", description="For people.")


class Feedback(BaseModel):
    """What somebody has said is right."""

    id: str
    model: str
    version: int
    answer: str | None
    key: str | None = Field(description="Name of the key that told it.")
    instance: dict[str, Any] = Field(description="As rows of JSON lines have it.")
    labels: list[str]
    note: str | None
    job: str | None = Field(description="The job that appends it to a dataset, or has; absent while it waits.")
    created_at: AwareDatetime


class FeedbackRowsRequest(BaseModel):
    """Where rows of feedback go."""

    model_config = ConfigDict(extra="forbid")

    dataset: Name | None = Field(
        default=None, description="Id or name; by default the dataset that the latest version was trained on."
    )
    part: Literal["train", "test", "validation"] | None = Field(
        default=None, description="Where the rows belong; by default train, where the dataset has parts."
    )
