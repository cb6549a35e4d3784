"""Schemas of rules and feedback."""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, SkipValidation, model_validator

from app.evaluations.schemas import Part
from app.jobs.schemas import TrainRequest
from app.predictions.schemas import Instance
from app.schemas import Name, ProblemDocument

Outcome = Literal["trained", "promoted", "kept", "nothing_new", "failed"]


class Promotion(BaseModel):
    """When an alias is pointed at the version that a rule has trained."""

    model_config = ConfigDict(extra="forbid")

    alias: Name = Field(description="The alias that moves, as production.")
    dataset: Name | None = Field(
        default=None,
        description="Id or name of a dataset whose rows no training has seen. By default the rule's dataset, which "
        "must then have a test part of its own.",
    )
    part: Part | None = Field(default=None, description="Its rows; by default test where it has them, else all.")
    min_rows: int = Field(default=1, ge=1, lt=2**31, description="With fewer rows to compare on, the alias stays.")
    alpha: float = Field(
        default=0.05,
        gt=0,
        lt=1,
        description="The new version counts as worse where it is wrong more often and McNemar's test of the rows that "
        "one of both alone has right (two-sided, mid-p) is below this.",
    )


class RuleRequest(BaseModel):
    """A rule to be made: at least one of cron and feedback_rows starts it."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Name of the rule.")
    model: Name = Field(description="Id or name of the model that gets new versions.")
    dataset: Name | None = Field(
        default=None,
        description="Id or name; its newest version is trained on. By default that of the model's latest version.",
    )
    training: TrainRequest | None = Field(
        default=None,
        description="How it is trained. By default as the model's latest version was, when the rule is made; of a path "
        "in C only that version's C, or that of the one which the promotion's alias names, if it is of the same path.",
    )
    warm: bool = Field(
        default=False,
        description="Begin at the dual variables of the model's latest version wherever that is possible, and keep "
        "those of the new one.",
    )
    cron: str | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Minute, hour, day of the month, month and day of the week: `30 2 * * *` is every night at 2:30. "
        "Times that passed while the service was down are made up for once.",
    )
    time_zone: str = Field(default="UTC", min_length=1, max_length=64, description="Of the schedule: an IANA name.")
    feedback: bool = Field(
        default=False, description="Append what waits of the model's feedback to the dataset before each training."
    )
    feedback_rows: int | None = Field(
        default=None, ge=1, lt=2**31, description="Start, too, whenever so many new reports wait; implies feedback."
    )
    promote: Promotion | None = Field(default=None, description="Absent: no alias moves.")

    @model_validator(mode="after")
    def _starts(self) -> "RuleRequest":
        if self.cron is None and self.feedback_rows is None:
            raise ValueError("give cron, feedback_rows or both: nothing would ever start the rule")
        return self


class RulePatch(BaseModel):
    """A change of a rule."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool = Field(description="Whether anything but a request starts it.")


class Decision(BaseModel):
    """Whether the alias has moved, and the figures by which that was decided."""

    alias: str
    promoted: bool
    reason: Literal["not_worse", "worse", "too_few_rows", "first", "alias_moved"] = Field(
        description="first: no version had the alias; alias_moved: another client moved it meanwhile."
    )
    former: int | None = Field(description="The version that the alias named.")
    version: int = Field(description="The new version.")
    n_rows: int | None = Field(default=None, description="Rows that both have answered.")
    accuracy_former: float | None = Field(default=None, description="Share of the rows that the former has right.")
    accuracy: float | None = Field(default=None, description="The same of the new version.")
    only_former: int | None = Field(default=None, description="Rows that the former alone has right.")
    only_new: int | None = Field(default=None, description="Rows that the new version alone has right.")
    p_value: float | None = Field(default=None, description="McNemar's, two-sided, mid-p.")
    alpha: float


class RuleRun(BaseModel):
    """One start of a rule, and what came of it."""

    id: str
    rule: str = Field(description="Its name.")
    cause: Literal["time", "feedback", "asked"]
    stage: Literal["starting", "appending", "training", "evaluating", "ended"]
    append_job: str | None = Field(description="Id of the job that appends feedback.")
    train_job: str | None
    evaluations: list[str] = Field(description="Ids of the jobs that measure the new version and the former.")
    dataset_version: int | None = Field(description="That was trained on.")
    version: int | None = Field(description="The new version.")
    outcome: Outcome | None = Field(
        description="trained: no alias was to follow; kept: it stays; nothing_new: the dataset is as at the last run; "
        "absent until it has ended."
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
    model: str = Field(description="Its name.")
    dataset: str | None = Field(description="Id; absent once it was deleted, and every run fails.")
    training: dict[str, Any]
    warm: bool
    cron: str | None
    time_zone: str
    feedback: bool
    feedback_rows: int | None
    promote: Promotion | None
    enabled: bool
    due_at: AwareDatetime | None = Field(description="When its schedule comes next.")
    latest_run: RuleRun | None
    created_at: AwareDatetime


MAX_LABELS, MAX_NOTE = 1000, 2000

_Text = Annotated[str, Field(min_length=1, max_length=1000)]


class FeedbackRequest(BaseModel):
    """The right labels of one instance."""

    model_config = ConfigDict(extra="forbid")

    instance: SkipValidation[Instance] = Field(description="As it was given to the model to predict.")
    labels: list[_Text] = Field(
        max_length=MAX_LABELS,
        description="Correct labels: one label, or if the model predicts sets, several or none. Labels may be new to "
        "the model.",
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
    """A correction: the right labels of one instance."""

    id: str
    model: str
    version: int
    answer: str | None
    key: str | None = Field(description="Name of the reporting key.")
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
