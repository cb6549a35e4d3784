"""OBO: the terms of an ontology, each below those that it `is_a`; other relationships are left aside.

A term's label is its id. Obsolete terms are retired, with the terms that replace them.
"""

import re
from pathlib import Path

import fastobo

from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.source import Bounds, read_text
from app.formats.hierarchies.vocabulary import Label, Names, Vocabulary
from app.formats.table import row_error, shorten
from app.hierarchies.schemas import HierarchyOptions
from solvers.labels.taxonomy import ROOT

_ID = re.compile(r"id:\s*(\S+)")


def parse_obo(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    """Read an OBO file; raises FormatError."""
    text = read_text(path)
    try:
        document = fastobo.loads(text)
    except SyntaxError as error:
        raise row_error(error.lineno or 1, f"not OBO: {error.msg}") from None
    except ValueError as error:
        raise row_error(1, f"not OBO: {shorten(str(error))}") from None
    except BaseException as error:
        # some faults end in a panic of fastobo's, which is no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise row_error(1, "not OBO: a line has no tag, or a value of the wrong form") from None
    lines = _lines(text)
    edges = Edges(ROOT, bounds, options.tree)
    labels: dict[str, Label] = {}
    retired: dict[str, Label] = {}
    above: dict[str, list[str]] = {}
    merged: dict[str, list[str]] = {}
    languages = options.languages.split(",") if options.languages else None
    for frame in document:
        if not isinstance(frame, fastobo.term.TermFrame):
            continue
        id = str(frame.id)
        line = lines.get(id, 1)
        if id in labels or id in retired:
            edges.fault(line, f"the term '{shorten(id)}' is given twice", "id")
            continue
        parents, label = _term(frame, options.language, languages)
        for clause in frame:
            if clause.raw_tag() == "alt_id":
                merged.setdefault(str(clause.alt_id), []).append(id)
        if label.deprecated and not parents:
            retired[id] = label
            continue
        labels[id] = label
        above[id] = parents
    for id, parents in above.items():
        for parent in parents or [ROOT]:
            if parent == ROOT or parent in labels:
                edges.add(parent, id, lines.get(id, 1))
            else:
                state = "obsolete" if parent in retired else "no term of the file"
                edges.fault(lines.get(id, 1), f"'{shorten(id)}' is below '{shorten(parent)}', which is {state}", "is_a")
    for id, into in merged.items():
        if id not in labels:
            retired.setdefault(id, Label(deprecated=True, replaced_by=into))
    return Vocabulary(edges.build(), labels, retired, edges.dropped)


def _term(frame: fastobo.term.TermFrame, language: str, languages: list[str] | None) -> tuple[list[str], Label]:
    """What a term is below of, and what is said of it."""
    parents: list[str] = []
    replaced: list[str] = []
    names = Names(languages)
    deprecated = False
    for clause in frame:
        tag = clause.raw_tag()
        if tag == "is_a":
            parents.append(str(clause.term))
        elif tag == "name":
            names.prefer(clause.name, language)
        elif tag == "synonym":
            names.also(clause.synonym.desc, language)
        elif tag == "is_obsolete":
            deprecated = clause.obsolete
        elif tag == "replaced_by":
            replaced.append(str(clause.term))
    return parents, Label(
        names=names.preferred, alternatives=names.alternatives, deprecated=deprecated, replaced_by=replaced
    )


def _lines(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _ID.match(line)
        if match is not None:
            found.setdefault(match[1], number)
    return found
