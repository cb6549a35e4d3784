"""The languages that a dataset's texts are in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from app.datasets.statistics_schemas import Languages, LanguageShare
from app.formats.table import Texts

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_SAMPLE = 1000
_LETTERS = 1000
_MOST_LETTERS = 10_000
# the language of fewer letters is a guess, and so is one that the detector is not sure of
_FEWEST_LETTERS, _SURE = 20, 0.9
_FEWEST_TEXTS = 20
_RARE = 0.01


def languages(texts: Texts) -> Languages | None:
    """The languages of an even sample of texts; None if too few of them are long enough to detect.

    Parameters
    ----------
    texts : Texts, shape (n_rows,)
    """
    rows = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), _SAMPLE)).astype(np.int64))
    long = [text for text in (texts[int(row)][:_LETTERS] for row in rows) if _letters(text) >= _FEWEST_LETTERS]
    if len(long) < _FEWEST_TEXTS:
        return None
    guesses = (_detector().classify(text) for text in long)
    found = Counter(str(language) for language, sure in guesses if sure >= _SURE)
    total = found.total()
    if total < _FEWEST_TEXTS:
        return None
    shares = [LanguageShare(language=language, share=n / total) for language, n in found.most_common()]
    common = [each for each in shares if each.share >= _RARE]
    rest = 1.0 - sum(each.share for each in common)
    if len(common) < len(shares):
        common.append(LanguageShare(language="other", share=rest))
    return Languages(n_rows=total, shares=common)


def language_scores(text: str, candidates: Sequence[str]) -> dict[str | None, float]:
    """The probability of each candidate language, the most probable first; None has that of all other languages.

    Raises
    ------
    ValueError
        The detector does not know a candidate.
    """
    known = dict(_detector().rank(text[:_MOST_LETTERS]))
    unknown = [language for language in candidates if language not in known]
    if unknown:
        raise ValueError(f"unknown languages: {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    found: dict[str | None, float] = {language: float(known[language]) for language in candidates}
    if not _letters(text):
        found = dict.fromkeys(found, 0.0)
    found[None] = max(0.0, 1.0 - sum(found.values()))
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text))


@lru_cache(1)
def _detector() -> LanguageIdentifier:
    # it takes a second and 100 MB, which a worker that imports no texts need not have
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
