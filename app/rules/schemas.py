"""Schemas of rules and feedback."""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, SkipValidation, model_validator

from app.evaluations.schemas import Part
from app.jobs.schemas import TrainRequest
from app.predictions.schemas import Instance
from app.schemas import Name, ProblemDocument

Outcome = Literal["trained", "promoted", "kept", "nothing_new", "failed"]


class Promotion(BaseModel):
    """Conditions under which an alias moves to the version that a rule has trained."""

    model_config = ConfigDict(extra="forbid")

    alias: Name = Field(description="The alias to move, such as production.")
    dataset: Name | None = Field(
        default=None,
        description="Id or name of a dataset whose rows were not used in training. Default: the rule's dataset, "
        "which must then have its own test part.",
    )
    part: Part | None = Field(
        default=None,
        description="Part of the dataset to compare on. Default: test if the dataset has that part, otherwise all "
        "rows.",
    )
    min_rows: int = Field(
        default=1,
        ge=1,
        lt=2**31,
        description="Minimum number of rows to compare on; with fewer, the alias does not move.",
    )
    alpha: float = Field(
        default=0.05,
        gt=0,
        lt=1,
        description="Significance level. The new version counts as worse if it has more errors and the p-value of "
        "McNemar's test (two-sided, mid-p) is below this level. The test uses the rows that only one of "
        "the two versions predicts correctly.",
    )


class RuleRequest(BaseModel):
    """A rule to create; at least one of cron and feedback_rows must start it."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Name of the rule.")
    model: Name = Field(description="Id or name of the model that gets new versions.")
    dataset: Name | None = Field(
        default=None,
        description="Id or name of the dataset; training uses its newest version. Default: the dataset of the "
        "model's latest version.",
    )
    training: TrainRequest | None = Field(
        default=None,
        description="Training request. Default: that of the model's latest version at the time when the rule is "
        "created. If that version comes from a path over C, only its C is used, or the C of the version "
        "that the promotion's alias names if it is from the same path.",
    )
    warm: bool = Field(
        default=False,
        description="Start from the dual variables of the model's latest version if possible, and keep those of the "
        "new version.",
    )
    cron: str | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Minute, hour, day of the month, month and day of the week: `30 2 * * *` is every night at "
        "2:30. If scheduled times passed while the service was down, the rule runs once when it is "
        "back.",
    )
    time_zone: str = Field(
        default="UTC", min_length=1, max_length=64, description="Time zone of the schedule, as an IANA name."
    )
    feedback: bool = Field(
        default=False, description="Append the model's pending feedback to the dataset before each training."
    )
    feedback_rows: int | None = Field(
        default=None,
        ge=1,
        lt=2**31,
        description="Also start when this many new feedback reports are pending; implies feedback.",
    )
    promote: Promotion | None = Field(default=None, description="Promotion of the new version. Absent: no alias moves.")

    @model_validator(mode="after")
    def _starts(self) -> "RuleRequest":
        if self.cron is None and self.feedback_rows is None:
            raise ValueError("pass cron, feedback_rows or both; otherwise nothing starts the rule")
        return self


class RulePatch(BaseModel):
    """A change of a rule."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool = Field(description="Whether the schedule and feedback start the rule; if false, only requests do.")


class Decision(BaseModel):
    """Whether the alias moved, and the figures behind the decision."""

    alias: str
    promoted: bool
    reason: Literal["not_worse", "worse", "too_few_rows", "first", "alias_moved"] = Field(
        description="first: the alias named no version before; alias_moved: another client moved the alias in the "
        "meantime."
    )
    former: int | None = Field(description="The version that the alias named.")
    version: int = Field(description="The new version.")
    n_rows: int | None = Field(default=None, description="Rows that both versions predicted.")
    accuracy_former: float | None = Field(default=None, description="Accuracy of the former version.")
    accuracy: float | None = Field(default=None, description="Accuracy of the new version.")
    only_former: int | None = Field(default=None, description="Rows that only the former version predicts correctly.")
    only_new: int | None = Field(default=None, description="Rows that only the new version predicts correctly.")
    p_value: float | None = Field(default=None, description="P-value of McNemar's test, two-sided, mid-p.")
    alpha: float


class RuleRun(BaseModel):
    """One run of a rule and its outcome."""

    id: str
    rule: str = Field(description="Name of the rule.")
    cause: Literal["time", "feedback", "asked"]
    stage: Literal["starting", "appending", "training", "evaluating", "ended"]
    append_job: str | None = Field(description="Id of the job that appends feedback.")
    train_job: str | None
    evaluations: list[str] = Field(description="Ids of the jobs that evaluate the new and the former version.")
    dataset_version: int | None = Field(description="Dataset version used in training.")
    version: int | None = Field(description="The new version.")
    outcome: Outcome | None = Field(
        description="trained: the rule has no promotion; kept: the alias did not move; nothing_new: the dataset has "
        "not changed since the last run. Absent until the run has ended."
    )
    decision: Decision | None
    error: ProblemDocument | None
    created_at: AwareDatetime
    finished_at: AwareDatetime | None


class Rule(BaseModel):
    """A rule and its newest run."""

    id: str
    name: str
    owner: str | None
    model: str = Field(description="Name of the model.")
    dataset: str | None = Field(description="Id of the dataset. Absent if it was deleted; every run then fails.")
    training: dict[str, Any]
    warm: bool
    cron: str | None
    time_zone: str
    feedback: bool
    feedback_rows: int | None
    promote: Promotion | None
    enabled: bool
    due_at: AwareDatetime | None = Field(description="Next scheduled start.")
    latest_run: RuleRun | None
    created_at: AwareDatetime


MAX_LABELS, MAX_NOTE = 1000, 2000

_Text = Annotated[str, Field(min_length=1, max_length=1000)]


class FeedbackRequest(BaseModel):
    """The correct labels of one instance."""

    model_config = ConfigDict(extra="forbid")

    instance: SkipValidation[Instance] = Field(
        description="The instance, in the same form as in the prediction request."
    )
    labels: list[_Text] = Field(
        max_length=MAX_LABELS,
        description="Correct labels: one label, or if the model predicts sets, several or none. A retired label "
        "is replaced as in training, the name of one concept alone names it, and labels of models without a label tree "
        "may be new.",
    )
    version: int | None = Field(
        default=None, ge=1, lt=2**31, description="Version that made the prediction. Default: the latest."
    )
    answer: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9._:-]{1,64}(/[0-9]{1,9})?$",
        description="The `id` of the answer. If the answer had several predictions, append `/` and the index of the "
        "prediction, from 0.",
    )
    note: str | None = Field(
        default=None, max_length=MAX_NOTE, pattern=r"^[^\x00]*$", description="Free text for other users."
    )


class Feedback(BaseModel):
    """A correction: the correct labels of one instance."""

    id: str
    model: str
    version: int
    answer: str | None
    key: str | None = Field(description="Name of the reporting key.")
    instance: dict[str, Any] = Field(description="The instance as a row of JSON lines.")
    labels: list[str]
    note: str | None
    job: str | None = Field(description="Job that appends or appended it to a dataset; absent while it is pending.")
    created_at: AwareDatetime


class FeedbackRowsRequest(BaseModel):
    """The dataset and part that feedback is appended to."""

    model_config = ConfigDict(extra="forbid")

    dataset: Name | None = Field(
        default=None,
        description="Id or name of the dataset. Default: the dataset that the latest version was trained on.",
    )
    part: Literal["train", "test", "validation"] | None = Field(
        default=None, description="Part of the new rows. Default: train, if the dataset has parts."
    )
