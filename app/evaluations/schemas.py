"""Evaluations: how well a version of a model does on a dataset, and whether another one does better."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from app.display.shown import Shown
from app.schemas import JobOptions, Name

Part = Literal["train", "test", "validation", "all"]

_NAMES = "Preferred name by language, in the label tree of the version; und: no language is given."


class EvaluateRequest(JobOptions):
    """Measure one version of a model on the rows of a dataset."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["evaluate"]
    model: Name = Field(description="Id or name.")
    version: int | None = Field(default=None, ge=1, lt=2**31, description="Default: the latest.")
    alias: Name | None = Field(default=None, description="Alias instead of a version.")
    dataset: Name = Field(description="Id or name.")
    dataset_version: int | None = Field(default=None, ge=1, lt=2**31, description="Default: the newest.")
    part: Part | None = Field(
        default=None,
        description="Rows to evaluate: all rows, or those of one part. Parts are those of the dataset's own split "
        "or, on the dataset that the version was trained on, of its job's split. Default: test if there "
        "is such a part, otherwise all. In other versions of that dataset, rows stay in their part, and "
        "later rows are held out by the same rule.",
    )
    hierarchy: Name | None = Field(
        default=None,
        description="Id or name of the label tree for measures by level: that of the model, or another edition of it. "
        "Default: the label tree of the model or of its job.",
    )
    resamples: int = Field(
        default=1000, ge=0, le=10_000, description="Resamples of the bootstrap; 0 gives no intervals."
    )
    confidence: float = Field(default=0.95, gt=0, lt=1, description="Confidence of the intervals.")
    seed: int = Field(default=0, ge=0, lt=2**31, description="Seed of the bootstrap.")
    propensity_a: float = Field(
        default=0.55, ge=0, le=10, description="Constant A of the label propensities (Jain et al. 2016), for psp@k."
    )
    propensity_b: float = Field(default=1.5, gt=0, le=100, description="Constant B of the label propensities.")

    @model_validator(mode="after")
    def _one(self) -> "EvaluateRequest":
        if self.version is not None and self.alias is not None:
            raise ValueError("give a version or an alias, not both")
        return self


class Measure(BaseModel):
    """A measure and its bootstrap interval."""

    name: str = Field(description="Name of the measure; see the reference of measures.")
    level: int = Field(
        description="0 for all labels; otherwise the level of the label tree, where 1 is just below the top."
    )
    value: float
    low: float | None = Field(description="Lower and upper end of the interval; absent without resamples.")
    high: float | None


class Propensities(BaseModel):
    """What the propensities of labels were made of."""

    a: float
    b: float
    n_rows: int = Field(description="Rows of the training part, in which the labels were counted.")


class ReliabilityBin(BaseModel):
    """Rows whose label was predicted with a probability above ``low`` and up to ``high``."""

    low: float
    high: float
    n_rows: int
    confidence: float | None = Field(description="Mean predicted probability; absent in an empty bin.")
    accuracy: float | None = Field(description="Share of correct rows; absent in an empty bin.")


class Evaluation(Shown, BaseModel):
    """Measures of a version on the rows of a dataset, with their lineage."""

    id: str = Field(description="Id of the evaluation's job.")
    model: str
    version: int
    version_sha256: str = Field(description="SHA-256 of the version's artefact.")
    dataset: str | None = Field(description="Id of the dataset; absent if it was deleted.")
    dataset_sha256: str
    hierarchy_sha256: str | None = Field(description="SHA-256 of the label tree; absent without one.")
    part: Part
    n_rows: int
    n_labels: int = Field(
        description="Number of labels of the model or its tree, including labels that only the rows have."
    )
    unknown_rows: int = Field(description="Rows with a label that the model cannot predict; they count as errors.")
    unknown_labels: int = Field(description="Number of labels that the model cannot predict.")
    unknown_named: list[str] = Field(description="The first few of them.")
    resamples: int
    confidence: float
    seed: int = Field(description="Seed of the bootstrap.")
    propensities: Propensities | None = Field(description="Absent, like psp@k, if the training rows no longer exist.")
    reliability: list[ReliabilityBin] | None = Field(
        default=None, description="For models with probabilities, on rows with one label."
    )
    rows_sha256: str = Field(
        description="SHA-256 of the manifest of the measures by row, which comparisons of versions use."
    )
    code_version: str
    microseconds_per_row: float | None = Field(
        default=None,
        description="Time to predict one row in the evaluation's worker, without computing its features: the best "
        "of three batches of up to 256 rows. Absent from evaluations of earlier versions.",
    )
    measured_model: bool = Field(
        default=False,
        description="Whether the version's measured model was evaluated because the served model was trained on all "
        "rows of the dataset.",
    )
    created_at: AwareDatetime
    measures: list[Measure]


class EvaluatedLabel(BaseModel):
    """One label: how often it is there, how often it is named, and how well."""

    label: str
    level: int = Field(description="Level in the label tree; 0 without a tree, or if the tree does not have the label.")
    known: bool = Field(description="False if the model cannot predict the label.")
    support: int = Field(description="Rows with the label.")
    named: int = Field(description="Rows for which the label is predicted.")
    precision: float
    recall: float
    f1: float
    names: dict[str, str] = Field(default={}, description=_NAMES)


class EvaluatedLabels(BaseModel):
    """The labels from ``offset`` on; those that no row has and none is given are left out."""

    labels: list[EvaluatedLabel]
    n_labels: int


class ConfusedPair(BaseModel):
    """Two labels, one of which is predicted instead of the other."""

    level: int = Field(
        description="0 for the labels themselves, if rows have one label; otherwise the level in the label tree."
    )
    true: str
    predicted: str
    n_rows: int


class ConfusedLabel(BaseModel):
    """One label of such pairs: how many rows have it, and for how many of these it is named."""

    label: str
    support: int
    right: int
    names: dict[str, str] = Field(default={}, description=_NAMES)


class ConfusedPairs(BaseModel):
    """The most frequent pairs first; of each level an evaluation keeps a thousand."""

    pairs: list[ConfusedPair]
    labels: list[ConfusedLabel] = Field(description="The labels of the pairs, in order of first appearance.")


class Mistake(BaseModel):
    """A row that the version is wrong about: by its label, which may be what is wrong."""

    row: int = Field(description="Number in the dataset, from 0.")
    labels: list[str] = Field(description="Labels of the row when it was evaluated.")
    answered: list[str] = Field(description="Predicted labels: one label, or a set with all ancestors.")
    probability: float | None = Field(
        default=None, description="Probability of the prediction, for models with probabilities."
    )
    probability_of_true: float | None = Field(default=None, description="Probability of the row's label.")
    lead: float | None = Field(
        default=None,
        description="Score of the prediction minus the score of the row's label, for models without probabilities.",
    )
    corrected: list[str] | None = Field(
        default=None, description="Labels in the newest version of the dataset, if they have changed."
    )
    deleted: bool = Field(default=False, description="The newest version of the dataset lacks the row.")
    text: str | None = Field(default=None, description="First 500 characters.")
    features: list[tuple[int, float]] | None = Field(default=None, description="First 50 (index, value) pairs.")
    record: dict[str, float | str | None] | None = Field(default=None, description="First 50 columns of a table.")


class Mistakes(BaseModel):
    """The rows from ``offset`` on, the most wrong first; an evaluation keeps a thousand."""

    mistakes: list[Mistake]
    n_mistakes: int = Field(description="Number of mistakes that are kept.")
    dataset: str | None = Field(description="Name of the dataset. If it was deleted, name and rows are absent.")
    dataset_version: int | None = Field(
        default=None, description="Version of the dataset that the row numbers refer to."
    )
    names: dict[str, dict[str, str]] = Field(
        default={}, description="Preferred names by language of the labels of these rows that have some."
    )


class ComparisonRequest(BaseModel):
    """Two versions to evaluate on the same rows."""

    model_config = ConfigDict(extra="forbid")

    a: Name = Field(description="Version number or alias.")
    b: Name = Field(description="Version number or alias.")
    other: Name | None = Field(default=None, description="Model of b, if it is a different model.")
    dataset: Name | None = Field(
        default=None, description="Id or name of the dataset. Default: the dataset that both versions were trained on."
    )
    part: Part | None = Field(
        default=None, description="Default: test if the dataset or a training has test rows, otherwise all."
    )


# of a request: what it is, what it makes, and what is shown with defaults
_NO_SETTINGS = ("kind", "model", "solver", "params", "tags", "priority")


class Compared(BaseModel):
    """One side of a comparison."""

    evaluation: str = Field(description="Id.")
    model: str
    version: int
    version_sha256: str
    solver: str
    params: dict[str, Any] = Field(description="All parameters, including defaults.")
    request: dict[str, Any] = Field(default={}, description="The training job's request, unchanged.")
    size_bytes: int = Field(description="Size of the version's files.")

    @property
    def settings(self) -> dict[str, Any]:
        """Method, parameters and all other settings of the request, those within others as ``text.lemmas``."""
        request = {name: value for name, value in self.request.items() if name not in _NO_SETTINGS}
        return {"solver": self.solver, **self.params, **_flat(request)}

    microseconds_per_row: float | None = Field(
        default=None,
        description="As in the evaluation. Two times are comparable only if the same machine was equally idle for "
        "both.",
    )


def _flat(settings: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    """The settings of a request by name, those of an object by names with dots."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _flat(value, f"{within}{name}.") if isinstance(value, dict) and value else {f"{within}{name}": value}
    return found


class McNemar(BaseModel):
    """McNemar's test of the hypothesis that both versions have the same error rate."""

    only_a: int = Field(description="Rows that only a predicts correctly.")
    only_b: int = Field(description="Rows that only b predicts correctly.")
    exact: float = Field(description="Two-sided p-value of the exact binomial test.")
    mid_p: float = Field(
        description="Mid-p value: counts half the probability of the observed outcome, and is less conservative."
    )


class PairedMeasure(BaseModel):
    """A measure of both versions on the same rows, and the paired bootstrap of the difference."""

    name: str
    n_rows: int = Field(description="Rows that count in the measure for both versions.")
    a: float
    b: float
    difference: float = Field(description="Value of a minus value of b.")
    low: float
    high: float
    p_value: float = Field(description="Two-sided bootstrap p-value; never below 2 / (resamples + 1).")


class ComparedLabel(BaseModel):
    """How well both versions find a label."""

    label: str
    level: int = Field(description="Level in the label tree, where 1 is just below the top; 0 without a tree.")
    support: int = Field(description="Rows with the label.")
    f1_a: float
    f1_b: float
    difference: float = Field(description="f1_a minus f1_b.")


class Comparison(Shown, BaseModel):
    """Two versions on the rows that both were evaluated on."""

    @property
    def differing(self) -> list[tuple[str, Any, Any]]:
        """The settings that differ: the name, of a and of b, and None of a version without it."""
        a, b = self.a.settings, self.b.settings
        return [(name, a.get(name), b.get(name)) for name in {**a, **b} if a.get(name) != b.get(name)]

    a: Compared
    b: Compared
    dataset: str | None
    dataset_sha256: str
    part: Part
    n_rows: int
    mcnemar: McNemar
    measures: list[PairedMeasure]
    left_out: list[str] = Field(
        default=[],
        description="Measures that depend on how many nodes the label tree has, if it has other nodes for one version: "
        "labels of that version which it lacks are added to it.",
    )
    labels: list[ComparedLabel] = Field(
        default=[],
        description="The twenty labels whose F1 differs most, the largest difference first. Empty if no F1 differs, "
        "or if the evaluations are not of the same rows.",
    )
    resamples: int
    confidence: float
    seed: int
