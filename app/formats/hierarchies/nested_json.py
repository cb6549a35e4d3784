"""Nested JSON: `{"comp": {"comp.sys": ["mac", "ibm"]}, "rec": null}`, or objects with `name` and `children`.

Children are an object whose keys are names and whose values are children again; a list of names and of
objects; or null. An object whose `name` is a string is a node with that name and `children`; its other keys are
ignored, unless they are said to hold ids, names or notations. If the outermost object is a node, it is the top,
whatever its name; else its keys hang below the top.

Values know their lines, and objects keep duplicate keys. Reading does not recurse, so a deep file is no danger.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.source import Bounds, read_text, too_many
from app.formats.hierarchies.vocabulary import Label, Names, Vocabulary
from app.formats.table import FormatError, row_error, shorten
from app.hierarchies.schemas import HierarchyOptions
from app.values import normalized
from solvers.labels.taxonomy import ROOT

_INTEGER = re.compile(r"-?[0-9]+")
# possessive, so that nothing is remembered for each character of a long string
_TOKEN = re.compile(r'[ \t\r\n]*+([{}\[\]:,]|"(?:[^"\\\x00-\x1f]++|\\.)*+"|[^\s{}\[\]:,"]++|")')
_REST = re.compile(r"\S")
_CLOSING = {"{": "}", "[": "]"}


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


class Entry(NamedTuple):
    """A value with its line and, in an object, its key.

    ``kind`` is its first character, or "literal" for numbers and the like; objects and lists have entries ``inside``,
    all others are ``text``.
    """

    line: int
    key: str
    kind: str
    text: str
    inside: Sequence[Entry]


def load_entries(text: str, bounds: Bounds | None = None) -> Entry:
    """The document that ``text`` spells; raises FormatError, also where it has too many values or brackets."""
    bounds = bounds or Bounds()
    tokens = _Tokens(text)
    whole: list[Entry] = []
    open_: list[tuple[str, list[Entry]]] = []  # brackets and what is in them so far
    current = whole
    n_entries = 0
    while True:
        line, token = tokens.next_token()
        if open_ and token == _CLOSING[open_[-1][0]] and not current:
            open_.pop()
        else:
            key = ""
            n_entries += 1
            if n_entries > bounds.entries:
                raise too_many(line, "values", bounds.entries)
            if open_ and open_[-1][0] == "{":
                key = _string(token, tokens)
                tokens.expect(":")
                _, token = tokens.next_token()
            if token in _CLOSING:
                inner: list[Entry] = []
                current.append(Entry(line, key, token, "", inner))
                open_.append((token, inner))
                if len(open_) > bounds.nesting:
                    raise too_many(line, "brackets in one another", bounds.nesting)
                current = inner
                continue
            current.append(_scalar(token, line, key, tokens))
        while True:
            current = open_[-1][1] if open_ else whole
            if not open_:
                tokens.end()
                return whole[0]
            _, token = tokens.next_token()
            if token == ",":
                break
            if token != _CLOSING[open_[-1][0]]:
                raise tokens.unexpected(token)
            open_.pop()


def _scalar(token: str, line: int, key: str, tokens: _Tokens) -> Entry:
    if token.startswith('"'):
        return Entry(line, key, '"', _string(token, tokens), ())
    try:
        json.loads(token)
    except (ValueError, RecursionError):
        raise tokens.unexpected(token) from None
    return Entry(line, key, "literal", token, ())


def _string(token: str, tokens: _Tokens) -> str:
    if not token.startswith('"'):
        raise tokens.unexpected(token)
    try:
        return str(json.loads(token))
    except ValueError:
        raise row_error(tokens.line, "not JSON: a string is not closed, or has a wrong escape") from None


class _Tokens:
    """The tokens of a JSON text with their lines."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.line = 1

    def next_token(self) -> tuple[int, str]:
        """The next one."""
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise row_error(self.line, "not JSON: the file ends before all brackets are closed")
        self.line += self._text.count("\n", self._at, match.start(1))
        self._at = match.end()
        return self.line, match[1]

    def expect(self, wanted: str) -> None:
        _, token = self.next_token()
        if token != wanted:
            raise self.unexpected(token)

    def end(self) -> None:
        """Nothing but white space may follow."""
        if _REST.search(self._text, self._at):
            raise self.unexpected(self.next_token()[1])

    def unexpected(self, token: str) -> FormatError:
        return row_error(self.line, f"not JSON: '{shorten(token)}' is not expected here")
