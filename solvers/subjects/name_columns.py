"""Columns of names: what the places of a concept's names in a text are like, and whose names are alike."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.labels.name_block import N_COLUMNS
from solvers.subjects.lexicon import PARTS, REORDERED, Lexicon, Matches

# concepts whose names are alike, for each concept; those that share less are not alike
_MOST_ALIKE, _LEAST_ALIKE = 30, 0.25


def alike_names(lexicon: Lexicon, n_concepts: int) -> sp.csr_matrix:
    """Cosines of concepts' names, as :class:`NameBlock` has them."""
    rarity = rarities(lexicon)
    owner = lexicon.concept[np.repeat(np.arange(lexicon.n_names), np.diff(lexicon.begin))]
    shape = (n_concepts, len(lexicon.tokens))
    bags = sp.csr_matrix((rarity[lexicon.words], (owner, lexicon.words)), shape=shape)
    norms = np.sqrt(np.asarray(bags.multiply(bags).sum(axis=1)).ravel())
    bags = sp.csr_matrix(sp.csr_matrix(sp.diags(1.0 / np.maximum(norms, 1e-12)) @ bags).astype(np.float32))
    turned, parts = bags.T.tocsr(), []
    for begin in range(0, n_concepts, 4096):
        block = sp.csr_matrix(bags[begin : begin + 4096] @ turned)
        row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
        kept = (block.data >= _LEAST_ALIKE) & (block.indices != row + begin)
        order = np.lexsort((block.indices, -block.data, row))
        order = order[kept[order]]
        place = np.arange(len(order)) - np.searchsorted(row[order], row[order])
        order = order[place < _MOST_ALIKE]
        shape = (block.shape[0], n_concepts)
        parts.append(sp.csr_matrix((block.data[order], (row[order], block.indices[order])), shape=shape))
    return sp.csr_matrix(sp.vstack(parts, format="csr")).astype(np.float32)


def rarities(lexicon: Lexicon) -> NDArray[np.float64]:
    """The inverse document frequency of each word among names, shape (n_tokens,)."""
    return np.asarray(np.log((1.0 + lexicon.n_names) / np.maximum(1, lexicon.frequency)))


class MatchRows:
    """Makes the columns of texts from the names found in them.

    Parameters
    ----------
    lexicon : Lexicon
    n_concepts : int
    """

    def __init__(self, lexicon: Lexicon, n_concepts: int) -> None:
        self._concept, self._length = lexicon.concept, np.diff(lexicon.begin).astype(np.float64)
        self._last = N_COLUMNS * n_concepts
        rarity = rarities(lexicon)
        total = np.add.reduceat(rarity[lexicon.words], lexicon.begin[:-1]) if lexicon.n_names else np.empty(0)
        self._rarity = total / np.maximum(1.0, self._length)
        self._ambiguity = _sharing(lexicon)

    def row(self, found: Matches, n_words: int, n_title: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Columns, ascending, and values of one text.

        Parameters
        ----------
        found : Matches
        n_words : int
            Of the text.
        n_title : int
            Words of its first sentence or line.
        """
        concepts, of = np.unique(self._concept[found.name], return_inverse=True)
        k, size = len(concepts), max(1, n_words)
        values = np.zeros((k, N_COLUMNS))
        hits = np.bincount(of, minlength=k)
        begin, end = np.full(k, np.inf), np.zeros(k)
        np.minimum.at(begin, of, found.first)
        np.maximum.at(end, of, found.last)
        values[:, 0] = np.log1p(hits)
        values[:, 1] = np.bincount(of, found.how < REORDERED, minlength=k) / np.maximum(1, hits)
        values[:, 2] = np.bincount(of, found.how == PARTS, minlength=k) / np.maximum(1, hits)
        values[:, 3] = 1.0 - begin / size
        values[:, 4] = (end - begin) / size
        np.maximum.at(values[:, 5], of, (found.first < n_title).astype(float))
        np.maximum.at(values[:, 6], of, self._length[found.name])
        np.maximum.at(values[:, 7], of, self._rarity[found.name])
        values[:, 8] = np.inf
        np.minimum.at(values[:, 8], of, self._ambiguity[found.name])
        columns = (concepts[:, None] * N_COLUMNS + np.arange(N_COLUMNS)).ravel()
        flat = values.ravel()
        kept = flat != 0
        indices = np.append(columns[kept], self._last).astype(np.int32)
        return indices, np.append(flat[kept], np.log1p(n_words))


def _sharing(lexicon: Lexicon) -> NDArray[np.float64]:
    """``log(1 + m)`` of each name, m being the other concepts that have a name of the same words."""
    bounds = lexicon.begin.tolist()
    words = lexicon.words.tolist()
    bags = [tuple(sorted(words[i:j])) for i, j in pairwise(bounds)]
    owners: dict[tuple[int, ...], set[int]] = {}
    for bag, concept in zip(bags, lexicon.concept.tolist(), strict=True):
        owners.setdefault(bag, set()).add(concept)
    return np.log1p(np.array([len(owners[bag]) - 1 for bag in bags], np.float64))
