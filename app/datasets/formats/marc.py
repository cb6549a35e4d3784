"""MARC 21 (ISO 2709) and MARCXML: bibliographic records."""

import re
from collections.abc import Sequence

from app.datasets.formats.format import RECORDS, Format, Reference
from app.descriptions import Shape

LEADER = re.compile(r"\d{5}[\x20-\x7e]{5}22\d{5}[\x20-\x7e]{3}45")

_XML = re.compile(r"MARC21/slim|<(?:\w+:)?leader>")


def _is_marc(lines: Sequence[str], labels: frozenset[str]) -> bool:
    if lines[0].lstrip().startswith("<"):
        return _XML.search("\n".join(lines)) is not None
    return LEADER.match(lines[0]) is not None


MARC = Format(
    "marc",
    "MARC 21, MARCXML",
    "app.formats.marc:parse_marc",
    RECORDS,
    Reference(
        "MARC 21 (ISO 2709, in UTF-8 or MARC-8) and MARCXML, also within answers of OAI-PMH and SRU: bibliographic "
        "records",
        "subjects: `650`, `651`, `655`, `600`, `610`, `611`, `630`, or `label_fields`; a set",
    ),
    (
        Shape("MARC 21 in UTF-8", "good.marc"),
        Shape("MARC 21 in MARC-8", "marc8.marc"),
        Shape("MARCXML", "xml.marc"),
        Shape("MARCXML from OAI-PMH", "oai.marc"),
    ),
    extensions=("mrc", "marc", "marcxml"),
    recognises=_is_marc,
)
