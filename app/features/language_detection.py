"""The language of a text, by py3langid's model."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# letters of a text that are looked at
MOST_LETTERS = 10_000
# letters of a text and probability from which on its language counts as known
_CLEAR_LETTERS, _CLEAR = 40, 0.99
# tags of languages that are hard to distinguish in texts, or that have several tags
_ALIKE = (
    {"no", "nb", "nn", "da", "sv"},
    {"hbs", "hr", "sr", "bs", "sl"},
    {"id", "ms"},
    {"es", "gl", "ca", "pt"},
    {"he", "iw"},
)
# what the detector calls codes and the like
NO_LANGUAGE = "zxx"


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


def same_language(one: str, other: str) -> bool:
    """Whether two tags are of one language, or of two that are hard to distinguish."""
    first, second = (tag.split("-")[0].lower() for tag in (one, other))
    return first == second or any({first, second} <= group for group in _ALIKE)


def is_among(language: str, known: Collection[str]) -> bool:
    """Whether a language is one of some, or is hard to distinguish from one."""
    return any(same_language(language, each) for each in known)


def clear_language(text: str) -> str | None:
    """The language of a text, None if it is not clear: detection of short texts is often wrong."""
    if n_letters(text) < _CLEAR_LETTERS:
        return None
    language, probability = detector().classify(text[:MOST_LETTERS])
    return None if probability < _CLEAR or language == NO_LANGUAGE else str(language)


@lru_cache(1)
def detector() -> LanguageIdentifier:
    """The model, loaded when it is first needed: it takes a second and 100 MB."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
