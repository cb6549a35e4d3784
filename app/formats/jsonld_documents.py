"""The nodes of JSON-LD files one at a time: of an array, of JSON lines, or of the `@graph` of a document."""

import json
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from app.formats.json_array import array_elements, decoded_text, end_of_value, place_of_fault
from app.formats.table import row_error
from app.formats.window import Window

_GRAPH = "@graph"
_BLANKS = re.compile(r"[ \t\r\n]*")
_decoder = json.JSONDecoder()

# a node or what is wrong with it, the context around it (None: it has its own), and the line where it begins
Found = tuple[dict[str, Any] | str, object | None, int]


class _Graph(NamedTuple):
    """Where the array of a document's graph begins in the text, and the context before it."""

    at: int
    context: object


def read_documents(path: Path) -> Iterator[Found]:
    """All nodes of a file.

    A document that is too large for the window is read node by node if its context comes before its graph. Graphs of
    other documents are left in their nodes.

    Raises
    ------
    FormatError
        The file ceases to be JSON, or to have objects.
    """
    line = 1
    with Window(path) as window:
        while unread := window.fill(line):
            text = decoded_text(unread, window.at_end, line)
            at = _after_blanks(text, 0)
            line += text.count("\n", 0, at)
            if at < len(text) and text[at] == "[":
                window.consume(len(text[:at].encode()))
                line = yield from _array(window, line)
                continue
            graph = None
            while at < len(text):
                if text[at] != "{":
                    what = "more text follows the JSON array" if text[at] == "[" else "expected a JSON object"
                    raise row_error(line, what)
                end = end_of_value(text, at, window.at_end, line)
                graph = _graph(text, at, end)
                if end is None or graph is not None:
                    break
                yield _loaded(text[at:end]), None, line
                next_at = _after_blanks(text, end)
                line += text.count("\n", at, next_at)
                at = next_at
            if graph is None:
                window.consume(len(text[:at].encode()))
                continue
            line += text.count("\n", at, graph.at)
            window.consume(len(text[: graph.at].encode()))
            line = yield from _members(window, line, graph.context)


def _array(window: Window, line: int) -> Generator[Found, None, int]:
    """The nodes of an array, also of lists in it; returns the line where it ends."""
    elements = array_elements(window, line, "{[")
    while True:
        try:
            element, at = next(elements)
        except StopIteration as end:
            return int(end.value)
        found = _loaded(element.decode())
        for each in found if isinstance(found, list) else [found]:
            yield each if isinstance(each, dict | str) else "a list in a list, expected an object", None, at


def _members(window: Window, line: int, context: object) -> Generator[Found, None, int]:
    """The nodes of a graph that the window begins with, and what follows in its document."""
    elements = array_elements(window, line)
    while True:
        try:
            element, at = next(elements)
        except StopIteration as stop:
            line = int(stop.value)
            break
        yield _loaded(element.decode()), {} if context is None else context, at
    while unread := window.fill(line):
        text = decoded_text(unread, window.at_end, line)
        at = _after_blanks(text, 0)
        line += text.count("\n", 0, at)
        if at == len(text):
            window.consume(len(unread))
            continue
        if text[at] == "}":
            window.consume(len(text[: at + 1].encode()))
            return line
        if text[at] != ",":
            break
        # the members that follow, as an object
        rest = "{" + text[at + 1 :]
        end = end_of_value(rest, 0, window.at_end, line)
        if end is not None:
            if "@context" in json.loads(rest[:end]):
                raise row_error(line, "the @context comes after the @graph: write it before, so that it can be read")
            window.consume(len(text[: at + end].encode()))
            return line + rest.count("\n", 0, end)
        window.consume(len(text[:at].encode()))
    raise row_error(line, "the JSON document has no end: the file may have been cut short, or lacks the last brace")


def _graph(text: str, at: int, end: int | None) -> _Graph | None:
    """The graph of a document that begins at a place, if its array begins within the text and its context before."""
    if end is not None and '"@graph"' not in text[at:end]:
        return None
    members: dict[str, Any] = {}
    at = _after_blanks(text, at + 1)
    try:
        while at < len(text) and text[at] == '"':
            key, at = _decoder.raw_decode(text, at)
            at = _after_blanks(text, at)
            if text[at] != ":":
                return None
            at = _after_blanks(text, at + 1)
            if key == _GRAPH and text[at] == "[":
                found = _Graph(at, members.get("@context"))
                # the whole document is there, and says its context later
                return None if end is not None and found.context is None and '"@context"' in text[at:end] else found
            members[key], at = _decoder.raw_decode(text, at)
            at = _after_blanks(text, at)
            if text[at] != ",":
                return None
            at = _after_blanks(text, at + 1)
    except (json.JSONDecodeError, IndexError, RecursionError):
        return None
    return None


def _loaded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return place_of_fault(text, 0, error.pos)


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    assert blanks is not None
    return blanks.end()
