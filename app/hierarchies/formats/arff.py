"""The hierarchy of classes in the header of Clus's ARFF files: paths, or edges from a parent to its child.

An attribute of type `hierarchical` lists `01,01/01,01/02`, whose names are whole paths, or, of a graph,
`root/a,a/b,c/b`, whose names are nodes. All of its classes with one slash are edges.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.descriptions import Shape
from app.hierarchies.formats.format import Format

if TYPE_CHECKING:
    from app.formats.hierarchies.source import Bounds
    from app.formats.hierarchies.vocabulary import Vocabulary
    from app.hierarchies.schemas import HierarchyOptions


def parse(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    """Read the header of a file; raises FormatError where it has no hierarchy, or not one that is a tree."""
    from app.formats.arff import SEPARATOR, are_edges, file_header
    from app.formats.hierarchies.edges import Edges
    from app.formats.hierarchies.vocabulary import Vocabulary
    from app.formats.table import row_error
    from solvers.labels.taxonomy import ROOT

    header = file_header(path)
    found = [each for each in header.attributes if each.kind == "hierarchical"]
    if len(found) != 1:
        raise row_error(header.line, f"the header has {len(found)} attributes of type hierarchical, expected one")
    attribute = found[0]
    edges = Edges(ROOT, bounds, options.tree)
    if are_edges(attribute.values):
        for name in attribute.values:
            parent, _, child = name.partition(SEPARATOR)
            edges.add(parent, child, attribute.line)
        return Vocabulary(edges.build(), dropped=edges.dropped, read_as={"classes": "edges"})
    for name in attribute.values:
        parts = name.split(SEPARATOR)
        if len(parts) > bounds.depth:
            raise row_error(attribute.line, f"a path has {len(parts):,} parts, at most {bounds.depth:,} are allowed")
        above = ROOT
        for depth in range(1, len(parts) + 1):
            child = SEPARATOR.join(parts[:depth])
            edges.add(above, child, attribute.line, repeats=True)
            above = child
    return Vocabulary(edges.build(), read_as={"classes": "paths"})


ARFF = Format(
    "arff",
    "ARFF: hierarchical classes of Clus",
    "the hierarchical attribute in the header of a file of Clus",
    f"{__name__}:parse",
    "the attribute of type `hierarchical` in the header of a file of Clus: paths, `01,01/02`, or edges, `root/a,a/b`",
    "above all paths; `root` of edges",
    (Shape("Clus: hierarchy in an ARFF header", "good.arff"),),
    endings={".arff": None},
)
