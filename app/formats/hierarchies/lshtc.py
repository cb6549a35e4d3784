"""LSHTC's `cat_hier.txt`: numbers with white space between, each the parent of the next one.

The challenge's editions have lines of two, a parent and its child, or whole paths from the top downwards; both are
read, and an edge may be repeated.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.source import numbered_lines
from app.formats.table import shorten
from app.schemas.hierarchies import HierarchyOptions
from solvers.labels.taxonomy import Taxonomy


def parse_lshtc(path: Path, options: HierarchyOptions) -> Taxonomy:
    """Read an LSHTC hierarchy; raises FormatError."""
    edges = Edges(options.root)
    for line, text in numbered_lines(path):
        names = text.split()
        if len(names) < 2:
            edges.fault(line, f"'{shorten(text)}' stands alone; a parent and its child, or a path, was expected")
        for parent, child in pairwise(names):
            edges.add(parent, child, line, repeats=True)
    return edges.take()
