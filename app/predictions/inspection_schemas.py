"""Schemas of what explains and summarises predictions."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from app.predictions.schemas import Instance


class OutputCode(BaseModel):
    """A code matrix, one row a class and one column a binary machine, or a window of it."""

    model: str
    version: int
    n_classes: int
    n_columns: int
    discrete: bool = Field(description="All entries are -1, 0 and +1.")
    decoding: Literal["inner_product", "votes", "hamming", "loss", "kernel"] = Field(
        description="How the columns' margins become scores; kernel: by a machine of its own, and the code shown is "
        "that of the columns which the machines were trained for."
    )
    first_class: int
    first_column: int
    classes: list[str] = Field(description="Labels of the rows shown.")
    matrix: list[list[float]] = Field(description="The rows shown, in the columns shown.")
    distance: Literal["hamming", "euclidean"] = Field(
        description="hamming counts a zero one half; euclidean is for codes that are not discrete."
    )
    row_distances: list[list[float]] = Field(description="Between the rows shown, over all columns.")
    column_distances: list[list[float]] = Field(
        description="Between the columns shown, over all classes; a column and its complement are the same."
    )


class ScoreDrift(BaseModel):
    """Scores of the first answers, in bins that have equal shares of the held-out answers."""

    edges: list[float] = Field(
        description="Where the next bin begins, ascending; scores as in predictions: of versions with "
        "probabilities, their logarithms."
    )
    expected: list[float] = Field(description="Share of the held-out answers in each bin.")
    found: list[float] = Field(description="Share of the late answers in each bin.")
    psi: float = Field(description="Population stability index: the sum of (found - expected) ln(found / expected).")
    psi_by_chance: float = Field(description="What it would be in the mean if nothing but chance had changed.")


class LabelShare(BaseModel):
    """How often one label was answered."""

    label: str
    names: dict[str, str] | None = Field(default=None, description="The preferred name by language.")
    expected: float = Field(description="Share of the held-out answers.")
    found: float = Field(description="Share of the late answers.")


class LabelDrift(BaseModel):
    """Labels of the first answers."""

    total_variation: float = Field(description="Half the sum of |found - expected| over all labels: 0 alike, 1 apart.")
    total_variation_by_chance: float = Field(
        description="What it would be in the mean if nothing but chance had changed."
    )
    moved: list[LabelShare] = Field(description="The labels whose shares have moved the most, up to 20.")


class Drift(BaseModel):
    """Late answers beside held-out ones. Answers to requests that choose labels are left out."""

    model: str
    version: int
    days: int = Field(description="Days, by UTC, that are looked at; the last is today.")
    n_answers: int = Field(description="Answers in these days.")
    n_unknown: int = Field(
        default=0, description="Answers to records with a value that no training row has in its category."
    )
    n_expected: int = Field(description="Held-out answers, a sample of 20,000 at most; 0 where the version kept none.")
    too_few: str | None = Field(
        default=None, description="Why scores and labels are null: there are fewer than 30 answers, or none held out."
    )
    scores: ScoreDrift | None = Field(description="Null where `too_few` says why.")
    labels: LabelDrift | None = Field(description="Null where `too_few` says why.")


class NearestRequest(BaseModel):
    """One instance, and which rows to look among."""

    model_config = ConfigDict(extra="forbid")

    instance: SkipValidation[Instance] = Field(description="As for a prediction.")
    label: str | None = Field(default=None, min_length=1, max_length=1000, description="By default the predicted one.")
    limit: int = Field(default=5, ge=1, le=100, description="How many rows to name.")
    version: int | None = Field(default=None, ge=1, lt=2**31, description="The latest by default.")


class NearRow(BaseModel):
    """One row of the dataset."""

    row: int = Field(description="Counted from 0, in the dataset.")
    similarity: float = Field(description="The cosine of the angle between the rows as the model reads them.")
    labels: list[str]
    text: str | None = Field(default=None, description="First 500 characters.")
    features: list[tuple[int, float]] | None = Field(default=None, description="First 50 (index, value) pairs.")
    record: dict[str, float | str | None] | None = Field(default=None, description="First 50 columns of a table.")


class NearestRows(BaseModel):
    """The rows that are the most like an instance, the nearest first."""

    model: str
    version: int
    label: str
    dataset: str = Field(description="Name.")
    n_rows: int = Field(description="Rows that were trained on and have the label.")
    n_compared: int = Field(description="Of them; more than 20,000 are sampled evenly.")
    rows: list[NearRow]


class WeightedTerm(BaseModel):
    """One feature and its weight."""

    feature: str | int = Field(description="Its name or term, or its index where features have no names.")
    weight: float = Field(description="What a unit of the feature adds to the class's score.")


class ClassTerms(BaseModel):
    """What speaks most for a class, and against it."""

    model: str
    version: int
    label: str
    lifting: list[WeightedTerm] = Field(description="The largest weight first.")
    lowering: list[WeightedTerm] = Field(description="The smallest weight first.")
    intercept: float


class ThresholdPoint(BaseModel):
    """The held-out answers that are at least so probable."""

    threshold: float = Field(description="A probability.")
    precision: float = Field(
        description="Share of those answers that are right; of sets, of all their labels together."
    )
    lower_bound: float = Field(
        description="The precision exceeds this, for all thresholds at once with a confidence of 95 %."
    )
    answered: float = Field(description="Share of the held-out rows that have such an answer.")
    depth: float | None = Field(
        default=None, description="Mean level of those answers in the label tree, from 1; 1 without one; null for sets."
    )
    recall: float | None = Field(
        default=None, description="Of sets of labels: share of the held-out rows' labels that are predicted; else null."
    )


class ThresholdCurve(BaseModel):
    """Precision against coverage, as `threshold` and `min_precision` of predictions have it."""

    model: str
    version: int
    n_rows: int = Field(description="Rows that were held out when the version was chosen.")
    points: list[ThresholdPoint] = Field(description="Up to 512, by ascending thresholds.")
