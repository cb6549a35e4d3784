"""Which options of an import fit which format."""

from app.errors import InvalidInput, Item
from app.schemas.datasets.datasets import ImportOptions

_DELIMITED = frozenset({"csv", "tsv"})
# formats that have columns
COLUMNAR = _DELIMITED | {"jsonl", "parquet", "arrow"}
_TEXT = _DELIMITED | {"svmlight", "jsonl", "annif"}

# what may be said of which formats, and of the others why it may not
_FITTING = {
    "label_column": (COLUMNAR | {"npz"}, "its labels have no column"),
    "unlabelled": (COLUMNAR | {"npz", "svmlight"}, "its rows have labels"),
    "weight_column": (COLUMNAR | {"npz"}, "its weights have no column"),
    "label_separator": (_DELIMITED | {"svmlight", "parquet", "arrow"}, "rows with sets of labels have lists"),
    "text_columns": (COLUMNAR, "it has no columns of texts"),
    "ignore_columns": (COLUMNAR | {"npz"}, "it has no columns"),
    "number_columns": (COLUMNAR, "it has no columns"),
    "category_columns": (COLUMNAR, "it has no columns"),
    "id_column": (COLUMNAR, "its rows have no names"),
    "infer_columns": (COLUMNAR, "it has no columns"),
    "missing": (COLUMNAR, "no value is missing there"),
    "missing_values": (COLUMNAR, "no value is missing there"),
    "encoding": (_TEXT, "it is no text"),
    "delimiter": (_DELIMITED, "it has no delimiters"),
    "decimal": (_DELIMITED, "its numbers have points"),
    "quotes": (_DELIMITED, "it has no quotes"),
}


def formats_of(name: str) -> frozenset[str]:
    """The formats whose files can have an option."""
    return _FITTING[name][0]


def check_options(options: ImportOptions, format: str) -> None:
    """Refuse options that a format cannot heed.

    Raises
    ------
    InvalidInput
    """
    default = ImportOptions()
    for name, (formats, reason) in _FITTING.items():
        if format not in formats and getattr(options, name) != getattr(default, name):
            detail = f"{format}: {reason}"
            if name == "weight_column" and format == "svmlight":
                detail = "svmlight rows have their weight as cost:number, not in a column"
            raise InvalidInput("the format does not have that", [Item(detail, f"/{name}")])
    if options.weight_column == options.label_column:
        raise InvalidInput(
            "the weights cannot stand there", [Item("one column cannot hold both labels and weights", "/weight_column")]
        )
    if format == "svmlight" and options.label_separator not in (None, ","):
        detail = "svmlight: labels have commas between them"
        raise InvalidInput("the format has no such separator", [Item(detail, "/label_separator")])
    if format == "tsv" and options.delimiter not in (None, "tab"):
        raise InvalidInput(
            "the format has no such delimiter", [Item("tsv: cells have tabs between them", "/delimiter")]
        )
