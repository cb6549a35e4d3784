"""Nested JSON: `{"comp": {"comp.sys": ["mac", "ibm"]}, "rec": null}`, or objects with `name` and `children`.

Children are an object whose keys are names and whose values are children again; a list of names and of
objects; or null. An object whose `name` is a string is a node with that name and `children`; its other keys are
ignored, unless they are said to hold ids, names or notations. If the outermost object is a node, it is the top,
whatever its name; else its keys hang below the top.
"""

from __future__ import annotations

import re
from pathlib import Path

from app.formats.hierarchies.bounds import Bounds
from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.json_entries import Entry, load_entries
from app.formats.hierarchies.source import read_text
from app.formats.hierarchies.vocabulary import Label, Names, Vocabulary
from app.formats.table import shorten
from app.hierarchies.schemas import HierarchyOptions
from app.values import normalized
from solvers.labels.taxonomy import ROOT

_INTEGER = re.compile(r"-?[0-9]+")


def parse_nested_json(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    """Read nested JSON; raises FormatError."""
    whole = load_entries(read_text(path), bounds)
    nodes = _Nodes(options)
    edges = Edges(ROOT, bounds, options.tree, by_name=options.id_field is None)
    if nodes.label(whole) is not None:
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
                waiting += _listed(parent, inner, edges, nodes)
        elif entry.text != "null":
            edges.fault(
                entry.line, f"{_type_name(entry)} below '{shorten(parent)}', expected an object, a list or null"
            )
    return Vocabulary(edges.build(), nodes.labels, dropped=edges.dropped)


class _Nodes:
    """Objects that are nodes: their names and other properties."""

    def __init__(self, options: HierarchyOptions) -> None:
        self.id_field = options.id_field
        self._name = options.name_field or "name"
        self._label = options.id_field or self._name
        self._options = options
        self._languages = options.languages.split(",") if options.languages else None
        self.labels: dict[str, Label] = {}

    def label(self, entry: Entry) -> str | None:
        """The label of an object that is a node."""
        return _value(entry, self._label, numbers=self._label != self._name)

    def note(self, entry: Entry, label: str) -> None:
        """Keep the name and the notation of a node."""
        notation = self._options.notation_field
        names = Names(self._languages)
        if self._label != self._name:
            names.prefer(_value(entry, self._name) or "", self._options.language)
        reported = Label(
            notation=None if notation is None else _value(entry, notation, numbers=True), names=names.preferred
        )
        if reported != Label():
            self.labels.setdefault(normalized(label), reported)


def _listed(parent: str, entry: Entry, edges: Edges, nodes: _Nodes) -> list[tuple[str, Entry]]:
    """Take an entry of a list of children; what is to be looked into next, with what it hangs below."""
    name = entry.text if entry.kind == '"' else nodes.label(entry)
    if name is not None:
        edges.add(parent, name, entry.line)
        nodes.note(entry, name)
        return [(name, _children(entry))]
    if entry.kind == "{" and nodes.id_field is None:
        return [(parent, entry)]
    if entry.kind == "{":
        edges.fault(entry.line, f"an object below '{shorten(parent)}' has no '{shorten(nodes.id_field or '')}'")
        return []
    edges.fault(entry.line, f"{_type_name(entry)} in a list below '{shorten(parent)}', expected a name or an object")
    return []


def _value(entry: Entry, key: str, numbers: bool = False) -> str | None:
    """The string, or if ``numbers`` also the whole number, that an object has under a key."""
    if entry.kind != "{":
        return None
    for inner in entry.inside:
        if inner.key == key and (inner.kind == '"' or (numbers and _INTEGER.fullmatch(inner.text))):
            return inner.text
    return None


def _children(node: Entry) -> Entry:
    """What a node, or a name alone, has as children."""
    nothing = Entry(node.line, "", "literal", "null", ())
    return next((inner for inner in node.inside if inner.key == "children"), nothing)


def _type_name(entry: Entry) -> str:
    return {"{": "an object", "[": "a list", '"': "a string"}.get(entry.kind, f"'{shorten(entry.text)}'")
