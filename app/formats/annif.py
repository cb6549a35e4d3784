"""Annif's short-text corpora: a text, a tab, and the URIs of its subjects, one row a line.

No header. Subjects stand in angle brackets with white space between them, `<http://example.org/1> <http://...>`; a row
may have none. The label is the URI without its brackets. Every row has a set of labels.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from app.formats.label_sets import LabelSets
from app.formats.table import Parsed, Problems, row_error, shorten
from app.formats.text_blob import TextBlob
from app.formats.window import NOT_UTF8, Window
from app.schemas.datasets.datasets import ImportOptions

_SUBJECTS = re.compile(r"\s*(?:<[^<>\s]+>\s*)*")
_SUBJECT = re.compile(r"<([^<>\s]+)>")


def parse_annif(path: Path, _options: ImportOptions) -> Parsed:
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
    label_names, y, indptr = labels.take()
    if len(indptr) == 1:
        raise row_error(1, "the file is empty or has only blank lines")
    return Parsed("text", label_names, y, texts=texts.take(), label_indptr=indptr)


def _read(record: bytes, line: int, problems: Problems) -> tuple[bytes, list[str]] | None:
    """The text and the subjects of a line; None for a blank one, and where the problem is noted."""
    if not record or record.isspace():
        return None
    text, tab, rest = record.partition(b"\t")
    try:
        text.decode()
        subjects = rest.decode()
    except UnicodeDecodeError:
        problems.add(line, f"not {NOT_UTF8}")
        return None
    if not tab:
        problems.add(line, "no tab: expected a text, a tab, and URIs in angle brackets")
        return None
    if not _SUBJECTS.fullmatch(subjects):
        problems.add(line, f"'{shorten(subjects.strip())}' is not a list of URIs in angle brackets", "label")
        return None
    return text, _SUBJECT.findall(subjects)
