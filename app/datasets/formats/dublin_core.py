"""Dublin Core as XML: bibliographic records."""

import re
from collections.abc import Sequence

from app.datasets.formats.format import RECORDS, Format, Reference
from app.descriptions import Shape

_NAMESPACE = re.compile(r"http://purl\.org/dc/(?:elements/1\.[01]|terms)/")
_TITLE = re.compile(r"<(?:[\w.-]+:)?title[\s>]|\s[\w.-]+:title=")
_SUBJECT = re.compile(r"<(?:[\w.-]+:)?subject[\s>]")
_RECORD = re.compile(r"<record[\s>]")
_OTHERS = re.compile(r"MARC21/slim|<(?:\w+:)?leader>|<html", re.IGNORECASE)


def _is_dublin_core(lines: Sequence[str], labels: frozenset[str]) -> bool:
    """Whether the lines are XML with records, and no vocabulary."""
    if not lines[0].lstrip().startswith("<"):
        return False
    text = "\n".join(lines)
    if _OTHERS.search(text) or not _TITLE.search(text):
        return False
    has_subjects = _SUBJECT.search(text) is not None
    if not _NAMESPACE.search(text):
        return has_subjects and _RECORD.search(text) is not None
    return has_subjects or "skos/core#" not in text


DUBLIN_CORE = Format(
    "dublin_core",
    "Dublin Core (OAI-PMH, RDF/XML)",
    "app.formats.dublin_core:parse_dublin_core",
    RECORDS | {"label_separator"},
    Reference(
        "Dublin Core as XML: records from OAI-PMH (`oai_dc`), RDF/XML with `dc` or `dcterms`, plain lists of `record`",
        "`subject`, or `label_fields`; a set",
    ),
    (
        Shape("Dublin Core from OAI-PMH (oai_dc)", "good.dublin_core"),
        Shape("Dublin Core in RDF/XML", "rdf.dublin_core"),
        Shape("Dublin Core: a plain list of records", "plain.dublin_core"),
    ),
    recognises=_is_dublin_core,
)
