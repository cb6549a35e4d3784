"""Paths: one label a line, as `comp.sys.mac`, or with an id before it, as `537 - Toys > Puzzles`.

Without ids a node's name is its whole path, as labels have it, and nodes above others need no line of their own. With
ids a label is its id; so every node needs a line, wherever in the file.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from app.formats.hierarchies.edges import MAX_FAULTS, Edges
from app.formats.hierarchies.source import Bounds, numbered_lines, too_many
from app.formats.hierarchies.vocabulary import Label, Names, Vocabulary
from app.formats.label_names import MAX_LABEL
from app.formats.table import Problems, shorten
from app.hierarchies.schemas import HierarchyOptions
from solvers.labels.taxonomy import ROOT

NONE = "none"

_ARROW = " > "
_COMMENT = "#"
_WITH_ID = re.compile(r"(\S+)(\s+[-:]\s+)\S")


class _Layout(NamedTuple):
    """How the lines are to be read; without an id_separator they have no ids."""

    separator: str
    id_separator: str | None


class _Line(NamedTuple):
    """One path and its line."""

    number: int
    text: str


def parse_paths(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    """Read a file of paths; raises FormatError."""
    lines, n_comments = _without_comments(_lines(path, bounds), options.comment)
    layout = _layout(lines, options)
    read_as = {"separator": layout.separator}
    if layout.id_separator is not None:
        read_as["id_separator"] = f" {layout.id_separator.strip()} "
    if n_comments:
        read_as["comments"] = str(n_comments)
    if layout.id_separator is not None:
        return _with_ids(lines, layout, options, bounds, read_as)
    edges = Edges(ROOT, bounds, options.tree)
    first: dict[str, int] = {}
    for line, text in lines:
        if first.setdefault(text, line) != line:
            edges.fault(line, f"'{shorten(text)}' is given twice, first on line {first[text]}")
            continue
        if len(text) > MAX_LABEL:
            # a name is a whole path, so none of them can be longer; and all their beginnings are names as well
            edges.fault(line, f"'{shorten(text)}' has {len(text)} characters, at most {MAX_LABEL} are allowed", "child")
        elif _parts(edges, line, text, layout.separator, bounds) is not None:
            _add(edges, text, layout.separator, line)
    return Vocabulary(edges.build(), read_as=read_as)


def _lines(path: Path, bounds: Bounds) -> list[_Line]:
    lines: list[_Line] = []
    for number, text in numbered_lines(path):
        lines.append(_Line(number, text))
        if len(lines) > bounds.nodes + MAX_FAULTS:  # every line but comments and faulty ones is a node
            raise too_many(number, "nodes", bounds.nodes)
    return lines


def _without_comments(lines: Sequence[_Line], comment: str | None) -> tuple[list[_Line], int]:
    """The lines that are paths, and how many are comments.

    Raises
    ------
    FormatError
        Nobody has said what comments look like, and there is a line that may be one among the paths, or nothing else.
    """
    if comment == NONE:
        return list(lines), 0
    mark = comment or _COMMENT
    paths = [line for line in lines if not line.text.startswith(mark)]
    problems = Problems()
    if not paths:
        problems.add(lines[0].number, f"every line begins with '{mark}'; pass comment=none if these are not comments")
    elif comment is None:
        for line in lines:
            if line.number > paths[0].number and line.text.startswith(mark):
                what = f"'{shorten(line.text)}' begins with '#' among the paths"
                problems.add(line.number, f"{what}: pass comment=# if it is a comment, or comment=none if it is a path")
    problems.raise_if_any()
    return paths, len(lines) - len(paths)


def _layout(lines: Sequence[_Line], options: HierarchyOptions) -> _Layout:
    """What was said about the lines, and the rest as they show it; raises FormatError where they do not agree."""
    arrows = any(_ARROW in line.text for line in lines)
    separator = options.separator or (_ARROW if arrows else ".")
    if options.id_separator is not None:
        return _Layout(separator, None if options.id_separator == NONE else options.id_separator)
    if separator.strip() != _ARROW.strip():
        return _Layout(separator, None)
    marks = [_mark(line.text) for line in lines]
    kinds = {mark for mark in marks if mark is not None}
    if len(kinds) == 1 and None not in marks:
        return _Layout(separator, f" {kinds.pop()} ")
    if not kinds or (marks[0] is None and marks.count(None) > len(marks) // 2):
        return _Layout(separator, None)
    problems = Problems()
    for line, mark in zip(lines, marks, strict=True):
        if mark != marks[0]:
            has = "no id" if mark is None else f"an id before ' {mark} '"
            first = "no id" if marks[0] is None else f"an id before ' {marks[0]} '"
            said = f"the first path seems to have {first}, but this one has {has}"
            problems.add(line.number, f"{said}; pass id_separator, the text between ids and paths, or none")
    problems.raise_if_any()
    raise AssertionError("one of the marks differs")


def _mark(text: str) -> str | None:
    match = _WITH_ID.match(text)
    return None if match is None else match[2].strip()


def _with_ids(
    lines: Sequence[_Line], layout: _Layout, options: HierarchyOptions, bounds: Bounds, read_as: dict[str, str]
) -> Vocabulary:
    edges = Edges(ROOT, bounds, options.tree)
    found: dict[tuple[str, ...], tuple[str, int]] = {}
    for line, text in lines:
        id, _, path = text.partition(layout.id_separator or "")
        id = id.strip()
        if not id or not path.strip():
            edges.fault(line, f"'{shorten(text)}' is not an id and a path with '{layout.id_separator}' between")
            continue
        parts = _parts(edges, line, path.strip(), layout.separator, bounds)
        if parts is None:
            continue
        known = found.setdefault(parts, (id, line))
        if known[1] != line:
            edges.fault(line, f"'{shorten(path.strip())}' is given twice, first on line {known[1]}")
    labels: dict[str, Label] = {}
    for parts, (id, line) in found.items():
        above = found.get(parts[:-1])
        if above is None and len(parts) > 1:
            beginning = layout.separator.join(parts[:-1])
            edges.fault(line, f"'{shorten(beginning)}' has no line of its own and therefore no id", "parent")
            continue
        if id in labels:
            edges.fault(line, f"the id '{shorten(id)}' is given twice", "id")
            continue
        edges.add(ROOT if above is None else above[0], id, line)
        names = Names(options.languages.split(",") if options.languages else None)
        names.prefer(parts[-1], options.language)
        labels[id] = Label(names=names.preferred)
    return Vocabulary(edges.build(), labels, read_as=read_as)


def _parts(edges: Edges, line: int, text: str, separator: str, bounds: Bounds) -> tuple[str, ...] | None:
    """The parts of a path; None, and a fault, where it has empty ones or too many."""
    if text.count(separator) >= bounds.depth:
        n_parts = text.count(separator) + 1
        edges.fault(line, f"'{shorten(text)}' has {n_parts} parts; at most {bounds.depth} levels are allowed")
        return None
    parts = tuple(part.strip() for part in text.split(separator))
    if not all(parts):
        edges.fault(line, f"'{shorten(text)}' has an empty part between its '{separator}'")
        return None
    return parts


def _add(edges: Edges, text: str, separator: str, line: int) -> None:
    """Take a path and what of its beginnings is not there yet: every node is taken once, however many lie below it."""
    new = [text]
    while separator in new[-1] and (above := new[-1].rpartition(separator)[0]) not in edges:
        new.append(above)
    top = new[-1].rpartition(separator)[0] or ROOT
    for parent, name in zip([top, *reversed(new)], reversed(new), strict=False):
        edges.add(parent, name, line, repeats=True)
