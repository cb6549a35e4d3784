"""RCV1's `.hier` files: `parent: CCAT  child: C15  child-description: PERFORMANCE` on each line.

The child of `None` is the top; descriptions are ignored.
"""

from __future__ import annotations

import re
from pathlib import Path

from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.source import numbered_lines
from app.formats.table import row_error
from app.schemas.hierarchies import HierarchyOptions
from solvers.labels.taxonomy import Taxonomy

_NOTHING = "None"
_LINE = re.compile(r"parent:\s*(\S+)\s+child:\s*(\S+)(?:\s+child-description:.*)?")


def parse_rcv1(path: Path, options: HierarchyOptions) -> Taxonomy:
    """Read an RCV1 hierarchy; raises FormatError."""
    found = [(line, _LINE.fullmatch(text)) for line, text in numbered_lines(path)]
    tops = [(line, match[2]) for line, match in found if match is not None and match[1] == _NOTHING]
    if len(tops) > 1:
        line, name = tops[1]
        raise row_error(line, f"'{name}' is a second top beside '{tops[0][1]}'; a tree has one", "parent")
    edges = Edges(options.root or (tops[0][1] if tops else None))
    for line, match in found:
        if match is None:
            edges.fault(line, "not of the form 'parent: A child: B child-description: ...'")
        elif match[1] != _NOTHING:
            edges.add(match[1], match[2], line)
    return edges.take()
