"""Paths: one label a line, as `comp.sys.mac`, whose beginnings `comp` and `comp.sys` are the nodes above it.

A node's name is its whole path, as labels have it. Nodes above others need no line of their own.
"""

from __future__ import annotations

from pathlib import Path

from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.source import numbered_lines
from app.formats.table import shorten
from app.schemas.hierarchies import HierarchyOptions
from solvers.labels.taxonomy import ROOT, Taxonomy


def parse_paths(path: Path, options: HierarchyOptions) -> Taxonomy:
    """Read a file of paths; raises FormatError."""
    edges = Edges()
    first: dict[str, int] = {}
    for line, text in numbered_lines(path):
        if first.setdefault(text, line) != line:
            edges.fault(line, f"'{shorten(text)}' is given twice, first on line {first[text]}")
            continue
        parts = text.split(options.separator)
        if not all(part.strip() for part in parts):
            edges.fault(line, f"'{shorten(text)}' has an empty part between its '{options.separator}'")
            continue
        above = ROOT
        for end in range(1, len(parts) + 1):
            name = options.separator.join(parts[:end])
            edges.add(above, name, line, repeats=True)
            above = name
    return edges.take()
