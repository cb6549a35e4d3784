"""RCV1's `.hier` files: `parent: CCAT  child: C15  child-description: PERFORMANCE` on each line.

The child of `None` is the top; descriptions are ignored.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from app.descriptions import Shape
from app.hierarchies.formats.format import Format

if TYPE_CHECKING:
    from app.formats.hierarchies.source import Bounds
    from app.formats.hierarchies.vocabulary import Vocabulary
    from app.hierarchies.schemas import HierarchyOptions

_NOTHING = "None"
_LINE = re.compile(r"parent:\s*(\S+)\s+child:\s*(\S+)(?:\s+child-description:.*)?")


def parse(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    """Read an RCV1 hierarchy; raises FormatError."""
    from app.formats.hierarchies.edges import Edges
    from app.formats.hierarchies.source import numbered_lines
    from app.formats.hierarchies.vocabulary import Vocabulary
    from app.formats.table import row_error, shorten

    top: str | None = None
    for line, text in numbered_lines(path):
        match = _LINE.fullmatch(text)
        if match is not None and match[1] == _NOTHING:
            if top is not None:
                detail = f"'{shorten(match[2])}' is a second top besides '{shorten(top)}'; a tree has one top"
                raise row_error(line, detail, "parent")
            top = match[2]
    edges = Edges(options.root or top, bounds, options.tree)
    for line, text in numbered_lines(path):
        match = _LINE.fullmatch(text)
        if match is None:
            edges.fault(line, "not of the form 'parent: A child: B child-description: ...'")
        elif match[1] != _NOTHING:
            edges.add(match[1], match[2], line)
    return Vocabulary(edges.build(), dropped=edges.dropped)


RCV1 = Format(
    "rcv1",
    "RCV1: parent: and child:",
    "lines with parent: and child:",
    f"{__name__}:parse",
    "RCV1's `.hier`: `parent: CCAT  child: C15  child-description: PERFORMANCE`",
    "the child of `None`",
    (Shape("RCV1: topics", "names.rcv1"),),
    endings={".hier": None, ".hier.orig": None, ".hier.expanded": None},
    options=frozenset({"root"}),
    is_simple=True,
)
