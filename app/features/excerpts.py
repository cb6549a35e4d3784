"""Excerpts of texts, cleaned first: the first characters or words, or sentences of a whole document; and their titles.

This module needs the standard library alone: archives carry its source within their script `load.py`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, islice
from typing import Any, NamedTuple, TypeAlias

from app.features.cleaning import Cleaned
from app.features.reading import counted_words

# full stops and the like of all scripts, of which those of ideographs need no blank behind them; and line breaks
_between_sentences = re.compile(r"(?<=[.!?…。！？｡؟۔।॥։።။។])['\"’”»)\]]*\s+|(?<=[。！？｡])|\n\s*")
_end_of_title = re.compile(r"(?<=\S)(?:[^\S\n]*\n|\s¤\s)")

# one text, or one for each field
Text: TypeAlias = str | Sequence[str]


class Excerpt(NamedTuple):
    """What is read of a text: its parts, joined by line breaks.

    Attributes
    ----------
    parts : list of (int, int)
        Beginning and end of each part in the cleaned text.
    cleaned : Cleaned
        The whole text after cleaning.
    """

    text: str
    parts: list[tuple[int, int]]
    cleaned: Cleaned

    def place(self, begin: int, end: int) -> tuple[int, int]:
        """The place in the whole text of a place in the excerpt."""
        lengths = [last - first + 1 for first, last in self.parts]
        begins = [0, *accumulate(lengths[:-1])]
        at, to = bisect_right(begins, begin) - 1, bisect_right(begins, end - 1) - 1
        return self.cleaned.place(begin - begins[at] + self.parts[at][0], end - begins[to] + self.parts[to][0])


def excerpt(text: str, recipe: Mapping[str, Any]) -> Excerpt:
    """What a recipe with `clean`, `max_characters`, `max_words` and `max_sentences` reads of a text.

    The cleaned text is cut to characters and words, and sentences are chosen from what is left: the first, and others
    at even distances.
    """
    cleaned = Cleaned(text, recipe.get("clean", ()))
    text = cleaned.text
    characters, words, sentences = (recipe.get(f"max_{unit}") for unit in ("characters", "words", "sentences"))
    end = len(text) if characters is None else min(len(text), characters)
    if words is not None:
        last = next(islice(counted_words.finditer(text, 0, end), words - 1, None), None)
        end = end if last is None else last.end()
    parts = [(0, end)]
    if sentences is not None:
        every = list(_sentences(text, end))
        if len(every) > sentences:
            parts = [every[at * len(every) // sentences] for at in range(sentences)]
    if parts == [(0, len(text))]:
        return Excerpt(text, parts, cleaned)
    return Excerpt("\n".join(text[first:last] for first, last in parts), parts, cleaned)


def split_text(text: Text, fields: Sequence[str]) -> tuple[str, ...]:
    """The texts of the fields of a row, of which one text has a title and a body; it as a whole without fields.

    The title is the first line, or what precedes `` ¤ ``, by which Annif's corpora separate it from the abstract. A
    text without either is all body. Title and body joined by one character have the length of their text, so that
    places in both agree.
    """
    if not isinstance(text, str):
        return tuple(text)
    if not fields:
        return (text,)
    end = _end_of_title.search(text)
    if end is None or not text[end.end() :].strip():
        return ("", text)
    return (text[: end.end() - 1], text[end.end() :])


def _sentences(text: str, end: int) -> list[tuple[int, int]]:
    found, at = [], 0
    for gap in _between_sentences.finditer(text, 0, end):
        found.append((at, gap.start()))
        at = gap.end()
    found.append((at, end))
    return [(first, last) for first, last in found if text[first:last].strip()]
