"""RDF files as graphs: pyoxigraph reads them, nothing is fetched, and faults have their lines where these are known."""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias
from xml.sax.handler import ContentHandler

import pyoxigraph
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat

from app.formats.hierarchies.source import Bounds, read_text, too_many
from app.formats.table import row_error, shorten
from app.formats.window import BOM
from app.formats.xml_document import read_xml
from app.hierarchies.schemas import HierarchyOptions

# what relative addresses become where neither the file nor the request has a base; nothing may be there
NO_BASE = "http://no-base.invalid/"

Node: TypeAlias = NamedNode | BlankNode | Literal

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_FIRST, _REST = NamedNode(_RDF + "first"), NamedNode(_RDF + "rest")
_SYNTAXES = {
    "turtle": RdfFormat.TURTLE,
    "xml": RdfFormat.RDF_XML,
    "json-ld": RdfFormat.JSON_LD,
    "nt": RdfFormat.N_TRIPLES,
    "n3": RdfFormat.N3,
    "trig": RdfFormat.TRIG,
    "nquads": RdfFormat.N_QUADS,
}
_XML = re.compile(rb"<(\?xml|rdf:|!--|!DOCTYPE)")
_JSON = re.compile(rb'\{|\[\s*[{"]')
_PLACE = re.compile(r"^(Parser )?error at line \d+ [a-z0-9 ]*: *", re.IGNORECASE)
_TERM = re.compile(r"[^\s<>\"'/#:;,()\[\]{}]+")
_FIRST_TERM = re.compile(r"\s*(<[^\s>]*>|[^\s<>\"]+)")


class Graph:
    """Triples, each once, in the order of their file; those of all graphs of a file together."""

    def __init__(self) -> None:
        self._objects: dict[tuple[Node, NamedNode], dict[Node, None]] = {}
        self._subjects: dict[tuple[NamedNode, Node], dict[Node, None]] = {}

    def add(self, subject: Node, predicate: NamedNode, value: Node) -> None:
        self._objects.setdefault((subject, predicate), {})[value] = None
        self._subjects.setdefault((predicate, value), {})[subject] = None

    def objects(self, subject: Node, predicate: NamedNode) -> Iterable[Node]:
        return self._objects.get((subject, predicate), ())

    def subjects(self, predicate: NamedNode, value: Node) -> Iterable[Node]:
        return self._subjects.get((predicate, value), ())

    def pairs(self, predicate: NamedNode) -> Iterator[tuple[Node, Node]]:
        """Subjects and objects."""
        for (subject, of), values in self._objects.items():
            if of == predicate:
                yield from ((subject, value) for value in values)

    def items(self, listed: Node) -> Iterator[Node]:
        """What an RDF list has; one that contains itself ends there."""
        seen: set[Node] = set()
        while listed not in seen:
            seen.add(listed)
            yield from self.objects(listed, _FIRST)
            listed = next(iter(self.objects(listed, _REST)), listed)


def load_graph(
    path: Path, options: HierarchyOptions, bounds: Bounds, wanted: Collection[NamedNode]
) -> tuple[Graph, str]:
    """The triples of a file that have one of the ``wanted`` predicates or are of lists, and the file's syntax.

    Raises
    ------
    FormatError
        The file is not what its syntax says, has too many statements, or names a context that lies elsewhere.
    """
    syntax = options.syntax or _syntax(path)
    content: str | bytes = path.read_bytes().removeprefix(BOM) if syntax == "xml" else read_text(path)
    if isinstance(content, bytes):
        read_xml(path, ContentHandler())
    elif syntax == "json-ld":
        _check_contexts(content)
    kept, most, graph = {*wanted, _FIRST, _REST}, 64 * bounds.nodes, Graph()
    base = options.base or NO_BASE
    try:
        # lenient, as many a published file has an address that is not quite right
        for count, triple in enumerate(
            pyoxigraph.parse(content, format=_SYNTAXES[syntax], base_iri=base, lenient=True), 1
        ):
            if count > most:
                raise too_many(1, "statements", most)
            if triple.predicate in kept and not isinstance(triple.object, pyoxigraph.Triple):
                graph.add(triple.subject, triple.predicate, triple.object)
    except SyntaxError as error:
        said = _PLACE.sub("", str(error.msg))
        last = len(content.rstrip().splitlines())
        raise row_error(min(error.lineno or 1, last), f"not {syntax}: {shorten(' '.join(said.split()))}") from None
    except ValueError as error:
        raise row_error(1, f"not {syntax}: {shorten(' '.join(str(error).split()))}") from None
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
