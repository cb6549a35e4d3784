"""Edge lists: CSV or TSV with a column of labels and one of their parents; other columns are ignored, but names.

A row whose parent is empty, or is the top's name (`root` unless another is given), names a child of the top. The header
is the first line that has the columns; publishers put titles above it.

A list of labels and names, such as `code,title`, has no parents: all its labels are children of the top.

Annif's vocabularies in TSV have neither header nor parents: a URI, in angle brackets or not, a tab, a name, and perhaps
another tab and a notation. Those in CSV have columns `uri`, `label_LANGUAGE` and perhaps `notation`. All their labels
are children of the top.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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

# what publishers call their columns; a column that is given has to have the name itself
_PARENTS = ("parent", "parent id", "parent code", "parentid", "parentcode")
_LABELS = ("child", "id", "unique id", "code", "identifier")
_NAMES = ("name", "label", "title", "description")
_ANNIF_NAME = re.compile(r"label_[A-Za-z]{2,3}(?:-[A-Za-z0-9-]+)?")
_BRACKETS = re.compile(r"<([^<>\s]+)>")
_URI = re.compile(r"<[^<>\s]+>|[A-Za-z][A-Za-z0-9+.-]*:[^<>\s]+")


@dataclass(frozen=True)
class _Layout:
    """Where the cells of interest are in a row, which has those with a title, and perhaps some without one."""

    line: int
    delimiter: str
    width: int
    n_cells: int
    parent: int | None
    label: int
    notation: int | None
    names: Mapping[str | None, int]
    read_as: Mapping[str, str]
    of_annif: bool = False


def parse_edge_list(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    """Read a CSV file of edges; raises FormatError."""
    top = options.root or ROOT
    text = read_text(path)
    edges = Edges(top, bounds, options.tree, by_name=options.id_field is None)
    labels: dict[str, Label] = {}
    languages = options.languages.split(",") if options.languages else None
    if _is_list_of_uris(text, options):
        return _listed(text, top, edges, options.language, languages)
    layout = _layout(text, options)
    for line, row in table_rows(text, layout.line, layout.delimiter):
        if line <= layout.line or not any(cell.strip() for cell in row):
            continue
        if len(row) < layout.width or any(cell.strip() for cell in row[layout.n_cells :]):
            edges.fault(line, f"{counted(len(row), 'cell')}, expected {layout.width} as in the header")
            continue
        name = normalized(row[layout.label])
        if layout.of_annif:
            name = _BRACKETS.sub(r"\1", name)
        parent = "" if layout.parent is None else row[layout.parent].strip()
        edges.add(parent or top, name, line)
        label = _label(row, layout, options.language, languages)
        if label != Label() and name not in labels:
            labels[name] = label
    tree = edges.build()
    return Vocabulary(tree, labels, dropped=edges.dropped, read_as=layout.read_as)


def _is_list_of_uris(text: str, options: HierarchyOptions) -> bool:
    """Whether the first line is a URI and a name, where no option says that there are columns with titles."""
    if options.delimiter not in (None, "tab") or options.id_field or options.parent_field or options.name_field:
        return False
    first = next((line for line in text.splitlines() if line.strip()), "")
    cells = first.split("\t")
    return len(cells) in (2, 3) and _URI.fullmatch(cells[0].strip()) is not None


def _listed(text: str, top: str, edges: Edges, language: str | None, languages: Sequence[str] | None) -> Vocabulary:
    labels: dict[str, Label] = {}
    for line, record in enumerate(text.splitlines(), 1):
        if not record.strip():
            continue
        uri, *rest = (cell.strip() for cell in record.split("\t"))
        if not 1 <= len(rest) <= 2 or _URI.fullmatch(uri) is None:
            edges.fault(line, f"'{shorten(record)}'; expected a URI, a tab and a name, as in the first line")
            continue
        name = uri.removeprefix("<").removesuffix(">")
        edges.add(top, name, line)
        names = Names(languages)
        names.prefer(rest[0], language)
        notation = (rest[1] or None) if len(rest) == 2 else None
        labels[name] = Label(notation=notation, names=names.preferred)
    return Vocabulary(edges.build(), labels, read_as={"label": "URI", "names": "second cell", "delimiter": "tab"})


def _layout(text: str, options: HierarchyOptions) -> _Layout:
    """Find the header; raises FormatError where none of the first lines has the columns."""
    lines = head_lines(text)
    given = None if options.delimiter is None else DELIMITERS[options.delimiter]
    for number, line in enumerate(lines, 1):
        for delimiter in DELIMITERS.values() if given is None else [given]:
            found = _columns(number, line, delimiter, options)
            if found is not None:
                return found
    first = next(number for number, line in enumerate(lines, 1) if line.strip())
    delimiter = given or max(DELIMITERS.values(), key=lines[first - 1].count)
    named = ", ".join(f"'{shorten(cell.strip())}'" for cell in lines[first - 1].split(delimiter)[:8])
    parent, label = options.parent_field or "parent", options.id_field or "child"
    raise row_error(
        first,
        f"the header is {named}; it needs the columns {parent} and {label}, each once: pass parent_field and id_field "
        "for other column names",
    )


def _columns(line: int, text: str, delimiter: str, options: HierarchyOptions) -> _Layout | None:
    header = header_cells(text, delimiter)
    if header is None:
        return None
    if _is_annif(header, options):
        return _annif_layout(line, header, delimiter)
    parent = _column(header, options.parent_field, _PARENTS)
    label = _column(header, options.id_field, _LABELS)
    if label is None or parent == label or (parent is None and not _is_flat(header, label, options)):
        return None
    notation = None if options.notation_field is None else _column(header, options.notation_field, ())
    name = _column(header, options.name_field, _NAMES)
    stem = options.name_field or (None if name is None else header[name])
    names: dict[str | None, int] = {} if name is None or name == label else {None: name}
    for at, cell in enumerate(header):
        before, _, language = cell.rpartition("@")
        if language and before and before == (stem or "name"):
            names[language] = at
    for option, asked, found in (
        ("notation_field", options.notation_field, notation is not None),
        ("name_field", options.name_field, bool(names)),
    ):
        if asked is not None and not found:
            raise row_error(line, f"the header has no single column '{shorten(asked)}', which {option} names", asked)
    width = max((at + 1 for at, cell in enumerate(header) if cell), default=0)
    reported = {
        "label": header[label],
        "parent": "" if parent is None else header[parent],
        "delimiter": delimiter_name(delimiter),
        "header": str(line),
    }
    reported |= {"names": ", ".join(header[at] for at in names.values())} if names else {}
    return _Layout(line, delimiter, width, len(header), parent, label, notation, names, reported)


def _is_annif(header: Sequence[str], options: HierarchyOptions) -> bool:
    """Whether a header is that of Annif's vocabularies, where no option says what the columns are."""
    asked = options.id_field or options.parent_field or options.name_field or options.notation_field
    others = [cell for cell in header if cell not in ("uri", "notation", "")]
    return not asked and header.count("uri") == 1 and bool(others) and all(map(_ANNIF_NAME.fullmatch, others))


def _annif_layout(line: int, header: Sequence[str], delimiter: str) -> _Layout:
    names: dict[str | None, int] = {cell[6:]: at for at, cell in enumerate(header) if _ANNIF_NAME.fullmatch(cell)}
    label, notation = header.index("uri"), header.index("notation") if "notation" in header else None
    reported = {"label": "uri", "parent": "", "delimiter": delimiter_name(delimiter), "header": str(line)}
    reported["names"] = ", ".join(header[at] for at in names.values())
    width = max(at + 1 for at, cell in enumerate(header) if cell)
    return _Layout(line, delimiter, width, len(header), None, label, notation, names, reported, of_annif=True)


def _is_flat(header: Sequence[str], label: int, options: HierarchyOptions) -> bool:
    """Whether a table without parents has labels and their names alone."""
    name = _column(header, options.name_field, _NAMES)
    if options.parent_field is not None or name is None or name == label:
        return False
    known = {header[label], header[name], options.notation_field, ""}
    return all(cell in known or cell.startswith(f"{header[name]}@") for cell in header)


def _column(header: Sequence[str], given: str | None, usual: Sequence[str]) -> int | None:
    """The one column of that name; of the usual ones, the first that there is."""
    if given is not None:
        return header.index(given) if header.count(given) == 1 else None
    folded = [cell.casefold() for cell in header]
    for name in usual:
        if name in folded:
            return folded.index(name) if folded.count(name) == 1 else None
    return None


def _label(row: Sequence[str], layout: _Layout, language: str, languages: Sequence[str] | None) -> Label:
    names = Names(languages)
    for reported, at in layout.names.items():
        names.prefer(row[at], reported or language)
    notation = None if layout.notation is None else row[layout.notation].strip() or None
    return Label(notation=notation, names=names.preferred)
