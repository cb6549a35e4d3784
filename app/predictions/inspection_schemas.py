"""Schemas of what explains and summarises predictions."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from app.predictions.schemas import Instance


class OutputCode(BaseModel):
    """A code matrix, or a window of it, with one row per class and one column per binary machine."""

    model: str
    version: int
    n_classes: int
    n_columns: int
    discrete: bool = Field(description="All entries are -1, 0 and +1.")
    decoding: Literal["inner_product", "votes", "hamming", "loss", "kernel"] = Field(
        description="How the columns' margins become scores. kernel: by a separate machine; the code shown is then "
        "the one that the columns' machines were trained for."
    )
    first_class: int
    first_column: int
    classes: list[str] = Field(description="Labels of the returned rows.")
    matrix: list[list[float]] = Field(description="Entries of the returned rows and columns.")
    distance: Literal["hamming", "euclidean"] = Field(
        description="hamming counts a zero as one half; euclidean is used for continuous codes."
    )
    row_distances: list[list[float]] = Field(description="Distances between the returned rows, over all columns.")
    column_distances: list[list[float]] = Field(
        description="Distances between the returned columns, over all classes; a column and its complement have "
        "distance 0."
    )


class ScoreDrift(BaseModel):
    """Scores of the first answers, in bins that have equal shares of the held-out answers."""

    edges: list[float] = Field(
        description="Lower edges of all bins but the first, ascending. Scores are those of predictions: for "
        "versions with probabilities, their logarithms."
    )
    expected: list[float] = Field(description="Share of the held-out answers in each bin.")
    found: list[float] = Field(description="Share of the recent answers in each bin.")
    psi: float = Field(description="Population stability index: the sum of (found - expected) ln(found / expected).")
    psi_by_chance: float = Field(description="Its expected value if only chance had an effect.")


class LabelShare(BaseModel):
    """How often one label was predicted."""

    label: str
    names: dict[str, str] | None = Field(default=None, description="Preferred names by language.")
    expected: float = Field(description="Share of the held-out answers.")
    found: float = Field(description="Share of the recent answers.")


class LabelDrift(BaseModel):
    """Labels of the first answers."""

    total_variation: float = Field(
        description="Total variation distance: half the sum of |found - expected| over all labels. 0: the "
        "distributions are equal; 1: they are disjoint."
    )
    total_variation_by_chance: float = Field(description="Its expected value if only chance had an effect.")
    moved: list[LabelShare] = Field(description="Up to 20 labels whose shares changed most.")


class Drift(BaseModel):
    """Recent answers compared with held-out ones. Answers to requests that restrict labels are left out."""

    model: str
    version: int
    days: int = Field(description="Number of days (UTC) in the comparison; the last is today.")
    n_answers: int = Field(description="Number of answers in these days.")
    n_unknown: int = Field(default=0, description="Answers to records with a category value that no training row has.")
    n_expected: int = Field(
        description="Number of held-out answers, sampled to at most 20,000; 0 if the version kept none."
    )
    too_few: str | None = Field(
        default=None,
        description="Reason why scores and labels are null: there are fewer than 30 answers, or no held-out answers.",
    )
    scores: ScoreDrift | None = Field(description="Null if `too_few` gives a reason.")
    labels: LabelDrift | None = Field(description="Null if `too_few` gives a reason.")


class NearestRequest(BaseModel):
    """One instance, and the rows to search."""

    model_config = ConfigDict(extra="forbid")

    instance: SkipValidation[Instance] = Field(description="The instance, in the same form as in a prediction request.")
    label: str | None = Field(
        default=None, min_length=1, max_length=1000, description="Label of the rows. Default: the predicted label."
    )
    limit: int = Field(default=5, ge=1, le=100, description="Number of rows to return.")
    version: int | None = Field(default=None, ge=1, lt=2**31, description="Default: the latest.")


class NearRow(BaseModel):
    """One row of the dataset."""

    row: int = Field(description="Number in the dataset, from 0.")
    similarity: float = Field(description="Cosine of the angle between the rows, as the model reads them.")
    labels: list[str]
    text: str | None = Field(default=None, description="First 500 characters.")
    features: list[tuple[int, float]] | None = Field(default=None, description="First 50 (index, value) pairs.")
    record: dict[str, float | str | None] | None = Field(default=None, description="First 50 columns of a table.")


class NearestRows(BaseModel):
    """The rows most similar to an instance, the nearest first."""

    model: str
    version: int
    label: str
    dataset: str = Field(description="Name.")
    n_rows: int = Field(description="Training rows with the label.")
    n_compared: int = Field(
        description="Number of these rows that were compared; if there are more than 20,000, an even sample is used."
    )
    rows: list[NearRow]


class WeightedTerm(BaseModel):
    """One feature and its weight."""

    feature: str | int = Field(description="Name or term of the feature, or its index if features have no names.")
    weight: float = Field(description="Change in the class's score per unit of the feature.")


class ClassTerms(BaseModel):
    """The features that support a class most, and those that count most against it."""

    model: str
    version: int
    label: str
    lifting: list[WeightedTerm] = Field(description="Features in order of weight, the largest first.")
    lowering: list[WeightedTerm] = Field(description="Features in order of weight, the smallest first.")
    intercept: float


class ThresholdPoint(BaseModel):
    """The held-out answers whose probability reaches a threshold."""

    threshold: float = Field(description="Threshold on the probability.")
    precision: float = Field(
        description="Share of these answers that are correct; for sets, the share of correct labels over all answers."
    )
    lower_bound: float = Field(
        description="Lower bound of the precision, with a confidence of 95 % for all thresholds at once."
    )
    answered: float = Field(description="Share of the held-out rows with such an answer.")
    depth: float | None = Field(
        default=None,
        description="Mean level of these answers in the label tree, from 1; 1 without a tree; null for sets.",
    )
    recall: float | None = Field(
        default=None,
        description="For sets of labels: share of the held-out rows' labels that are predicted; otherwise null.",
    )


class ThresholdCurve(BaseModel):
    """Precision against coverage, as `threshold` and `min_precision` of predictions have it."""

    model: str
    version: int
    n_rows: int = Field(description="Number of rows that were held out when the version was selected.")
    points: list[ThresholdPoint] = Field(description="Up to 512 points, in ascending order of thresholds.")
