"""LSHTC's `cat_hier.txt`: numbers with white space between, each the parent of the next one.

The challenge's editions have lines of two, a parent and its child, or whole paths from the top downwards; both are
read, and an edge may be repeated.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from app.formats.hierarchies.bounds import Bounds
from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.source import numbered_lines
from app.formats.hierarchies.vocabulary import Vocabulary
from app.formats.table import shorten
from app.hierarchies.schemas import HierarchyOptions

_NAME = re.compile(r"\S+")


def parse_lshtc(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    """Read an LSHTC hierarchy; raises FormatError."""
    edges = Edges(options.root, bounds, options.tree)
    for line, text in numbered_lines(path):
        alone = True
        for parent, child in pairwise(name[0] for name in _NAME.finditer(text)):
            edges.add(parent, child, line, repeats=True)
            alone = False
        if alone:
            edges.fault(line, f"'{shorten(text)}' is alone on its line; expected a parent and its child, or a path")
    return Vocabulary(edges.build(), dropped=edges.dropped)
