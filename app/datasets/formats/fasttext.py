"""fastText's files: one text a line, with its labels as words that begin with `__label__`.

Labels may be anywhere in a line; what is left is the text. A label's name is what follows `__label__`. If every line
has exactly one label, rows have one label each; otherwise, or if the options name a separator, rows have sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.datasets.formats.format import Format, Reference
from app.descriptions import Shape

if TYPE_CHECKING:
    from app.datasets.schemas import ImportOptions
    from app.formats.table import Parsed, Problems

PREFIX = "__label__"


def _is_fasttext(lines: Sequence[str], labels: frozenset[str]) -> bool:
    return lines[0].lstrip().startswith(PREFIX)


def parse(path: Path, options: ImportOptions) -> Parsed:
    """Read a file of texts with labels among their words.

    Parameters
    ----------
    path : Path
        The file.
    options : ImportOptions
        With a `label_separator`, which must be a blank, rows have sets of labels in any case.

    Returns
    -------
    Parsed
        Kind "text".

    Raises
    ------
    FormatError
        With the lines that are not UTF-8 or have an empty label; or no line has a label.
    """
    import numpy as np

    from app.formats.label_sets import LabelSets
    from app.formats.table import Parsed, Problems, row_error
    from app.formats.text_rows import TextBlob
    from app.formats.window import Window

    labels, texts, problems = LabelSets(), TextBlob(), Problems()
    line, single, some = 1, options.label_separator is None, False
    with Window(path) as window:
        while unread := window.fill(line):
            end = len(unread) if window.at_end else unread.rfind(b"\n") + 1
            begin, found = line, []
            for line, record in enumerate(unread[:end].removesuffix(b"\n").split(b"\n") if end else [], begin):
                row = _read(record, line, problems)
                if row is not None:
                    found.append((line, *row))
            line = begin + unread.count(b"\n", 0, end) + (1 if end and not unread.endswith(b"\n", 0, end) else 0)
            single = single and all(len(names) == 1 for _, names, _ in found)
            some = some or any(names for _, names, _ in found)
            lines = np.array([at for at, _, _ in found], dtype=np.int64)
            labels.add_sets(np.arange(len(found)), [names for _, names, _ in found], lines, problems)
            blob = np.frombuffer(b"".join(text for _, _, text in found), dtype=np.uint8)
            texts.add(blob, np.array([len(text) for _, _, text in found], dtype=np.int64))
            window.consume(end)
    problems.raise_if_any()
    names, y, indptr = labels.build()
    if len(indptr) == 1:
        raise row_error(1, "the file is empty or has only blank lines")
    if not some:
        raise row_error(1, f"no line has a label: labels are words that begin with {PREFIX}")
    return Parsed("text", names, y, texts=texts.build(), label_indptr=None if single else indptr)


def _read(record: bytes, line: int, problems: Problems) -> tuple[list[str], bytes] | None:
    """The labels and the text of a line; None for a blank one, and where the problem is noted."""
    if not record or record.isspace():
        return None
    try:
        words = record.decode().split()
    except UnicodeDecodeError:
        problems.add(line, "not valid UTF-8")
        return None
    labels = [word.removeprefix(PREFIX) for word in words if word.startswith(PREFIX)]
    if "" in labels:
        problems.add(line, f"{PREFIX} without a name", "label")
        return None
    return labels, " ".join(word for word in words if not word.startswith(PREFIX)).encode()


FASTTEXT = Format(
    "fasttext",
    "fastText",
    f"{__name__}:parse",
    frozenset({"label_separator", "languages", "encoding"}),
    Reference(
        "`__label__a __label__b a text`, one row per line; labels may be anywhere in the line",
        "`__label__` words: one label per row if every line has exactly one, otherwise sets (always with "
        '`label_separator=" "`)',
    ),
    (
        Shape("fastText, one label a line", "good.fasttext"),
        Shape("fastText, several labels a line", "sets.fasttext"),
    ),
    recognises=_is_fasttext,
    fixed={"label_separator": (" ", "labels are separated by blanks")},
)
