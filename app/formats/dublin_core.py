"""Records in Dublin Core as XML: answers of OAI-PMH, RDF/XML, and plain lists of records.

A record is an element that has elements of Dublin Core (`dc`, `dcterms`) in it, or a `record` without any namespace.
Its id is that of the OAI header, else `rdf:about`, else its first identifier. A subject is the address in
`rdf:resource` or in the `rdf:about` of what is within, else the name there (`value`, `prefLabel`,
`label`), or its text.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from app.datasets.schemas import ImportOptions
from app.formats.bibliographic import Record, RecordRows, Value, local_name
from app.formats.table import Parsed, row_error
from app.formats.window import MAX_RECORD_BYTES
from app.formats.xml_document import LocatedHandler, oai_fault, read_xml

_NAMESPACES = frozenset(
    {"http://purl.org/dc/elements/1.0/", "http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/"}
)
_RDF, _XML = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/XML/1998/namespace"
_OAI = "http://www.openarchives.org/OAI/2.0/"
_PLAIN = frozenset({"record", "dc"})
_ELEMENTS = frozenset(
    {
        "abstract", "alternative", "contributor", "coverage", "creator", "date", "description", "format", "identifier",
        "language", "publisher", "relation", "rights", "source", "subject", "tableOfContents", "title", "type",
    }
)  # fmt: skip
_NAMES = frozenset({"value", "prefLabel", "label", "name"})
_ELEMENT_CHARACTERS = 64

Attributes = Mapping[tuple[str | None, str], str]
Name = tuple[str | None, str]


def parse_dublin_core(path: Path, options: ImportOptions) -> Parsed:
    """Read a file of records.

    Parameters
    ----------
    path : Path
        The file.
    options : ImportOptions
        `text_fields` and `label_fields` name elements; `label_separator` parts the names in one element; `unlabelled`
        reads no labels.

    Returns
    -------
    Parsed
        Kind "text" with sets of labels.

    Raises
    ------
    FormatError
        The file is not XML, or has records without a text, with the lines on which these begin.
    """
    rows = RecordRows(options)
    read_xml(path, _Records(rows), namespaces=True)
    return rows.build()


class _Frame(NamedTuple):
    """An open element."""

    name: Name
    about: str
    language: str
    line: int


class _Records(LocatedHandler):
    """The records of a document as it goes by."""

    def __init__(self, rows: RecordRows) -> None:
        super().__init__()
        self._rows = rows
        self._open: list[_Frame] = []
        self._header_id = self._error = ""
        self._record: Record | None = None
        self._at, self._n_characters = 0, 0
        # the field that is open
        self._id, self._text, self._name = "", [""], [""]
        self._language, self._node = "", ""
        self._collected: list[str] | None = None

    def startElementNS(self, name: Name, qname: str | None, attrs: Any) -> None:  # noqa: N802
        parent = self._open[-1] if self._open else None
        given: Attributes = attrs
        language = given.get((_XML, "lang"), parent.language if parent else "")
        frame = _Frame(name, given.get((_RDF, "about"), ""), language, self.line)
        if self._record is None:
            if name[1] == "record":
                self._header_id = ""
            elif name[1] == "identifier" and parent is not None and parent.name[1] == "header":
                self._collected, self._n_characters = [], 0
            elif name == (_OAI, "error"):
                self._collected, self._n_characters = [], 0
                self._error = given.get((None, "code"), "")
            if parent is not None and _is_field(name, parent):
                self._begin_record(parent, len(self._open))
        self._open.append(frame)
        if self._record is None and any(uri in _NAMESPACES for uri, _ in given.keys()):  # noqa: SIM118 - it cannot be iterated
            self._begin_record(frame, len(self._open))
        if self._record is None:
            return
        self._count(_ELEMENT_CHARACTERS)
        for (uri, local), value in given.items():
            if uri in _NAMESPACES and len(self._open) == self._at:
                self._record.fields.append((local, Value(value, "", language)))
        if len(self._open) == self._at + 1:
            self._begin_field(given, language)
        elif len(self._open) > self._at + 1:
            self._id = self._id or frame.about
            if name[1] in _NAMES and not any(self._name):
                self._collected, self._language = self._name, language

    def characters(self, content: str) -> None:
        if self._record is not None or self._collected is not None:
            self._count(len(content))
        if self._record is not None:
            self._text.append(content)
        if self._collected is not None:
            self._collected.append(content)

    def endElementNS(self, name: Name, qname: str | None) -> None:  # noqa: N802
        ended = self._open.pop()
        if self._record is None:
            if self._collected is not None:
                text, self._collected = "".join(self._collected).strip(), None
                if name == (_OAI, "error"):
                    raise row_error(ended.line, oai_fault(self._error, text))
                self._header_id = text
        elif len(self._open) == self._at:
            self._end_field(self._record, name[1])
        elif len(self._open) < self._at:
            self._end_record(self._record)
        elif name[1] in _NAMES:
            self._collected = None

    def _begin_record(self, frame: _Frame, at: int) -> None:
        self._record = Record(frame.line, self._header_id or frame.about, [frame.name[1]])
        self._at, self._n_characters, self._collected = at, 0, None

    def _begin_field(self, attributes: Attributes, language: str) -> None:
        self._id, self._text, self._name = attributes.get((_RDF, "resource"), ""), [], []
        self._language, self._collected = language, None
        self._node = attributes.get((_RDF, "nodeID"), "")

    def _end_field(self, record: Record, name: str) -> None:
        text = "".join(self._name if any(self._name) else self._text).strip()
        if name == "type" and self._id:
            record.types.append(local_name(self._id))
        if self._node and name == "subject":
            record.fault = (
                f"its subject is the node '{self._node}' elsewhere in the file, which is not read: write the subject "
                "into the record, or give it an address (rdf:resource)"
            )
        if text or self._id:
            record.fields.append((name, Value(text, self._id, self._language)))

    def _end_record(self, record: Record) -> None:
        self._record = None
        record.id = record.id or next((value.text for name, value in record.fields if name == "identifier"), "")
        self._rows.add(record)

    def _count(self, n_characters: int) -> None:
        self._n_characters += n_characters
        if self._n_characters > MAX_RECORD_BYTES:
            line = self._open[-1].line if self._record is None else self._record.line
            raise row_error(line, f"a record has more than {MAX_RECORD_BYTES:,} characters")


def _is_field(name: Name, parent: _Frame) -> bool:
    """Whether an element is one of Dublin Core's, so that the one around it is a record."""
    uri, local = name
    if uri in _NAMESPACES:
        return True
    return not uri and not parent.name[0] and parent.name[1] in _PLAIN and local in _ELEMENTS
