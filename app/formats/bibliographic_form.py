"""Recognises Dublin Core and JSON-LD by the beginning of a file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from app.datasets.schemas import ImportOptions

_DUBLIN_CORE = re.compile(r"http://purl\.org/dc/(?:elements/1\.[01]|terms)/")
_TITLE = re.compile(r"<(?:[\w.-]+:)?title[\s>]|\s[\w.-]+:title=")
_SUBJECT = re.compile(r"<(?:[\w.-]+:)?subject[\s>]")
_RECORD = re.compile(r"<record[\s>]")
_OTHERS = re.compile(r"MARC21/slim|<(?:\w+:)?leader>|<html", re.IGNORECASE)
_OBJECT = re.compile(r"\s*(?:\[\s*){0,2}(?=\{)")
_FIRST_KEY = re.compile(r'\{\s*"@(?:context|graph|id|type)"')
_LINKED = frozenset({"@context", "@graph", "@id", "@type"})


def is_dublin_core(lines: Sequence[str], options: ImportOptions) -> bool:
    """Whether the lines at the beginning of a file are XML with records in Dublin Core, and no vocabulary."""
    if not lines[0].lstrip().startswith("<"):
        return False
    text = "\n".join(lines)
    if _OTHERS.search(text) or not _TITLE.search(text):
        return False
    has_subjects = _SUBJECT.search(text) is not None
    if not _DUBLIN_CORE.search(text):
        return has_subjects and _RECORD.search(text) is not None
    return has_subjects or "skos/core#" not in text


def is_jsonld(lines: Sequence[str], options: ImportOptions) -> bool:
    """Whether the first object of a JSON file has the keys of JSON-LD, and none of labels."""
    text = "\n".join(lines)
    begin = _OBJECT.match(text)
    if begin is None:
        return False
    try:
        first, _ = json.JSONDecoder().raw_decode(text, begin.end())
    except (json.JSONDecodeError, RecursionError):
        return _FIRST_KEY.match(text, begin.end()) is not None
    return options.label_column not in first and not _LINKED.isdisjoint(first)
