"""A made-up thesaurus and texts with its concepts, of any size.

Names are two rare words; a concept has six words of its own besides. Texts have forty words by Zipf's law and, of each
of their four concepts, half of its own words and, in six of ten cases, one of its names. Concepts are drawn by Zipf's
law with exponent 0.9.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from app.features.concept_names import ConceptName

N_WORDS, N_BACKGROUND, N_CONCEPTS, N_OWN = 120_000, 40, 4, 6
NAMED, OWN, NAMES = 0.6, 0.5, 3.33
_SYLLABLES = [first + second for first in "bdfghjklmnprstvz" for second in "aeiou"]


class MadeUp(NamedTuple):
    """Concepts by number, their names, texts, and which concepts a text has: bool, shape (n_texts, n_concepts)."""

    concepts: list[str]
    names: list[ConceptName]
    texts: list[str]
    Y: sp.csr_matrix


def make(n_concepts: int, n_texts: int, seed: int = 0) -> MadeUp:
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 5, size=N_WORDS)
    made = sorted({"".join(_SYLLABLES[at] for at in random.integers(len(_SYLLABLES), size=size)) for size in sizes})
    words = [made[at] for at in random.permutation(len(made))]

    def zipf(n: int, exponent: float, shape: tuple[int, int]) -> np.ndarray:
        chances = 1.0 / np.arange(1, n + 1) ** exponent
        return random.choice(n, size=shape, p=chances / chances.sum())

    def rare(shape: tuple[int, int]) -> np.ndarray:
        return random.integers(len(words) // 20, len(words), size=shape)

    owner = np.concatenate([np.arange(n_concepts), random.integers(n_concepts, size=int((NAMES - 1) * n_concepts))])
    names = [
        ConceptName(concept, f"{words[one]} {words[two]}")
        for concept, (one, two) in zip(owner.tolist(), rare((len(owner), 2)), strict=True)
    ]
    of_concept: list[list[str]] = [[] for _ in range(n_concepts)]
    for each in names:
        of_concept[each.concept].append(each.name)
    own, number = rare((n_concepts, N_OWN)), random.permutation(n_concepts)
    sets = [np.unique(number[row]) for row in zipf(n_concepts, 0.9, (n_texts, N_CONCEPTS))]
    texts = []
    for background, chosen in zip(zipf(len(words), 1.0, (n_texts, N_BACKGROUND)), sets, strict=True):
        text = [words[at] for at in background]
        for concept in chosen.tolist():
            text += [words[at] for at in own[concept][random.random(N_OWN) < OWN]]
            if random.random() < NAMED:
                given = of_concept[concept]
                text.insert(int(random.integers(len(text))), given[random.integers(len(given))])
        texts.append(" ".join(text))
    begin = np.concatenate([[0], np.cumsum([len(each) for each in sets])])
    Y = sp.csr_matrix((np.ones(begin[-1], bool), np.concatenate(sets), begin), shape=(n_texts, n_concepts))
    return MadeUp([f"c{at:06d}" for at in range(n_concepts)], names, texts, Y)
