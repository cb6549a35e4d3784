"""CSV and TSV: a header, then rows of cells."""

import csv
import io
from collections.abc import Sequence

from app.datasets.formats.format import TABLE, Columns, Format, Reference
from app.descriptions import Shape

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}


def cells_of(line: str, delimiter: str) -> list[str]:
    """The cells of a first line; empty if it has fewer than two."""
    try:
        cells = next(csv.reader(io.StringIO(line), delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in cells] if len(cells) > 1 else []


def _is_csv(lines: Sequence[str], labels: frozenset[str]) -> bool:
    if lines[0].startswith("sep="):
        return True
    return any(not labels.isdisjoint(cells_of(lines[0], mark)) for name, mark in DELIMITERS.items() if name != "tab")


def _is_tsv(lines: Sequence[str], labels: frozenset[str]) -> bool:
    return not labels.isdisjoint(cells_of(lines[0], "\t"))


_OPTIONS = TABLE | {"encoding", "delimiter", "decimal", "quotes"}
_REFERENCE = Reference(
    "a header, then texts or columns of numbers",
    "column `label`, or `label_column`",
    "column `split`",
    "the column that `weight_column` names",
)

CSV = Format(
    "csv",
    "CSV",
    "app.formats.csv_table:parse_csv",
    _OPTIONS,
    _REFERENCE,
    (
        Shape("CSV of numbers", "good.csv"),
        Shape("CSV of texts with ids and a split", "texts.csv"),
        Shape("CSV with a byte order mark and CRLF, as Excel writes it", "bom_crlf.csv"),
        Shape("CSV with semicolons and decimal commas", "semicolons.csv", {"decimal": "comma"}),
        Shape("CSV that begins with `sep=;`", "sep.csv"),
        Shape("CSV in Windows-1252", "old.csv", {"encoding": "windows-1252"}),
        Shape("CSV with columns of all kinds", "table.csv", {"label_column": "reason", "infer_columns": True}),
        Shape("CSV with a column of 0 and 1 for each label", "marks.csv", {"label_columns": ("fruit", "sea")}),
        Shape("CSV with Python's lists in cells", "lists.csv", {"label_lists": "read"}),
        Shape("CSV with several labels in a cell", "separated.csv", {"label_separator": ";"}),
        Shape("CSV with JSON's lists in cells", "cells.csv", {"label_lists": "read"}),
        Shape(
            "CSV with title, abstract and keywords", "titled.csv", {"text_columns": ("title", "abstract", "keywords")}
        ),
    ),
    extensions=("csv",),
    recognises=_is_csv,
    general=True,
    columns=Columns("app.formats.csv_header:first_values_of_csv", "app.formats.csv_header:blocks_of_csv", typed=False),
)
TSV = Format(
    "tsv",
    "TSV",
    "app.formats.csv_table:parse_tsv",
    _OPTIONS,
    _REFERENCE,
    (Shape("TSV", "good.tsv"),),
    extensions=("tsv",),
    recognises=_is_tsv,
    columns=Columns("app.formats.csv_header:first_values_of_tsv", "app.formats.csv_header:blocks_of_tsv", typed=False),
    fixed={"delimiter": ("tab", "cells are separated by tabs")},
)
