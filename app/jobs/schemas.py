"""Schemas of jobs: requests, states, steps and solvers."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator, model_validator

from app.curation.schemas import SuggestRowsRequest, WrongLabelsRequest
from app.datasets.recipe_schemas import TextRecipe
from app.display.shown import Shown
from app.evaluations.schemas import EvaluateRequest
from app.jobs.request_schemas import AdoptRequest, CompressRequest, EveryC, TrainingData, TuneRequest
from app.predictions.schemas import BatchPredictRequest, SureRows
from app.schemas import DATASET_PATTERN, MAX_JOB_TAGS, VERSION_PATTERN, Name, Priority, ProblemDocument, TagValue

JobState = Literal["queued", "running", "cancelling", "cancelled", "succeeded", "failed"]
JobKind = Literal[
    "import", "append", "correct", "train", "tune", "trial", "evaluate", "predict", "compress", "adopt", "suggest_rows",
    "wrong_labels",
]  # fmt: skip
FINAL_STATES: frozenset[str] = frozenset({"cancelled", "succeeded", "failed"})
# the least gap at which training in single precision ends
CERTAIN_TOL = 1e-4


class TrainRequest(TrainingData):
    """Train one model on one dataset."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["train"] = "train"
    solver: str = Field(default="auto", max_length=64, description="Training method; see /solvers. auto selects one.")
    params: dict[str, Any] = Field(default_factory=dict, description="The solver's parameters; see its JSON schema.")
    text: TextRecipe | None = Field(
        default=None,
        description="How texts become features. Default: words; for auto, words, pairs of words and runs of three "
        "characters. The job shows which were used.",
    )
    shards: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="Number of class shards; each is trained in its own worker pool (`shard-0`, `shard-1`, ...). By "
        "default, the job trains in one worker of the general pool.",
    )
    exchange: Literal["scores", "sums", "bounds"] | None = Field(
        default=None,
        description="Deprecated and without effect: each method uses its own exchange. This field will be removed.",
        json_schema_extra={"deprecated": True},
    )
    path: list[Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)]] | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="Values of C, instead of the parameter. The job trains for each value in ascending order, "
        "starts each training from the previous solution, and publishes a version of the model for "
        "each.",
    )

    validation_rows: Literal["leave_out", "train"] = Field(
        default="leave_out",
        description="Rows that the dataset marks for validation: leave them out, or also train on them, as on rows "
        "that were used to select the settings.",
    )
    warm_start: str | None = Field(
        default=None,
        pattern=VERSION_PATTERN,
        description="Start from the dual variables of a version, given as MODEL@NUMBER or MODEL@ALIAS. The version "
        "must come from the same method and from the same or an earlier version of the dataset. The "
        "optimum is that of all rows. If the dataset has no split of its own, existing rows stay in "
        "their part.",
    )
    keep_duals: bool = Field(
        default=False,
        description="Keep the dual variables with the version, so that a later training can start from them.",
    )

    until_certain: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Stop when this share of the held-out rows has a certain answer: one that further training on "
        "the same rows cannot change. Training stops at the gap `tol` at the latest, which is 1e-4 here "
        "unless `params` sets it. For linear machines with one gap, in one worker.",
    )
    certain_rows: str | None = Field(
        default=None,
        pattern=DATASET_PATTERN,
        description="Dataset whose rows count for `until_certain` instead of the held-out rows, given as NAME or "
        "NAME@VERSION. Its labels are ignored, and it may have none. If the job trains again on all rows, that "
        "training also continues until the answers to these rows are certain.",
    )

    every_c: EveryC | None = Field(
        default=None,
        description="Train for every C of a range, within a certified gap, instead of the parameter C. The version has "
        "the C with the fewest errors on rows held out from the training rows, and shows how few errors any C "
        "could have on them at least.",
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
    | AdoptRequest
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
    """Progress of a running job."""

    epoch: int
    fraction: float = Field(description="Estimate between 0 and 1.")
    eta_seconds: float | None = None
    gap: float | None = Field(default=None, description="Relative duality gap (primal - dual) / primal, last measured.")
    phase: str = Field(
        default="training",
        description="waiting, loading, features, training, refitting, compiling (these two wait for their loops to "
        "be compiled), testing, scoring, measuring or saving. A tuning also has trials and choosing.",
    )
    point: int = Field(default=0, description="Current position in the job's path, from 0.")
    setting: str | None = Field(default=None, description="For `auto`: the method in work and its settings.")
    trials: int | None = Field(
        default=None, description="For a tuning: number of trials that were started or are waiting."
    )
    trials_done: int | None = Field(default=None, description="Number of these trials that have ended.")


class QueuePlace(BaseModel):
    """Position of a queued job."""

    position: int = Field(
        description="Current position in the queue; 1 is next. Other jobs may still move ahead of it."
    )
    starts_in_seconds: float | None = Field(
        description="Estimate from the remaining time of the running jobs and the durations of recent ones. Absent "
        "if there is no worker, or if no job has ended yet."
    )
    running: list[JobKind] = Field(
        default=[], description="Kinds of the jobs that the workers of this queue are running, of all workspaces."
    )


class JobResult(BaseModel):
    """Results of a finished job."""

    model: str | None = None
    version: int | None = Field(default=None, description="The last published version.")
    versions: list[int] = Field(
        default=[], description="All versions that the job has published so far, in ascending order of C."
    )
    dataset: str | None = None
    dataset_version: int | None = None
    evaluation: str | None = Field(default=None, description="Id of the evaluation that the job created.")
    predictions: str | None = Field(
        default=None,
        description="Id of the job whose predictions can be downloaded at `/jobs/{id}/predictions` until they expire.",
    )
    target: str | None = Field(
        default=None, description="For prediction jobs: the object to which the file was written as well."
    )
    n_rows: int | None = Field(default=None, description="Number of predicted or listed rows.")
    n_judged: int | None = Field(default=None, description="Number of rows whose labels were checked.")
    n_confident: int | None = Field(default=None, description="Estimated number of wrong labels among them.")
    sure: SureRows | None = Field(
        default=None, description="For predictions with a threshold or a precision: number of rows with a sure label."
    )
    columns: list[str] | None = Field(default=None, description="Columns of the file of predictions, in order.")
    n_trained_on: int | None = Field(
        default=None,
        description="For prediction jobs: number of rows whose content is that of a row in the version's training "
        "data. Absent if those rows are no longer there.",
    )
    trial: int | None = Field(
        default=None, description="For a tuning: number of the trial whose settings the version has."
    )
    measures: dict[str, float] = Field(
        default={}, description="For a tuning and its trials: measures on the held-out rows, by name."
    )
    not_refit: str | None = Field(
        default=None, description="Reason why the version was not trained again on all rows, if that was requested."
    )
    stopped: Literal["time_limit"] | None = Field(
        default=None,
        description="What ended the training before its stopping rule did; the version has the model at that point.",
    )
    unconverged: str | None = Field(
        default=None, description="Reason why the training ended before the optimum; absent if it reached the optimum."
    )
    warning: str | None = Field(
        default=None,
        description="For a training: that the model learnt nothing from the features, and what to check. For "
        "corrections: the labels that the dataset did not have before. For predictions: how many rows are in the "
        "training data. Absent if there is nothing to warn about.",
    )


class Job(Shown, BaseModel):
    """A job and its state."""

    id: str
    owner: str | None = Field(default=None, description="Name of the key that created it.")
    kind: JobKind
    parent: str | None = Field(default=None, description="For a trial: id of its tuning.")
    state: JobState
    dataset: str | None = Field(description="Id of the dataset; absent if it was deleted.")
    hierarchy: str | None = Field(
        default=None, description="Id of the hierarchy; absent if none was requested or it was deleted."
    )
    request: dict[str, Any]
    priority: Priority = "normal"
    tags: dict[str, str] = Field(default_factory=dict)
    time_limit_seconds: float | None = Field(default=None, description="Time limit in seconds, from the first start.")
    queue: QueuePlace | None = Field(default=None, description="For a queued job: its place in the queue.")
    queued_again: str | None = Field(
        default=None, description="Why the job was last queued again: its worker was lost, or a user requested it."
    )
    attempt: int = Field(description="Number of times that a worker has started it.")
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
    """The evaluations that a comparison waits for; empty if the comparison is available now."""

    jobs: list[Job]


class JobPatch(BaseModel):
    """A change of a job; omitted fields are unchanged."""

    model_config = ConfigDict(extra="forbid")

    priority: Priority | None = Field(default=None, description="New priority; only for queued jobs.")
    tags: dict[Name, TagValue | None] | None = Field(
        default=None, max_length=MAX_JOB_TAGS, description="Names and values to set; null removes the tag."
    )


class JobLogLine(BaseModel):
    """One log line of a job, written by a worker or a sweep."""

    id: str = Field(description="Id of the line; ids increase with time.")
    at: AwareDatetime
    attempt: int
    level: str = Field(description="info, warning or error.")
    event: str = Field(description="Event, such as job_started, phase, checkpoint_saved or job_ended.")
    fields: dict[str, Any] = Field(description="Details of the event, by name.")


class JobLog(BaseModel):
    """The lines after ``after``, oldest first; the newest thousand lines of each job are kept."""

    lines: list[JobLogLine]


class JobStep(BaseModel):
    """One point of the convergence curve; a bound that was not measured at that step is absent."""

    number: int
    attempt: int
    epoch: int
    primal: float | None
    dual: float | None
    gap: float | None = Field(description="Relative duality gap, (primal - dual) / primal.")
    violation: float | None = Field(description="Largest violation of the optimality conditions.")
    seconds: float = Field(description="Training time so far, over all attempts.")
    point: int = Field(
        default=0, description="Position in the job's path, from 0; epochs are counted from 0 at each position."
    )
    measures: dict[str, float] = Field(
        default_factory=dict, description="Other measures of the step, by name: errors, counts."
    )
    setting: str | None = Field(default=None, description="For `auto`: the method in work and its settings.")


class JobSteps(Shown, BaseModel):
    """The points of the curve after ``after``."""

    steps: list[JobStep]


class Reproduction(BaseModel):
    """Whether training again from a version's lineage gave the same bits."""

    model: str
    version: int
    same: bool = Field(
        description="Whether every array of the model and its features has the same SHA-256. If the served model "
        "differs from the measured one, the arrays of both are compared."
    )
    arrays: int = Field(description="Number of compared arrays.")
    differing: list[str] = Field(description="Arrays that differ or exist on one side only.")
    code_version: str = Field(description="Polymargin release that trained the version.")
    code_version_now: str = Field(
        description="Polymargin release that trained it again; a different release may give different bits."
    )
    job: str
    reproduced_model: str | None = Field(description="Name of the model that stores the new version, if it was kept.")
    reproduced_version: int | None


class Handles(BaseModel):
    """What a method supports."""

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
    summary: str = Field(description="Objective in plain text.")
    formula: str | None = Field(
        default=None, description="Objective in TeX; absent for methods that select among others."
    )
    mathml: str | None = Field(default=None, description="Objective as a MathML element.")
    paper: str
    handles: Handles
    params_schema: dict[str, Any] = Field(description="JSON schema of ``params``.")


class SolverList(BaseModel):
    items: list[SolverInfo]
