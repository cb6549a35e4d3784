"""Schemas of the statistics of datasets."""

from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

from app.datasets.recipe_schemas import ColumnSummary


class Histogram(BaseModel):
    """Counts of whole numbers by interval."""

    edges: list[int] = Field(
        description="Interval i holds the numbers from edge i up to, but not including, edge i + 1."
    )
    counts: dict[str, list[int]] = Field(
        description=(
            "Number of rows in each interval by part (train, test, validation); for feature counts, under the "
            "key features."
        )
    )


class LanguageShare(BaseModel):
    """The share of texts in one language."""

    language: str = Field(description="ISO 639 code; other for languages with less than 1% of the texts.")
    share: float = Field(description="Share of the sampled texts.")


class Languages(BaseModel):
    """Languages of the texts, detected by py3langid in an even sample.

    Texts with at least 20 letters are classified one by one; where fewer than 20 are clear, all together.
    """

    n_rows: int = Field(description="Sampled texts whose language is clear.")
    shares: list[LanguageShare] = Field(description="In descending order of share.")


class PartShift(BaseModel):
    """How test rows differ from training rows."""

    auc: float | None = Field(
        description="How well a classifier distinguishes test rows from training rows on held-out halves: 0.5 is "
        "chance, 1 is perfect (classifier two-sample test, Lopez-Paz and Oquab 2017). Absent if a part "
        "has few rows."
    )
    auc_by_chance: float | None = Field(description="The AUC that chance alone exceeds once in 1,000 times.")
    label_variation: float = Field(
        description="Total variation distance between the label shares of both parts, from 0 to 1."
    )
    label_variation_by_chance: float = Field(
        description="Its expected value if both parts were drawn from the same distribution."
    )


# unicode: forms, ligatures, numerals, characters that nobody sees; numbers: 7, 7.0 and 007; brackets: quotes, too
Likeness = Literal["unicode", "case", "numbers", "brackets"]
LabelType = Literal["text", "boolean", "number", "integer"]


class ClassCount(BaseModel):
    """Number of rows with a label."""

    label: str
    train: int
    test: int
    validation: int = 0


class WeightRange(BaseModel):
    """The weights of all rows, training and test rows together."""

    least: float
    most: float
    mean: float


class LabelsPerRow(BaseModel):
    """Number of labels per row, as given in the file."""

    least: int
    most: int
    mean: float


class Lengths(BaseModel):
    """Lengths of rows: bytes of text, or nonzero features."""

    least: int
    median: float
    most: int


class ColumnSpread(BaseModel):
    """The standard deviation of one column."""

    column: str = Field(description="Name of the column, or its number if columns have no names.")
    deviation: float


class NumberScales(BaseModel):
    """Magnitudes of the numbers."""

    largest: float = Field(description="Largest absolute value; 0 if all are zero.")
    least_spread: ColumnSpread | None = Field(
        default=None, description="Dense columns only: the smallest standard deviation of the columns that vary."
    )
    most_spread: ColumnSpread | None = Field(
        default=None, description="Dense columns only: the largest standard deviation."
    )


class Repetitions(BaseModel):
    """Rows with the same content as another row."""

    duplicates: int = Field(description="Rows that repeat an earlier row, with any labels.")
    conflicting: int = Field(
        description="Duplicates whose labels differ from those of the first row with that content."
    )
    test_in_train: int = Field(description="Test rows with the same content as a training row.")
    validation_in_train: int


class LabelsAlike(BaseModel):
    """Labels that a reader would consider the same."""

    labels: list[str]
    kinds: list[Likeness] = Field(description="How they differ; merge_labels merges them into one label.")


class DatasetWarning(BaseModel):
    """A warning to consider before a model is trained on the dataset."""

    code: str
    detail: str


class DatasetStatistics(BaseModel):
    """Statistics of the whole dataset."""

    n_rows: int
    n_train: int
    n_test: int
    n_validation: int = Field(default=0, description="Rows used for neither training nor testing.")
    n_classes: int
    n_features: int | None
    nnz: int | None
    empty_rows: int
    left_out_rows: int = Field(
        default=0, description="Rows of the imported file without a label, left out by without_label."
    )
    deleted_rows: int = Field(default=0, description="Rows of earlier versions that corrections have deleted.")
    labels_alike: list[LabelsAlike] = Field(
        default=[], description="Labels that a reader would take for one: the first 100 groups."
    )
    n_labels_alike: int = Field(default=0, description="Number of groups.")
    weights: WeightRange | None = Field(default=None, description="Absent if the rows have no weights.")
    labels_per_row: LabelsPerRow | None = Field(default=None, description="Absent if each row has one label.")
    lengths: Lengths | None = Field(default=None, description="Absent for datasets imported by an earlier version.")
    length_counts: Histogram | None = Field(default=None, description="Rows by length; absent if lengths is.")
    label_counts: Histogram | None = Field(
        default=None, description="Rows by number of labels; absent if labels_per_row is."
    )
    feature_counts: Histogram | None = Field(
        default=None, description="Features by the number of rows in which they are nonzero; absent for texts."
    )
    numbers: NumberScales | None = Field(
        default=None, description="Absent for texts and tables, and for datasets imported by an earlier version."
    )
    repetitions: Repetitions | None = Field(default=None, description="Absent if lengths is.")
    languages: Languages | None = Field(
        default=None,
        description="Absent if the texts are too few or too short; without shares if their language is not clear.",
    )
    shift: PartShift | None = Field(
        default=None, description="Absent unless the dataset has a training and a test part."
    )
    warnings: list[DatasetWarning] = Field(default=[], description="Most important first.")
    columns: list[ColumnSummary] | None = Field(
        default=None, description="Present for tables, and if column types were inferred."
    )
    classes: list[ClassCount] = Field(
        description="In descending order of rows: `limit` classes starting at `offset`; `n_classes` is the total."
    )
    n_test_only_labels: int = Field(
        default=-1, description="Number of labels that occur in test rows but in no training row."
    )
    test_only_labels: list[str] = Field(description="The first 1,000 of these labels.")

    @model_validator(mode="after")
    def _count(self) -> Self:
        if self.n_test_only_labels < 0:  # counted by an earlier version, which listed all
            self.n_test_only_labels = len(self.test_only_labels)
        return self
