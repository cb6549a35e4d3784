"""Evaluations: how well a version of a model does on a dataset, and whether another one does better."""

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from app.display.shown import Shown
from app.schemas import JobOptions, Name

Part = Literal["train", "test", "validation", "all"]


class EvaluateRequest(JobOptions):
    """Measure one version of a model on the rows of a dataset."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["evaluate"]
    model: Name = Field(description="Id or name.")
    version: int | None = Field(default=None, ge=1, lt=2**31, description="By default the latest.")
    alias: Name | None = Field(default=None, description="In place of a version: the one that it names now.")
    dataset: Name = Field(description="Id or name.")
    dataset_version: int | None = Field(default=None, ge=1, lt=2**31, description="By default the newest.")
    part: Part | None = Field(
        default=None,
        description="Which rows: those of the dataset's own split or, on the dataset that the version was trained on, "
        "of its job's split; or all of them. By default test where there is such a part, else all. Of other versions "
        "of that dataset, rows stay in the part that they were in, and later ones are held out by the same rule.",
    )
    hierarchy: Name | None = Field(
        default=None,
        description="Id or name of the label tree to measure along. By default that of the model, or of its job.",
    )
    resamples: int = Field(
        default=1000, ge=0, le=10_000, description="Resamples of the bootstrap; 0 gives no intervals."
    )
    confidence: float = Field(default=0.95, gt=0, lt=1, description="Confidence of the intervals.")
    seed: int = Field(default=0, ge=0, lt=2**31, description="Seed of the bootstrap.")
    propensity_a: float = Field(
        default=0.55, ge=0, le=10, description="A of the propensities of labels (Jain et al. 2016), for psp@k."
    )
    propensity_b: float = Field(default=1.5, gt=0, le=100, description="Their B.")

    @model_validator(mode="after")
    def _one(self) -> "EvaluateRequest":
        if self.version is not None and self.alias is not None:
            raise ValueError("give a version or an alias, not both")
        return self


class Measure(BaseModel):
    """A measure and its bootstrap interval."""

    name: str = Field(description="See the reference of measures.")
    level: int = Field(description="0: all labels; from 1 on the levels of the label tree, that below the top first.")
    value: float
    low: float | None = Field(description="Ends of the interval; absent without resamples.")
    high: float | None


class Propensities(BaseModel):
    """What the propensities of labels were made of."""

    a: float
    b: float
    n_rows: int = Field(description="Rows of the training part, among which the labels were counted.")


class ReliabilityBin(BaseModel):
    """Rows whose label was named with a probability above ``low``, up to ``high``."""

    low: float
    high: float
    n_rows: int
    confidence: float | None = Field(description="Mean predicted probability; absent in an empty bin.")
    accuracy: float | None = Field(description="Share of the rows that are right; absent in an empty bin.")


class Evaluation(Shown, BaseModel):
    """What a version of a model achieves on the rows of a dataset, and all that the numbers can be traced to."""

    id: str = Field(description="That of its job.")
    model: str
    version: int
    version_sha256: str = Field(description="Of the version's artefact.")
    dataset: str | None = Field(description="Id; absent once the dataset was deleted.")
    dataset_sha256: str
    hierarchy_sha256: str | None = Field(description="Of the label tree that was measured along; absent without one.")
    part: Part
    n_rows: int
    n_labels: int = Field(description="Labels that the model, or its tree, has, and those that only the rows have.")
    unknown_rows: int = Field(description="Rows with a label that the model cannot name; they count as wrong.")
    unknown_labels: int = Field(description="How many such labels there are.")
    unknown_named: list[str] = Field(description="The first few of them.")
    resamples: int
    confidence: float
    seed: int = Field(description="Seed of the bootstrap.")
    propensities: Propensities | None = Field(
        description="Absent, and with it psp@k, where the training rows are not there any more."
    )
    reliability: list[ReliabilityBin] | None = Field(
        default=None, description="For models with probabilities, on rows with one label."
    )
    rows_sha256: str = Field(description="Of the manifest of the measures by row, from which versions are compared.")
    code_version: str
    microseconds_per_row: float | None = Field(
        default=None,
        description="Time of one row's answer in the evaluation's worker: the best of three batches of up to 256 rows, "
        "whose features were made before. Absent from evaluations of earlier versions.",
    )
    measured_model: bool = Field(
        default=False,
        description="The version's measured model answered, as the served one was trained on all rows of the dataset.",
    )
    created_at: AwareDatetime
    measures: list[Measure]


class EvaluatedLabel(BaseModel):
    """One label: how often it is there, how often it is named, and how well."""

    label: str
    level: int = Field(description="In the label tree; 0 without one, and for a label that it does not have.")
    known: bool = Field(description="False for a label that the model cannot name.")
    support: int = Field(description="Rows that have it.")
    named: int = Field(description="Rows for which it is named.")
    precision: float
    recall: float
    f1: float


class EvaluatedLabels(BaseModel):
    """The labels from ``offset`` on; those that no row has and none is given are left out."""

    labels: list[EvaluatedLabel]
    n_labels: int


class ConfusedPair(BaseModel):
    """Two labels, one of which is named in place of the other."""

    level: int = Field(description="0: of rows with one label, the label itself; else the level in the label tree.")
    true: str
    predicted: str
    n_rows: int


class ConfusedLabel(BaseModel):
    """One label of such pairs: how many rows have it, and for how many of these it is named."""

    label: str
    support: int
    right: int


class ConfusedPairs(BaseModel):
    """The most frequent pairs first; of each level an evaluation keeps a thousand."""

    pairs: list[ConfusedPair]
    labels: list[ConfusedLabel] = Field(description="The labels of the pairs, in order of first appearance.")


class Mistake(BaseModel):
    """A row that the version is wrong about: by its label, which may be what is wrong."""

    row: int = Field(description="Counted from 0, in the dataset.")
    labels: list[str] = Field(description="Those that it had when it was measured.")
    answered: list[str] = Field(description="What the version said: one label, or a set with all above it.")
    probability: float | None = Field(default=None, description="Of the answer, of models with probabilities.")
    probability_of_true: float | None = Field(default=None, description="Of the row's label.")
    lead: float | None = Field(
        default=None, description="The answer's score less that of the row's label, of models without probabilities."
    )
    corrected: list[str] | None = Field(
        default=None, description="Its labels in the newest version of the dataset, where they are others by now."
    )
    deleted: bool = Field(default=False, description="The newest version of the dataset lacks the row.")
    text: str | None = Field(default=None, description="First 500 characters.")
    features: list[tuple[int, float]] | None = Field(default=None, description="First 50 (index, value) pairs.")
    record: dict[str, float | str | None] | None = Field(default=None, description="First 50 columns of a table.")


class Mistakes(BaseModel):
    """The rows from ``offset`` on, the most wrong first; an evaluation keeps a thousand."""

    mistakes: list[Mistake]
    n_mistakes: int = Field(description="That are kept.")
    dataset: str | None = Field(description="Name; absent, with all rows, once it was deleted.")
    dataset_version: int | None = Field(default=None, description="Version whose row numbers these are.")


class ComparisonRequest(BaseModel):
    """Two versions that are to be evaluated on the same rows."""

    model_config = ConfigDict(extra="forbid")

    a: Name = Field(description="Version number or alias.")
    b: Name = Field(description="Version number or alias.")
    other: Name | None = Field(default=None, description="Model of b, where it is another.")
    dataset: Name | None = Field(
        default=None, description="Id or name. By default the dataset that both were trained on."
    )
    part: Part | None = Field(
        default=None, description="By default test where the dataset or a training has test rows, else all."
    )


class Compared(BaseModel):
    """One side of a comparison."""

    evaluation: str = Field(description="Id.")
    model: str
    version: int
    version_sha256: str
    solver: str
    params: dict[str, Any] = Field(description="All parameters, the defaults included.")
    size_bytes: int = Field(description="Of the version's files.")
    microseconds_per_row: float | None = Field(
        default=None, description="As the evaluation has it; two are comparable if one machine was as idle for both."
    )


class McNemar(BaseModel):
    """McNemar's test that both versions are wrong equally often."""

    only_a: int = Field(description="Rows that a alone has right.")
    only_b: int = Field(description="Rows that b alone has right.")
    exact: float = Field(description="Two-sided p-value of the exact binomial test.")
    mid_p: float = Field(description="The same with half the probability of what was seen; less conservative.")


class PairedMeasure(BaseModel):
    """A measure of both versions on the same rows, and the paired bootstrap of the difference."""

    name: str
    n_rows: int = Field(description="Rows that count in it for both.")
    a: float
    b: float
    difference: float = Field(description="a less b.")
    low: float
    high: float
    p_value: float = Field(description="Two-sided, by the bootstrap; never below 2 / (resamples + 1).")


class ComparedLabel(BaseModel):
    """How well both versions find a label."""

    label: str
    level: int = Field(description="Of the label tree, that below the top first; 0 without one.")
    support: int = Field(description="Rows that have it.")
    f1_a: float
    f1_b: float
    difference: float = Field(description="f1_a less f1_b.")


class Comparison(Shown, BaseModel):
    """Two versions on the rows that both were evaluated on."""

    a: Compared
    b: Compared
    dataset: str | None
    dataset_sha256: str
    part: Part
    n_rows: int
    mcnemar: McNemar
    measures: list[PairedMeasure]
    labels: list[ComparedLabel] = Field(
        default=[],
        description="The twenty labels whose F1 differs the most, those first; none where it differs for no label, or "
        "where the evaluations are not of the same rows.",
    )
    resamples: int
    confidence: float
    seed: int
