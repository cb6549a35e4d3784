"""Schemas of requests: training data, tunings and compressed copies."""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from app.datasets.recipe_schemas import ColumnRecipe, TextRecipe
from app.evaluations.schemas import McNemar, Part
from app.schemas import JobOptions, Name, ProblemDocument


class TrainingData(JobOptions):
    """The dataset, how its rows are divided, and the model that gets a version."""

    dataset: Name = Field(description="Id or name.")
    dataset_version: int | None = Field(default=None, ge=1, lt=2**31, description="By default the newest.")
    hierarchy: Name | None = Field(
        default=None,
        description="Id or name of the label tree that the labels are nodes of; methods that take none are measured "
        "along it.",
    )
    model: Name = Field(description="The model gets a new version under this name.")
    seed: int = Field(
        default=0, ge=0, lt=2**31, description="Of the split and of the solver; the same seed gives the same model."
    )
    threads: int = Field(default=1, ge=1, le=256, description="Threads of the solver in its worker.")
    test_fraction: float = Field(
        default=0.2,
        ge=0,
        lt=1,
        description="Rows held out for testing, by class, where the dataset has no split of its own.",
    )
    refit: bool = Field(
        default=True,
        description="Where the dataset has no split of its own: measure on the rows held out, then train once more on "
        "all rows, and serve that; false serves the measured model. In class shards only false is possible, and is the "
        "default.",
    )
    stratify: Literal["labels", "rows"] = Field(
        default="labels",
        description="Rows with sets of labels are held out so that each label has its share (iterative "
        "stratification), or whatever their labels.",
    )
    unseen_labels: Literal["refuse", "count"] = Field(
        default="count",
        description="Test rows with a label that no training row has or, along a label tree, that is none of its "
        "nodes: refuse the job, or count them as errors.",
    )
    unknown_labels: Literal["refuse", "drop", "keep"] = Field(
        default="refuse",
        description="Labels of rows that the hierarchy lacks: refuse the job; drop them, and rows without any other "
        "label; or keep them as labels at the top of the tree. The version's report counts them and lists them.",
    )
    missing_parents: Literal["add", "refuse"] = Field(
        default="add",
        description="Rows with sets of labels that have a label and not the one above it: add that, and report how "
        "many were added, or refuse the job.",
    )
    columns: ColumnRecipe | None = Field(
        default=None,
        description="How numbers and categories become features. Left out, those of tables are scaled to mean 0 and "
        "deviation 1. Other datasets' numbers are taken as they are unless the deviations of dense columns differ by "
        "orders of magnitude, or the largest number is far from 1: the plan says why, and the job shows the scaling.",
    )


Measure = Literal[
    "accuracy", "accuracy@3", "accuracy@5", "accuracy@10", "precision", "recall", "micro_f1", "macro_f1", "weighted_f1",
    "mrr", "precision@3", "precision@5", "ndcg@3", "ndcg@5", "ndcg@10", "log_loss", "tree_loss", "hierarchical_f1",
    "hierarchical_macro_f1",
]  # fmt: skip
LESS_IS_BETTER: frozenset[str] = frozenset({"log_loss", "tree_loss"})
MOST_TRIALS = 1000
State = Literal["queued", "running", "cancelling", "cancelled", "succeeded", "failed"]


class Range(BaseModel):
    """Numbers to draw from, both ends included."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    low: float = Field(ge=-1e15, le=1e15, allow_inf_nan=False)
    high: float = Field(ge=-1e15, le=1e15, allow_inf_nan=False)
    log: bool = Field(default=False, description="Evenly by the logarithm, as C wants to be drawn.")
    whole: bool = Field(default=False, description="Whole numbers.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError("low is above high")
        if self.log and self.low <= 0:
            raise ValueError("a logarithm needs numbers above 0")
        if self.whole and math.ceil(self.low) > math.floor(self.high):
            raise ValueError("there is no whole number in it")
        return self


class Candidate(BaseModel):
    """A method, parameters that all its trials have, and those that vary."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    solver: str = Field(max_length=64, description="See /solvers.")
    params: dict[str, Any] = Field(default={}, description="Parameters that are the same in each trial.")
    grid: dict[str, Annotated[list[Any], Field(min_length=1, max_length=MOST_TRIALS)]] = Field(
        default={}, description="Values to try of other parameters: every combination, or some at random with draws."
    )
    ranges: dict[str, Range] = Field(default={}, description="Ranges that others are drawn from; only with draws.")

    @model_validator(mode="after")
    def _once(self) -> Self:
        names = [*self.params, *self.grid, *self.ranges]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{twice[0]!r:.80} is given twice")
        return self


class TuneRequest(TrainingData):
    """Try settings on rows held out, and train the best of them on all rows."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["tune"] = "tune"
    space: list[Candidate] = Field(min_length=1, max_length=100, description="What is tried.")
    texts: list[TextRecipe] | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Ways to make features of texts, each tried with all settings. Left out, words, or, with auto "
        "among the methods, words, pairs of words and runs of three characters.",
    )
    draws: int | None = Field(
        default=None,
        ge=1,
        le=MOST_TRIALS,
        description="Try so many settings, drawn at random from the seed, in place of all combinations.",
    )
    measure: Measure | None = Field(
        default=None,
        description="What the best one is best at, on the rows held out. By default accuracy, of sets of labels "
        "micro_f1.",
    )
    folds: int | None = Field(
        default=None,
        ge=2,
        le=100,
        description="Hold each training row out once, in one of so many folds. Left out, the rows are held out that "
        "the dataset marks for validation, or else a share of the training rows.",
    )
    validation_fraction: float = Field(
        default=0.2,
        gt=0,
        lt=1,
        description="Share of the training rows that is held out, where there are neither folds nor rows for "
        "validation.",
    )
    trial_tol: float = Field(
        default=0.05,
        gt=0,
        lt=1,
        description="Trials are trained to this gap, where the method has one and the space names no tol; the best is "
        "then trained to its own.",
    )
    halving: int | None = Field(
        default=None,
        ge=2,
        le=10,
        description="Successive halving: all settings get few epochs, and the best part, one in so many, gets as many "
        "times more, until the last few are trained to their end.",
    )
    first_epochs: int = Field(default=2, ge=1, le=10_000, description="Epochs in the first round of halving.")
    budget_seconds: float | None = Field(
        default=None,
        gt=0,
        le=1e8,
        allow_inf_nan=False,
        description="From the job's first start. Then no trial begins any more, those that run are measured as far as "
        "they came, and the best so far is trained on all rows.",
    )

    @model_validator(mode="after")
    def _drawn(self) -> Self:
        if self.draws is None and any(candidate.ranges for candidate in self.space):
            raise ValueError("ranges have no end of values: say how many settings are drawn, as draws=20")
        return self


class TrialRequest(BaseModel):
    """What a trial is given; all else is its tuning's."""

    kind: Literal["trial"] = "trial"
    number: int
    rung: int = 0
    solver: str
    params: dict[str, Any]
    text: TextRecipe | None = None
    max_epochs: int | None = None


class HeldOut(BaseModel):
    """The rows that a trial was measured on."""

    by: Literal["validation", "fraction", "folds"] = Field(
        description="The dataset's rows for validation, a share of the training rows, or folds of them."
    )
    folds: int = Field(description="1 unless there are folds.")
    seed: int
    n_train: int = Field(description="Rows trained on, of the first fold.")
    n_held_out: int = Field(description="Rows measured on, of all folds.")


class Trial(BaseModel):
    """One trial, with all that it came from."""

    number: int = Field(description="Of the settings, in the order of the space.")
    rung: int = Field(description="The round of halving that it belongs to, from 0.")
    job: str = Field(description="Id of the job that runs it, which has its curve and its log.")
    state: State
    rank: int | None = Field(description="1 for the best; absent until it is measured.")
    solver: str
    params: dict[str, Any] = Field(description="As the space gives them.")
    text: TextRecipe | None = Field(description="How texts become features.")
    seed: int = Field(description="Of the solver.")
    max_epochs: int | None = Field(description="The most that its round of halving gives it.")
    value: float | None = Field(description="The measure that is tuned; of folds the mean over their rows.")
    by_fold: list[float] = Field(description="The same, fold by fold.")
    measures: dict[str, float] = Field(description="All measures of the rows held out.")
    dataset_sha256: str | None
    held_out: HeldOut | None
    seconds: float | None = Field(description="Of training and measuring; making features is not counted.")
    epochs: int | None = Field(description="Of all folds.")
    gap: float | None = Field(description="The largest of the folds' relative duality gaps.")
    converged: bool | None
    stopped: bool = Field(description="The budget has ended it; its measures are those of what it had reached.")
    attempt: int
    worker: str | None
    error: ProblemDocument | None = Field(description="Why it has failed.")
    started_at: AwareDatetime | None
    finished_at: AwareDatetime | None


_Share = Annotated[FiniteFloat, Field(ge=0, le=1)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]


class CompressRequest(JobOptions):
    """Make a smaller copy of a version, and measure what that costs on rows of a dataset."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["compress"]
    model: Name = Field(description="Id or name.")
    version: int | None = Field(
        default=None, ge=1, lt=2**31, description="By default the latest that is no copy itself."
    )
    alias: Name | None = Field(default=None, description="In place of a version: the one that it names now.")
    float16: bool = Field(default=False, description="Keep weights in half precision: 2 bytes each in place of 4.")
    prune_share: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        allow_inf_nan=False,
        description="Set so large a share of the weights that are not zero to zero, those of the least magnitude; of "
        "each array of weights by itself: a member of a pool, a shard.",
    )
    prune_below: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="Set weights of a lesser magnitude to zero."
    )
    dataset: Name | None = Field(
        default=None, description="Id or name: where the loss is measured. By default the dataset that it came from."
    )
    dataset_version: int | None = Field(
        default=None, ge=1, lt=2**31, description="By default the one that it was trained on, of another the newest."
    )
    part: Part | None = Field(
        default=None, description="Which rows; by default those held out from training, where there are such."
    )

    @model_validator(mode="after")
    def _one_way(self) -> "CompressRequest":
        if self.version is not None and self.alias is not None:
            raise ValueError("give a version or an alias, not both")
        if self.prune_share is not None and self.prune_below is not None:
            raise ValueError("give prune_share or prune_below, not both")
        if not self.float16 and self.prune_share is None and self.prune_below is None:
            raise ValueError("at least one of float16, prune_share and prune_below is required")
        return self


class CopyOf(BaseModel):
    """The version that a smaller copy was made of, how, and what the copy was measured to lose.

    Numbers and hashes are those of the service that made the copy.
    """

    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1, lt=2**31)
    version_sha256: str = Field(pattern="^[0-9a-f]{64}$")
    float16: bool
    prune_share: _Share | None
    prune_below: FiniteFloat | None
    weights: _Count = Field(description="Weights of the source that are not zero.")
    pruned: _Count = Field(description="How many of them are zero in the copy.")
    gap: FiniteFloat | None = Field(
        description="Relative duality gap of the source: it certifies the source, and nothing of the copy."
    )
    size_bytes: _Count = Field(description="Files of the source.")
    memory_bytes_source: _Count = Field(description="Arrays of the source's model in memory.")
    memory_bytes: _Count = Field(description="Arrays of the copy's model in memory.")
    dataset_sha256: str = Field(pattern="^[0-9a-f]{64}$", description="Where the loss was measured.")
    part: Part
    n_rows: _Count
    agreement: _Share = Field(description="Share of the rows to which both answer first with the same label.")
    error_source: FiniteFloat = Field(description="Share of the rows that the source has wrong.")
    error: FiniteFloat = Field(description="Share of the rows that the copy has wrong.")
    loss_low: FiniteFloat = Field(
        description="Ends of the 95 % interval of error less error_source, by paired resampling."
    )
    loss_high: FiniteFloat
    mcnemar: McNemar = Field(description="McNemar's test; a is the source, b the copy.")
