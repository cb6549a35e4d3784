"""Cleaning of texts that come from HTML pages and from PDF files, with the places of what is left.

HTML is cut by expressions of this module and not by :mod:`html.parser`, whose answers about broken pages differ between
bug-fix releases of Python: a model must read a text in the same way wherever it is. Whatever is no tag without doubt
stays, such as the signs in ``a < b``. No expression takes more than linear time.

This module needs the standard library alone: archives carry its source within their script `load.py`.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from html.entities import html5
from typing import NamedTuple


class Change(NamedTuple):
    """A part of a text, from ``begin`` to ``end``, and what takes its place."""

    begin: int
    end: int
    by: str
    kind: str


class _Step:
    """A text after changes, which ascend and do not overlap."""

    def __init__(self, before: str, changes: Iterable[Change]) -> None:
        self.changes = list(changes)
        pieces, at = list[str](), 0
        for change in self.changes:
            pieces += before[at : change.begin], change.by
            at = change.end
        self.text = "".join([*pieces, before[at:]]) if pieces else before

    def place(self, begin: int, end: int) -> tuple[int, int]:
        """The place in the text before of what is not empty in the text after."""
        return self._origin(begin)[0], self._origin(end - 1)[1]

    @cached_property
    def _begins(self) -> list[int]:
        """Where each change begins in the text after."""
        found, grown = [], 0
        for change in self.changes:
            found.append(change.begin + grown)
            grown += len(change.by) - (change.end - change.begin)
        return found

    def _origin(self, at: int) -> tuple[int, int]:
        last = bisect_right(self._begins, at) - 1
        if last < 0:
            return at, at + 1
        change, within = self.changes[last], at - self._begins[last]
        if within < len(change.by):
            return change.begin, change.end
        kept = change.end + within - len(change.by)
        return kept, kept + 1


class Cleaned:
    """A text after cleaning.

    Parameters
    ----------
    sources : collection of {"html", "pdf"}
        Where the text comes from; of both, tags are removed first.
    """

    def __init__(self, text: str, sources: Collection[str]) -> None:
        self.text = text
        self._steps: list[_Step] = []
        if "html" in sources:
            self._change(_markup)
            if self._removed_no_tag() and any(name.lower() in _ELEMENTS for name in _end_tag.findall(self.text)):
                self._change(_markup)  # the whole page was escaped
        if "pdf" in sources:
            for find in (_page_lines, _page_breaks, _letters, _hyphens, _wrapped_lines):
                self._change(find)
        if sources:
            self._change(_runs_of_blanks)

    def place(self, begin: int, end: int) -> tuple[int, int]:
        """The place in the whole text of a place, not empty, in the cleaned text."""
        for step in reversed(self._steps):
            begin, end = step.place(begin, end)
        return begin, end

    def counts(self) -> Counter[str]:
        """The number of changes of each kind."""
        return Counter(change.kind for step in self._steps for change in step.changes)

    def _change(self, find: Callable[[str], Iterable[Change]]) -> None:
        step = _Step(self.text, find(self.text))
        if step.changes:
            self._steps.append(step)
            self.text = step.text

    def _removed_no_tag(self) -> bool:
        return not any(change.kind == _TAGS for step in self._steps for change in step.changes)


_TAGS, _BREAKS, _BLANKS = "tags", "line breaks", "blanks"

# elements within a word, and within a line: all others end a line
_WITHIN_WORDS = frozenset([
    "b", "bdi", "bdo", "big", "bold", "del", "em", "font", "i", "ins", "italic", "mark", "nobr", "s", "small",
    "span", "strike", "strong", "sub", "sup", "tt", "u", "wbr",
])  # fmt: skip
_WITHIN_LINES = frozenset([
    "a", "abbr", "acronym", "audio", "button", "canvas", "cite", "code", "data", "dfn", "embed", "iframe", "img",
    "input", "kbd", "label", "map", "meter", "object", "output", "picture", "progress", "q", "rp", "rt", "ruby",
    "samp", "script", "select", "slot", "source", "style", "time", "track", "var", "video", "xref",
])  # fmt: skip
_ELEMENTS = frozenset([
    "address", "applet", "area", "article", "aside", "base", "basefont", "blockquote", "body", "br", "caption",
    "center", "col", "colgroup", "datalist", "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head",
    "header", "hgroup", "hr", "html", "legend", "li", "link", "main", "math", "menu", "meta", "nav", "noframes",
    "noscript", "ol", "optgroup", "option", "p", "param", "pre", "search", "section", "summary", "svg", "table",
    "tbody", "td", "template", "textarea", "tfoot", "th", "thead", "title", "tr", "ul",
]).union(_WITHIN_WORDS, _WITHIN_LINES)  # fmt: skip
_NAME = r"[a-zA-Z][a-zA-Z0-9]*+(?:[:-][a-zA-Z0-9]++)*+(?=[\s/>])"
# attributes that HTML has without values, and those of frameworks
_BARE_NAMES = (
    r"(?:(?=[^-:@*\#\s/<>\"'=]*+[-:@*\#])[^\s/<>\"'=]++|allowfullscreen|async|autofocus|autoplay"
    r"|checked|compact|controls|default|defer|disabled|download|hidden|inert|ismap|itemscope|loop|multiple|muted|nohref|nomodule|noresize|noshade"
    r"|novalidate|nowrap|open|playsinline|readonly|required|reversed|selected)(?=[\s/>])"
)
_ATTRIBUTES = (
    r"(?:[\s/]++|[^\s/<>\"'=]++\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s<>\"']++)|"
    rf"{_BARE_NAMES})*+"
)
_token = re.compile(
    rf"""(?P<comment><!--)
    |(?P<declaration><!doctype\b[^<>]*+>|<!\[(?:CDATA\[|(?:end)?if\b[^<>]*+>)|\]\]>|<\?[a-z][^<>]*+>)
    |</(?P<end>{_NAME})[^<>]*+>
    |<(?P<start>{_NAME})(?:{_ATTRIBUTES}>|\s++[a-zA-Z:-]++\s*+=\s*+["'][^<>]*+>)
    |&(?:\#(?:[0-9]{{1,7}}|[xX][0-9a-fA-F]{{1,6}})|(?P<entity>[a-zA-Z][a-zA-Z0-9]{{1,31}}));
    |(?P<newline>\n)""",
    re.VERBOSE | re.IGNORECASE,
)
_end_tag = re.compile(f"</({_NAME})")
_hidden_ends = {name: re.compile(rf"</{name}\s*+[^<>]*+>", re.IGNORECASE) for name in ("script", "style")}


def _markup(text: str) -> Iterator[Change]:
    """Tags, comments, scripts and styles go, entities become characters, and source lines of a paragraph one line."""
    if "<" not in text and "&" not in text:
        return
    found = list(_tokens(text))
    blocks = [change for change in found if change.kind == _TAGS and change.by == "\n"]
    for change in found:
        # before the first block and behind the last one is plain text, such as another column
        if change.kind != _BREAKS or (blocks and blocks[0].begin < change.begin < blocks[-1].begin):
            yield change


def _tokens(text: str) -> Iterator[Change]:
    ended: frozenset[str] | None = None
    # what has no end from some place on has none behind it
    endless: set[str] = set()
    preformatted = False
    at = 0
    while (match := _token.search(text, at)) is not None:
        at = match.end()
        begin, kind = match.start(), match.lastgroup
        if kind == "newline":
            if not preformatted:
                yield Change(begin, at, " ", _BREAKS)
        elif kind == "comment":
            end = -1 if "comment" in endless else text.find("-->", at)
            if end < 0:
                endless.add("comment")
            else:
                at = end + len("-->")
                yield Change(begin, at, "", "comments")
        elif kind == "declaration":
            yield Change(begin, at, " ", _TAGS)
        elif kind in ("start", "end"):
            name = match[kind].lower().rpartition(":")[2]
            if kind == "start" and name not in _ELEMENTS:
                if ended is None:
                    ended = frozenset(each.lower().rpartition(":")[2] for each in _end_tag.findall(text))
                if name not in ended and match[0][-2] != "/":
                    continue
            if name == "pre":
                preformatted = kind == "start"
            if kind == "start" and name in _hidden_ends and name not in endless and match[0][-2] != "/":
                last = _hidden_ends[name].search(text, at)
                if last is None:
                    endless.add(name)
                else:
                    at = last.end()
                    yield Change(begin, at, " ", "scripts and styles")
                    continue
            yield Change(begin, at, "" if name in _WITHIN_WORDS else " " if name in _WITHIN_LINES else "\n", _TAGS)
        else:
            character = html5.get(f"{match['entity']};") if kind == "entity" else html.unescape(match[0])
            if character is not None:
                # a soft hyphen is no part of a word
                yield Change(begin, at, "" if character == "\u00ad" else character, "entities")


_letter = r"[^\W\d_]"
# lines at either end of a page that may be headers and footers, characters of one, and pages that repeat it
_EDGE_LINES, _LONGEST_EDGE, _LEAST_PAGES = 3, 200, 3
_MOST_NUMBERS = 4
_page_number = re.compile(r"(?<!\d)\d{1,9}(?!\d)")


def _page_lines(text: str) -> Iterator[Change]:
    """Headers and footers but the first of their kind, and page numbers; pages end with form feeds.

    A line is one if all lines outside of it are, too.
    """
    pages = text.split("\f")
    edges: list[tuple[int, list[tuple[int, int, set[tuple[str, int]]]]]] = []
    seen: dict[tuple[str, int], list[int]] = {}
    begin = 0
    for number, page in enumerate(pages):
        spans = _lines(page)
        for side in (spans[:_EDGE_LINES], spans[: -_EDGE_LINES - 1 : -1]):
            lines = []
            for first, last in side:
                keys = set(_line_keys(page[first:last], number)) if last - first <= _LONGEST_EDGE else set()
                lines.append((begin + first, begin + last, keys))
                for key in keys:
                    on = seen.setdefault(key, [])
                    if not on or on[-1] != number:
                        on.append(number)
            edges.append((number, lines))
        begin += len(page) + 1
    least = max(2, min(_LEAST_PAGES, sum(not page.isspace() and page != "" for page in pages)))
    found = set()
    for number, lines in edges:
        for first, last, keys in lines:
            repeated = [key for key in keys if len(seen[key]) >= least]
            if not repeated:
                break
            counted = any("\0" in name for name, _ in repeated) and not any(map(str.isalpha, text[first:last]))
            if counted or any(seen[key][0] != number for key in repeated):
                found.add(Change(first, last, "", "page lines"))
    yield from sorted(found)


def _lines(page: str) -> list[tuple[int, int]]:
    """Beginning and end of the lines of a page that are not blank."""
    spans, at = [], 0
    for line in page.split("\n"):
        if line and not line.isspace():
            spans.append((at, at + len(line)))
        at += len(line) + 1
    return spans


def _line_keys(line: str, page: int) -> Iterator[tuple[str, int]]:
    """What a line has in common with the same line on other pages: all of it, or all but a number that counts pages."""
    plain = " ".join(line.split()).casefold()
    yield plain, 0
    numbers = list(_page_number.finditer(plain))
    if len(numbers) <= _MOST_NUMBERS:
        for match in numbers:
            yield f"{plain[: match.start()]}\0{plain[match.end() :]}", int(match[0]) - page


_blank_runs = re.compile(r"\s{2,}|[^\S \n]|\A\s|\s\Z")


def _page_breaks(text: str) -> Iterator[Change]:
    """A page ends a line."""
    if "\f" in text:
        for match in _blank_runs.finditer(text):
            if "\f" in match[0]:
                yield Change(*match.span(), "\n", "page breaks")


_artefacts = re.compile(
    r"(?P<soft>\u00ad(?:[^\S\n]*+\n\s*+)?+)|(?P<glyph>\(cid:\d{1,9}\))|[\ufb00-\ufdff\ufe70-\ufeff]"
)


def _letters(text: str) -> Iterator[Change]:
    """Ligatures and other forms of presentation become letters; soft hyphens and numbers of glyphs go."""
    for match in _artefacts.finditer(text):
        if match["soft"] is not None:
            yield Change(*match.span(), "", "soft hyphens")
        elif match["glyph"] is not None:
            yield Change(*match.span(), " ", "glyph numbers")
        elif (letters := "" if match[0] == "\ufeff" else unicodedata.normalize("NFKC", match[0])) != match[0]:
            yield Change(*match.span(), letters, "ligatures")


_DASHES = "-\u2010\u2011"
_hyphenated = re.compile(
    rf"(?<!{_letter})(?P<left>{_letter}++)(?P<cut>[{_DASHES}][^\S\n]*+\n\s*+)(?=(?P<right>{_letter}++))"
)
_whole_words = re.compile(rf"{_letter}++(?:[{_DASHES}]{_letter}++)*+")
# words before which a hyphen is the rest of a word, as in "pre- and postwar"
_AND = frozenset([
    "and", "or", "und", "oder", "bzw", "sowie", "et", "ou", "y", "e", "o", "u", "og", "eller", "och", "i", "oraz",
    "lub",
])  # fmt: skip


def _hyphens(text: str) -> Iterator[Change]:
    """Words cut at the end of a line become whole.

    The hyphen goes if the text has the word without it elsewhere, or if the next line goes on with a small letter. It
    stays if the text has the word with it elsewhere.
    """
    words: frozenset[str] | None = None
    for match in _hyphenated.finditer(text):
        if words is None:
            words = frozenset(map(_folded, _whole_words.findall(text)))
        left, right = match["left"], match["right"]
        begin, end = match.span("cut")
        if _folded(left + right) in words:
            yield Change(begin, end, "", "hyphens")
        elif right[0].islower() and right not in _AND:
            of_several = text[match.start() - 1 : match.start()] in set(_DASHES)
            if of_several or _folded(f"{left}-{right}") in words:
                yield Change(begin + 1, end, "", _BREAKS)
            else:
                yield Change(begin, end, "", "hyphens")


def _folded(word: str) -> str:
    return word.casefold().replace("\u2010", "-").replace("\u2011", "-")


_wrapped = re.compile(rf"(?<=\S)[^\S\n]*+\n[^\S\n]*+(?=({_letter}))")


def _wrapped_lines(text: str) -> Iterator[Change]:
    for match in _wrapped.finditer(text):
        if match[1].islower():
            yield Change(*match.span(), " ", _BREAKS)


def _runs_of_blanks(text: str) -> Iterator[Change]:
    """One blank or line break for each run, and none at the ends."""
    for match in _blank_runs.finditer(text):
        begin, end = match.span()
        yield Change(begin, end, "" if begin == 0 or end == len(text) else "\n" if "\n" in match[0] else " ", _BLANKS)
