"""The formats of hierarchies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from app.formats.hierarchies.bounds import Bounds
from app.formats.hierarchies.edge_list import parse_edge_list
from app.formats.hierarchies.lshtc import parse_lshtc
from app.formats.hierarchies.nested_json import parse_nested_json
from app.formats.hierarchies.paths import parse_paths
from app.formats.hierarchies.rcv1 import parse_rcv1
from app.formats.hierarchies.vocabulary import Vocabulary
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


def parse_hierarchy(
    path: Path, format: str, options: HierarchyOptions | None = None, bounds: Bounds | None = None
) -> Vocabulary:
    """Read a file of labels.

    Parameters
    ----------
    path : Path
        The file; it is read into memory.
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
    parser = HIERARCHY_FORMATS[format]
    found = parser(path, options or HierarchyOptions(), bounds or Bounds())
    require_storable_file(path, escapes=format in ("json", "skos"))
    return found
