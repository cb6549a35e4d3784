"""Records in JSON-LD (schema.org, Dublin Core): JSON lines, an array, or a document with `@graph`.

Keys are known by the last part of their address, so `title`, `dcterms:title` and `http://purl.org/dc/terms/title` are
one. Contexts in the file resolve prefixes, terms and languages; those that lie elsewhere are not fetched, and their
terms count as they are written. A subject is its `@id`, else its name. What is described beside the records (persons,
organizations, places, concepts), or has neither text nor labels, is no row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from app.datasets.schemas import ImportOptions
from app.formats.bibliographic import Record, RecordRows, Value, local_name
from app.formats.jsonld_documents import read_documents
from app.formats.table import Parsed, row_error, shorten

_ALIASES = {"id": "@id", "type": "@type"}
_NAMES = ("prefLabel", "name", "label", "title", "value")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-\w+)*|@none")
_MOST_STEPS = 8
_MOST_NESTED = 16

_HEAD_BYTES = 1 << 16

Node = Mapping[str, Any]


def parse_jsonld(path: Path, options: ImportOptions) -> Parsed:
    """Read a file of records.

    Parameters
    ----------
    path : Path
        The file.
    options : ImportOptions
        `text_fields` and `label_fields` name keys; `label_separator` parts the names in one string; `unlabelled` reads
        no labels.

    Returns
    -------
    Parsed
        Kind "text" with sets of labels.

    Raises
    ------
    FormatError
        The file is not JSON, or has records without a text, with the lines on which these begin.
    """
    rows = RecordRows(options)
    of_file = Context()
    known: tuple[Context, object] = (of_file, None)
    line = 0
    for found, outer, line in read_documents(path):
        if isinstance(found, str):
            rows.add(Record(line, fault=found))
            continue
        given = outer if outer is not None else found.get("@context")
        if given != known[1]:  # mostly that of the record before
            known = of_file.extended(given), given
        for record in _records(found, known[0], line, inner=outer is not None):
            rows.add(record)
    if line == 0:
        raise row_error(1, _why_empty(path))
    return rows.build()


def _why_empty(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES).strip()
    if b'"@graph"' in head:
        return "the @graph of the document has no records"
    return "the JSON array has no records" if head else "the file is empty or has only blank lines"


@dataclass(frozen=True)
class Context:
    """What the terms of a document are.

    Attributes
    ----------
    terms : dict of str to str
        The address, or the keyword, that a term is.
    ids, by_language : frozenset of str
        Terms whose strings are addresses, and those whose values are objects of texts by language.
    base, language : str
        What relative addresses begin with, and the language of strings; each empty if it is not known.
    """

    terms: Mapping[str, str] = field(default_factory=lambda: dict(_ALIASES))
    ids: frozenset[str] = frozenset()
    by_language: frozenset[str] = frozenset()
    base: str = ""
    language: str = ""

    def extended(self, given: object) -> Context:
        """With a context as it is written: a list, an object, or an address, which is not looked at."""
        if isinstance(given, list):
            context = self
            for each in given[:_MOST_NESTED]:
                context = context.extended(each) if isinstance(each, dict) else context
            return context
        if not isinstance(given, dict):
            return self
        terms, ids, by_language = dict(self.terms), set(self.ids), set(self.by_language)
        for term, value in given.items():
            address = value.get("@id", term) if isinstance(value, dict) else value
            if isinstance(address, str) and not term.startswith("@"):
                terms[term] = address
            if isinstance(value, dict):
                if value.get("@type") in ("@id", "@vocab"):
                    ids.add(term)
                if value.get("@container") in ("@language", ["@language"]):
                    by_language.add(term)
        base, language = (
            given.get(key, before) for key, before in (("@base", self.base), ("@language", self.language))
        )
        return replace(
            self,
            terms=terms,
            ids=frozenset(ids),
            by_language=frozenset(by_language),
            base=base if isinstance(base, str) else "",
            language=language if isinstance(language, str) else "",
        )

    def key(self, term: str) -> str:
        """The keyword that a key is, else the last part of its address."""
        for _ in range(_MOST_STEPS):
            if term.startswith("@") or self.terms.get(term, term) == term:
                break
            term = self.terms[term]
        return term if term.startswith("@") else local_name(term)

    def address(self, written: str) -> str:
        """An address with its prefix or base resolved."""
        for _ in range(_MOST_STEPS):
            prefix, colon, rest = written.partition(":")
            if not colon or rest.startswith("//") or prefix not in self.terms or self.terms[prefix].startswith("@"):
                break
            written = self.terms[prefix] + rest
        return urljoin(self.base, written) if self.base and not written.startswith("_:") else written


def _records(node: Node, context: Context, line: int, inner: bool) -> Iterator[Record]:
    waiting = [(node, context, inner, 0)]
    while waiting:
        each, of_each, has_own, depth = waiting.pop()
        if has_own and "@context" in each:
            of_each = of_each.extended(each["@context"])
        graphs = [value for key, value in each.items() if of_each.key(key) == "@graph"]
        if not graphs:
            yield _record(each, of_each, line)
        for graph in graphs:
            members = _listed(graph)
            if depth == _MOST_NESTED or not all(isinstance(member, dict) for member in members):
                yield Record(line, fault="its graph has members that are not objects, or graphs in too many graphs")
                continue
            waiting += [(member, of_each, True, depth + 1) for member in reversed(members)]


def _record(node: Node, context: Context, line: int) -> Record:
    record = Record(line)
    try:
        for term, value in node.items():
            key = context.key(term)
            if key == "@id" and isinstance(value, str):
                record.id = context.address(value)
            elif key == "@type":
                record.types = [local_name(context.key(each)) for each in _listed(value) if isinstance(each, str)]
            elif not key.startswith("@"):
                record.fields += [(key, each) for each in _values(value, term, context)]
    except ValueError as error:
        record.fault = str(error)
    return record


def _values(value: Any, term: str, context: Context) -> Iterator[Value]:
    """The values of a key; raises ValueError where one is none."""
    for each in _listed(value):
        if isinstance(each, list):
            raise ValueError(f"the key '{shorten(term)}' has a list in a list")
        if isinstance(each, dict):
            yield from _of_object(each, term, context)
        elif isinstance(each, str) and term in context.ids:
            yield Value(id=context.address(each))
        elif each is not None:
            yield Value(each if isinstance(each, str) else json.dumps(each), "", context.language)


def _of_object(given: Node, term: str, context: Context) -> Iterator[Value]:
    keys = {context.key(key): value for key, value in given.items()}
    if "@value" in keys:
        yield from _literals(keys, context)
        return
    for container in ("@list", "@set"):
        if container in keys:
            inner = keys[container]
            if any(
                isinstance(each, dict) and {"@list", "@set"} & set(map(context.key, each)) for each in _listed(inner)
            ):
                raise ValueError(f"the key '{shorten(term)}' has a list in a list")
            yield from _values(inner, term, context)
            return
    if term in context.by_language or ("@id" not in keys and given and all(map(_LANGUAGE.fullmatch, given))):
        for tag, texts in given.items():
            language = "" if tag == "@none" else tag
            yield from (Value(each, "", language) for each in _listed(texts) if isinstance(each, str))
        return
    id = keys.get("@id", "")
    address = context.address(id) if isinstance(id, str) else ""
    names = next((list(_plain(keys[name], context)) for name in _NAMES if name in keys), [])
    if address.startswith("_:") and not names:
        raise ValueError(
            f"'{shorten(term)}' is the node '{shorten(address)}' elsewhere in the file, which is not read: give it an "
            "address, or write it into the record (JSON-LD framing)"
        )
    if names:
        address = "" if address.startswith("_:") else address
        yield from (name._replace(id=address) for name in names)
    elif address:
        yield Value(id=address)


def _plain(value: Any, context: Context) -> Iterator[Value]:
    for each in _listed(value):
        if isinstance(each, str):
            yield Value(each, "", context.language)
        elif isinstance(each, dict) and "@value" in each:
            yield from _literals(each, context)
        elif isinstance(each, dict):
            tags = filter(_LANGUAGE.fullmatch, each)
            yield from (Value(each[tag], "", tag) for tag in tags if isinstance(each[tag], str))


def _literals(given: Node, context: Context) -> Iterator[Value]:
    """The literal of a value object; none where it is null."""
    value = given["@value"]
    language = given.get("@language", "" if "@type" in given else context.language)
    if value is not None:
        text = value if isinstance(value, str) else json.dumps(value)
        yield Value(text, "", language if isinstance(language, str) else "")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
