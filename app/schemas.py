"""Schemas shared by several subjects: names, times, pages, problems and job options."""

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, Field, StringConstraints

from app.display.shown import Shown

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"

# a version of a model, by its number or an alias
VERSION_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}@[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"

# a dataset, or one of its versions
DATASET_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}(@[1-9][0-9]{0,8})?$"

Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]


def _written(value: Any) -> Any:
    # A number would be taken for seconds since 1970, and bodies are checked strictly: JSON has no dates but as text.
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("expected a date and time with a time zone, for example 2030-01-31T12:00:00Z") from None


def _kept(value: datetime) -> datetime:
    # It is kept as seconds, and shown in UTC: there the last day may be in the year 10000, which is none.
    try:
        datetime.fromtimestamp(value.timestamp(), UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError("expected a UTC time in the years 1 to 9999") from None
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_written), AfterValidator(_kept)]


T = TypeVar("T")


class Page(Shown, BaseModel, Generic[T]):
    """Up to ``page_size`` items, newest first; ``next_page_token`` requests the next page."""

    items: list[T]
    next_page_token: str | None = Field(
        default=None, description="Opaque token of the next page; absent on the last page."
    )


class ProblemItem(BaseModel):
    """One fault: its place (JSON pointer, or row and column) and its description."""

    detail: str
    pointer: str | None = None
    row: int | None = None
    column: str | None = None


class ProblemDocument(BaseModel):
    """What went wrong; ``code`` is for programs, ``detail`` for people."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    request_id: str | None = None
    errors: list[ProblemItem] = []


Priority = Literal["low", "normal", "high"]
PRIORITIES: tuple[Priority, ...] = ("low", "normal", "high")
MAX_JOB_TAGS = 20

TagValue = Annotated[str, StringConstraints(max_length=200)]
Tags = dict[Name, TagValue]


class JobOptions(BaseModel):
    """Options of the job itself; they do not change its result, unless the time limit ends it early."""

    priority: Priority = Field(
        default="normal",
        description="Jobs with a higher priority start first. Among equal priorities, keys and workspaces with fewer "
        "running jobs come first.",
    )
    tags: Tags | None = Field(
        default=None, max_length=MAX_JOB_TAGS, description="Names and values for finding the job."
    )
    time_limit_seconds: float | None = Field(
        default=None,
        gt=0,
        le=1e8,
        allow_inf_nan=False,
        description="Seconds from the job's first start. A training job that has a model by then publishes it with "
        "the gap reached so far; any other job fails.",
    )


OPTIONS = frozenset(JobOptions.model_fields)
