"""Schemas of jobs that suggest rows to label, or find wrong labels."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.evaluations.schemas import Part
from app.schemas import JobOptions, Name


class SuggestRowsRequest(JobOptions):
    """Choose the rows of a dataset that are most worth labelling."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["suggest_rows"] = "suggest_rows"
    model: Name = Field(description="Id or name of a model.")
    version: int | None = Field(default=None, ge=1, lt=2**31, description="Default: the latest.")
    alias: Name | None = Field(default=None, description="Alias instead of a version.")
    dataset: Name = Field(description="Id or name of a dataset, with labels or without.")
    dataset_version: int | None = Field(default=None, ge=1, lt=2**31, description="Default: the newest.")
    part: Part = Field(default="all", description="All rows, or those of one part of the dataset's own split.")
    budget: int = Field(default=200, ge=1, le=10_000, description="Number of rows to choose.")
    diversity: Literal["clusters", "k_center", "none"] = Field(
        default="k_center",
        description="How the budget is spread over rows that are not sure. `k_center` takes the row that is least like "
        "all chosen rows, `clusters` the least sure row of each k-means cluster, `none` the least sure rows.",
    )
    few_rows_share: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of the budget for rows whose best label has few training rows, the rarest labels first.",
    )
    few_rows: int = Field(
        default=5, ge=1, le=1_000_000, description="A label with fewer training rows than this has few rows."
    )
    skip_decided: bool = Field(default=True, description="Leave out rows that a review queue has decided.")
    top_k: int = Field(default=5, ge=2, le=100, description="Alternatives per row.")
    seed: int = Field(default=0, ge=0, lt=2**31, description="The same seed chooses the same rows.")


class Alternative(BaseModel):
    """A label that a row may have."""

    label: str
    name: str | None = Field(default=None, description="Preferred name in the vocabulary.")
    probability: float | None = Field(default=None, description="For models with probabilities.")
    score: float | None = None
    predicted: bool | None = Field(default=None, description="For sets of labels: whether the predicted set has it.")


class SuggestedRow(BaseModel):
    """A row that is worth labelling."""

    row: int = Field(description="Number in the dataset, from 0.")
    id: str | None = Field(default=None, description="Id in the dataset's file.")
    reason: Literal["few_rows", "least_sure"] = Field(
        description="`few_rows`: the best label has few training rows. `least_sure`: the margin is small."
    )
    margin: float | None = Field(
        description="Lead of the best label over the second: of probabilities where the model has them, else of "
        "scores. Absent if there is no second label. For sets of labels: how far the score of the least sure label is "
        "from where the decision changes."
    )
    labels: list[str] = Field(description="Labels in the dataset; empty if it has none.")
    alternatives: list[Alternative] = Field(
        description="Best labels, the best first; for sets of labels, the predicted set and then the next best labels."
    )
    text: str | None = Field(default=None, description="First 500 characters.")
    features: list[tuple[int, float]] | None = Field(default=None, description="First 50 (index, value) pairs.")
    record: dict[str, float | str | None] | None = Field(default=None, description="First 50 columns of a table.")


class SuggestedRows(BaseModel):
    """Suggested rows from ``offset`` on: first labels with few rows, then the least sure rows."""

    rows: list[SuggestedRow]
    n_rows: int = Field(description="Number of suggested rows.")
    dataset: str = Field(description="Name of the dataset.")
    dataset_version: int
    model: str
    version: int


class WrongLabelsRequest(JobOptions):
    """Find rows whose label is probably wrong, by models that were not trained on these rows."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["wrong_labels"] = "wrong_labels"
    model: Name | None = Field(
        default=None,
        description="Id or name. Its dataset is judged, by models of its method and parameters. Default: `dataset` "
        "and `solver`.",
    )
    version: int | None = Field(default=None, ge=1, lt=2**31, description="Of the model; default: the latest.")
    alias: Name | None = Field(default=None, description="Alias instead of a version.")
    dataset: Name | None = Field(default=None, description="Id or name of a dataset, instead of a model.")
    dataset_version: int | None = Field(default=None, ge=1, lt=2**31, description="Default: the newest.")
    hierarchy: Name | None = Field(default=None, description="Id or name of the label tree, with `dataset`.")
    solver: str | None = Field(
        default=None, max_length=64, description="Method, with `dataset`; see /solvers. Default: `auto`."
    )
    params: dict[str, Any] | None = Field(default=None, description="Parameters of the solver.")
    folds: int = Field(
        default=5, ge=2, le=20, description="Number of models; each judges the rows that it was not trained on."
    )
    limit: int = Field(default=1000, ge=1, le=100_000, description="Rows to list, at most.")
    seed: int = Field(default=0, ge=0, lt=2**31, description="Of the folds.")
    threads: int = Field(default=1, ge=1, le=256, description="Threads of the solver in its worker.")

    @model_validator(mode="after")
    def _model_or_dataset(self) -> Self:
        if (self.model is None) == (self.dataset is None):
            raise ValueError("give either a model or a dataset")
        of_dataset = [name for name in ("hierarchy", "solver", "params") if getattr(self, name) is not None]
        if self.model is not None and of_dataset:
            raise ValueError(f"{of_dataset[0]} needs a dataset; a model has its own")
        if self.model is None and (self.version is not None or self.alias is not None):
            raise ValueError("version and alias need a model")
        return self


class NearLabel(BaseModel):
    """A similar row, and its label."""

    row: int = Field(description="Number in the dataset, from 0.")
    label: str
    similarity: float = Field(description="Cosine of the features.")


class LabelTerm(BaseModel):
    """A feature that speaks for the suggested label."""

    feature: str | int = Field(description="Name, or number if it has no name.")
    part: float = Field(description="What it adds to the lead of the suggested label over the row's label.")


class WrongLabel(BaseModel):
    """A row whose label is probably wrong, with the evidence."""

    row: int = Field(description="Number in the dataset, from 0.")
    id: str | None = Field(default=None, description="Id in the dataset's file.")
    label: str = Field(description="Label that was judged.")
    suggested: str = Field(description="Most probable label.")
    probability: float = Field(description="Probability of the suggested label.")
    probability_of_label: float = Field(description="Probability of the row's label.")
    quality: float = Field(description="Logarithm of the label's quality; rows are listed by rising quality.")
    confident: bool = Field(
        description="The suggested label, or another, reaches its mean probability over the rows that have it, and the "
        "row's label does not before."
    )
    nearest: list[NearLabel] = Field(description="Most similar training rows, the most similar first.")
    terms: list[LabelTerm] = Field(description="Features that speak most for the suggested label.")
    corrected: str | None = Field(default=None, description="Label in the newest version, if it is another by now.")
    deleted: bool = Field(default=False, description="The newest version lacks the row.")
    text: str | None = Field(default=None, description="First 500 characters.")
    features: list[tuple[int, float]] | None = Field(default=None, description="First 50 (index, value) pairs.")
    record: dict[str, float | str | None] | None = Field(default=None, description="First 50 columns of a table.")


class WrongLabels(BaseModel):
    """Probably wrong labels from ``offset`` on, the most suspect first."""

    rows: list[WrongLabel]
    n_rows: int = Field(description="Number of listed rows.")
    n_judged: int = Field(description="Rows that were judged; the only row of a label is not.")
    n_confident: int = Field(description="Estimate of the number of wrong labels, by per-label thresholds.")
    dataset: str = Field(description="Name of the dataset.")
    dataset_version: int = Field(description="Version that was judged.")
