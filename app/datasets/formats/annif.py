"""Annif's short-text corpora: a text, a tab, and the URIs of its subjects, one row a line; or the same as CSV.

TSV has no header. Subjects are in angle brackets with white space between them, `<http://example.org/1> <http://...>`;
a row may have none. CSV has the columns `text` and `subject_uris`, and `document_id` if wanted; others are left out.
The label is the URI without its brackets. Every row has a set of labels.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.datasets.formats.delimited import cells_of
from app.datasets.formats.format import Format, Reference
from app.descriptions import Shape

if TYPE_CHECKING:
    from app.datasets.schemas import ImportOptions
    from app.formats.table import Parsed, Problems

_MOST_HEADER_BYTES = 1 << 16
_ROW = re.compile(r"[^\t]*\t\s*(?:<[^<>\s]+>\s*)+")
_SUBJECTS = re.compile(r"\s*(?:<[^<>\s]+>\s*)*")
_SUBJECT = re.compile(r"<([^<>\s]+)>")


def _is_annif(lines: Sequence[str], labels: frozenset[str]) -> bool:
    return _ROW.fullmatch(lines[0]) is not None or _is_header(lines[0])


def parse(path: Path, options: ImportOptions) -> Parsed:
    """Read a corpus of short texts.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    Parsed
        Kind "text" with sets of labels.

    Raises
    ------
    FormatError
        With the lines that have no tab, or something else than URIs in angle brackets after it.
    """
    import numpy as np

    from app.formats.csv_table import parse_csv
    from app.formats.label_sets import LabelSets
    from app.formats.table import Parsed, Problems, row_error
    from app.formats.text_rows import TextBlob
    from app.formats.window import Window

    header = _header(path)
    if header is not None:
        return parse_csv(path, _csv_options(header, options), "comma")
    labels, texts, problems = LabelSets(), TextBlob(), Problems()
    line = 1
    with Window(path) as window:
        while unread := window.fill(line):
            end = len(unread) if window.at_end else unread.rfind(b"\n") + 1
            begin = line
            records = unread[:end].removesuffix(b"\n").split(b"\n") if end else []
            found: list[tuple[int, bytes, list[str]]] = []
            for line, record in enumerate(records, begin):
                row = _read(record, line, problems)
                if row is not None:
                    found.append((line, *row))
            lines = np.array([line for line, _, _ in found], dtype=np.int64)
            labels.add_sets(np.arange(len(found)), [subjects for _, _, subjects in found], lines, problems)
            blob = np.frombuffer(b"".join(text for _, text, _ in found), dtype=np.uint8)
            texts.add(blob, np.array([len(text) for _, text, _ in found], dtype=np.int64))
            line = begin + len(records)
            window.consume(end)
    problems.raise_if_any()
    label_names, y, indptr = labels.build()
    if len(indptr) == 1:
        raise row_error(1, "the file is empty or has only blank lines")
    return Parsed("text", label_names, y, texts=texts.build(), label_indptr=indptr)


def _is_header(line: str) -> bool:
    return set(cells_of(line, ",")) >= {"text", "subject_uris"}


def _header(path: Path) -> list[str] | None:
    """The columns of a corpus in CSV; None of one in TSV."""
    with path.open("rb") as file:
        line = file.readline(_MOST_HEADER_BYTES).decode("utf-8-sig", "replace")
    if not _is_header(line):
        return None
    return [name.strip() for name in next(csv.reader([line]))]


def _csv_options(header: list[str], options: ImportOptions) -> ImportOptions:
    """How a corpus in CSV is read."""
    id_column = options.id_column or ("document_id" if "document_id" in header else None)
    used = {"text", "subject_uris", "split", "id", id_column}
    given = {
        "label_column": "subject_uris",
        "label_separator": " ",
        "text_columns": ("text",),
        "id_column": id_column,
        "ignore_columns": tuple(name for name in header if name not in used),
    }
    return options.model_copy(update=given)


def _read(record: bytes, line: int, problems: Problems) -> tuple[bytes, list[str]] | None:
    """The text and the subjects of a line; None for a blank one, and where the problem is noted."""
    if not record or record.isspace():
        return None
    from app.formats.table import shorten

    text, tab, rest = record.partition(b"\t")
    try:
        text.decode()
        subjects = rest.decode()
    except UnicodeDecodeError:
        problems.add(line, "not valid UTF-8")
        return None
    if not tab:
        problems.add(line, "no tab: expected a text, a tab, and URIs in angle brackets")
        return None
    if not _SUBJECTS.fullmatch(subjects):
        problems.add(line, f"'{shorten(subjects.strip())}' is not a list of URIs in angle brackets", "label")
        return None
    return text, _SUBJECT.findall(subjects)


ANNIF = Format(
    "annif",
    "Annif corpus",
    f"{__name__}:parse",
    frozenset({"languages", "encoding"}),
    Reference(
        "`text`, a tab, `<uri> <uri>`, without a header; or CSV with `text`, `subject_uris` and perhaps `document_id`",
        "the URIs, a set",
    ),
    (
        Shape("Annif: texts and URIs, TSV", "good.annif"),
        Shape("Annif: texts and URIs, CSV", "documents.annif"),
    ),
    recognises=_is_annif,
)
