"""Jobs: what may be asked for, and what is shown while and after they run."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator

from app.schemas.common.job_options import MAX_JOB_TAGS, Priority, TagValue
from app.schemas.common.names import VERSION_PATTERN, Name
from app.schemas.common.problems import ProblemDocument
from app.schemas.datasets.texts import TextRecipe
from app.schemas.evaluations import EvaluateRequest
from app.schemas.jobs.compression import CompressRequest
from app.schemas.jobs.training_data import TrainingData
from app.schemas.jobs.tuning import TuneRequest
from app.schemas.predictions.batch_predictions import BatchPredictRequest

JobState = Literal["queued", "running", "cancelling", "cancelled", "succeeded", "failed"]
JobKind = Literal["import", "append", "correct", "train", "tune", "trial", "evaluate", "predict", "compress"]
FINAL_STATES: frozenset[str] = frozenset({"cancelled", "succeeded", "failed"})


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
    exchange: Literal["scores", "sums", "weights", "mean", "bounds"] | None = Field(
        default=None,
        description="What the shards exchange, by default what suits the method. With weights, which weston_watkins "
        "alone takes, half-shards travel and play each other (Alber et al. 2017), at far more bytes than scores. "
        "With mean, which the methods take whose weights add up to zero, each shard moves its own with the mean of all "
        "held, and a new mean is made after each tenth of an epoch (the same paper).",
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

    @field_validator("path")
    @classmethod
    def _once(cls, path: list[float] | None) -> list[float] | None:
        if path is not None and len(set(path)) < len(path):
            raise ValueError("each C may stand there once")
        return path


JobRequest = TrainRequest | TuneRequest | EvaluateRequest | BatchPredictRequest | CompressRequest


def stored_request(stored: Mapping[str, Any]) -> TrainRequest:
    """A training request as it was stored; those of earlier versions held sets of labels out at random."""
    return TrainRequest.model_validate({"stratify": "rows", **stored})


class Progress(BaseModel):
    """How far a running job has come."""

    epoch: int
    fraction: float = Field(description="Between 0 and 1; an estimate.")
    eta_seconds: float | None = None
    gap: float | None = Field(default=None, description="Relative duality gap (primal - dual) / primal, last measured.")
    phase: str = Field(
        default="training",
        description="waiting, loading, features, training, testing, scoring, measuring or saving; of a tuning also "
        "trials and choosing.",
    )
    point: int = Field(default=0, description="The place in the job's path that is being trained, from 0.")
    setting: str | None = Field(default=None, description="Of `auto`: the method that is tried or trained, and how.")
    trials: int | None = Field(default=None, description="Of a tuning: trials that were begun or wait so far.")
    trials_done: int | None = Field(default=None, description="Those of them that have ended.")


class QueuePlace(BaseModel):
    """Where a queued job stands."""

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
        description="Id of the job whose predictions are to be had, for a time, at `/jobs/{id}/predictions`.",
    )
    n_rows: int | None = Field(default=None, description="Of the predictions.")
    trial: int | None = Field(
        default=None, description="Of a tuning: the number of the trial whose settings the version has."
    )
    measures: dict[str, float] = Field(
        default={}, description="Of a tuning and its trials: measures on the rows held out, by name."
    )
    stopped: Literal["time_limit"] | None = Field(
        default=None, description="What has ended the training before its own rule did; the version is what it had."
    )


class Job(BaseModel):
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
        default=None, description="Why the job was queued again, the last time: its worker was lost, or somebody asked."
    )
    attempt: int = Field(description="How often a worker has taken it up.")
    worker: str | None
    progress: Progress | None
    result: JobResult | None
    error: ProblemDocument | None
    created_at: AwareDatetime
    started_at: AwareDatetime | None
    finished_at: AwareDatetime | None


class JobPatch(BaseModel):
    """A change of a job; what is not named stays as it is."""

    model_config = ConfigDict(extra="forbid")

    priority: Priority | None = Field(default=None, description="Of a job that is queued.")
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
    point: int = Field(default=0, description="Place in the job's path, from 0; epochs count anew at each.")
    measures: dict[str, float] = Field(
        default_factory=dict, description="What else the method tells of the step, by name: errors, counts."
    )
    setting: str | None = Field(default=None, description="Of `auto`: the method that is tried or trained, and how.")


class JobSteps(BaseModel):
    """The curve from ``after`` on."""

    steps: list[JobStep]
