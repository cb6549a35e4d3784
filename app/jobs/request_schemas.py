"""Schemas of requests: training data, tunings and compressed copies."""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from app.datasets.recipe_schemas import ColumnRecipe, TextRecipe
from app.evaluations.schemas import McNemar, Part
from app.schemas import JobOptions, Name, ProblemDocument


class TrainingData(JobOptions):
    """The dataset, the split of its rows, and the model that gets a version."""

    dataset: Name = Field(description="Id or name.")
    dataset_version: int | None = Field(default=None, ge=1, lt=2**31, description="Default: the newest.")
    hierarchy: Name | None = Field(
        default=None,
        description="Id or name of the label tree whose nodes are the labels. Methods that do not use a tree are "
        "measured along it.",
    )
    model: Name = Field(description="Name of the model that gets a new version.")
    seed: int = Field(
        default=0,
        ge=0,
        lt=2**31,
        description="Seed of the split and of the solver; the same seed gives the same model.",
    )
    threads: int = Field(default=1, ge=1, le=256, description="Threads of the solver in its worker.")
    test_fraction: float = Field(
        default=0.2,
        ge=0,
        lt=1,
        description="Share of the rows held out for testing, by class, if the dataset has no split of its own.",
    )
    refit: bool = Field(
        default=True,
        description="If the dataset has no split of its own: measure on the held-out rows, then train again on all "
        "rows and serve that model. If false, the measured model is served. With class shards, only "
        "false is allowed, and it is the default.",
    )
    stratify: Literal["labels", "rows"] = Field(
        default="rows",
        description="How rows with sets of labels are held out. rows: at random. labels: so that each label has its "
        "share (iterative stratification); rows of labels with one or two rows are then hardly ever held out, and "
        "measures are too high where many labels are rare.",
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
        description="How numbers and categories become features. By default, numbers of tables are scaled to mean 0 "
        "and standard deviation 1. Numbers of other datasets are unchanged unless the standard "
        "deviations of dense columns differ by orders of magnitude, or the largest number is far from "
        "1; the plan then gives the reason, and the job shows the scaling.",
    )


class EveryC(BaseModel):
    """A range of C for which a model within a duality gap is found at every value."""

    model_config = ConfigDict(extra="forbid")

    eps: float = Field(
        default=0.01,
        ge=1e-6,
        le=0.5,
        description="Train at so few values of C that a model within this relative duality gap is known for every C "
        "of a range, and publish the one with the fewest errors on rows held out from the training rows. "
        "For linear machines with one gap, in one worker.",
    )
    low: float = Field(default=1e-4, gt=0, le=1e15, allow_inf_nan=False, description="The smallest C of the range.")
    high: float = Field(default=1e4, gt=0, le=1e15, allow_inf_nan=False, description="The largest C of the range.")
    fraction: float = Field(
        default=0.2, gt=0, lt=1, description="Share of the training rows, by class, that is held out to choose C."
    )

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low is {self.low:g}; it must be smaller than high, {self.high:g}")
        return self


Measure = Literal[
    "accuracy", "accuracy@3", "accuracy@5", "accuracy@10", "precision", "recall", "micro_f1", "macro_f1", "weighted_f1",
    "mrr", "precision@3", "precision@5", "ndcg@3", "ndcg@5", "ndcg@10", "log_loss", "tree_loss", "hierarchical_f1",
    "hierarchical_macro_f1", "cost", "least_cost",
]  # fmt: skip
LESS_IS_BETTER: frozenset[str] = frozenset({"log_loss", "tree_loss", "cost", "least_cost"})
MOST_TRIALS = 1000
State = Literal["queued", "running", "cancelling", "cancelled", "succeeded", "failed"]


class Range(BaseModel):
    """Range of numbers to draw from, including both ends."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    low: float = Field(ge=-1e15, le=1e15, allow_inf_nan=False)
    high: float = Field(ge=-1e15, le=1e15, allow_inf_nan=False)
    log: bool = Field(default=False, description="Draw uniformly on a logarithmic scale, as is suitable for C.")
    whole: bool = Field(default=False, description="Draw integers.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError("low is above high")
        if self.log and self.low <= 0:
            raise ValueError("a logarithm needs numbers above 0")
        if self.whole and math.ceil(self.low) > math.floor(self.high):
            raise ValueError("the range contains no integer")
        return self


class Candidate(BaseModel):
    """A method with its fixed and its varied parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    solver: str = Field(max_length=64, description="See /solvers.")
    params: dict[str, Any] = Field(default={}, description="Parameters that are the same in each trial.")
    grid: dict[str, Annotated[list[Any], Field(min_length=1, max_length=MOST_TRIALS)]] = Field(
        default={},
        description="Values of other parameters to try: every combination, or random combinations if draws is given.",
    )
    ranges: dict[str, Range] = Field(
        default={}, description="Ranges from which other parameters are drawn; only with draws."
    )

    @model_validator(mode="after")
    def _once(self) -> Self:
        names = [*self.params, *self.grid, *self.ranges]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{twice[0]!r:.80} is given twice")
        return self


class TuneRequest(TrainingData):
    """Try settings on held-out rows, and train the best of them on all rows."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["tune"] = "tune"
    space: list[Candidate] = Field(min_length=1, max_length=100, description="Methods and settings to try.")
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
        description="Measure on the held-out rows by which the best trial is selected. Default: accuracy, "
        "micro_f1 for sets of labels, or cost if costs are given.",
    )
    costs: Literal["tree"] | dict[str, dict[str, float]] | None = Field(
        default=None,
        description="What wrong answers cost, for the measures cost and least_cost of every trial, however it is "
        "trained. The format is that of the parameter costs of methods that train with costs.",
    )
    other_cost: float = Field(default=1.0, description="Cost of a wrong answer that an object of costs leaves out.")
    folds: int | None = Field(
        default=None,
        ge=2,
        le=100,
        description="Number of folds; each training row is held out once. By default, the rows that the dataset "
        "marks for validation are held out, or else a share of the training rows.",
    )
    validation_fraction: float = Field(
        default=0.2,
        gt=0,
        lt=1,
        description="Share of the training rows to hold out if there are neither folds nor validation rows.",
    )
    trial_tol: float = Field(
        default=0.05,
        gt=0,
        lt=1,
        description="Gap to which trials are trained, if the method has one and the space does not set tol. The "
        "best setting is then trained to its own tolerance.",
    )
    halving: int | None = Field(
        default=None,
        ge=2,
        le=10,
        description="Successive halving: all settings start with few epochs. In each round, the best 1/n of the "
        "settings continue with n times as many epochs, where n is this number, until the last few are "
        "fully trained.",
    )
    first_epochs: int = Field(default=2, ge=1, le=10_000, description="Epochs in the first round of halving.")
    budget_seconds: float | None = Field(
        default=None,
        gt=0,
        le=1e8,
        allow_inf_nan=False,
        description="Seconds from the job's first start. After that, no new trial starts, running trials are "
        "measured as they are, and the best setting so far is trained on all rows.",
    )

    @model_validator(mode="after")
    def _drawn(self) -> Self:
        if self.draws is None and any(candidate.ranges for candidate in self.space):
            raise ValueError("ranges are infinite: pass the number of settings to draw, such as draws=20")
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
    """The rows on which a trial was measured."""

    by: Literal["validation", "fraction", "folds"] = Field(
        description="The dataset's rows for validation, a share of the training rows, or folds of them."
    )
    folds: int = Field(description="Number of folds; 1 if rows are held out once.")
    seed: int
    n_train: int = Field(description="Number of training rows in the first fold.")
    n_held_out: int = Field(description="Number of measured rows in all folds.")


class Trial(BaseModel):
    """One trial with its settings, data and results."""

    number: int = Field(description="Number of the setting, in the order of the space.")
    rung: int = Field(description="Round of halving, from 0.")
    job: str = Field(description="Id of the trial's job, which has its curve and its log.")
    state: State
    rank: int | None = Field(description="Rank of the trial, 1 for the best; absent until it is measured.")
    solver: str
    params: dict[str, Any] = Field(description="Parameters, as in the space.")
    text: TextRecipe | None = Field(description="How texts become features.")
    seed: int = Field(description="Random seed of the solver.")
    max_epochs: int | None = Field(description="Maximum number of epochs in its round of halving.")
    value: float | None = Field(description="Value of the tuned measure; with folds, the mean over their rows.")
    by_fold: list[float] = Field(description="Value of the tuned measure in each fold.")
    measures: dict[str, float] = Field(description="All measures on the held-out rows.")
    dataset_sha256: str | None
    held_out: HeldOut | None
    seconds: float | None = Field(description="Time of training and measuring, without computing features.")
    epochs: int | None = Field(description="Epochs of all folds together.")
    gap: float | None = Field(description="The largest of the folds' relative duality gaps.")
    converged: bool | None
    stopped: bool = Field(
        description="Whether the budget ended the trial early; the measures are of the model at that point."
    )
    attempt: int
    worker: str | None
    error: ProblemDocument | None = Field(description="Reason of the failure.")
    started_at: AwareDatetime | None
    finished_at: AwareDatetime | None


_Share = Annotated[FiniteFloat, Field(ge=0, le=1)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]


class DerivedVersion(JobOptions):
    """The version that another is made of, and the rows on which both are compared."""

    model_config = ConfigDict(extra="forbid")

    model: Name = Field(description="Id or name.")
    version: int | None = Field(
        default=None, ge=1, lt=2**31, description="Default: the latest version that is not a copy."
    )
    alias: Name | None = Field(default=None, description="Alias instead of a version.")
    dataset: Name | None = Field(
        default=None,
        description="Id or name of the dataset on which both versions are measured. Default: the dataset that the "
        "version was trained on.",
    )
    dataset_version: int | None = Field(
        default=None,
        ge=1,
        lt=2**31,
        description="Default: the version used in training or, for another dataset, the newest.",
    )
    part: Part | None = Field(
        default=None, description="Rows to measure on. Default: the rows held out from training, if there are any."
    )

    @model_validator(mode="after")
    def _one_version(self) -> Self:
        if self.version is not None and self.alias is not None:
            raise ValueError("give a version or an alias, not both")
        return self


class CompressRequest(DerivedVersion):
    """Make a smaller copy of a version, and measure its loss of accuracy on rows of a dataset."""

    kind: Literal["compress"]
    float16: bool = Field(default=False, description="Store weights in half precision: 2 bytes each instead of 4.")
    prune_share: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        allow_inf_nan=False,
        description="Share of the nonzero weights to set to zero, smallest magnitudes first. The share applies to "
        "each array of weights separately: a member of a pool, or a shard.",
    )
    prune_below: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="Set weights below this magnitude to zero."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.prune_share is not None and self.prune_below is not None:
            raise ValueError("give prune_share or prune_below, not both")
        if not self.float16 and self.prune_share is None and self.prune_below is None:
            raise ValueError("at least one of float16, prune_share and prune_below is required")
        return self


class AdoptRequest(DerivedVersion):
    """Adopt an edition of a vocabulary without training: new concepts are found by their names."""

    kind: Literal["adopt"]
    hierarchy: Name = Field(description="Id or name of the edition to adopt.")


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
    weights: _Count = Field(description="Number of nonzero weights of the source.")
    pruned: _Count = Field(description="Number of these weights that are zero in the copy.")
    gap: FiniteFloat | None = Field(
        description="Relative duality gap of the source. It certifies only the source, not the copy."
    )
    size_bytes: _Count = Field(description="Size of the source's files.")
    memory_bytes_source: _Count = Field(description="Size in memory of the source's arrays.")
    memory_bytes: _Count = Field(description="Size in memory of the copy's arrays.")
    dataset_sha256: str = Field(
        pattern="^[0-9a-f]{64}$", description="SHA-256 of the dataset on which the loss was measured."
    )
    part: Part
    n_rows: _Count
    agreement: _Share = Field(description="Share of the rows for which both predict the same first label.")
    error_source: FiniteFloat = Field(description="Error rate of the source.")
    error: FiniteFloat = Field(description="Error rate of the copy.")
    loss_low: FiniteFloat = Field(
        description="Lower and upper end of the 95 % interval of error minus error_source, by paired resampling."
    )
    loss_high: FiniteFloat
    mcnemar: McNemar = Field(description="McNemar's test; a is the source, b the copy.")


class EditionOf(BaseModel):
    """The version that adopted an edition of its vocabulary, what changed, and how the answers compare.

    Numbers and hashes are those of the service where the edition was adopted. A concept of the source is another one in
    the edition if that names it as its replacement.
    """

    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1, lt=2**31, description="Version whose machine and ranker answer.")
    version_sha256: str = Field(pattern="^[0-9a-f]{64}$")
    hierarchy_sha256: str | None = Field(
        pattern="^[0-9a-f]{64}$", description="SHA-256 of the source's edition; null if it had none."
    )
    gap: FiniteFloat | None = Field(description="Relative duality gap of the source, which certifies its ranker.")
    appeared: _Count = Field(description="Concepts of the edition without a predecessor; they are found by name.")
    gone: _Count = Field(description="Concepts of the source without a successor; they are not answered any more.")
    merged: _Count = Field(description="Concepts of the source that have a successor in common with another one.")
    dataset_sha256: str = Field(
        pattern="^[0-9a-f]{64}$", description="SHA-256 of the dataset on which both versions were measured."
    )
    part: Part
    n_rows: _Count
    agreement: _Share = Field(description="Share of the rows for which both name the same first concept.")
    ndcg_source: FiniteFloat = Field(description="nDCG@10 of the source.")
    ndcg: FiniteFloat = Field(description="nDCG@10 of this version.")
    gain_low: FiniteFloat = Field(
        description="Lower and upper end of the 95 % interval of ndcg minus ndcg_source, by paired resampling."
    )
    gain_high: FiniteFloat
