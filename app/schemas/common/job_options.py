"""What any job that users submit may be given, whatever it does: when it comes, how long it may take, and its tags."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from app.schemas.common.names import Name

Priority = Literal["low", "normal", "high"]
PRIORITIES: tuple[Priority, ...] = ("low", "normal", "high")
MAX_JOB_TAGS = 20

TagValue = Annotated[str, StringConstraints(max_length=200)]
Tags = dict[Name, TagValue]


class JobOptions(BaseModel):
    """Of the job itself; what it makes does not depend on it, unless its time runs out."""

    priority: Priority = Field(
        default="normal",
        description="Jobs of a higher priority are taken first; among equals those of keys and workspaces that have "
        "fewer jobs running.",
    )
    tags: Tags | None = Field(default=None, max_length=MAX_JOB_TAGS, description="Names and values to find the job by.")
    time_limit_seconds: float | None = Field(
        default=None,
        gt=0,
        le=1e8,
        allow_inf_nan=False,
        description="From the job's first start. A training that has a model by then publishes it, with the gap that "
        "it has reached; any other job fails.",
    )


OPTIONS = frozenset(JobOptions.model_fields)
