"""The language of a text, by py3langid's model."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# letters of a text that are looked at
MOST_LETTERS = 10_000


def language_scores(text: str, candidates: Sequence[str]) -> dict[str | None, float]:
    """The probability of each candidate language, the most probable first; None has that of all other languages.

    Raises
    ------
    ValueError
        The detector does not know a candidate.
    """
    known = Counter[str]()
    for language, probability in detector().rank(text[:MOST_LETTERS]):
        known[language] += probability  # some have an entry for each script
    unknown = [language for language in candidates if language not in known]
    if unknown:
        raise ValueError(f"unknown languages: {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    found: dict[str | None, float] = {language: float(known[language]) for language in candidates}
    if not n_letters(text):
        found = dict.fromkeys(found, 0.0)
    found[None] = max(0.0, 1.0 - sum(found.values()))
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


def n_letters(text: str) -> int:
    """The letters and their marks: vowel signs are a third of what Hindi is written with."""
    return sum(unicodedata.category(one)[0] in "LM" for one in text)


@lru_cache(1)
def detector() -> LanguageIdentifier:
    """The model, loaded when it is first needed: it takes a second and 100 MB."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
