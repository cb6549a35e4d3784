"""Nested JSON: `{"comp": {"comp.sys": ["mac", "ibm"]}, "rec": null}`, or objects with `name` and `children`.

What stands for children is an object whose keys are names and whose values are children again; a list of names and of
objects; or null. An object whose `name` is a string is a node with that name and `children`; its other keys are
ignored. If the outermost object is a node, it is the top, whatever its name; else its keys hang below the top.
"""

from __future__ import annotations

from pathlib import Path

from app.formats.hierarchies.bounds import Bounds
from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.json_entries import Entry, load_entries
from app.formats.hierarchies.source import read_text
from app.formats.table import shorten
from app.schemas.hierarchies import HierarchyOptions
from solvers.labels.taxonomy import ROOT, Taxonomy


def parse_nested_json(path: Path, options: HierarchyOptions, bounds: Bounds) -> Taxonomy:
    """Read nested JSON; raises FormatError."""
    whole = load_entries(read_text(path), bounds)
    edges = Edges(ROOT, bounds)
    if _node_name(whole) is not None:
        whole = _children(whole)
    elif whole.kind == "{" and [inner.key for inner in whole.inside] == [options.root or ROOT]:
        whole = whole.inside[0]
    waiting = [(ROOT, whole)]
    for parent, entry in waiting:  # grows on the way: level by level
        if entry.kind == "{":
            for inner in entry.inside:
                edges.add(parent, inner.key, inner.line)
                waiting.append((inner.key, inner))
        elif entry.kind == "[":
            for inner in entry.inside:
                waiting += _listed(parent, inner, edges)
        elif entry.text != "null":
            edges.fault(entry.line, f"{_spoken(entry)} below '{shorten(parent)}', expected an object, a list or null")
    return edges.take()


def _listed(parent: str, entry: Entry, edges: Edges) -> list[tuple[str, Entry]]:
    """Take an entry of a list of children; what is to be looked into next, with what it hangs below."""
    name = entry.text if entry.kind == '"' else _node_name(entry)
    if name is not None:
        edges.add(parent, name, entry.line)
        return [(name, _children(entry))]
    if entry.kind == "{":
        return [(parent, entry)]
    edges.fault(entry.line, f"{_spoken(entry)} in a list below '{shorten(parent)}', expected a name or an object")
    return []


def _node_name(entry: Entry) -> str | None:
    """The name of an object that is a node."""
    names = [inner.text for inner in entry.inside if inner.key == "name" and inner.kind == '"']
    return names[0] if names and entry.kind == "{" else None


def _children(node: Entry) -> Entry:
    """What a node, or a name alone, has as children."""
    nothing = Entry(node.line, "", "literal", "null", ())
    return next((inner for inner in node.inside if inner.key == "children"), nothing)


def _spoken(entry: Entry) -> str:
    return {"{": "an object", "[": "a list", '"': "a string"}.get(entry.kind, f"'{shorten(entry.text)}'")
