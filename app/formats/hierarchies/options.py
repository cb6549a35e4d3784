"""What a caller may say about a hierarchy's file besides its format."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HierarchyOptions:
    """Options of the parsers; each parser uses those that its format knows.

    Attributes
    ----------
    root : str or None
        What the file calls the top of the tree, which is no label. None: `root` in edge lists, the outermost node of
        nested JSON, the child of `None` in RCV1 files, and in LSHTC files the only node without a parent.
    separator : str
        What stands between the parts of a path.
    """

    root: str | None = None
    separator: str = "."
