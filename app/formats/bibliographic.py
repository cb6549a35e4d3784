"""Bibliographic records as named fields with values, whatever they were written in, and the rows that become of them.

`text_fields` and `label_fields` name fields by their names without prefix or namespace, as `title` or `subject`. A
label is the address of a value if it has one, else its text: `subject$id` reads addresses alone, `subject$value` texts
alone, and `subject@de` texts in a language.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from app.datasets.schemas import ImportOptions
from app.formats.table import Parsed, row_error, shorten
from app.formats.text_rows import TextRows

LABEL_FIELDS = ("subject", "about")
TEXT_FIELDS = ("title", "alternative", "name", "headline", "abstract", "description", "tableOfContents")

# what is described beside the records: those who made them, and what they are about
_BESIDE = frozenset(
    {
        "Agent", "Concept", "ConceptScheme", "CorporateBody", "DefinedTerm", "DefinedTermSet", "Family", "Ontology",
        "Organization", "Person", "Place",
    }
)  # fmt: skip
_SPEC = re.compile(r"([A-Za-z][\w.-]*)(?:\$(id|value)|@([A-Za-z]{2,8}(?:-\w+)*))?")
_ADDRESS = re.compile(r"https?://\S+")
_ENDS = re.compile(r"[/#:]")


class Value(NamedTuple):
    """A value: its text, its address and its language, each empty if it has none."""

    text: str = ""
    id: str = ""
    language: str = ""


@dataclass
class Record:
    """A record's values by the names of their fields, in order.

    `fault` says what is wrong with the record, `types` has the last parts of its types.
    """

    line: int
    id: str = ""
    types: list[str] = field(default_factory=list)
    fields: list[tuple[str, Value]] = field(default_factory=list)
    fault: str | None = None


class _Spec(NamedTuple):
    name: str
    part: str
    language: str

    def fits(self, name: str, value: Value) -> bool:
        tag = value.language.lower()
        return name == self.name and (not self.language or f"{tag}-".startswith(f"{self.language.lower()}-"))


class RecordRows:
    """Rows of records as they come."""

    def __init__(self, options: ImportOptions) -> None:
        self._texts = _specs(options.text_fields or TEXT_FIELDS, "text_fields")
        self._labels = () if options.unlabelled else _specs(options.label_fields or LABEL_FIELDS, "label_fields")
        self._separator = options.label_separator
        self._wanted = ", ".join(options.text_fields or TEXT_FIELDS)
        self._wanted_labels = "" if options.unlabelled else ", ".join(options.label_fields)
        self._rows, self._n_records = TextRows(), 0

    def add(self, record: Record) -> None:
        """Append a record, or note what is wrong with it; leave out what only describes others."""
        if not _BESIDE.isdisjoint(record.types):
            return
        text, labels = "\n".join(self._lines(record)), self._names(record)
        if not text and not labels and record.fault is None:
            return
        self._n_records += 1
        detail = record.fault
        if detail is None and not text:
            detail = f"no text in {self._wanted}: name other fields with text_fields"
        if detail is None:
            self._rows.add(text, labels, record.id, record.line)
        else:
            name = f" ('{shorten(record.id)}')" if record.id else ""
            self._rows.problems.add(record.line, f"record {self._n_records:,}{name}: {detail}")

    def build(self) -> Parsed:
        """All rows; raises FormatError."""
        why_empty = f"the file has no record with a text in {self._wanted}: name fields with text_fields"
        parsed = self._rows.build(why_empty)
        if self._wanted_labels and not parsed.labels:
            raise row_error(1, f"no record has a label in {self._wanted_labels}: name other fields with label_fields")
        return parsed

    def _lines(self, record: Record) -> list[str]:
        """The text: a line for each value, in the order of the fields that were named, each once."""
        found = [
            value.id if spec.part == "id" else value.text or value.id
            for spec in self._texts
            for name, value in record.fields
            if spec.fits(name, value)
        ]
        return list(dict.fromkeys(" ".join(text.split()) for text in found if text.strip()))

    def _names(self, record: Record) -> list[str]:
        found: list[str] = []
        for spec in self._labels:
            for _, value in (each for each in record.fields if spec.fits(*each)):
                address = value.id or (value.text if _ADDRESS.fullmatch(value.text) else "")
                if spec.part == "id" or (address and not spec.part and not spec.language):
                    found.append(address)
                elif value.text != address:
                    found += [value.text] if self._separator is None else value.text.split(self._separator)
        names = (" ".join(name.split()) for name in found)
        return list(dict.fromkeys(name for name in names if name))


def local_name(address: str) -> str:
    """The last part of an address or of a name with a prefix."""
    return _ENDS.split(address)[-1]


def _specs(given: Sequence[str], option: str) -> tuple[_Spec, ...]:
    found = []
    for each in given:
        match = _SPEC.fullmatch(each)
        if match is None:
            detail = (
                f"'{shorten(each)}' names no field: expected a name without prefix, as title, subject$id or title@de"
            )
            raise row_error(1, detail, option)
        found.append(_Spec(match[1], match[2] or "", match[3] or ""))
    return tuple(found)
