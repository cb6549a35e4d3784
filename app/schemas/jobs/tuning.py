"""Tunings: what is tried, how trials are measured, and what each of them has shown."""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from app.schemas.common.problems import ProblemDocument
from app.schemas.datasets.texts import TextRecipe
from app.schemas.jobs.training_data import TrainingData

Measure = Literal[
    "accuracy", "accuracy@3", "accuracy@5", "accuracy@10", "precision", "recall", "micro_f1", "macro_f1", "weighted_f1",
    "mrr", "precision@3", "precision@5", "ndcg@3", "ndcg@5", "ndcg@10", "log_loss", "tree_loss",
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
