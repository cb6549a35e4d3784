"""RDF files as graphs: rdflib reads them, nothing is fetched, and faults have their lines as far as these are known."""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.handler import ContentHandler

import rdflib
from rdflib.plugins.parsers.notation3 import BadSyntax

from app.formats.hierarchies.source import Bounds, read_text, too_many
from app.formats.table import FormatError, row_error, shorten
from app.formats.window import BOM
from app.formats.xml_document import read_xml
from app.hierarchies.schemas import HierarchyOptions

# what relative addresses become where neither the file nor the request has a base; nothing may be there
NO_BASE = "http://no-base.invalid/"

_XML = re.compile(rb"<(\?xml|rdf:|!--|!DOCTYPE)")
_JSON = re.compile(rb'\{|\[\s*[{"]')
_SEVERAL_GRAPHS = frozenset({"json-ld", "trig", "nquads", "trix", "hext"})
_PLACE = re.compile(r":(\d+):\d+: *(.*)", re.DOTALL)
_INVALID_LINE = re.compile(r"Invalid line[^\n]*:\s*(?P<line>'.*'|\".*\")", re.DOTALL)
_TERM = re.compile(r"[^\s<>\"'/#:;,()\[\]{}]+")
_FIRST_TERM = re.compile(r"\s*(<[^\s>]*>|[^\s<>\"]+)")

# it warns of addresses and dates that are not quite right, which are none of ours
logging.getLogger("rdflib").setLevel(logging.CRITICAL)


def load_graph(path: Path, options: HierarchyOptions, bounds: Bounds) -> tuple[rdflib.Graph, str]:
    """The triples of a file, those of all its graphs together, and the syntax that they are written in.

    Raises
    ------
    FormatError
        The file is not what its syntax says, has too many statements, or names a context that lies elsewhere.
    """
    syntax = options.syntax or _syntax(path)
    content: str | bytes = path.read_bytes().removeprefix(BOM) if syntax in ("xml", "trix") else read_text(path)
    graph = rdflib.Dataset(default_union=True) if syntax in _SEVERAL_GRAPHS else rdflib.Graph()
    if isinstance(content, bytes):
        read_xml(path, ContentHandler())
    elif syntax == "json-ld":
        _check_contexts(content)
    # N-Triples are Turtle, whose parser knows its lines
    reads_as = "turtle" if syntax == "nt" else syntax
    rdflib.NORMALIZE_LITERALS = False
    try:
        graph.parse(data=content, format=reads_as, publicID=options.base or NO_BASE)
    except MemoryError:
        raise
    except Exception as error:  # whatever the parsers raise, the file is not what it says
        raise _not_rdf(error, syntax, content) from None
    most = 64 * bounds.nodes
    if len(graph) > most:
        raise too_many(1, "statements", most)
    return graph, syntax


def first_lines(path: Path, wanted: set[str]) -> dict[str, int]:
    """Where a file mentions addresses for the first time: on the line that they begin, if they begin any.

    Parameters
    ----------
    wanted : set of str
        Last parts of addresses, which a file spells out whatever it abbreviates.
    """
    begun: dict[str, int] = {}
    mentioned: dict[str, int] = {}
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            first = _FIRST_TERM.match(line)
            begins = set(_TERM.findall(first[1])) if first else set()
            about = "rdf:about" in line
            for term in _TERM.findall(line):
                if term in wanted:
                    mentioned.setdefault(term, number)
                    if about or term in begins:
                        begun.setdefault(term, number)
    return mentioned | begun


def last_part(address: str) -> str:
    """What follows the last / # or : of an address."""
    terms = _TERM.findall(address)
    return terms[-1] if terms else address


def _syntax(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(4096).removeprefix(BOM).lstrip()
    if _XML.match(head):
        return "xml"
    return "json-ld" if _JSON.match(head) else "turtle"


def _check_contexts(text: str) -> None:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise row_error(error.lineno, f"not JSON: {error.msg}") from None
    except RecursionError:
        raise row_error(1, "not JSON-LD: brackets are nested too deeply") from None
    for address in _remote_contexts(document):
        line = 1 + text.count("\n", 0, max(0, text.find(json.dumps(address))))
        raise row_error(
            line, f"the context '{shorten(address)}' is external and is not fetched: write it into the file"
        )


def _remote_contexts(document: Any) -> Iterator[str]:
    # with each value, whether it is a context: lists of them may hold lists, whatever the standard says
    waiting = [(document, False)]
    while waiting:
        value, is_context = waiting.pop()
        if isinstance(value, list):
            waiting += [(each, is_context) for each in value]
        elif isinstance(value, dict):
            waiting += [(inner, key in ("@context", "@import")) for key, inner in value.items()]
        elif is_context and isinstance(value, str):
            yield value


def _not_rdf(error: Exception, syntax: str, content: str | bytes) -> FormatError:
    if isinstance(error, BadSyntax):
        # its own count of lines counts some twice
        read: Any = getattr(error, "_str", "")
        read = read.decode("utf-8", "replace") if isinstance(read, bytes) else read
        line = 1 + read[: getattr(error, "_i", 0)].rstrip().count("\n")
        return row_error(line, f"not {syntax}: {shorten(str(getattr(error, '_why', '')))}")
    if isinstance(error, RecursionError):
        return row_error(1, f"not {syntax}: brackets are nested too deeply")
    said = str(error)
    place = _PLACE.search(said)
    if place is not None:
        return row_error(int(place[1]), f"not RDF in {syntax}: {_short(place[2])}")
    invalid = _INVALID_LINE.search(said)
    if invalid is not None and isinstance(content, str):
        quoted = invalid["line"][1:-1].encode().decode("unicode_escape", "replace")
        at = content.find(quoted[:40].strip()) if quoted.strip() else -1
        return row_error(1 + content.count("\n", 0, max(0, at)), f"not {syntax}: '{shorten(quoted.strip())}'")
    return row_error(1, f"not RDF in {syntax}: {_short(said) or type(error).__name__}")


def _short(text: str) -> str:
    return shorten(" ".join(text.split()))
