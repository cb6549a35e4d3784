"""Schemas of datasets: uploads, import options, versions and rows."""

from encodings import normalize_encoding
from encodings.aliases import aliases
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias, cast

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from app.datasets.formats import FORMATS
from app.datasets.statistics_schemas import LabelType, Likeness
from app.display.shown import Shown
from app.schemas import Name, ProblemDocument
from app.values import ColumnType, normalized

Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class NewUpload(BaseModel):
    """A file to be sent in pieces."""

    model_config = ConfigDict(extra="forbid")

    size_bytes: int = Field(gt=0, lt=2**50, description="Size of the whole file.")


class PartialUpload(BaseModel):
    """A partially uploaded file."""

    id: str
    size_bytes: int = Field(description="Size of the whole file.")
    offset: int = Field(description="Bytes received so far; the next piece begins there.")
    max_piece_bytes: int = Field(description="Maximum size of one piece.")
    expires_at: AwareDatetime = Field(description="When the upload expires, unless more bytes arrive.")


class FromUpload(BaseModel):
    """The source of a file: the request's body, an earlier upload in pieces, or an address."""

    upload: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{32}$",
        description="Id of an upload in pieces, begun by POST /uploads; the request then has no body.",
    )
    address: str | None = Field(
        default=None,
        max_length=2000,
        description="Address from which the service fetches the file: https://host/path, s3://bucket/key or "
        "gs://bucket/key, where the administrator allows it; the request then has no body.",
    )
    sha256: Sha256 | None = Field(
        default=None, description="Expected SHA-256 of the file; a file with another hash is rejected."
    )


# the formats that app/datasets/formats describes
if TYPE_CHECKING:
    DatasetFormat: TypeAlias = str
else:
    DatasetFormat = Literal[tuple(FORMATS)]
# names here by those of Python's modules
_ENCODINGS = {
    "utf_8": "utf-8", "utf_8_sig": "utf-8", "utf_16": "utf-16", "utf_16_le": "utf-16-le", "utf_16_be": "utf-16-be",
    "latin_1": "latin-1", "iso8859_15": "iso-8859-15", "cp1250": "windows-1250", "cp1251": "windows-1251",
    "cp1252": "windows-1252", "mac_roman": "mac-roman",
}  # fmt: skip


def _named_here(encoding: object) -> object:
    """The name of an encoding that Python knows under this one, such as windows-1252 for cp1252; else as given."""
    if not isinstance(encoding, str) or not encoding.isascii():
        return encoding
    name = normalize_encoding(encoding.strip().lower())
    return _ENCODINGS.get(aliases.get(name, name), encoding)


Encoding = Annotated[
    Literal[
        "utf-8", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "iso-8859-15", "windows-1250", "windows-1251",
        "windows-1252", "mac-roman",
    ],
    BeforeValidator(_named_here),
]  # fmt: skip
Delimiter = Literal["comma", "semicolon", "tab", "pipe"]
# a name in another Unicode form is the same name
_Column = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(normalized)]
# of MARC 650_7$a; of other records subject, subject$id or title@de
_RecordField = Annotated[
    str,
    Field(
        max_length=80,
        pattern=r"^([0-9A-Za-z]{3}([0-9A-Za-z_*]{2})?(\$[0-9a-z]+)?"
        r"|[A-Za-z][A-Za-z0-9_.\-]*(\$(id|value)|@[A-Za-z]{2,8}(-[A-Za-z0-9]+)*)?)$",
    ),
]
_ColumnType = Annotated[
    str, Field(max_length=210, pattern=r"^.+=(boolean|number|date|text)$"), AfterValidator(normalized)
]
DatasetState = Literal["importing", "ready", "failed"]


class ImportOptions(BaseModel):
    """How to read a dataset's file; each parser uses the options that its format supports."""

    model_config = ConfigDict(frozen=True)

    label_column: _Column = Field(default="label", description="Column (key, array) of the labels.")
    label_columns: tuple[_Column, ...] = Field(
        default=(),
        max_length=1000,
        description="Columns that contain 1 in the rows with the label of the column's name and 0 in others, instead "
        "of one column of labels. A name that ends in * selects all columns with that prefix.",
    )
    unlabelled: bool = Field(
        default=False,
        description="The file has no labels: its rows can be predicted, but no model can be trained on them. Lines "
        "of svmlight files then begin with their features.",
    )
    zero_based: bool = Field(default=False, description="Indices in an svmlight file begin at 0 instead of 1.")
    weight_column: _Column | None = Field(
        default=None,
        description="Column or key of positive row weights, which multiply the losses of their rows. Default: no "
        "column in tables, the key weight in JSON lines if present, and cost:number in svmlight files.",
    )
    label_separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=8,
        description="Separator between the labels of a row with several labels; a comma in svmlight files. JSON "
        "lines need no separator: they use lists.",
    )
    label_lists: Literal["read", "keep"] | None = Field(
        default=None,
        description="Labels that look like lists, such as `[a, b]` or `['a', 'b']` in a cell: read parses them as "
        "sets, keep leaves them as text. Default: a file in which all labels look like lists is rejected.",
    )
    label_type: LabelType | None = Field(
        default=None,
        description="How labels are read: text leaves them unchanged; boolean reads True as true; number reads 7.0 "
        "as 7; integer also reads 007 as 7. Default: the type that fits all labels of the file, but "
        "never integer.",
    )
    merge_labels: tuple[Likeness, ...] = Field(
        default=(),
        max_length=4,
        description="Merge labels that look alike into the most frequent of them. Differences to ignore: unicode "
        "(forms, ligatures, invisible characters), case, numbers (7, 7.0 and 007) or brackets.",
    )
    without_label: Literal["refuse", "leave_out", "only"] = Field(
        default="refuse",
        description=(
            "Rows without a label: refuse reports them as errors, leave_out skips and counts them, only keeps "
            "nothing but these rows, for prediction."
        ),
    )
    languages: tuple[Annotated[str, Field(pattern="^[a-z]{2,3}$")], ...] = Field(
        default=(),
        max_length=20,
        description="Keep only rows whose text is in these languages, by their ISO 639 codes, as en,de: rows for which "
        "all other languages together are more probable are left out and counted. For short texts, the languages of "
        "the other rows count. Texts of digits and signs stay. Default: all rows.",
    )
    text_columns: tuple[_Column, ...] = Field(
        default=(),
        max_length=50,
        description="Columns that make up the text, joined by newlines. Default: the column named text.",
    )
    text_fields: tuple[_RecordField, ...] = Field(
        default=(),
        max_length=50,
        description="Formats marc, dublin_core, jsonld: fields that make up the text, one line each, for example "
        "245$ab, or title and abstract, or title@de. Default: title, series, contents and summary (245$abnp, 490$a, "
        "505, 520$ab); or title, alternative, name, headline, abstract, description and tableOfContents.",
    )
    label_fields: tuple[_RecordField, ...] = Field(
        default=(),
        max_length=50,
        description="Formats marc, dublin_core, jsonld: fields that hold the labels. 650 reads the authority id ($0) "
        "where there is one, else the heading; 650$0 reads ids alone, 650*0 those with the second indicator 0, 082$a "
        "each subfield a; subject reads addresses, else names, subject$id addresses alone, subject$value and "
        "subject@de names. Default: 600, 610, 611, 630, 650, 651 and 655; or subject and about.",
    )
    ignore_columns: tuple[_Column, ...] = Field(
        default=(), max_length=1000, description="Columns to leave out, such as dates or notes."
    )
    number_columns: tuple[_Column, ...] = Field(
        default=(),
        max_length=10_000,
        description="Columns of numbers, in addition to texts or categories. If no text or category columns are "
        "named, all other columns are numbers.",
    )
    category_columns: tuple[_Column, ...] = Field(
        default=(), max_length=1000, description="Columns of categories, such as colours or countries."
    )
    column_types: tuple[_ColumnType, ...] = Field(
        default=(),
        max_length=1000,
        description="Types of category columns, for example version=text: boolean, number, date or text. Default: "
        "the type that fits all values. True and true, or 7 and 7.0, are then the same level; 007 and "
        "1.0b stay unchanged.",
    )
    id_column: _Column | None = Field(
        default=None,
        description="Column of row ids, which are returned with rows and predictions. Default: the column named id.",
    )
    other_columns: Literal["refuse", "ignore"] = Field(
        default="refuse",
        description="Columns that no option names, beside texts or categories: refuse reports them as errors, ignore "
        "leaves them out. Files of predictions have them all the same.",
    )
    infer_columns: bool = Field(
        default=False,
        description="Infer the type of all other columns from their first 10,000 values: text, number or category. "
        "Dates, and columns with a unique value in each row, are left out. The statistics show the "
        "result.",
    )
    missing: Literal["refuse", "keep"] = Field(
        default="refuse",
        description="Missing numbers and categories: refuse reports them as errors, keep lets training fill them in.",
    )
    missing_values: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(
        default=(),
        max_length=100,
        description="Cell contents that mean a missing value, such as NA; empty cells always do.",
    )
    encoding: Encoding = Field(
        default="utf-8",
        description="Encoding of a text file; Python's other names for these, such as cp1252, are understood. It is "
        "never guessed: invalid bytes are rejected.",
    )
    delimiter: Delimiter | None = Field(
        default=None, description="Delimiter of a CSV file. Default: detected from the header."
    )
    decimal: Literal["point", "comma"] = Field(
        default="point", description="Decimal separator of numbers in CSV and TSV."
    )
    quotes: bool = Field(
        default=True,
        description="Cells in CSV and TSV may be quoted, and quoted cells may contain delimiters and newlines. If "
        "false, a quote is an ordinary character.",
    )
    sheet: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Sheet of a workbook. Default: the first sheet.",
    )

    @property
    def has_separated_labels(self) -> bool:
        """Whether cells are split into labels."""
        return self.label_separator is not None and self.label_lists != "read"

    @property
    def types(self) -> dict[str, ColumnType]:
        """The given types by column."""
        return {name: cast(ColumnType, type) for name, _, type in (each.rpartition("=") for each in self.column_types)}


class NewDataset(ImportOptions, FromUpload):
    """A dataset to upload."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Unique name of the dataset in jobs and URLs.")
    format: DatasetFormat | None = Field(
        default=None, description="Default: detected from the content, if it is unambiguous."
    )
    for_model: Name | None = Field(
        default=None,
        description="Model that will predict these rows: the file has no labels, the columns that the model was "
        "trained on are read under the same names and with its training data's decimal, delimiter, quotes and "
        "missing_values, and other columns are left out. Options that are given win.",
    )


# of a text so much is looked at; a binary file is needed whole, and may not be larger than the second
SAMPLE_BYTES, MOST_SAMPLE_BYTES = 256 << 10, 4 << 20


class TableSample(ImportOptions):
    """The beginning of a table, and what is known about the file; the columns that are named keep their roles."""

    model_config = ConfigDict(extra="forbid")

    file: str | None = Field(
        default=None, max_length=255, description="Name of the file; its extension says the format."
    )
    format: DatasetFormat | None = Field(
        default=None, description="Default: that of the file's extension, or of the content."
    )


ColumnRole = Literal["label", "indicator", "text", "number", "category", "id", "weight", "split", "ignored"]


class ProposedColumn(BaseModel):
    """One column of a table, what it seems to be, and its first values."""

    name: str
    type: Literal["text", "number", "category", "date", "distinct", "list", "empty", "other"] = Field(
        description="Type of the values; distinct: each row has a value of its own."
    )
    role: ColumnRole = Field(
        description="Proposed role; an indicator is 1 in the rows that have the label of its name; ignored columns are "
        "left out."
    )
    reason: str = Field(description="Why, in a few words.")
    n_missing: int = Field(description="Rows without a value.")
    values: list[str] = Field(description="Values of the first five rows, shortened; empty if they are missing.")


class ProposedColumns(BaseModel):
    """The columns of a table with their proposed roles."""

    format: DatasetFormat
    n_rows: int = Field(description="Rows that were looked at.")
    n_columns: int
    columns: list[ProposedColumn] = Field(
        description="The first columns, at most 200 and as many as an upload can name, with label, id, weight, split."
    )
    label_column: str | None = Field(description="Absent if no column looks like the label.")
    doubt: str | None = Field(description="Why a person should choose the label column; absent if it is clear.")
    options: dict[str, str | bool | list[str]] = Field(
        description="Import options that read the file as proposed. Options that are not here keep their defaults."
    )


class NewRows(ImportOptions, FromUpload):
    """Rows to append; options that are not given are those of the dataset's first file."""

    model_config = ConfigDict(extra="forbid")

    part: Literal["train", "test", "validation"] | None = Field(
        default=None,
        description="Part of the new rows that have no split of their own. If the dataset has no parts, its existing "
        "rows become the training part. Default: train, if the dataset has parts.",
    )
    format: DatasetFormat | None = Field(
        default=None, description="Default: detected from the content, if it is unambiguous."
    )


class LabelCorrection(BaseModel):
    """The correct labels of one row, named by its number or id, or of all rows with one text; or their deletion."""

    model_config = ConfigDict(extra="forbid")

    row: int | None = Field(
        default=None,
        ge=0,
        lt=2**63,
        description="Row number from 0. Rows keep their numbers in later versions, until a row before them is deleted.",
    )
    version: int | None = Field(
        default=None,
        ge=1,
        lt=2**31,
        description="Version of the dataset whose row numbers `row` uses. Default: the newest.",
    )
    id: str | None = Field(
        default=None, max_length=10_000, description="Instead of `row`: an id; all rows with it are corrected."
    )
    text: str | None = Field(
        default=None,
        max_length=1_000_000,
        description="Instead of `row`: a text; all rows with it are corrected. Whitespace around it does not count.",
    )
    delete: bool = Field(
        default=False, description="Delete the row, or all rows with the id or text; `labels` must then be absent."
    )
    labels: list[Annotated[str, Field(min_length=1, max_length=1000)]] | None = Field(
        default=None,
        max_length=1000,
        validate_default=True,
        description="All correct labels: exactly one, unless rows have sets of labels, which may be empty.",
    )
    before: list[str] | None = Field(
        default=None,
        max_length=1000,
        description="The labels being corrected; if the row has other labels by now, the whole request is rejected.",
    )

    @field_validator("labels")
    @classmethod
    def _labels_or_deletion(cls, labels: list[str] | None, info: ValidationInfo) -> list[str] | None:
        deletes = info.data.get("delete", False)
        if deletes and labels is not None:
            raise ValueError("delete and labels cannot be combined: pass one of them")
        if not deletes and labels is None:
            raise ValueError("give the correct labels, or delete: true")
        return labels

    @model_validator(mode="after")
    def _names_one_row(self) -> Self:
        given = [name for name in ("row", "id", "text") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of row, id and text; got {', '.join(given) or 'none'}")
        if self.version is not None and self.row is None:
            raise ValueError("version applies only to a row number, not to an id or a text")
        return self


class CorrectionsRequest(BaseModel):
    """Corrections of wrong labels, and deletions of rows."""

    model_config = ConfigDict(extra="forbid")

    corrections: list[LabelCorrection] = Field(
        min_length=1, max_length=10_000, description="At most one correction per row."
    )


class DatasetVersion(BaseModel):
    """One version of a dataset: the result of its import, an append or a correction of labels."""

    version: int
    sha256: str = Field(
        description=(
            "SHA-256 of the uploaded bytes; for later versions, of the previous version's hash and the new file "
            "or corrections."
        )
    )
    n_rows: int
    n_train: int
    n_deleted: int = Field(default=0, description="Rows of the previous version that this version has deleted.")
    job: str | None = Field(description="The job that made this version.")
    created_at: AwareDatetime


class Dataset(Shown, BaseModel):
    """An uploaded dataset with its counts."""

    id: str
    name: str
    owner: str | None = Field(
        default=None, description="Name of the key that created it; only that key and administrators may delete it."
    )
    format: DatasetFormat
    state: DatasetState
    version: int = Field(
        default=1,
        description="Number of the newest version; each append and each correction of labels makes a new one.",
    )
    sha256: str = Field(description="SHA-256 of the uploaded bytes; after an append, the hash of the newest version.")
    size_bytes: int
    kind: Literal["text", "sparse", "table"] | None = Field(
        default=None,
        description=(
            "Kind of rows, known once the dataset is ready: text, sparse (numbers), or table (columns of several "
            "kinds)."
        ),
    )
    n_rows: int | None = None
    n_train: int | None = Field(default=None, description="Rows of the training part; all rows if there is no split.")
    n_classes: int | None = None
    n_features: int | None = Field(default=None, description="Absent for texts: training jobs make their features.")
    nnz: int | None = None
    error: ProblemDocument | None = None
    job: str | None = Field(default=None, description="The job that imports the dataset.")
    created_at: AwareDatetime


class DatasetRow(BaseModel):
    """One row, shortened unless whole rows were requested."""

    row: int = Field(description="Row number from 0, in the order of the file.")
    label: str | None = Field(description="Absent if rows have sets of labels.")
    labels: list[str] | None = Field(
        default=None, description="The first 50 labels, or all; absent if each row has one label."
    )
    split: Literal["train", "test", "validation"] | None
    weight: float | None = Field(default=None, description="Absent if the rows have no weights.")
    text: str | None = Field(default=None, description="The first 500 characters, or all.")
    features: list[tuple[int, float]] | None = Field(
        default=None, description="The first 50 (index, value) pairs, or all."
    )
    id: str | None = Field(default=None, description="Absent if the file has no ids.")
    record: dict[str, float | str | None] | None = Field(
        default=None,
        description=(
            "Of tables, and of texts in several columns: values by column, with the first 50 numbers and categories "
            "or all. Texts are missing if an earlier version joined their columns."
        ),
    )


class DatasetRows(Shown, BaseModel):
    """Rows starting at ``offset``."""

    rows: list[DatasetRow]
    n_rows: int
