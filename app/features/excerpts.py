"""Excerpts of texts, cleaned first: the first characters or words, or sentences spread over a whole document.

This module needs the standard library alone: archives carry its source within their script `load.py`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate, islice
from typing import Any, NamedTuple

from app.features.cleaning import Cleaned
from app.features.reading import counted_words

# full stops and the like of all scripts, of which those of ideographs need no blank behind them; and line breaks
_between_sentences = re.compile(r"(?<=[.!?…。！？｡؟۔।॥։።။។])['\"’”»)\]]*\s+|(?<=[。！？｡])|\n\s*")


class Excerpt(NamedTuple):
    """What is read of a text: its parts, joined by line breaks.

    Attributes
    ----------
    text : str
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


def _sentences(text: str, end: int) -> list[tuple[int, int]]:
    """Beginning and end of each sentence."""
    found, at = [], 0
    for gap in _between_sentences.finditer(text, 0, end):
        found.append((at, gap.start()))
        at = gap.end()
    found.append((at, end))
    return [(first, last) for first, last in found if text[first:last].strip()]
