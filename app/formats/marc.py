"""Bibliographic records in MARC 21 (ISO 2709) or MARCXML: titles, contents and summaries, and their subjects.

`text_fields` and `label_fields` name fields as `245$ab`: a tag, perhaps two indicators (`_` of a blank, `*` of any),
and perhaps subfields after a dollar sign. The text of a field is its subfields with blanks between, by default those
with letters; each field is a line. A label is the first authority id of a field (`$0`), else its heading: main
subfields with blanks between, then `--` and each subdivision (`$v`, `$x`, `$y`, `$z`), without a final period. Where
subfields are named, `650$0` reads ids alone, `650$a` each subfield as a label, and `650$ax` a heading of these.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import NamedTuple

from app.datasets.schemas import ImportOptions
from app.formats.marc_records import Field, MarcRecord, RecordError, read_marc
from app.formats.table import Parsed, row_error, shorten
from app.formats.text_rows import TextRows

TEXT_FIELDS = ("245$abnp", "490$a", "505", "520$ab")
LABEL_FIELDS = ("600", "610", "611", "630", "650", "651", "655")

_SPEC = re.compile(r"([0-9A-Za-z]{3})(?:([0-9A-Za-z_*])([0-9A-Za-z_*]))?(?:\$([0-9a-z]+))?")
_ID, _SUBDIVISIONS = "0", "vxyz"
_MAIN = "".join(letter for letter in ascii_lowercase if letter not in _SUBDIVISIONS + "eiw")
# not of an abbreviation or of initials
_FINAL_PERIOD = re.compile(r"(?:(?<=[^\W\d_]{4})|(?<=[\d)]))\.$")
_HOLDINGS = frozenset("uvxy")


class Spec(NamedTuple):
    """Fields of a tag and indicators; `codes` is empty where no subfields are named."""

    tag: str
    indicators: tuple[str, str]
    codes: str

    def fits(self, field: Field) -> bool:
        """Whether it names a field."""
        if field.tag != self.tag:
            return False
        given = (field.indicators + "  ")[:2]
        return all(wanted in ("*", each) for wanted, each in zip(self.indicators, given, strict=True))


def parse_marc(path: Path, options: ImportOptions) -> Parsed:
    """Read a file of records.

    Parameters
    ----------
    path : Path
        The file.
    options : ImportOptions
        `text_fields` and `label_fields` name fields; `unlabelled` reads no labels.

    Returns
    -------
    Parsed
        Kind "text" with sets of labels; its ids are control numbers (001).

    Raises
    ------
    FormatError
        With the records that are damaged, have no text, or are not bibliographic: by number, in MARCXML by line.
    """
    texts = _specs(options.text_fields or TEXT_FIELDS, "text_fields")
    labels = () if options.unlabelled else _specs(options.label_fields or LABEL_FIELDS, "label_fields")
    rows, n_records = TextRows(), 0

    def add_record(record: MarcRecord | RecordError, line: int) -> None:
        nonlocal n_records
        n_records += 1
        if isinstance(record, RecordError):
            rows.problems.add(line, str(record))
        elif not record.is_deleted:
            text = "\n".join(_texts(record, texts))
            detail = _unfit(record, text, options)
            if detail is None:
                rows.add(text, list(dict.fromkeys(_labels(record, labels))), record.control("001"), line)
            else:
                rows.problems.add(line, detail)

    read_marc(path, add_record)
    return rows.build(f"all {n_records} records of the file are deleted")


def heading(field: Field, codes: str = _MAIN + _SUBDIVISIONS) -> str:
    """A heading in one line: `Cooking, French -- History` becomes `Cooking, French--History`; empty without any."""
    parts = [" ".join(field.select("".join(set(codes) - set(_SUBDIVISIONS))))]
    parts += field.select("".join(set(codes) & set(_SUBDIVISIONS)))
    return "--".join(_FINAL_PERIOD.sub("", part) for part in parts if part)


def _specs(given: Sequence[str], option: str) -> tuple[Spec, ...]:
    found = []
    for each in given:
        match = _SPEC.fullmatch(each.replace(" ", "_"))
        if match is None:
            detail = f"'{shorten(each)}' names no field: expected a tag, and perhaps subfields, as 650 or 245$ab"
            raise row_error(1, detail, option)
        indicators = tuple(" " if each == "_" else each or "*" for each in (match[2], match[3]))
        found.append(Spec(match[1], (indicators[0], indicators[1]), match[4] or ""))
    return tuple(found)


def _texts(record: MarcRecord, specs: Sequence[Spec]) -> list[str]:
    """A line for each field that is named, in the order of the names."""
    lines = [
        " ".join([field.data.strip()] if field.data.strip() else field.select(spec.codes or ascii_lowercase))
        for spec in specs
        for field in record.fields
        if spec.fits(field)
    ]
    return [" ".join(line.split()) for line in lines if line]


def _labels(record: MarcRecord, specs: Sequence[Spec]) -> list[str]:
    found: list[str] = []
    for spec in specs:
        for field in filter(spec.fits, record.fields):
            if not spec.codes:
                found += field.select(_ID)[:1] or [heading(field) or field.data.strip()]
            elif spec.codes == _ID:
                found += field.select(_ID)[:1]
            elif len(spec.codes) == 1:
                found += [_FINAL_PERIOD.sub("", value) for value in field.select(spec.codes)]
            else:
                found.append(heading(field, spec.codes))
    return [label for label in found if label]


def _unfit(record: MarcRecord, text: str, options: ImportOptions) -> str | None:
    """Why a record is no row."""
    if record.kind == "z":
        return "an authority record: upload a file of these as a hierarchy (format=marc)"
    if record.kind in _HOLDINGS:
        return "a holdings record, which has neither title nor subjects: leave these out"
    if not text:
        wanted = ", ".join(options.text_fields or TEXT_FIELDS)
        return f"the record has no text in {wanted}: name other fields with text_fields"
    return None
