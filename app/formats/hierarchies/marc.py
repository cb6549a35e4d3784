"""Authority records in MARC 21 or MARCXML: headings (150 and others of 1XX) below those that 5XX calls broader.

A label is the record's control number, `(003)001`, or the subfield that `id_field` names, as `035$a`. A field 550 is of
something broader where `$w` begins with g, or `$4` with ob as in the German authority file, and of something narrower
where `$w` begins with h. It names a record by any of its ids (`$0`), else by the heading. Deleted records are retired.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.source import Bounds
from app.formats.hierarchies.vocabulary import Label, Names, Vocabulary
from app.formats.marc import heading
from app.formats.marc_records import Field, MarcRecord, RecordError, read_marc
from app.formats.table import row_error, shorten
from app.hierarchies.schemas import HierarchyOptions
from solvers.labels.taxonomy import ROOT

_KINDS = frozenset({"00", "10", "11", "30", "47", "48", "50", "51", "55", "62"})
_ID_FIELD = re.compile(r"([0-9A-Za-z]{3})(?:\$([0-9a-z]))?")
_IDS = (("024", "a"), ("035", "a"), ("010", "a"))
_GONE = frozenset("dsx")


@dataclass(frozen=True)
class _Authority:
    """A record: its heading with the kind, `50` of a topic; fields 5XX of the records above and below."""

    id: str
    kind: str
    name: str
    line: int
    label: Label
    above: tuple[Field, ...]
    below: tuple[Field, ...]


def parse_marc_authorities(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    """Read a file of authority records; raises FormatError with their numbers, in MARCXML their lines."""
    reading = _Reading(options, bounds)
    read_marc(path, reading.add_record)
    return reading.vocabulary()


class _Reading:
    """Records on their way into a tree."""

    def __init__(self, options: HierarchyOptions, bounds: Bounds) -> None:
        self._options = options
        self._languages = options.languages.split(",") if options.languages else None
        self._edges = Edges(ROOT, bounds, options.tree)
        self._records: dict[str, _Authority] = {}
        self._retired: dict[str, Label] = {}
        self._by_id: dict[str, str] = {}
        self._by_name: dict[tuple[str, str], str] = {}
        self._wanted = None if options.id_field is None else _ID_FIELD.fullmatch(options.id_field)
        if options.id_field is not None and self._wanted is None:
            raise row_error(1, f"'{shorten(options.id_field)}' names no field: expected id_field=035$a or 001")

    def add_record(self, record: MarcRecord | RecordError, line: int) -> None:
        """Take one record, or note what is wrong with it."""
        if isinstance(record, RecordError):
            self._edges.fault(line, str(record))
            return
        if record.leader and record.kind != "z":
            detail = "not an authority record (position 6 of the leader is not 'z')"
            self._edges.fault(line, f"{detail}: upload bibliographic records as a dataset")
            return
        id, top = self._id(record), next(filter(_is_heading, record.fields), None)
        name = "" if top is None else heading(top)
        if not id or not name or top is None:
            field = "heading (field 1XX)" if id else f"id ({self._options.id_field or '001'})"
            self._edges.fault(line, f"the record has no {field}")
        elif id in self._records or id in self._retired:
            self._edges.fault(line, f"the id '{shorten(id)}' is given twice", "id")
        elif record.leader[5:6] in _GONE:
            self._retired[id] = self._label(name, record, deprecated=True)
        else:
            kind = top.tag[1:]
            above, below = (tuple(each for each in record.fields if _points(each, up)) for up in (True, False))
            label = self._label(name, record, deprecated=False)
            self._records[id] = _Authority(id, kind, name, line, label, above, below)
            for other in _ids(record):
                self._by_id.setdefault(other, id)
            self._by_name.setdefault((kind, name), id)

    def vocabulary(self) -> Vocabulary:
        """The tree of the records."""
        parents: dict[str, dict[str, int]] = {id: {} for id in self._records}
        for id, record in self._records.items():
            for parent in self._found(record, record.above):
                parents[id].setdefault(parent, record.line)
            for child in self._found(record, record.below):
                parents[child].setdefault(id, record.line)
        for id, record in self._records.items():
            for parent, line in (parents[id] or {ROOT: record.line}).items():
                self._edges.add(parent, id, line)
        labels = {id: record.label for id, record in self._records.items()}
        return Vocabulary(self._edges.build(), labels, self._retired, self._edges.dropped)

    def _found(self, record: _Authority, fields: tuple[Field, ...]) -> Iterator[str]:
        for field in fields:
            named = heading(field)
            found = next((self._by_id[each] for each in field.select("0") if each in self._by_id), None)
            found = found or self._by_name.get((field.tag[1:], named))
            if found is None:
                detail = f"'{shorten(record.name)}' names '{shorten(named)}' in {field.tag}"
                self._edges.fault(record.line, f"{detail}, but no record of the file has that id or heading")
            else:
                yield found

    def _id(self, record: MarcRecord) -> str:
        if self._wanted is not None:
            tag, code = self._wanted[1], self._wanted[2]
            fields = [field for field in record.fields if field.tag == tag]
            return next((value for field in fields for value in field.select(code or "a")), "") or record.control(tag)
        number, source = record.control("001"), record.control("003")
        return f"({source}){number}" if number and source else number

    def _label(self, name: str, record: MarcRecord, deprecated: bool) -> Label:
        names = Names(self._languages)
        names.prefer(name, self._options.language)
        for field in record.fields:
            if field.tag[:1] == "4" and field.tag[1:] in _KINDS:
                names.also(heading(field), self._options.language)
        return Label(names=names.preferred, alternatives=names.alternatives, deprecated=deprecated)


def _is_heading(field: Field) -> bool:
    return field.tag[:1] == "1" and field.tag[1:] in _KINDS


def _points(field: Field, up: bool) -> bool:
    """Whether a field 5XX is of something broader, or of something narrower."""
    if field.tag[:1] != "5" or field.tag[1:] not in _KINDS:
        return False
    way = next(iter(field.select("w")), "")[:1]
    return (way == "g" or any(code.startswith("ob") for code in field.select("4"))) if up else way == "h"


def _ids(record: MarcRecord) -> Iterator[str]:
    number, source = record.control("001"), record.control("003")
    if number:
        yield from (number, f"({source}){number}")
    for tag, code in _IDS:
        for field in record.fields:
            if field.tag == tag:
                yield from field.select(code)
