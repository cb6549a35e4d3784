"""Datasets as the API shows them."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from app.schemas.common.names import Name
from app.schemas.common.problems import ProblemDocument
from app.schemas.datasets.uploads import FromUpload

DatasetFormat = Literal["svmlight", "csv", "tsv", "jsonl", "annif", "parquet", "arrow", "npz"]
Encoding = Literal[
    "utf-8", "utf-16", "latin-1", "iso-8859-15", "windows-1250", "windows-1251", "windows-1252", "mac-roman"
]
Delimiter = Literal["comma", "semicolon", "tab", "pipe"]
_Column = Annotated[str, Field(min_length=1, max_length=200)]
DatasetState = Literal["importing", "ready", "failed"]


class ImportOptions(BaseModel):
    """What is said of a dataset's file besides its format; each parser uses what its format knows."""

    model_config = ConfigDict(frozen=True)

    label_column: str = Field(
        default="label", min_length=1, max_length=200, description="The column (key, array) of the labels."
    )
    unlabelled: bool = Field(
        default=False,
        description="No row has a label, nor the file a column of them: rows to be predicted, that no model can be "
        "trained on. In svmlight files lines begin with their features.",
    )
    weight_column: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="CSV column, or key of JSON lines: positive numbers that multiply the losses of their rows. By "
        "default no column, the key weight where it is there, and cost:number in svmlight files.",
    )
    label_separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=8,
        description="Rows have sets of labels, with this between them; in svmlight files a comma. JSON lines need "
        "none: there sets are lists.",
    )
    text_columns: tuple[_Column, ...] = Field(
        default=(),
        max_length=50,
        description="Columns whose contents make up the text, one below the other; by default the one called text.",
    )
    ignore_columns: tuple[_Column, ...] = Field(
        default=(), max_length=1000, description="Columns that are left out, as dates or notes."
    )
    number_columns: tuple[_Column, ...] = Field(
        default=(),
        max_length=10_000,
        description="Columns of numbers, beside texts or categories; where no texts or categories are named, all that "
        "are left are numbers.",
    )
    category_columns: tuple[_Column, ...] = Field(
        default=(), max_length=1000, description="Columns whose values are some of a kind, as colours or countries."
    )
    id_column: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="The column that is kept and given back with rows and answers; by default that called id.",
    )
    infer_columns: bool = Field(
        default=False,
        description="Columns that nothing is said of become texts, numbers or categories, as their first 10,000 values "
        "are; dates, and columns with a value of its own in each row, are left out. Statistics show what was found.",
    )
    missing: Literal["refuse", "keep"] = Field(
        default="refuse", description="Missing numbers and categories: errors, or kept for training to fill in."
    )
    missing_values: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(
        default=(), max_length=100, description="Cells that say that a value is missing, as NA; empty ones always do."
    )
    encoding: Encoding = Field(
        default="utf-8", description="Of a text file. It is never guessed: what is not valid in it is refused."
    )
    delimiter: Delimiter | None = Field(
        default=None, description="Between the cells of a CSV file; by default what the header tells."
    )
    decimal: Literal["point", "comma"] = Field(
        default="point", description="What numbers in CSV and TSV have before their fraction."
    )
    quotes: bool = Field(
        default=True,
        description="Cells in CSV and TSV may stand in quotes, and then have delimiters and newlines. False: a quote "
        "is a character like any other.",
    )


class NewDataset(ImportOptions, FromUpload):
    """A dataset that is to be uploaded."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Unique; how jobs and URLs call the dataset.")
    format: DatasetFormat | None = Field(
        default=None, description="Left out: told by the content, where that leaves no doubt."
    )


class NewRows(ImportOptions, FromUpload):
    """Rows that are to be appended; what is not said of them is what was said of the dataset's first file."""

    model_config = ConfigDict(extra="forbid")

    part: Literal["train", "test", "validation"] | None = Field(
        default=None,
        description="Where rows without a split of their own belong. Where the dataset had no parts, its rows are then "
        "the training part. By default train, where there are parts.",
    )
    format: DatasetFormat | None = Field(
        default=None, description="Left out: told by the content, where that leaves no doubt."
    )


class LabelCorrection(BaseModel):
    """The right labels of one row."""

    model_config = ConfigDict(extra="forbid")

    row: int = Field(ge=0, lt=2**63, description="Counted from 0; rows keep their numbers from version to version.")
    labels: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        max_length=1000, description="All that are right: one, unless rows have sets of labels, which may be empty."
    )
    before: list[str] | None = Field(
        default=None,
        max_length=1000,
        description="The labels that the correction is of: where the row has others by now, all is refused.",
    )


class CorrectionsRequest(BaseModel):
    """Labels of rows that were wrong."""

    model_config = ConfigDict(extra="forbid")

    corrections: list[LabelCorrection] = Field(min_length=1, max_length=10_000, description="Each row once.")


class DatasetVersion(BaseModel):
    """A dataset as its import, an append or a correction of labels left it."""

    version: int
    sha256: str = Field(
        description="Of the uploaded bytes; later that of the version before and of the new file or the corrections."
    )
    n_rows: int
    n_train: int
    job: str | None = Field(description="The job that made it.")
    created_at: AwareDatetime


class Dataset(BaseModel):
    """An uploaded file and what was found in it."""

    id: str
    name: str
    owner: str | None = Field(
        default=None, description="Name of the key that made it; it and administrators may delete it."
    )
    format: DatasetFormat
    state: DatasetState
    version: int = Field(default=1, description="The newest; each append and each correction of labels makes one more.")
    sha256: str = Field(description="Of the uploaded bytes; after an append that of the newest version.")
    size_bytes: int
    kind: Literal["text", "sparse", "table"] | None = Field(
        default=None,
        description="Known once the dataset is ready: texts, numbers, or a table, which has several kinds of columns.",
    )
    n_rows: int | None = None
    n_train: int | None = Field(default=None, description="Rows of the training part; all, where no split is given.")
    n_classes: int | None = None
    n_features: int | None = Field(default=None, description="Absent for texts: a training job makes their features.")
    nnz: int | None = None
    error: ProblemDocument | None = None
    job: str | None = Field(default=None, description="The job that imports it.")
    created_at: AwareDatetime


class DatasetRow(BaseModel):
    """One row, shortened for reading unless whole rows were asked for."""

    row: int = Field(description="Counted from 0, in the order of the file.")
    label: str | None = Field(description="Absent where rows have sets of labels.")
    labels: list[str] | None = Field(
        default=None, description="The first 50, or all; absent where each row has one label."
    )
    split: Literal["train", "test", "validation"] | None
    weight: float | None = Field(default=None, description="Absent where the rows have no weights.")
    text: str | None = Field(default=None, description="First 500 characters, or all.")
    features: list[tuple[int, float]] | None = Field(default=None, description="First 50 (index, value) pairs, or all.")
    id: str | None = Field(default=None, description="Absent where the file gave none.")
    record: dict[str, float | str | None] | None = Field(
        default=None,
        description="Of tables: values by column, of numbers and categories the first 50 or all; a text of one column.",
    )


class DatasetRows(BaseModel):
    """The rows from ``offset`` on."""

    rows: list[DatasetRow]
    n_rows: int
