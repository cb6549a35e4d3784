"""LSHTC's `cat_hier.txt`: numbers with white space between, each the parent of the next one.

The challenge's editions have lines of two, a parent and its child, or whole paths from the top downwards; both are
read, and an edge may be repeated.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from app.descriptions import Shape
from app.hierarchies.formats.format import Format

if TYPE_CHECKING:
    from app.formats.hierarchies.source import Bounds
    from app.formats.hierarchies.vocabulary import Vocabulary
    from app.hierarchies.schemas import HierarchyOptions

_NAME = re.compile(r"\S+")


def parse(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    """Read an LSHTC hierarchy; raises FormatError."""
    from app.formats.hierarchies.edges import Edges
    from app.formats.hierarchies.source import numbered_lines
    from app.formats.hierarchies.vocabulary import Vocabulary
    from app.formats.table import shorten

    edges = Edges(options.root, bounds, options.tree)
    for line, text in numbered_lines(path):
        alone = True
        for parent, child in pairwise(name[0] for name in _NAME.finditer(text)):
            edges.add(parent, child, line, repeats=True)
            alone = False
        if alone:
            edges.fault(line, f"'{shorten(text)}' is alone on its line; expected a parent and its child, or a path")
    return Vocabulary(edges.build(), dropped=edges.dropped)


LSHTC = Format(
    "lshtc",
    "LSHTC: cat_hier.txt",
    "cat_hier.txt",
    f"{__name__}:parse",
    "LSHTC's `cat_hier.txt`: a parent and its child, or a whole path, separated by spaces",
    "the only node without a parent",
    (Shape("LSHTC: `cat_hier.txt`", "good.lshtc"),),
    endings={"cat_hier.txt": None},
    options=frozenset({"root"}),
    is_simple=True,
)
