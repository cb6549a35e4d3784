"""The formats of hierarchies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from app.formats.hierarchies.bounds import Bounds
from app.formats.hierarchies.edge_list import parse_edge_list
from app.formats.hierarchies.exclusion import Exclusion
from app.formats.hierarchies.lshtc import parse_lshtc
from app.formats.hierarchies.nested_json import parse_nested_json
from app.formats.hierarchies.paths import parse_paths
from app.formats.hierarchies.rcv1 import parse_rcv1
from app.formats.hierarchies.vocabulary import Vocabulary
from app.formats.plain_file import MostUnpacked
from app.formats.table import row_error
from app.formats.workbooks import as_lines
from app.formats.zeros import require_storable_file
from app.hierarchies.schemas import HierarchyOptions

Parser = Callable[[Path, HierarchyOptions, Bounds], Vocabulary]


def _late(module: str, function: str) -> Parser:
    """A parser whose libraries are loaded when it is first used, so that the API starts without them."""

    def parse(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
        parser: Parser = getattr(import_module(f"app.formats.hierarchies.{module}"), function)
        return parser(path, options, bounds)

    return parse


HIERARCHY_FORMATS: Mapping[str, Parser] = MappingProxyType(
    {
        "json": parse_nested_json,
        "csv": parse_edge_list,
        "lshtc": parse_lshtc,
        "rcv1": parse_rcv1,
        "paths": parse_paths,
        "skos": _late("skos", "parse_skos"),
        "obo": _late("obo", "parse_obo"),
        "claml": _late("claml", "parse_claml"),
        "arff": _late("arff", "parse_arff_hierarchy"),
        "marc": _late("marc", "parse_marc_authorities"),
        "mesh": _late("mesh", "parse_mesh"),
        "codes": _late("codes", "parse_codes"),
    }
)


# those that a sheet of a workbook may hold, and how it is read when it is written as CSV
TABLES = frozenset({"csv", "codes"})
_OF_SHEETS = {"sheet": None, "delimiter": "comma"}


def parse_hierarchy(
    path: Path, format: str, options: HierarchyOptions | None = None, bounds: Bounds | None = None
) -> Vocabulary:
    """Read a file of labels.

    Parameters
    ----------
    path : Path
        The file; it is read into memory. Formats csv and codes take a sheet of a workbook, too; errors then have the
        numbers of its rows.
    format : str
        A name in HIERARCHY_FORMATS.
    options : HierarchyOptions, optional
        What else is known about the file.
    bounds : Bounds, optional
        What the tree may come to.

    Raises
    ------
    FormatError
        With the lines that break the format, keep the edges from being a tree, or have U+0000 or half of a surrogate
        pair.
    KeyError
        If there is no such format.
    """
    options, bounds = options or HierarchyOptions(), bounds or Bounds()
    if format in TABLES and is_workbook(path):
        with as_lines(path, MostUnpacked(n_bytes=bounds.n_bytes), options.sheet) as (sheet, name):
            found = parse_hierarchy(sheet, format, options.model_copy(update=_OF_SHEETS), bounds)
        read_as = {key: value for key, value in found.read_as.items() if key != "delimiter"}
        return replace(found, read_as={"sheet": name, **read_as})
    if options.sheet is not None:
        raise row_error(1, "sheet is an option of workbooks (.xlsx, .ods), and the file is none")
    excluded = Exclusion.parse(options.exclude)
    if format != "skos":
        excluded.require_no_groups(format)
    found = HIERARCHY_FORMATS[format](path, options, bounds)
    require_storable_file(path, escapes=format in ("json", "skos"))
    return found if format == "skos" else excluded.apply(found)


def is_workbook(path: Path) -> bool:
    """Whether a file begins as a workbook does, which is a zip archive."""
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"
