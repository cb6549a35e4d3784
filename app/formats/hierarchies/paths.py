"""Paths: one label a line, as `comp.sys.mac`, whose beginnings `comp` and `comp.sys` are the nodes above it.

A node's name is its whole path, as labels have it. Nodes above others need no line of their own.
"""

from __future__ import annotations

from pathlib import Path

from app.formats.hierarchies.bounds import Bounds
from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.source import numbered_lines
from app.formats.labels import MAX_LABEL
from app.formats.table import shorten
from app.schemas.hierarchies import HierarchyOptions
from solvers.labels.taxonomy import ROOT, Taxonomy


def parse_paths(path: Path, options: HierarchyOptions, bounds: Bounds) -> Taxonomy:
    """Read a file of paths; raises FormatError."""
    edges = Edges(ROOT, bounds)
    first: dict[str, int] = {}
    for line, text in numbered_lines(path):
        if first.setdefault(text, line) != line:
            edges.fault(line, f"'{shorten(text)}' is given twice, first on line {first[text]}")
            continue
        if len(text) > MAX_LABEL:
            # a name is a whole path, so none of them can be longer; and all their beginnings are names as well
            edges.fault(line, f"'{shorten(text)}' has {len(text)} characters, at most {MAX_LABEL} are allowed", "child")
            continue
        parts = text.split(options.separator)
        if not all(part.strip() for part in parts):
            edges.fault(line, f"'{shorten(text)}' has an empty part between its '{options.separator}'")
            continue
        if len(parts) > bounds.depth:
            edges.fault(line, f"'{shorten(text)}' has {len(parts)} parts, at most {bounds.depth} levels are allowed")
            continue
        _add(edges, text, options.separator, line)
    return edges.take()


def _add(edges: Edges, text: str, separator: str, line: int) -> None:
    """Take a path and what of its beginnings is not there yet: every node is taken once, however many lie below it."""
    new = [text]
    while separator in new[-1] and (above := new[-1].rpartition(separator)[0]) not in edges:
        new.append(above)
    top = new[-1].rpartition(separator)[0] or ROOT
    for parent, name in zip([top, *reversed(new)], reversed(new), strict=False):
        edges.add(parent, name, line, repeats=True)
