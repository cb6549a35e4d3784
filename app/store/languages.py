"""The languages that a dataset's texts are in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from app.datasets.statistics_schemas import Languages, LanguageShare
from app.features.language_detection import MOST_LETTERS, NO_LANGUAGE, detector, language_scores, n_letters
from app.store.relabelling import without
from solvers.numerics.array_types import Floats

if TYPE_CHECKING:
    from app.formats.table import Parsed, Texts
    from app.store.segments import SegmentedTexts

_SAMPLE = 1000
_LETTERS = 1000
# the language of fewer letters is a guess, and so is one that the detector is not sure of
_FEWEST_LETTERS, _SURE = 20, 0.9
_FEWEST_TEXTS = 20
# letters from which on users expect a language to be found
_EXPECTED_LETTERS = 300
_RARE = 0.01
_MIXTURE_STEPS = 100


def languages(texts: Texts | SegmentedTexts) -> Languages | None:
    """The languages of an even sample of texts; without shares if they are not clear, None if the texts are too short.

    Each long text is evidence of its own. Where fewer than twenty are clear, all texts of the sample are evidence
    together.

    Parameters
    ----------
    texts : Texts or SegmentedTexts, shape (n_rows,)
    """
    rows = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), _SAMPLE)).astype(np.int64))
    sample = [texts[int(row)][:_LETTERS] for row in rows]
    found = _of_each([text for text in sample if n_letters(text) >= _FEWEST_LETTERS])
    if found.total() < _FEWEST_TEXTS:
        found = _of_all([text for text in sample if n_letters(text)])
    total = found.total()
    if total < _FEWEST_TEXTS:
        return Languages(n_rows=0, shares=[]) if _are_enough(sample, set(sample), _EXPECTED_LETTERS) else None
    shares = [LanguageShare(language=language, share=n / total) for language, n in found.most_common()]
    common = [each for each in shares if each.share >= _RARE]
    rest = 1.0 - sum(each.share for each in common)
    if len(common) < len(shares):
        common.append(LanguageShare(language="other", share=rest))
    return Languages(n_rows=total, shares=common)


def _of_each(texts: list[str]) -> Counter[str]:
    if len(texts) < _FEWEST_TEXTS:
        return Counter()
    guesses = map(detector().classify, texts)
    return Counter(str(language) for language, sure in guesses if sure >= _SURE)


def _of_all(texts: list[str]) -> Counter[str]:
    """The texts by the language that is clear once the shares of all languages are estimated; none if in doubt.

    The shares are those of the mixture of languages that makes the texts most probable, by expectation maximisation
    (Saerens, Latinne and Decaestecker 2002, equations 2.9 and 2.10). It has an answer for codes and invented words too:
    the most probable language of the distinct texts' concatenation must be the same.
    """
    distinct = list(dict.fromkeys(texts))
    if not _are_enough(texts, distinct, _FEWEST_TEXTS * _FEWEST_LETTERS):
        return Counter()
    names, alone = _probabilities(texts)
    together, share = _mixture(alone)
    first = names[int(share.argmax())]
    if first == NO_LANGUAGE or first != detector().classify("\n".join(distinct)[:MOST_LETTERS])[0]:
        return Counter()
    clear = together[together.max(axis=1) >= _SURE]
    return Counter(names[at] for at in clear.argmax(axis=1).tolist())


def _probabilities(texts: Sequence[str]) -> tuple[list[str], Floats]:
    """The detector's languages, and the probability of each for each text: shape (n_texts, n_languages)."""
    found: list[Counter[str]] = []
    for text in texts:
        found.append(Counter())
        for language, probability in detector().rank(text):
            found[-1][language] += probability  # some have an entry for each script
    names = sorted(found[0])
    return names, np.array([[each[name] for name in names] for each in found], dtype=np.float64)


def _mixture(alone: Floats) -> tuple[Floats, Floats]:
    """The probabilities of languages given their shares of all texts, and these shares."""
    share = np.full(alone.shape[1], 1 / alone.shape[1])
    for _ in range(_MIXTURE_STEPS):
        together = alone * share
        together /= np.maximum(together.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        share = together.mean(axis=0)
    return together, share


def _are_enough(texts: Collection[str], distinct: Collection[str], letters: int) -> bool:
    """Whether there are enough texts, and so many letters in the distinct ones."""
    return len(texts) >= _FEWEST_TEXTS and sum(map(n_letters, distinct)) >= letters


def in_languages(rows: Parsed, wanted: Sequence[str]) -> Parsed:
    """The rows whose texts are in some languages: these together are at least as probable as all others.

    A short text alone may be in many languages: how many of the rows are in each one counts, too. Texts without letters
    are in every language.

    Raises
    ------
    ValueError
        The rows have no texts, none is in these languages, or the detector does not know a language.
    """
    if rows.texts is None:
        raise ValueError("the rows have no texts")
    language_scores("", wanted)  # raises for languages that are not known
    with_letters = [row for row, text in enumerate(rows.texts) if n_letters(text)]
    others: list[int] = []
    if with_letters:
        sample = np.unique(np.linspace(0, len(with_letters) - 1, _SAMPLE).astype(np.int64)).tolist()
        names, alone = _probabilities([rows.texts[with_letters[at]][:_LETTERS] for at in sample])
        # as if there were one more text in each language
        prior = (len(sample) * _mixture(alone)[1] + 1.0) / (len(sample) + len(names))
        is_wanted = np.isin(names, wanted)
        for row in with_letters:
            together = _probabilities([rows.texts[row][:MOST_LETTERS]])[1][0] * prior
            if 2.0 * together[is_wanted].sum() < together.sum():
                others.append(row)
    if len(others) == rows.n_rows:
        raise ValueError(f"no text is in {' or '.join(wanted)}")
    kept = without(rows, others) if others else rows
    return replace(kept, origins=rows.origins, n_other_languages=len(others))
