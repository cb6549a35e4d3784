"""Files of the Extreme Classification Repository: counts in the first line, then `label,label index:value ...` rows.

The first line has the numbers of rows, features and labels. Labels and indices begin at 0. A row may have no label, and
then begins with a blank or with its first feature. Every row has a set of labels; a label is named by its number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.datasets.formats.format import Format, Reference
from app.descriptions import Shape
from app.plurals import counted

if TYPE_CHECKING:
    from app.datasets.schemas import ImportOptions
    from app.formats.table import Parsed

_MOST_HEADER_BYTES = 1 << 10
_WAYS = "the file may have been cut short, or the count is wrong"
_FIRST = re.compile(r"\d+ +\d+ +\d+ *")
_ROW = re.compile(r"(?:\d+(?:,\d+)*\s+)?\d+:\S")
_COUNTS = re.compile(rb"(\d{1,15}) +(\d{1,15}) +(\d{1,15})\s*")


def _is_xmc(lines: Sequence[str], labels: frozenset[str]) -> bool:
    """A line of three counts, and then a row."""
    row = lines[1].strip() if len(lines) > 1 else ""
    return _FIRST.fullmatch(lines[0].strip()) is not None and _ROW.match(row) is not None


def parse(path: Path, options: ImportOptions) -> Parsed:
    """Read a file of rows with sets of labels.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    Parsed
        Kind "sparse" with sets of labels; X has as many columns as the first line declares.

    Raises
    ------
    FormatError
        The first line has no counts, the rows do not agree with them, or lines break the format.
    """
    import numpy as np
    from scipy.sparse import csr_matrix

    from app.formats.matrix import MAX_INDEX
    from app.formats.svmlight import read_rows
    from app.formats.table import row_error
    from app.formats.window import BOM

    with path.open("rb") as file:
        header = _COUNTS.fullmatch(file.readline(_MOST_HEADER_BYTES).removeprefix(BOM))
    if header is None:
        raise row_error(1, "expected the numbers of rows, features and labels, for example 15539 5000 3993")
    n_rows, n_features, n_labels = map(int, header.groups())
    if not 1 <= n_features <= MAX_INDEX:
        raise row_error(1, f"{counted(n_features, 'feature')}, expected 1 to {MAX_INDEX:,}")
    parsed = read_rows(path, sets=True, zero_based=True, n_header_lines=1)
    assert parsed.X is not None
    if parsed.n_rows != n_rows:
        raise row_error(1, f"the first line declares {counted(n_rows, 'row')}; the file has {parsed.n_rows:,}: {_WAYS}")
    if parsed.X.shape[1] > n_features:
        row = int(np.searchsorted(parsed.X.indptr, parsed.X.indices.argmax(), "right"))
        detail = (
            f"the first line declares {counted(n_features, 'feature')}; the largest index is "
            f"{parsed.X.shape[1] - 1:,}, in row {row:,} after the first line; indices begin at 0"
        )
        raise row_error(1, detail)
    wrong = next((name for name in parsed.labels if not (name.isdigit() and int(name) < n_labels)), None)
    if wrong is not None:
        raise row_error(1, f"the label '{wrong[:40]}' is not a number from 0 to {n_labels - 1}")
    X = parsed.X
    return replace(parsed, X=csr_matrix((X.data, X.indices, X.indptr), shape=(n_rows, n_features)))


XMC = Format(
    "xmc",
    "Extreme classification (XMC)",
    f"{__name__}:parse",
    frozenset({"encoding"}),
    Reference(
        "the Extreme Classification Repository's: `rows features labels` in the first line, then `3,17 0:0.5 4:1`, "
        "numbers from 0",
        "the numbers before the first blank, a set",
    ),
    (Shape("Extreme Classification Repository", "good.xmc"),),
    recognises=_is_xmc,
)
