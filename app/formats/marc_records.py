"""MARC 21 records, one at a time: ISO 2709 (in UTF-8 or MARC-8) and MARCXML, also within answers of OAI-PMH and SRU.

In ISO 2709 a record has at most 99,999 bytes: a leader, a directory of fields, and the fields; 0x1D ends it. Errors
count its records from 1. In MARCXML errors have the line on which a record begins.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from app.datasets.formats.marc import LEADER
from app.formats.plain_file import is_xml_in_utf16
from app.formats.table import row_error, shorten
from app.formats.window import BOM, MAX_RECORD_BYTES
from app.formats.xml_document import LocatedHandler, oai_fault, read_xml

_BLOCK_BYTES = 1 << 20
_MOST_BYTES = 99_999
_ENTRY, _LEADER_BYTES = 12, 24
_END, _FIELD_END, _DELIMITER = b"\x1d", b"\x1e", b"\x1f"
# around articles that do not count in sorting
_UNSORTED = dict.fromkeys((0x88, 0x89, 0x98, 0x9C))
_ELEMENT_CHARACTERS = 64
_BETWEEN = b"\r\n\0 \x1a"
_UNICODE_WAY = "convert the file to UTF-8 (yaz-marcdump -f marc8 -t utf8 -l 9=97)"


class RecordError(Exception):
    """What is wrong with one record."""


class Field(NamedTuple):
    """A field: a control field has `data`, all others have indicators and subfields of a code and a value."""

    tag: str
    data: str
    indicators: str
    subfields: Sequence[tuple[str, str]]

    def select(self, codes: str) -> list[str]:
        """The values of subfields with these codes, in the order of the field, without blanks around them."""
        found = (value.translate(_UNSORTED).strip() for code, value in self.subfields if code in codes)
        return [value for value in found if value]


@dataclass
class MarcRecord:
    """A record's leader and its fields in order."""

    leader: str = ""
    fields: list[Field] = field(default_factory=list)

    @property
    def is_deleted(self) -> bool:
        """Whether it says that the record has been deleted."""
        return self.leader[5:6] == "d"

    @property
    def kind(self) -> str:
        """The type of the record: z of an authority, u, v, x or y of holdings, w of a classification."""
        return self.leader[6:7]

    def control(self, tag: str) -> str:
        """The data of a control field; empty where it is not there."""
        return next((each.data.strip() for each in self.fields if each.tag == tag), "")


Take = Callable[["MarcRecord | RecordError", int], None]


def read_marc(path: Path, take: Take) -> None:
    """Give every record of a file to `take`, with its number or line; of a faulty one what is wrong with it.

    Raises
    ------
    FormatError
        The file is neither, or is cut off.
    """
    with path.open("rb") as file:
        begin = file.read(_BLOCK_BYTES)
    head = begin.removeprefix(BOM).lstrip()
    if head.startswith(b"<") or is_xml_in_utf16(begin):
        read_xml(path, _Records(take))
    elif LEADER.match(head[:_LEADER_BYTES].decode("latin-1")):
        for number, raw in enumerate(_raw_records(path), 1):
            try:
                found: MarcRecord | RecordError = _decoded(raw)
            except RecordError as error:
                found = error
            take(found, number)
    elif not head:
        raise row_error(1, "the file is empty or has only blank lines")
    else:
        detail = f"the file begins with '{shorten(head[:_LEADER_BYTES])}': expected the leader of a MARC 21 record, as "
        raise row_error(1, f"{detail}'00714cam a2200205 a 4500', or MARCXML")


def _raw_records(path: Path) -> Iterator[bytes]:
    number, rest = 1, b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            *whole, rest = (rest + block).split(_END)
            for raw in whole:
                yield raw.removeprefix(BOM).lstrip(_BETWEEN)
            number += len(whole)
            if len(rest) > _MOST_BYTES + _LEADER_BYTES:
                raise row_error(number, f"the record does not end within {_MOST_BYTES:,} bytes")
    if rest.strip(_BETWEEN):
        raise row_error(number, "the file ends within a record: it may have been cut short; copy or export it again")


def _decoded(raw: bytes) -> MarcRecord:
    leader = raw[:_LEADER_BYTES].decode("latin-1")
    if LEADER.match(leader) is None:
        raise RecordError(f"'{shorten(leader)}' is not the leader of a MARC 21 record")
    length, base = int(leader[:5]), int(leader[12:17])
    if length != len(raw) + 1:
        raise RecordError(f"the leader gives {length:,} bytes, but the record has {len(raw) + 1:,}")
    if (
        not _LEADER_BYTES < base <= len(raw)
        or (base - 1 - _LEADER_BYTES) % _ENTRY
        or raw[base - 1 : base] != _FIELD_END
    ):
        raise RecordError(f"the leader places the fields at byte {base:,}, but the directory does not end there")
    record, n_bytes = MarcRecord(leader), 0
    for at in range(_LEADER_BYTES, base - 1, _ENTRY):
        tag, place = raw[at : at + 3].decode("latin-1"), raw[at + 3 : at + _ENTRY]
        if not place.isdigit():
            raise RecordError(f"'{shorten(raw[at : at + _ENTRY])}' is not an entry of the directory")
        begin, end = base + int(place[4:]), base + int(place[4:]) + int(place[:4])
        n_bytes += end - begin
        if end > len(raw) or raw[end - 1 : end] != _FIELD_END or begin >= end:
            raise RecordError(f"the field {shorten(tag)} does not end at the length in the directory")
        if n_bytes > len(raw):
            raise RecordError("the directory names the same bytes several times")
        record.fields.append(_field(tag, raw[begin : end - 1], leader[9] == "a"))
    return record


def _field(tag: str, data: bytes, is_unicode: bool) -> Field:
    if tag < "010" and tag.isdigit():
        return Field(tag, _text(data, tag, is_unicode), "", ())
    indicators, *parts = data.split(_DELIMITER)
    subfields = [(chr(part[0]), _text(part[1:], tag, is_unicode)) for part in parts if part]
    return Field(tag, "", indicators.decode("latin-1"), subfields)


def _text(data: bytes, tag: str, is_unicode: bool) -> str:
    if data.isascii() and b"\x1b" not in data:
        return data.decode()
    if is_unicode:
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise RecordError(f"the field {shorten(tag)} is not valid UTF-8, which the leader declares") from None
    # its tables are large
    from app.formats.marc8 import decode_marc8

    try:
        return decode_marc8(data)
    except ValueError as error:
        detail = f"the field {shorten(tag)} has {error}, but the leader declares MARC-8"
        raise RecordError(f"{detail} (position 9 is not 'a'): {_UNICODE_WAY}, or set position 9 if it is") from None


class _Records(LocatedHandler):
    """The records of an XML document as it goes by; the innermost element `record` is one."""

    def __init__(self, take: Take) -> None:
        super().__init__()
        self._take = take
        self._record: MarcRecord | None = None
        self._line, self._n_characters = 1, 0
        self._envelope = False
        self._fault: str | None = None
        self._error: str | None = None
        self._open: tuple[str, str] | None = None
        self._subfields: list[tuple[str, str]] = []
        self._code = ""
        self._text: list[str] | None = None
        self._n_records = 0

    def startElement(self, name: str, attrs: Any) -> None:  # noqa: N802
        name = name.rpartition(":")[2]
        self._count(_ELEMENT_CHARACTERS)
        if name == "record":
            self._record, self._envelope, self._fault = MarcRecord(), False, None
            self._line, self._n_characters = self.line, 0
        elif self._record is None:
            if name == "error":  # of OAI-PMH
                self._line, self._error, self._text = self.line, attrs.get("code", ""), []
            return
        elif name == "header":  # of a record of OAI-PMH, which says whether it is deleted
            self._envelope = True
        elif name in ("controlfield", "datafield"):
            self._open = (attrs.get("tag", ""), attrs.get("ind1", " ") + attrs.get("ind2", " "))
            self._subfields = []
            self._text = [] if name == "controlfield" else None
            if not re.fullmatch(r"[0-9A-Za-z]{3}", self._open[0]):
                self._fault = self._fault or f"the tag of a {name} is '{shorten(self._open[0])}'"
        elif name == "subfield":
            self._code, self._text = attrs.get("code", ""), []
            if len(self._code) != 1:
                self._fault = self._fault or f"the code of a subfield is '{shorten(self._code)}'"
        elif name == "leader":
            self._text = []

    def characters(self, content: str) -> None:
        if self._record is not None or self._error is not None:
            self._count(len(content))
            if self._text is not None:
                self._text.append(content)

    def endElement(self, name: str) -> None:  # noqa: N802
        name, record = name.rpartition(":")[2], self._record
        text = "".join(self._text or ())
        if record is None:
            if name == "error" and self._error is not None:
                raise row_error(self._line, oai_fault(self._error, text))
            return
        if name == "leader":
            record.leader = text.strip("\r\n\t")
        elif name == "subfield":
            self._subfields.append((self._code, text))
        elif name in ("controlfield", "datafield") and self._open is not None:
            tag, indicators = self._open
            is_control = name == "controlfield"
            record.fields.append(Field(tag, text, "" if is_control else indicators, tuple(self._subfields)))
            self._open = None
        elif name == "record":
            self._record = None
            if record.fields or record.leader or not self._envelope:
                self._n_records += 1
                self._take(record if self._fault is None else RecordError(self._fault), self._line)
        if name in ("leader", "subfield", "controlfield"):
            self._text = None

    def _count(self, n_characters: int) -> None:
        self._n_characters += n_characters
        is_open = self._record is not None or self._error is not None
        if is_open and self._n_characters > MAX_RECORD_BYTES:
            raise row_error(self._line, f"a record has more than {MAX_RECORD_BYTES:,} characters")

    def endDocument(self) -> None:  # noqa: N802
        if self._n_records == 0:
            raise row_error(1, "the document has no element 'record' with a leader and fields; expected MARCXML")
