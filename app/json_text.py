"""Text in JSON: pointers to it, and whether every database and protocol can store it.

PostgreSQL stores neither U+0000 nor halves of surrogate pairs. Of JSON it keeps their escapes as they are written, and
then fails each query that looks into the value.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

REPLACEMENT = "\ufffd"
ZERO, SURROGATE = "U+0000 is not allowed in text", "half of a surrogate pair is not allowed in text"
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_LONGEST_SEGMENT = 80


def pointer(path: Sequence[str | int]) -> str:
    """The JSON pointer (RFC 6901) of a path; a key that is too long for a field name becomes ``…``."""
    segments = [str(part) if len(str(part)) <= _LONGEST_SEGMENT else "…" for part in path]
    return "".join("/" + segment.replace("~", "~0").replace("/", "~1") for segment in segments)


def place_of(pointer: str) -> str:
    """A JSON pointer in dotted notation: ``/params/C`` is ``params.C``, and ``/texts/0`` is ``texts[0]``."""
    if not pointer.startswith("/"):
        return pointer
    path = ""
    for segment in pointer[1:].split("/"):
        name = segment.replace("~1", "/").replace("~0", "~")
        path += f"[{name}]" if name.isdigit() and path else f".{name}" if path else name
    return path.removeprefix("query.").removeprefix("body.")


def fault(text: str) -> str | None:
    """The reason why a text cannot be stored, or None."""
    found = _UNSTORABLE.search(text)
    return None if found is None else ZERO if found[0] == "\0" else SURROGATE


def repaired(value: Any) -> Any:
    """The same text, or JSON, with U+FFFD in place of each character that cannot be stored."""
    if isinstance(value, str):
        return _UNSTORABLE.sub(REPLACEMENT, value)
    if isinstance(value, dict):
        return {repaired(name): repaired(inner) for name, inner in value.items()}
    return [repaired(inner) for inner in value] if isinstance(value, list | tuple) else value


def faults(document: Any) -> Iterator[tuple[str, str]]:
    """Pointers to unstorable text in JSON, each with its reason."""
    if isinstance(document, str):
        if reason := fault(document):
            yield "", reason
        return
    # paths are made of containers alone: a body may have a million texts
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while stack:
        path, value = stack.pop()
        named = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        inner: list[tuple[tuple[str | int, ...], Any]] = []
        for name, child in named:
            if isinstance(name, str) and (reason := fault(name)):
                yield pointer((*path, repaired(name))), reason
            if isinstance(child, str):
                if reason := fault(child):
                    yield pointer((*path, repaired(name))), reason
            elif isinstance(child, dict | list):
                inner.append(((*path, repaired(name)), child))
        stack += reversed(inner)
