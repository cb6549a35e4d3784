"""A file that is one JSON array of objects, read one object at a time."""

import json
import re
from collections.abc import Generator, Iterator

from app.formats.table import row_error
from app.formats.window import NOT_UTF8, Window

_ARRAY = re.compile(rb"\s*\[\s*(?:[{\]]|$)")
_BETWEEN = re.compile(r"\s*,\s*(?=[{\[]|\Z)|\s*(?=\])")
_BLANKS = re.compile(r"\s*")
_FIRST = re.compile(r"\s*\[\s*")
# an error so close to the end of what was read may be that of an object which goes on
_NEAR_END = 16
# numbers are looked at where the record is read
_decoder = json.JSONDecoder(parse_float=len, parse_int=len)


def begins_array(head: bytes) -> bool:
    """Whether a file begins an array of objects."""
    return _ARRAY.match(head) is not None


def array_records(window: Window) -> Iterator[tuple[bytes, int]]:
    """The objects of an array as they are written, each with the line where it begins.

    Raises
    ------
    FormatError
        The file is not UTF-8, or no array of objects, with the line where it ceases to be.
    """
    line = yield from array_elements(window, 1)
    while rest := window.fill(line):
        if rest.strip():
            raise row_error(line, "more text follows the JSON array")
        window.consume(len(rest))


def array_elements(window: Window, line: int, begins: str = "{") -> Generator[tuple[bytes, int], None, int]:
    """The objects of an array that begins at a line; the window then begins after the array, and its line is returned.

    Parameters
    ----------
    begins : str
        What elements may begin with: `{` of objects, `[` of arrays.

    Raises
    ------
    FormatError
        The file is not UTF-8, or the array has other elements or no end.
    """
    started = False
    while unread := window.fill(line):
        text = decoded_text(unread, window.at_end, line)
        begin = (_BLANKS if started else _FIRST).match(text)
        assert begin is not None
        at, started = begin.end(), True
        line += text.count("\n", 0, at)
        while at < len(text) and text[at] != "]":
            if text[at] not in begins:
                raise row_error(line, "the JSON array has elements that are not objects")
            end = end_of_value(text, at, window.at_end, line)
            if end is None:
                break
            between = _BETWEEN.match(text, end)
            if between is None and not window.at_end and len(text) - end < _NEAR_END:
                break
            yield text[at:end].encode(), line
            if between is None:
                line += text.count("\n", at, end)
                raise row_error(line, "expected a comma and another object, or the end of the JSON array")
            line += text.count("\n", at, between.end())
            at = between.end()
        if at < len(text) and text[at] == "]":
            window.consume(len(text[: at + 1].encode()))
            return line
        window.consume(len(text[:at].encode()))
    raise row_error(line, "the JSON array has no end: the file may have been cut short, or lacks the last bracket")


def end_of_value(text: str, at: int, at_end: bool, line: int) -> int | None:
    """Where the object or array that begins at a place ends; None where it goes on after what was read."""
    try:
        return int(_decoder.raw_decode(text, at)[1])
    except json.JSONDecodeError as error:
        # a string without an end is reported where it begins
        unfinished = error.pos >= len(text) - _NEAR_END or error.msg.startswith("Unterminated string")
        if unfinished and not at_end:
            return None
        reason = f": {error.msg[0].lower()}{error.msg[1:]}"
        raise row_error(line + text.count("\n", at, error.pos), place_of_fault(text, at, error.pos) + reason) from error
    except RecursionError:
        raise row_error(line, "JSON is nested too deeply") from None


def place_of_fault(text: str, at: int, place: int) -> str:
    """Where JSON that begins at one place of a text is wrong, on the line of the other."""
    begin = text.rfind("\n", at, place) + 1
    if begin:
        return f"not valid JSON at character {place - begin + 1} of the line"
    return f"not valid JSON at character {place - at + 1} of the {'array' if text[at] == '[' else 'object'}"


def decoded_text(unread: bytes, at_end: bool, line: int) -> str:
    """The text, without a last character that is cut off."""
    try:
        return unread.decode()
    except UnicodeDecodeError as error:
        if not at_end and error.start >= len(unread) - 3:
            return unread[: error.start].decode()
        raise row_error(line + unread.count(b"\n", 0, error.start), f"not {NOT_UTF8}") from error
