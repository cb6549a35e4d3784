"""Schemas of review queues."""

from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from app.schemas import Name

MAX_CLAIM = 1000

State = Literal["open", "claimed", "decided", "disputed", "skipped"]
_Label = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class ReviewRequest(BaseModel):
    """Create a review queue from a prediction job that has succeeded."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Name of the queue.")
    job: Name = Field(
        description="Id of a job of kind `predict` with `format` parquet and a `threshold` or `min_precision`, whose "
        "rows that are not sure go into the queue; or of kind `suggest_rows`, whose rows all do."
    )
    sure_share: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of the sure rows that goes into the queue at random, to measure their precision.",
    )
    seed: int = Field(default=0, ge=0, lt=2**31, description="Of the random choice of sure rows.")
    opinions: Literal[1, 2] = Field(
        default=1, description="People who decide each row. Where two disagree, a third person decides."
    )


class ClaimRequest(BaseModel):
    """Claim rows for some minutes."""

    model_config = ConfigDict(extra="forbid")

    count: int = Field(default=1, ge=1, le=MAX_CLAIM, description="How many rows to claim, at most.")
    minutes: float = Field(default=15.0, ge=0.1, le=1440, description="Rows not decided by then can be claimed again.")
    state: Literal["open", "disputed", "skipped"] = Field(
        default="open", description="Rows to claim. An arbiter claims disputed rows."
    )


class ReleaseRequest(BaseModel):
    """Give claimed rows back before their leases end."""

    model_config = ConfigDict(extra="forbid")

    rows: list[Annotated[int, Field(ge=0, lt=2**53)]] = Field(
        min_length=1, max_length=MAX_CLAIM, description="Numbers of the rows in the dataset, from 0."
    )


class DecisionRequest(BaseModel):
    """Decide a row, or skip it."""

    model_config = ConfigDict(extra="forbid")

    label: _Label | None = Field(default=None, description="Correct label; it may be new to the model.")
    skip: bool = Field(default=False, description="Skip the row in place of a label.")
    comment: str | None = Field(default=None, max_length=2000, description="For other people who see the row.")

    @model_validator(mode="after")
    def _label_or_skip(self) -> Self:
        if (self.label is None) != self.skip:
            raise ValueError("expected either a label or skip=true")
        return self


class DecidedRowsRequest(BaseModel):
    """Append decided rows to a dataset."""

    model_config = ConfigDict(extra="forbid")

    dataset: Name | None = Field(
        default=None, description="Id or name. Default: the dataset that the reviewed version was trained on."
    )
    part: Literal["train", "test", "validation"] | None = Field(
        default=None, description="Part of the new rows. Default: train, if the dataset has parts."
    )


class Alternative(BaseModel):
    """A label that the model predicted for a row; the first is its answer."""

    label: str
    name: str | None
    probability: float | None = Field(
        description="None until the row is decided if the queue has a share of sure rows, so that reviewers do not "
        "know which they are."
    )


class Opinion(BaseModel):
    """What one person decided about a row."""

    person: str
    label: str | None = Field(description="None if the person skipped the row.")
    comment: str | None
    arbiter: bool = Field(description="Decided a row about which two people disagreed.")
    decided_at: AwareDatetime


class ReviewRow(BaseModel):
    """A row of a queue."""

    row: int = Field(description="Number in the dataset, from 0.")
    id: str | None = Field(description="What the dataset's file calls the row.")
    text: str | None
    record: dict[str, Any] | None
    alternatives: list[Alternative]
    sure: bool | None = Field(
        description="The row is one of the random share of sure rows. None until it is decided, so that reviewers do "
        "not know."
    )
    state: State
    label: str | None = Field(description="The decision.")
    revision: int = Field(description="Changes with each decision; `If-Match` takes it in double quotes.")
    claimed_by: str | None
    claimed_until: AwareDatetime | None
    job: str | None = Field(description="Job that appended the row to a dataset, or is about to.")
    opinions: list[Opinion] = Field(
        description="Of all people once the row is decided; before, only your own. An arbiter sees those in dispute."
    )


class PersonCount(BaseModel):
    """What one person did."""

    person: str
    n_decided: int
    n_skipped: int


class Agreement(BaseModel):
    """How far the first two opinions agree."""

    n_rows: int
    agreed: float = Field(description="Share of the rows with the same label.")
    kappa: float | None = Field(description="Cohen's kappa; None if chance alone would always agree.")


class MeasuredPrecision(BaseModel):
    """Precision of the sure rows, from those that people decided."""

    n_rows: int
    n_right: int
    precision: float
    lower_bound: float = Field(description="Lower end of the exact (Clopper-Pearson) interval of 95 %.")
    upper_bound: float


class Review(BaseModel):
    """A review queue."""

    id: str
    name: str
    owner: str | None
    job: str
    model: str
    version: int
    dataset: str | None
    dataset_version: int
    sure_share: float
    seed: int
    opinions: int
    created_at: AwareDatetime
    n_rows: int
    states: dict[State, int] = Field(description="Rows in each state.")
    people: list[PersonCount]
    agreement: Agreement | None = Field(description="None until two people have decided the same row.")
    promised_precision: float | None = Field(description="Precision of sure answers on held-out rows.")
    measured_precision: MeasuredPrecision | None = Field(description="None until a sure row is decided.")


class ClaimedRows(BaseModel):
    """Rows that are yours until their leases end, the least sure first; empty if none can be claimed."""

    rows: list[ReviewRow]


class FoundLabel(BaseModel):
    """A label that a row can have."""

    label: str
    name: str | None
    notation: str | None
    path: list[str] = Field(description="Names of the nodes above it in the label tree, from the top.")


class FoundLabels(BaseModel):
    """Labels that were searched for, the best matches first."""

    labels: list[FoundLabel]
    n_labels: int = Field(description="How many labels match.")


class LineProblem(BaseModel):
    """A line of a spreadsheet that was not understood."""

    line: int = Field(description="Number in the sheet or file; the header is line 1.")
    row: int | None = Field(description="Number of the row in the dataset; None if the line does not say.")
    detail: str


class ImportedDecisions(BaseModel):
    """What a spreadsheet with decisions changed."""

    n_rows: int = Field(description="Lines below the header that are not empty.")
    n_decided: int = Field(description="Rows decided, or decided otherwise than before.")
    n_unchanged: int = Field(description="Your decisions that the queue had already.")
    n_empty: int = Field(description="Rows without a decision.")
    n_problems: int
    problems: list[LineProblem] = Field(description="The first 1000.")


class ReviewRowPage(BaseModel):
    """Rows of a queue, the least sure first."""

    rows: list[ReviewRow]
    next_place: int | None = Field(default=None, description="`after` of the next page; absent on the last page.")
