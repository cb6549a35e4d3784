"""JSON whose values know their lines, and whose objects keep duplicate keys; read without recursion."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from app.formats.hierarchies.bounds import Bounds, too_many
from app.formats.table import FormatError, row_error, shorten

# possessive, so that nothing is remembered for each character of a long string
_TOKEN = re.compile(r'[ \t\r\n]*+([{}\[\]:,]|"(?:[^"\\\x00-\x1f]++|\\.)*+"|[^\s{}\[\]:,"]++|")')
_REST = re.compile(r"\S")
_CLOSING = {"{": "}", "[": "]"}


class Entry(NamedTuple):
    """A value with its line and, in an object, its key.

    ``kind`` is its first character, or "literal" for numbers and the like; objects and lists have entries ``inside``,
    all others are ``text``.
    """

    line: int
    key: str
    kind: str
    text: str
    inside: Sequence[Entry]


def load_entries(text: str, bounds: Bounds | None = None) -> Entry:
    """The document that ``text`` spells; raises FormatError, also where it has too many values or brackets."""
    bounds = bounds or Bounds()
    tokens = _Tokens(text)
    whole: list[Entry] = []
    open_: list[tuple[str, list[Entry]]] = []  # brackets and what is in them so far
    current = whole
    n_entries = 0
    while True:
        line, token = tokens.next_token()
        if open_ and token == _CLOSING[open_[-1][0]] and not current:
            open_.pop()
        else:
            key = ""
            n_entries += 1
            if n_entries > bounds.entries:
                raise too_many(line, "values", bounds.entries)
            if open_ and open_[-1][0] == "{":
                key = _string(token, tokens)
                tokens.expect(":")
                _, token = tokens.next_token()
            if token in _CLOSING:
                inner: list[Entry] = []
                current.append(Entry(line, key, token, "", inner))
                open_.append((token, inner))
                if len(open_) > bounds.nesting:
                    raise too_many(line, "brackets in one another", bounds.nesting)
                current = inner
                continue
            current.append(_scalar(token, line, key, tokens))
        while True:
            current = open_[-1][1] if open_ else whole
            if not open_:
                tokens.end()
                return whole[0]
            _, token = tokens.next_token()
            if token == ",":
                break
            if token != _CLOSING[open_[-1][0]]:
                raise tokens.unexpected(token)
            open_.pop()


def _scalar(token: str, line: int, key: str, tokens: _Tokens) -> Entry:
    if token.startswith('"'):
        return Entry(line, key, '"', _string(token, tokens), ())
    try:
        json.loads(token)
    except (ValueError, RecursionError):
        raise tokens.unexpected(token) from None
    return Entry(line, key, "literal", token, ())


def _string(token: str, tokens: _Tokens) -> str:
    if not token.startswith('"'):
        raise tokens.unexpected(token)
    try:
        return str(json.loads(token))
    except ValueError:
        raise row_error(tokens.line, "not JSON: a string is not closed, or has a wrong escape") from None


class _Tokens:
    """The tokens of a JSON text with their lines."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.line = 1

    def next_token(self) -> tuple[int, str]:
        """The next one."""
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise row_error(self.line, "not JSON: the file ends before all brackets are closed")
        self.line += self._text.count("\n", self._at, match.start(1))
        self._at = match.end()
        return self.line, match[1]

    def expect(self, wanted: str) -> None:
        _, token = self.next_token()
        if token != wanted:
            raise self.unexpected(token)

    def end(self) -> None:
        """Nothing but white space may follow."""
        if _REST.search(self._text, self._at):
            raise self.unexpected(self.next_token()[1])

    def unexpected(self, token: str) -> FormatError:
        return row_error(self.line, f"not JSON: '{shorten(token)}' is not expected here")
