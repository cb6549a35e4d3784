"""Tables of codes as publishers of classifications ship them: no column of parents, for the codes say these.

A code is below the longest other code that it begins with: ISCO's 2, 25, 251, 2512. Dots, hyphens and blanks within do
not count, as in NACE's 01, 01.1, 01.11; there letters are sections, each above the divisions that follow. A
range, `31-33`, is above what begins with any of its numbers. Codes of equal length filled up with zeros, as UNSPSC's
10101500, are below the one with their last digits, or last pair of digits, taken away. Tables with columns for each
level, as `Segment, Segment Title, Family, Family Title`, hold a whole path in each row. What is not certain is refused.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from app.formats.hierarchies.code_levels import Code, Parents, found_parents
from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.source import (
    DELIMITERS,
    Bounds,
    delimiter_name,
    head_lines,
    header_cells,
    read_text,
    table_rows,
)
from app.formats.hierarchies.vocabulary import Label, Names, Vocabulary
from app.formats.table import row_error, shorten
from app.hierarchies.schemas import HierarchyOptions
from app.plurals import counted
from app.values import normalized
from solvers.labels.taxonomy import ROOT

_TITLES = ("title", "name", "label", "description", "heading", "text")
_CODE = re.compile(r"(?:.*[\s_])?(?:code|id|identifier|notation)", re.IGNORECASE)
_TITLE = re.compile(rf"(?:.*[\s_])?(?:{'|'.join(_TITLES)})", re.IGNORECASE)
_IN_LANGUAGE = re.compile(rf"(?:{'|'.join(_TITLES)})[ _@-]([A-Za-z]{{2}})", re.IGNORECASE)
_PARENT = re.compile(r"(?:.*[\s_])?parent(?:[\s_]?(?:id|code|key))?", re.IGNORECASE)
_LEVEL = re.compile(r"level|hierarch(?:y|ical) level", re.IGNORECASE)
# of GS1's classification, whose attributes are below many bricks
_NO_LEVEL = "attribute"


class _Pair(NamedTuple):
    """The columns of one level: its code and its name."""

    code: int
    title: int
    stem: str


@dataclass(frozen=True)
class _Layout:
    """Where the columns of interest are."""

    line: int
    delimiter: str
    header: Sequence[str]
    code: int
    names: Mapping[str | None, int]
    level: int | None
    pairs: Sequence[_Pair]


def parse_codes(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    """Read a table of codes; raises FormatError."""
    text = read_text(path)
    layout = _layout(text, options)
    edges = Edges(ROOT, bounds, options.tree)
    names: dict[str, Names] = {}
    reported = {"delimiter": delimiter_name(layout.delimiter), "header": str(layout.line)}
    if layout.pairs:
        _read_levels(text, layout, options, edges, names)
        reported["parents"] = "columns " + ", ".join(layout.header[pair.code] for pair in layout.pairs)
    else:
        codes = _read_codes(text, layout, options, edges, names)
        found = found_parents(codes, _lengths(options), edges.fault)
        for code in codes:
            edges.add(found.of.get(code.name) or ROOT, code.name, code.line)
        _check_levels(codes, found, edges)
        reported |= {"label": layout.header[layout.code], "parents": found.rule}
        reported["names"] = ", ".join(layout.header[at] for at in layout.names.values())
    labels = {
        code: Label(names=each.preferred, alternatives=each.alternatives)
        for code, each in names.items()
        if each.preferred
    }
    return Vocabulary(edges.build(), labels, dropped=edges.dropped, read_as={k: v for k, v in reported.items() if v})


def _read_codes(
    text: str, layout: _Layout, options: HierarchyOptions, edges: Edges, names: dict[str, Names]
) -> list[Code]:
    codes: list[Code] = []
    for line, row in _filled(text, layout, edges):
        name = normalized(row[layout.code])
        if not name:
            edges.fault(line, "the code is empty", layout.header[layout.code])
            continue
        if name in names:
            edges.fault(line, f"the code '{shorten(name)}' is given twice", layout.header[layout.code])
            continue
        _name(names, name, [(row[at], language) for language, at in layout.names.items()], options)
        level = "" if layout.level is None else row[layout.level].strip()
        codes.append(Code(name, line, int(level) if level.isdecimal() and len(level) < 4 else None))
    return codes


def _read_levels(text: str, layout: _Layout, options: HierarchyOptions, edges: Edges, names: dict[str, Names]) -> None:
    for line, row in _filled(text, layout, edges):
        path = [(normalized(row[pair.code]), row[pair.title], pair) for pair in layout.pairs]
        while path and not path[-1][0]:
            path.pop()
        empty = next((pair for code, _, pair in path if not code), None)
        if empty is not None or not path:
            detail = "the code is empty, but codes of lower levels follow" if path else "the row has no code"
            edges.fault(line, detail, layout.header[(empty or layout.pairs[0]).code])
            continue
        parent = ROOT
        for code, title, _ in path:
            edges.add(parent, code, line, repeats=True)
            _name(names, code, [(title, None)], options)
            parent = code


def _lengths(options: HierarchyOptions) -> list[int] | None:
    return None if options.code_lengths is None else sorted({int(each) for each in options.code_lengths.split(",")})


def _filled(text: str, layout: _Layout, edges: Edges) -> list[tuple[int, list[str]]]:
    """The rows below the header that are not blank, filled up to its width; longer ones are faults."""
    found, width = [], len(layout.header)
    for line, row in table_rows(text, layout.line, layout.delimiter):
        if line <= layout.line or not any(cell.strip() for cell in row):
            continue
        if any(cell.strip() for cell in row[width:]):
            edges.fault(line, f"{counted(len(row), 'cell')}, expected {width} as in the header")
        else:
            found.append((line, row + [""] * (width - len(row))))
    return found


def _name(
    names: dict[str, Names], code: str, given: Sequence[tuple[str, str | None]], options: HierarchyOptions
) -> None:
    languages = options.languages.split(",") if options.languages else None
    known = names.setdefault(code, Names(languages))
    for name, language in given:
        known.prefer(name, language or options.language)


def _check_levels(codes: Sequence[Code], found: Parents, edges: Edges) -> None:
    """Compare the levels that a column gives with those that the codes come to."""
    if not codes or any(code.level is None for code in codes):
        return
    levels = found.levels()
    offset = min(code.level or 0 for code in codes) - 1
    for code in codes:
        level = levels.get(code.name, 1) + offset
        if code.level != level:
            above = found.of.get(code.name)
            place = f"below '{shorten(above)}'" if above else "at the top"
            detail = f"the table says level {code.level} of '{shorten(code.name)}'"
            edges.fault(code.line, f"{detail}; by its code it is {place}, at level {level}", "level")


def _layout(text: str, options: HierarchyOptions) -> _Layout:
    """Find the header; raises FormatError where none of the first lines has the columns."""
    lines = head_lines(text)
    given = None if options.delimiter is None else DELIMITERS[options.delimiter]
    for number, line in enumerate(lines, 1):
        for delimiter in DELIMITERS.values() if given is None else [given]:
            header = header_cells(line, delimiter)
            if header is not None and len(header) > 1:
                found = _columns(number, header, delimiter, options)
                if found is not None:
                    return found
    first = next(number for number, line in enumerate(lines, 1) if line.strip())
    delimiter = given or max(DELIMITERS.values(), key=lines[first - 1].count)
    named = ", ".join(f"'{shorten(cell.strip())}'" for cell in lines[first - 1].split(delimiter)[:8])
    raise row_error(
        first,
        f"the header is {named}; it needs one column of codes (as Code) and one of names (as Title), or these for each "
        "level: pass id_field and name_field for other column names",
    )


def _columns(line: int, header: Sequence[str], delimiter: str, options: HierarchyOptions) -> _Layout | None:
    pairs = [] if options.id_field or options.name_field else _pairs(header)
    if len(pairs) > 1:
        return _Layout(line, delimiter, header, pairs[0].code, {}, None, pairs)
    code = _only(header, options.id_field, _CODE)
    names: dict[str | None, int] = {}
    for at, cell in enumerate(header):
        match = _IN_LANGUAGE.fullmatch(cell) if options.name_field is None else None
        if match is not None:
            names.setdefault(match[1].lower(), at)
    title = None if names else _only(header, options.name_field, _TITLE)
    if title is not None:
        names[None] = title
    if code is None or not names or code in names.values():
        return None
    parent = next((cell for cell in header if _PARENT.fullmatch(cell)), None)
    if parent is not None:
        detail = f"the table has a column of parents, '{shorten(parent)}': upload it with format=csv"
        raise row_error(line, detail, parent)
    level = next((at for at, cell in enumerate(header) if _LEVEL.fullmatch(cell)), None)
    return _Layout(line, delimiter, header, code, names, level, ())


def _only(header: Sequence[str], given: str | None, usual: re.Pattern[str]) -> int | None:
    """The column of a name; of usual names the exact one, else the only one that ends so."""
    if given is not None:
        return header.index(given) if header.count(given) == 1 else None
    fitting = [at for at, cell in enumerate(header) if usual.fullmatch(cell)]
    exact = [at for at in fitting if not re.search(r"[\s_]", header[at])]
    if usual is _TITLE and len(exact) > 1:  # a title comes before a description
        exact = sorted(exact, key=lambda at: _TITLES.index(header[at].casefold()))[:1]
    return (exact or fitting)[0] if len(exact or fitting) == 1 else None


def _pairs(header: Sequence[str]) -> list[_Pair]:
    """Columns of codes with columns of their names, as `Family` or `FamilyCode` with `Family Title`."""
    plain = [re.sub(r"[\s_-]", "", cell).casefold() for cell in header]
    found: list[_Pair] = []
    for at, cell in enumerate(plain):
        stem = re.sub(r"(?:code|id|number)$", "", cell)
        title = next((plain.index(stem + each) for each in _TITLES if stem + each in plain), None)
        if stem and title is not None and title != at and not stem.startswith(_NO_LEVEL):
            found.append(_Pair(at, title, stem))
    return found
