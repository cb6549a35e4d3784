"""Schemas of jobs: requests, states, steps, plans, previews and solvers."""

from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator, model_validator

from app.curation.schemas import SuggestRowsRequest, WrongLabelsRequest
from app.datasets.recipe_schemas import ColumnRecipe, TextRecipe
from app.display.shown import Shown
from app.evaluations.schemas import EvaluateRequest
from app.jobs.request_schemas import CompressRequest, TrainingData, TuneRequest
from app.predictions.schemas import BatchPredictRequest, SureRows
from app.schemas import MAX_JOB_TAGS, VERSION_PATTERN, Name, Priority, ProblemDocument, TagValue

JobState = Literal["queued", "running", "cancelling", "cancelled", "succeeded", "failed"]
JobKind = Literal[
    "import", "append", "correct", "train", "tune", "trial", "evaluate", "predict", "compress", "suggest_rows",
    "wrong_labels",
]  # fmt: skip
FINAL_STATES: frozenset[str] = frozenset({"cancelled", "succeeded", "failed"})
# the least gap at which training in single precision ends
CERTAIN_TOL = 1e-4


class TrainRequest(TrainingData):
    """Train one model on one dataset."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["train"] = "train"
    solver: str = Field(default="auto", max_length=64, description="See /solvers; auto chooses among them.")
    params: dict[str, Any] = Field(default_factory=dict, description="The solver's parameters; see its JSON schema.")
    text: TextRecipe | None = Field(
        default=None,
        description="How texts become features. Left out, words, or for auto words, pairs of words and runs of three "
        "characters; the job shows which.",
    )
    shards: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="Train in so many class shards, each in a worker pool of its own (`shard-0`, `shard-1`, ...); "
        "by default in one worker of the general pool.",
    )
    exchange: Literal["scores", "sums", "bounds"] | None = Field(
        default=None,
        description="Deprecated, and without effect: each method exchanges what suits it. It will be removed.",
        json_schema_extra={"deprecated": True},
    )
    path: list[Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)]] | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="Values of C, in place of the parameter: the job trains for one after the other in ascending "
        "order, each from the solution of the one before, and publishes a version of the model for each.",
    )

    validation_rows: Literal["leave_out", "train"] = Field(
        default="leave_out",
        description="Rows that the dataset marks for validation: leave them out, or train on them, too, as on what "
        "has served to choose the settings.",
    )
    warm_start: str | None = Field(
        default=None,
        pattern=VERSION_PATTERN,
        description="A version, as MODEL@NUMBER or MODEL@ALIAS, of the same method on an earlier version of the "
        "dataset or the same: the training begins at its dual variables. The optimum is that of all rows. Where the "
        "dataset has no split of its own, former rows stay in the part that they were in.",
    )
    keep_duals: bool = Field(
        default=False,
        description="Keep the dual variables with the version, so that a later training can begin from them.",
    )

    until_certain: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="End as soon as this share of the held-out rows has a certain answer, one that no further "
        "training on the same rows can change; at the latest at the gap `tol`, which is 1e-4 here unless `params` says "
        "otherwise. For linear machines with one gap, in one worker.",
    )

    @field_validator("path")
    @classmethod
    def _once(cls, path: list[float] | None) -> list[float] | None:
        if path is not None and len(set(path)) < len(path):
            raise ValueError("C values must be unique")
        return path

    @model_validator(mode="after")
    def _answers_may_take_a_small_gap(self) -> Self:
        """The default of ``tol`` is smaller where answers end the training."""
        if self.until_certain is not None and "tol" not in self.params:
            self.params = {**self.params, "tol": CERTAIN_TOL}
        return self

    @model_validator(mode="after")
    def _shards_train_once(self) -> Self:
        """The default of ``refit`` is false in shards."""
        if self.shards is not None and "refit" not in self.model_fields_set:
            self.refit = False
        return self


JobRequest = (
    TrainRequest
    | TuneRequest
    | EvaluateRequest
    | BatchPredictRequest
    | CompressRequest
    | SuggestRowsRequest
    | WrongLabelsRequest
)


def stored_request(stored: Mapping[str, Any]) -> TrainRequest:
    """A training request as it was stored.

    Those of earlier versions held sets of labels out at random, and served the measured model. In shards they had
    ``refit``, and no shard trained on all rows; and they chose what to exchange, by ways that are gone.
    """
    in_shards = {} if stored.get("shards") is None else {"refit": False, "exchange": None}
    return TrainRequest.model_validate({"stratify": "rows", "refit": False, **stored, **in_shards})


class Progress(BaseModel):
    """How far a running job has come."""

    epoch: int
    fraction: float = Field(description="Between 0 and 1; an estimate.")
    eta_seconds: float | None = None
    gap: float | None = Field(default=None, description="Relative duality gap (primal - dual) / primal, last measured.")
    phase: str = Field(
        default="training",
        description="waiting, loading, features, training, refitting, compiling (these two wait for their loops to be "
        "compiled), testing, scoring, measuring or saving; of a tuning also trials and choosing.",
    )
    point: int = Field(default=0, description="The place in the job's path that is being trained, from 0.")
    setting: str | None = Field(default=None, description="Of `auto`: the method that is tried or trained, and how.")
    trials: int | None = Field(default=None, description="Of a tuning: trials that were begun or wait so far.")
    trials_done: int | None = Field(default=None, description="Those of them that have ended.")


class QueuePlace(BaseModel):
    """Position of a queued job."""

    position: int = Field(description="1: it is taken next. As things are now: others may come before it.")
    starts_in_seconds: float | None = Field(
        description="An estimate, from what the running jobs have left and how long the latest ones took; absent where "
        "no worker is there, or none has ended a job yet."
    )


class JobResult(BaseModel):
    """What a finished job made."""

    model: str | None = None
    version: int | None = Field(default=None, description="The last one published.")
    versions: list[int] = Field(default=[], description="All versions that the job has published so far, by rising C.")
    dataset: str | None = None
    dataset_version: int | None = None
    evaluation: str | None = Field(default=None, description="Id of the evaluation that the job has made.")
    predictions: str | None = Field(
        default=None,
        description="Id of the job whose predictions can be downloaded at `/jobs/{id}/predictions` until they expire.",
    )
    n_rows: int | None = Field(default=None, description="Of the predictions, or rows that are listed.")
    n_judged: int | None = Field(default=None, description="Rows whose labels a job has judged.")
    n_confident: int | None = Field(default=None, description="Estimate of how many of these labels are wrong.")
    sure: SureRows | None = Field(
        default=None, description="Of predictions with a threshold or a precision: how many rows have a sure label."
    )
    columns: list[str] | None = Field(default=None, description="Of the file of predictions, in order.")
    trial: int | None = Field(
        default=None, description="Of a tuning: the number of the trial whose settings the version has."
    )
    measures: dict[str, float] = Field(
        default={}, description="Of a tuning and its trials: measures on the rows held out, by name."
    )
    not_refit: str | None = Field(
        default=None, description="Why the version was not trained once more on all rows, where it was to be."
    )
    stopped: Literal["time_limit"] | None = Field(
        default=None, description="What has ended the training before its own rule did; the version is what it had."
    )
    unconverged: str | None = Field(
        default=None, description="Why the training ended before it reached its optimum; absent where it reached it."
    )


class Job(Shown, BaseModel):
    """A piece of work and its state."""

    id: str
    owner: str | None = Field(default=None, description="Name of the key that made it.")
    kind: JobKind
    parent: str | None = Field(default=None, description="Of a trial: id of the tuning that it belongs to.")
    state: JobState
    dataset: str | None = Field(description="Id of the dataset; absent once that was deleted.")
    hierarchy: str | None = Field(
        default=None, description="Id of the hierarchy; absent where none was asked for, and once it was deleted."
    )
    request: dict[str, Any]
    priority: Priority = "normal"
    tags: dict[str, str] = Field(default_factory=dict)
    time_limit_seconds: float | None = Field(default=None, description="From its first start.")
    queue: QueuePlace | None = Field(default=None, description="Of a queued job.")
    queued_again: str | None = Field(
        default=None, description="Why the job was last queued again: its worker was lost, or a user asked."
    )
    attempt: int = Field(description="How often a worker has taken it up.")
    worker: str | None
    progress: Progress | None
    result: JobResult | None
    error: ProblemDocument | None
    created_at: AwareDatetime
    started_at: AwareDatetime | None
    finished_at: AwareDatetime | None

    @property
    def finished(self) -> bool:
        """Whether the job has succeeded, failed or was cancelled."""
        return self.state in FINAL_STATES


class ComparisonJobs(BaseModel):
    """The evaluations that a comparison waits for; none where it can be asked for at once."""

    jobs: list[Job]


class JobPatch(BaseModel):
    """A change of a job; what is not named stays as it is."""

    model_config = ConfigDict(extra="forbid")

    priority: Priority | None = Field(default=None, description="New priority; only for queued jobs.")
    tags: dict[Name, TagValue | None] | None = Field(
        default=None, max_length=MAX_JOB_TAGS, description="Names and values to set; a null takes the tag away."
    )


class JobLogLine(BaseModel):
    """One thing that a worker, or a sweep, has noted of a job."""

    id: str = Field(description="Ids rise with time.")
    at: AwareDatetime
    attempt: int
    level: str = Field(description="info, warning or error.")
    event: str = Field(description="What has happened, as job_started, phase, checkpoint_saved or job_ended.")
    fields: dict[str, Any] = Field(description="What belongs to it, by name.")


class JobLog(BaseModel):
    """The lines from after ``after`` on, oldest first; of each job the newest thousand are kept."""

    lines: list[JobLogLine]


class JobStep(BaseModel):
    """One point of the convergence curve; a bound that was not measured at that step is absent."""

    number: int
    attempt: int
    epoch: int
    primal: float | None
    dual: float | None
    gap: float | None = Field(description="(primal - dual) / primal.")
    violation: float | None = Field(description="Largest violation of the optimality conditions.")
    seconds: float = Field(description="Training time so far, over all attempts.")
    point: int = Field(default=0, description="Place in the job's path, from 0; epochs are counted from 0 at each.")
    measures: dict[str, float] = Field(
        default_factory=dict, description="Other measures of the step, by name: errors, counts."
    )
    setting: str | None = Field(default=None, description="Of `auto`: the method that is tried or trained, and how.")


class JobSteps(Shown, BaseModel):
    """The curve from ``after`` on."""

    steps: list[JobStep]


# each takes memory of the service while it answers
MOST_HASHED = 1 << 22


class PreviewRequest(BaseModel):
    """A row, and the recipe of a job."""

    model_config = ConfigDict(extra="forbid")

    row: int = Field(default=0, ge=0, lt=2**63, description="Counted from 0, in the order of the file.")
    text: TextRecipe = Field(
        default_factory=TextRecipe,
        description=f"How texts become features; with at most {MOST_HASHED:,} for `hash_features`.",
    )
    columns: ColumnRecipe | None = Field(
        default=None, description="How numbers and categories do; left out, numbers of a dataset without others stay."
    )


class FeatureValue(BaseModel):
    """One feature of a row."""

    feature: str | int = Field(description="Its name, or its number where it has none.")
    value: float


class FeaturePreview(BaseModel):
    """The features of a row."""

    row: int
    n_fitted: int = Field(description="Training rows that the recipe was fitted on: a sample, where there are many.")
    n_features: int = Field(description="Of the fitted recipe; all training rows may give more.")
    n_values: int = Field(description="How many of them are not zero in the row.")
    features: list[FeatureValue] = Field(description="The first 200 of those, by falling magnitude.")


N = TypeVar("N", int, float)


class ShardPlan(BaseModel):
    """The share of one shard."""

    shard: int
    pool: str | None = Field(description="The pool that comes next for it; absent where there are too few.")
    classes: int = Field(description="Of an output code: its columns.")
    examples: int = Field(
        description="Training rows of these classes, or the sum of those that take part in each column; every shard "
        "reads all rows."
    )
    memory_bytes: int | None = Field(
        description="Of the arrays of this shard; absent for texts, whose features are known only in training."
    )


class Span(BaseModel, Generic[N]):
    """From the least to the most; both the same where it can be counted."""

    least: N
    most: N


class Assumptions(BaseModel):
    """What the prediction takes for granted."""

    batch: Span[float] = Field(description="Rows a round, on average; depends on the data.")
    once: Span[float] = Field(
        description="Bytes of a row in an epoch that travel once, however many shards there are; depends on the data."
    )
    message: Span[float] = Field(
        description="Bytes that every further shard adds for a row in an epoch, where it has very many classes; "
        "depends on the data."
    )
    products: float = Field(description="Multiply-adds a thread does in a second.")
    bandwidth: float = Field(description="Bytes a second between a shard and Redis.")
    round_trip: float = Field(description="Seconds of a round without its bytes.")


class EarlierJobs(BaseModel):
    """Trainings of the same dataset by the same method that have succeeded, the latest ten."""

    n_jobs: int
    seconds: Span[float] = Field(description="From the start of a job to its end.")


class JobPlan(BaseModel):
    """How a job would be dealt to its shards, and what an epoch over all rows would cost; what is unknown is absent."""

    shards: list[ShardPlan] = Field(description="None of a job without shards.")
    pools: int = Field(description="Pools that are running now; a job needs one for each shard.")
    rounds_per_epoch: Span[int] | None = Field(description="The job's steps show how many there were.")
    bytes_per_epoch: Span[int] | None = Field(description="Sent by all shards together.")
    seconds_per_epoch: Span[float] | None = Field(
        description="Computing and exchange; absent for texts, and of methods that cannot be counted."
    )
    seconds_without_shards: float | None = Field(
        default=None, description="Computing of an epoch in one worker, by the same rates; absent as the seconds are."
    )
    advice: str | None = Field(
        default=None, description="Where shards do not pay, or may not: why. By the seconds of an epoch, not by memory."
    )
    assumptions: Assumptions | None
    memory_bytes: int | None = Field(
        default=None,
        description="Of all arrays of a job without shards; of texts at most, by the features that their recipe keeps. "
        "Absent where the recipe keeps all, and of methods that cannot be counted.",
    )
    scaling: str | None = Field(
        default=None,
        description="How the numbers are scaled because the request does not say it, and why; absent where they are "
        "taken as they are, or as the request says.",
    )
    earlier: EarlierJobs | None = Field(default=None, description="How long a job of this kind takes; absent if none.")


class Reproduction(BaseModel):
    """Whether training from a version's lineage has made the same bits."""

    model: str
    version: int
    same: bool = Field(
        description="Every array of model and features has the same SHA-256, and so have those of the measured model, "
        "where another one is served."
    )
    arrays: int = Field(description="How many were compared.")
    differing: list[str] = Field(description="Arrays that differ, or that only one of both has.")
    code_version: str = Field(description="Of the program that trained the version.")
    code_version_now: str = Field(description="Of the program that trained it again; another one may differ in bits.")
    job: str
    reproduced_model: str | None = Field(description="Where the new version was kept, if it was.")
    reproduced_version: int | None


class Handles(BaseModel):
    """What a method takes."""

    flat: bool
    tree: bool
    multilabel: bool
    shards: bool
    kernels: bool
    certified: bool


class SolverInfo(Shown, BaseModel):
    """One method."""

    name: str
    title: str
    summary: str = Field(description="The objective, in plain text.")
    formula: str | None = Field(
        default=None, description="Objective in TeX; absent for methods that select among others."
    )
    mathml: str | None = Field(default=None, description="The same as a MathML element, which browsers draw.")
    paper: str
    handles: Handles
    params_schema: dict[str, Any] = Field(description="JSON schema of ``params``.")


class SolverList(BaseModel):
    items: list[SolverInfo]
