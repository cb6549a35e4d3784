"""Rejects files with U+0000 in texts, ids or names, and vocabularies with halves of surrogate pairs."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.formats.table import FormatError, Parsed, RowError, Texts
from app.json_text import SURROGATE, ZERO, repaired

_BLOCK = 1 << 24
# an odd number of backslashes before it; a pair of halves is one character
_ESCAPED = re.compile(
    rb"(?<!\\)(?:\\\\)*(\\u0000|\\U0{8}|\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]..)"
)


def require_no_zeros(parsed: Parsed, lines_of: Path | None) -> None:
    """Raise FormatError where a text, an id or a name has U+0000.

    Parameters
    ----------
    lines_of : Path or None
        The unpacked file where it consists of lines, whose numbers the error then has; else it has those of rows.
    """
    rows = list(chain(_rows(parsed.texts), _rows(parsed.ids)))
    columns = parsed.columns
    names: Iterable[str] = parsed.feature_names or ()
    if columns is not None:
        names = chain(names, columns.texts, columns.numbers, columns.categories)
    name = next((name for name in names if "\0" in name), None)
    if not rows and name is None:
        return
    found = list(_lines(lines_of)) if lines_of is not None else []
    column = None if name is None else str(repaired(name))[:80]
    raise FormatError([RowError(row, column, ZERO) for row in sorted(set(found or [row + 1 for row in rows] or [1]))])


def require_storable_file(path: Path, escapes: bool) -> None:
    """Raise FormatError with the lines that have U+0000 or, as an escape, half of a surrogate pair.

    Parameters
    ----------
    path : Path
        A file of text.
    escapes : bool
        Whether its format writes characters as ``\\u0000``, too. Raw halves of pairs are no UTF-8.
    """
    if not escapes and not _has_zero(path):
        return
    content = path.read_bytes()
    escapes = escapes and (b"\\u" in content or b"\\U" in content)  # most files have none: no search by pattern
    if b"\0" not in content and not (escapes and _ESCAPED.search(content)):
        return
    errors = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if b"\0" in line:
            errors.append(RowError(number, None, ZERO))
        elif escapes and (escaped := _ESCAPED.search(line)):
            errors.append(RowError(number, None, ZERO if escaped[1].endswith(b"0000") else SURROGATE))
    raise FormatError(errors)


def _has_zero(path: Path) -> bool:
    """Whether a file, of which a block is in memory at a time, has a zero byte."""
    with path.open("rb") as file:
        return any(b"\0" in block for block in iter(lambda: file.read(_BLOCK), b""))


def _rows(texts: Texts | None) -> Iterator[int]:
    """The texts that have a zero byte, by their index."""
    if texts is None:
        return
    for begin in range(0, len(texts.blob), _BLOCK):
        block: npt.NDArray[np.uint8] = texts.blob[begin : begin + _BLOCK]
        if np.count_nonzero(block) < len(block):
            at = begin + np.flatnonzero(block == 0)
            yield from map(int, np.unique(np.searchsorted(texts.offsets, at, side="right") - 1))


def _lines(path: Path) -> Iterator[int]:
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if b"\0" in line or b"\\u0000" in line:
                yield number
