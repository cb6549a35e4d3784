"""Files of the Extreme Classification Repository: counts in the first line, then `label,label index:value ...` rows.

The first line has the numbers of rows, features and labels. Labels and indices begin at 0. A row may have no label, and
then begins with a blank or with its first feature. Every row has a set of labels; a label is named by its number.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from app.datasets.schemas import ImportOptions
from app.formats.matrix import MAX_INDEX
from app.formats.svmlight import read_rows
from app.formats.table import Parsed, row_error
from app.formats.window import BOM
from app.plurals import counted

_MOST_HEADER_BYTES = 1 << 10
_WAYS = "the file may have been cut short, or the count is wrong"
_COUNTS = re.compile(rb"(\d{1,15}) +(\d{1,15}) +(\d{1,15})\s*")


def parse_xmc(path: Path, options: ImportOptions) -> Parsed:
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
        detail = (
            f"the first line declares {counted(n_features, 'feature')}; the largest index is "
            f"{parsed.X.shape[1] - 1:,}, in row {_row_of_largest(parsed.X):,} after the first line; indices begin at 0"
        )
        raise row_error(1, detail)
    wrong = next((name for name in parsed.labels if not (name.isdigit() and int(name) < n_labels)), None)
    if wrong is not None:
        raise row_error(1, f"the label '{wrong[:40]}' is not a number from 0 to {n_labels - 1}")
    X = parsed.X
    return replace(parsed, X=csr_matrix((X.data, X.indices, X.indptr), shape=(n_rows, n_features)))


def _row_of_largest(X: csr_matrix[np.float64]) -> int:
    """The first row with the largest index, from 1."""
    return int(np.searchsorted(X.indptr, X.indices.argmax(), "right"))
