"""JSON-LD of schema.org or Dublin Core: bibliographic records."""

import json
import re
from collections.abc import Sequence

from app.datasets.formats.format import RECORDS, Format, Reference
from app.descriptions import Shape

_OBJECT = re.compile(r"\s*(?:\[\s*){0,2}(?=\{)")
_FIRST_KEY = re.compile(r'\{\s*"@(?:context|graph|id|type)"')
_LINKED = frozenset({"@context", "@graph", "@id", "@type"})


def _is_jsonld(lines: Sequence[str], labels: frozenset[str]) -> bool:
    """Whether the first object has the keys of JSON-LD, and none of labels."""
    text = "\n".join(lines)
    begin = _OBJECT.match(text)
    if begin is None:
        return False
    try:
        first, _ = json.JSONDecoder().raw_decode(text, begin.end())
    except (json.JSONDecodeError, RecursionError):
        return _FIRST_KEY.match(text, begin.end()) is not None
    return labels.isdisjoint(first) and not _LINKED.isdisjoint(first)


JSONLD = Format(
    "jsonld",
    "JSON-LD (schema.org, Dublin Core)",
    "app.formats.jsonld:parse_jsonld",
    RECORDS | {"label_separator"},
    Reference(
        "JSON-LD of schema.org or Dublin Core: JSON lines, an array, or a document with `@graph`",
        "`subject` and `about`, or `label_fields`; a set",
    ),
    (
        Shape("JSON-LD: a document with `@graph`", "good.jsonld"),
        Shape("JSON-LD of schema.org, JSON lines", "schema.jsonld"),
        Shape("JSON-LD without a context: an array, also of arrays", "expanded.jsonld"),
    ),
    extensions=("jsonld",),
    recognises=_is_jsonld,
)
