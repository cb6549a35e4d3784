"""Schemas of review queues."""

from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from app.schemas import Name

MAX_CLAIM = 1000

State = Literal["open", "claimed", "decided", "disputed", "skipped"]
SheetFormat = Literal["xlsx", "label-studio", "label-studio-config"]
_Label = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
MAX_LABELS = 1000


class ReviewRequest(BaseModel):
    """Create a review queue from a prediction job that has succeeded."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Name of the queue.")
    job: Name = Field(
        description="Id of a job of kind `predict` with `format` parquet and a `threshold` or `min_precision`, whose "
        "rows that are not sure go into the queue; or of kind `suggest_rows`, whose rows all do. With a number as "
        "`sure_level`, rows with a sure node at that level are sure. A row with a set of labels is sure if it has a "
        "label and all its labels are sure. Jobs that predict sets need neither `threshold` nor `min_precision`: "
        "without them all their rows go into the queue."
    )
    sure_share: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of the sure rows that goes into the queue at random, to measure their precision.",
    )
    seed: int = Field(default=0, ge=0, lt=2**31, description="Seed of the random choice of sure rows.")
    opinions: Literal[1, 2] = Field(
        default=1, description="People who decide each row. Where two disagree, a third person decides."
    )


class ClaimRequest(BaseModel):
    """Claim rows for some minutes."""

    model_config = ConfigDict(extra="forbid")

    count: int = Field(default=1, ge=1, le=MAX_CLAIM, description="Maximum number of rows to claim.")
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

    label: _Label | None = Field(default=None, description="Correct label, or its name or notation.")
    labels: list[_Label] | None = Field(
        default=None,
        max_length=MAX_LABELS,
        description="Correct set of labels, in queues of sets; it may be empty. One label in `label` is a set of one.",
    )
    skip: bool = Field(default=False, description="Skip the row instead of giving a label.")
    comment: str | None = Field(default=None, max_length=2000, description="For other people who see the row.")
    new_labels: bool = Field(default=False, description="Accept labels that the model does not know.")

    @model_validator(mode="after")
    def _labels_or_skip(self) -> Self:
        if (self.label is not None) + (self.labels is not None) + self.skip != 1:
            raise ValueError("expected one of label, labels and skip=true")
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
    """A label that the model predicted for a row, or one of its next best."""

    label: str
    name: str | None
    predicted: bool = Field(description="The label is the model's answer, or in the set that it predicted.")
    probability: float | None = Field(
        description="None until the row is decided if the queue has a share of sure rows, so that reviewers do not "
        "know which they are."
    )


class Opinion(BaseModel):
    """What one person decided about a row."""

    person: str = Field(description="Name of the key, or of an annotator in Label Studio: `label-studio:ADDRESS`.")
    label: str | None = Field(description="None if the person skipped the row, and in queues of sets.")
    labels: list[str] | None = Field(description="None if the person skipped the row.")
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
    label: str | None = Field(description="The decision; None in queues of sets.")
    labels: list[str] | None = Field(description="The decision as a list, in all queues; None until there is one.")
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
    agreed: float = Field(description="Share of the rows with the same label, or with equal sets.")
    kappa: float | None = Field(
        description="Cohen's kappa; None if chance alone would always agree, and in queues of sets."
    )
    consistency: float | None = Field(
        default=None,
        description="In queues of sets, the inter-indexer consistency (Rolling 1981): the mean over the rows of twice "
        "the number of labels that both people gave, divided by the sum of the sizes of their sets; 1 for two empty "
        "sets.",
    )


class MeasuredPrecision(BaseModel):
    """Precision of the sure rows, from those that people decided; in queues of sets, of the labels that they have."""

    of: Literal["sure_rows", "decided_rows"] = Field(
        default="sure_rows",
        description="Rows that count. Queues of sets without a `sure_share` count all decided rows.",
    )
    n_rows: int
    n_labels: int = Field(description="Labels that were predicted for these rows.")
    n_right: int = Field(description="Predicted labels that people kept.")
    n_added: int = Field(description="Labels that people gave and that were not predicted.")
    precision: float
    lower_bound: float = Field(
        description="Lower end of the interval of 95 %. It is exact (Clopper-Pearson) for one label per row. For sets "
        "it takes into account that the labels of one row are not independent (Korn and Graubard 1998)."
    )
    upper_bound: float
    recall: float | None = Field(
        description="Share of the labels that people gave which were predicted; None if they gave none."
    )


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
    language: str | None = Field(
        default=None, description="Language of names that the job was asked for; None if it was asked for none."
    )
    sure_level: int | None = Field(
        default=None,
        description="Level of the label tree, if the job asked for one: rows with a sure node at this level are sure. "
        "Such queues have no promised and no measured precision.",
    )
    sure_share: float
    seed: int
    opinions: int
    label_separator: str | None = Field(
        default=None,
        description="Queues of sets: what separates the labels of a row in a spreadsheet. None: one label per row.",
    )
    created_at: AwareDatetime
    n_rows: int
    states: dict[State, int] = Field(description="Rows in each state.")
    people: list[PersonCount]
    agreement: Agreement | None = Field(description="None until two people have decided the same row.")
    promised_precision: float | None = Field(
        description="Precision of sure labels on held-out rows; None if nodes at one level are sure."
    )
    measured_precision: MeasuredPrecision | None = Field(
        description="None until a row that counts is decided and has a predicted label, and if nodes at one level are "
        "sure."
    )


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
    """A line of a spreadsheet, or an annotation of Label Studio, that was not understood."""

    line: int = Field(
        description="Number in the sheet or file, whose header is line 1; of Label Studio's exports, the number of the "
        "task or, in JSON-MIN, of the annotation, from 1."
    )
    row: int | None = Field(description="Number of the row in the dataset; None if the file does not say.")
    detail: str


class ImportedDecisions(BaseModel):
    """What a file with decisions changed."""

    n_rows: int = Field(
        description="Lines below the header that are not empty, or annotations, each person's last for a row."
    )
    n_decided: int = Field(description="Rows decided, or decided otherwise than before.")
    n_unchanged: int = Field(description="Decisions that the queue had already.")
    n_empty: int = Field(description="Rows without a decision.")
    n_problems: int
    problems: list[LineProblem] = Field(description="The first 1000.")


class ReviewRowPage(BaseModel):
    """Rows of a queue, the least sure first."""

    rows: list[ReviewRow]
    next_place: int | None = Field(default=None, description="`after` of the next page; absent on the last page.")
