"""The file formats: one entry each, and `parse`, which reads a file of any of them.

A new format is a module with a parser, an entry here, and its name in `DatasetFormat` and perhaps `EXTENSIONS`, both in
`app/datasets/schemas.py`; CONTRIBUTING.md lists its tests and its documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from app.datasets.recipe_schemas import TableColumns
from app.datasets.schemas import DatasetFormat, ImportOptions
from app.formats.annotation_keys import is_annotations
from app.formats.bibliographic_form import is_dublin_core, is_jsonld
from app.formats.csv_header import DELIMITERS, cells_of, has_annif_header
from app.formats.marc_form import is_marc
from app.formats.plain_file import MostUnpacked, head_of, plain_file
from app.formats.table import Parsed

_SVMLIGHT = re.compile(r"\S+(?:\s+(?:qid|cost|\d+):\S+)+\s*(?:#.*)?")
_ANNIF = re.compile(r"[^\t]*\t\s*(?:<[^<>\s]+>\s*)+")
_XMC = re.compile(r"\d+ +\d+ +\d+ *")
_JSON = re.compile(r"\s*(?:\{|\[\s*\{)")

Recognises = Callable[[Sequence[str], ImportOptions], bool]


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes
    ----------
    name : DatasetFormat
    title : str
        Its name in the upload form.
    parser : str
        ``module:function``, imported when a file is read: the function takes the path and the options, and of binary
        formats the limits of a decompressed file.
    options : frozenset of str
        The import options that it supports beside those of all formats.
    recognises : callable, optional
        Whether the lines at the beginning of a text file are of this format. Binary formats are recognised by their
        first bytes.
    """

    name: DatasetFormat
    title: str
    parser: str
    options: frozenset[str]
    recognises: Recognises | None = None

    @property
    def is_text(self) -> bool:
        """Whether its files are text."""
        return self.recognises is not None

    def read(self, path: Path, options: ImportOptions, most: MostUnpacked) -> Parsed:
        """Read a plain file; raises FormatError."""
        module, _, function = self.parser.partition(":")
        parser: Callable[..., Any] = getattr(import_module(module), function)
        return cast(Parsed, parser(path, options) if self.is_text else parser(path, options, most))


def _is_svmlight(lines: Sequence[str], options: ImportOptions) -> bool:
    rows = [line for line in lines if not line.lstrip().startswith("#")]
    return bool(rows) and _SVMLIGHT.fullmatch(rows[0].strip()) is not None


def _is_csv(lines: Sequence[str], options: ImportOptions) -> bool:
    if _is_tsv(lines, options) or _is_annif(lines, options) or is_annotations(lines, options):
        return False
    return lines[0].startswith("sep=") or any(_has_labels(lines[0], mark, options) for mark in DELIMITERS.values())


def _is_tsv(lines: Sequence[str], options: ImportOptions) -> bool:
    return _has_labels(lines[0], "\t", options)


def _has_labels(line: str, delimiter: str, options: ImportOptions) -> bool:
    """Whether a header has the column of the labels, or one of those that the labels are spread over."""
    return not {options.label_column, *options.label_columns}.isdisjoint(cells_of(line, delimiter))


def _is_jsonl(lines: Sequence[str], options: ImportOptions) -> bool:
    if is_annotations(lines, options) or is_jsonld(lines, options):
        return False
    return _JSON.match(" ".join(lines[:2])) is not None


def _is_annif(lines: Sequence[str], options: ImportOptions) -> bool:
    return _ANNIF.fullmatch(lines[0]) is not None or has_annif_header(lines[0])


def _is_arff(lines: Sequence[str], options: ImportOptions) -> bool:
    first = next((line for line in lines if not line.lstrip().startswith("%")), "")
    return first.lstrip().lower().startswith(("@relation", "@attribute"))


def _is_fasttext(lines: Sequence[str], options: ImportOptions) -> bool:
    return lines[0].lstrip().startswith("__label__")


def _is_xmc(lines: Sequence[str], options: ImportOptions) -> bool:
    """A line of three counts, and then a row."""
    row = lines[1].strip() if len(lines) > 1 else ""
    return _XMC.fullmatch(lines[0].strip()) is not None and re.match(r"(?:\d+(?:,\d+)*\s+)?\d+:\S", row) is not None


_COLUMNS = frozenset(
    {
        "label_column", "unlabelled", "weight_column", "label_lists", "without_label", "text_columns",
        "ignore_columns", "number_columns", "category_columns", "column_types", "id_column", "other_columns",
        "infer_columns", "missing", "missing_values",
    }
)  # fmt: skip
_TABLE = _COLUMNS | {"label_columns", "label_separator"}
_CELLS = _TABLE | {"encoding", "delimiter", "decimal", "quotes"}

_RECORDS = frozenset({"unlabelled", "without_label", "text_fields", "label_fields"})

_ENTRIES = (
    Format(
        "svmlight",
        "svmlight, LIBSVM",
        "app.formats.svmlight:parse_svmlight",
        frozenset({"unlabelled", "zero_based", "label_separator", "encoding"}),
        _is_svmlight,
    ),
    Format("csv", "CSV", "app.formats.csv_table:parse_csv", _CELLS, _is_csv),
    Format("tsv", "TSV", "app.formats.csv_table:parse_tsv", _CELLS, _is_tsv),
    Format("jsonl", "JSON, JSON lines", "app.formats.json_lines:parse_jsonl", _COLUMNS | {"encoding"}, _is_jsonl),
    Format("annif", "Annif corpus", "app.formats.annif:parse_annif", frozenset({"encoding"}), _is_annif),
    Format(
        "fasttext",
        "fastText",
        "app.formats.fasttext:parse_fasttext",
        frozenset({"label_separator", "encoding"}),
        _is_fasttext,
    ),
    Format(
        "annotations",
        "Label Studio, doccano, Argilla",
        "app.formats.annotations:parse_annotations",
        frozenset({"label_column", "unlabelled", "without_label", "text_columns", "encoding"}),
        is_annotations,
    ),
    Format("xmc", "Extreme classification (XMC)", "app.formats.xmc:parse_xmc", frozenset({"encoding"}), _is_xmc),
    Format(
        "arff",
        "ARFF (Weka, Meka, Clus)",
        "app.formats.arff:parse_arff",
        frozenset(
            {
                "label_column",
                "label_columns",
                "unlabelled",
                "without_label",
                "text_columns",
                "ignore_columns",
                "id_column",
                "missing",
                "encoding",
            }
        ),
        _is_arff,
    ),
    Format(
        "marc",
        "MARC 21, MARCXML",
        "app.formats.marc:parse_marc",
        _RECORDS,
        is_marc,
    ),
    Format(
        "dublin_core",
        "Dublin Core (OAI-PMH, RDF/XML)",
        "app.formats.dublin_core:parse_dublin_core",
        _RECORDS | {"label_separator"},
        is_dublin_core,
    ),
    Format(
        "jsonld",
        "JSON-LD (schema.org, Dublin Core)",
        "app.formats.jsonld:parse_jsonld",
        _RECORDS | {"label_separator"},
        is_jsonld,
    ),
    Format(
        "archive",
        "Archive (zip, tar): Annif's texts, Mulan, separate labels",
        "app.formats.archive:parse_archive",
        frozenset(
            {
                "unlabelled",
                "without_label",
                "text_columns",
                "ignore_columns",
                "id_column",
                "missing",
                "label_separator",
            }
        ),
    ),
    Format("parquet", "Parquet", "app.formats.arrow_tables:parse_parquet", _TABLE),
    Format("arrow", "Arrow, Feather", "app.formats.arrow_tables:parse_arrow", _TABLE),
    Format("xlsx", "Excel (xlsx)", "app.formats.workbooks:parse_workbook", _TABLE | {"sheet"}),
    Format("ods", "LibreOffice (ods)", "app.formats.workbooks:parse_workbook", _TABLE | {"sheet"}),
    Format(
        "npz",
        "NumPy (npz)",
        "app.formats.npz:parse_npz",
        frozenset({"label_column", "unlabelled", "weight_column", "ignore_columns"}),
    ),
)
FORMATS: Mapping[str, Format] = MappingProxyType({each.name: each for each in _ENTRIES})


def parse(
    path: Path, format: str, options: ImportOptions | None = None, most_unpacked: MostUnpacked | None = None
) -> Parsed:
    """Read a file, compressed or not.

    Parameters
    ----------
    path : Path
        The file; it is read in blocks and may be larger than the memory that its arrays need.
    format : str
        A name in FORMATS.
    options : ImportOptions, optional
        What else is known about the file.
    most_unpacked : MostUnpacked, optional
        Limits of a decompressed file.

    Raises
    ------
    FormatError
        With the lines that break the format.
    KeyError
        If there is no such format.
    """
    # what follows loads the numerics, which a service that only looks formats up need not wait for
    from app.formats.detection import check_format
    from app.formats.indicator_columns import as_numbers, with_indicator_labels
    from app.formats.inference import inferred
    from app.formats.label_forms import with_label_forms
    from app.formats.zeros import require_no_zeros

    options, most = options or ImportOptions(), most_unpacked or MostUnpacked()
    entry = FORMATS[format]
    check_format(head_of(path, 1024), format, options)
    given = options
    if given.label_columns:
        options = as_numbers(given)
    with plain_file(path, most, options.encoding if entry.is_text else "utf-8") as plain:
        left_out: dict[str, str] = {}
        if options.infer_columns:
            options, left_out = inferred(plain, format, options, most)
        parsed = entry.read(plain, options, most)
        require_no_zeros(parsed, plain if entry.is_text else None)
    if given.label_columns:
        parsed = with_indicator_labels(parsed, given)
    parsed = with_label_forms(parsed, given)
    if not options.infer_columns:
        return parsed
    columns = parsed.columns or TableColumns(texts=options.text_columns, inferred=True)
    return replace(parsed, columns=columns.model_copy(update={"left_out": columns.left_out | left_out}))
