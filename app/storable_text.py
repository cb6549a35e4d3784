"""Rejects text that cannot be stored: U+0000 and half of a surrogate pair (see :mod:`app.json_text`)."""

import json
import re
from itertools import islice
from typing import Any
from urllib.parse import unquote_to_bytes

import orjson

from app.errors import MAX_ITEMS, InvalidInput, Item
from app.json_text import fault, faults, pointer, repaired

_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def require_storable(document: Any, prefix: str = "") -> None:
    """Raise InvalidInput, with a pointer to each place below ``prefix``, where text in JSON cannot be stored."""
    items = [Item(reason, prefix + place) for place, reason in islice(faults(document), MAX_ITEMS)]
    if items:
        raise InvalidInput("The request contains text that cannot be stored.", items)


def parse_json(content: bytes) -> Any:
    """Parse JSON; all text in it must be storable.

    Raises
    ------
    orjson.JSONDecodeError
        The content is not JSON.
    InvalidInput
        A text cannot be stored; pointers give the places.
    """
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        if _ESCAPED_SURROGATE.search(content):
            _require_no_surrogate(content)
        raise
    if b"\\u0000" in content:
        require_storable(document)
    return document


def require_storable_query(query: bytes) -> None:
    """Raise InvalidInput, with a pointer to the parameter, if a query has unstorable text or is not UTF-8."""
    if query.isascii() and b"%" not in query and b"\0" not in query:
        return
    for pair in query.split(b"&"):
        try:
            reason = fault(unquote_to_bytes(pair.replace(b"+", b" ")).decode())
        except UnicodeDecodeError:
            reason = "expected UTF-8"
        if reason:
            name = unquote_to_bytes(pair.partition(b"=")[0]).decode(errors="replace")
            item = Item(reason, pointer(("query", repaired(name))))
            raise InvalidInput("The query string contains text that cannot be stored.", [item])


def _require_no_surrogate(content: bytes) -> None:
    """Raise InvalidInput if JSON has half of a surrogate pair, which only Python's own parser accepts."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return
    require_storable(document)
