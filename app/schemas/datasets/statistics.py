"""What is counted of a dataset, over all its rows."""

from typing import Self

from pydantic import BaseModel, Field, model_validator

from app.schemas.datasets.distributions import Histogram, Languages, PartShift
from app.schemas.datasets.tables import ColumnSummary


class ClassCount(BaseModel):
    """How many rows carry a label."""

    label: str
    train: int
    test: int
    validation: int = 0


class WeightRange(BaseModel):
    """The weights of the rows, training and test rows alike."""

    least: float
    most: float
    mean: float


class LabelsPerRow(BaseModel):
    """How many labels rows have, as they were given."""

    least: int
    most: int
    mean: float


class Lengths(BaseModel):
    """How long rows are: bytes of their texts, or features that are not zero."""

    least: int
    median: float
    most: int


class Repetitions(BaseModel):
    """Rows whose content is that of another row."""

    duplicates: int = Field(description="Rows that repeat an earlier one, whatever their labels.")
    conflicting: int = Field(description="Those that have other labels than the first row of that content.")
    test_in_train: int = Field(description="Test rows whose content a training row has, too.")
    validation_in_train: int


class DatasetWarning(BaseModel):
    """What should be known before a model is trained on the dataset."""

    code: str
    detail: str


class DatasetStatistics(BaseModel):
    """Counts over the whole dataset."""

    n_rows: int
    n_train: int
    n_test: int
    n_validation: int = Field(default=0, description="Rows that are neither trained on nor tested on.")
    n_classes: int
    n_features: int | None
    nnz: int | None
    empty_rows: int
    weights: WeightRange | None = Field(default=None, description="Absent where the rows have no weights.")
    labels_per_row: LabelsPerRow | None = Field(default=None, description="Absent where each row has one label.")
    lengths: Lengths | None = Field(default=None, description="Absent of datasets that an earlier version imported.")
    length_counts: Histogram | None = Field(default=None, description="Rows by length; absent as the lengths are.")
    label_counts: Histogram | None = Field(
        default=None, description="Rows by their number of labels; absent as labels_per_row is."
    )
    feature_counts: Histogram | None = Field(
        default=None, description="Features by the number of rows in which they are not zero; absent of texts."
    )
    repetitions: Repetitions | None = Field(default=None, description="Absent as the lengths are.")
    languages: Languages | None = Field(default=None, description="Absent where fewer than 20 texts are long enough.")
    shift: PartShift | None = Field(default=None, description="Absent where there are not both parts.")
    warnings: list[DatasetWarning] = Field(default=[], description="What weighs most comes first.")
    columns: list[ColumnSummary] | None = Field(
        default=None, description="Of tables, and where columns were told by their values."
    )
    classes: list[ClassCount] = Field(
        description="By falling number of rows, `limit` of them from `offset` on; `n_classes` tells how many there are."
    )
    n_test_only_labels: int = Field(default=-1, description="How many labels test rows carry and no training row.")
    test_only_labels: list[str] = Field(description="The first thousand of them.")

    @model_validator(mode="after")
    def _count(self) -> Self:
        if self.n_test_only_labels < 0:  # counted by an earlier version, which listed all
            self.n_test_only_labels = len(self.test_only_labels)
        return self
