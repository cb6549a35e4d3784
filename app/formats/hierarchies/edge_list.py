"""Edge lists: CSV with a header that has the columns `parent` and `child`; others are ignored.

A row whose parent is empty, or is the top's name (`root` unless another is given), names a child of the top.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from app.formats.hierarchies.bounds import Bounds
from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.source import read_text
from app.formats.table import row_error, shorten
from app.schemas.hierarchies import HierarchyOptions
from solvers.labels.taxonomy import ROOT, Taxonomy


def parse_edge_list(path: Path, options: HierarchyOptions, bounds: Bounds) -> Taxonomy:
    """Read a CSV file of edges; raises FormatError."""
    top = options.root or ROOT
    rows = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    edges = Edges(top, bounds)
    try:
        header = [name.strip() for name in next(rows, [])]
        at = [_column(header, name) for name in ("parent", "child")]
        before = rows.line_num
        for row in rows:
            line, before = before + 1, rows.line_num
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                edges.fault(line, f"{len(row)} cells, expected {len(header)} as in the header")
                continue
            parent, child = (row[column] for column in at)
            edges.add(parent.strip() or top, child, line)
    except csv.Error as error:
        raise row_error(rows.line_num, f"not a CSV record: {error}") from None
    return edges.take()


def _column(header: list[str], name: str) -> int:
    if header.count(name) != 1:
        found = ", ".join(f"'{shorten(column)}'" for column in header[:5])
        raise row_error(1, f"the header is {found}; it needs the columns parent and child, each once", name)
    return header.index(name)
