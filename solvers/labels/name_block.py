"""Columns of a matrix that say which names of classes occur in a text, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.labels import stored_arrays

# of each class that a text names; what one is not is left out, but `hits` is always there
MATCH_COLUMNS = ("hits", "exact", "parts", "begin", "spread", "title", "n_words", "rarity", "ambiguity")
N_COLUMNS = len(MATCH_COLUMNS)


@dataclass(frozen=True, eq=False)
class NameBlock:
    """Where the names begin among the columns, and what is known of concepts beside the texts.

    Columns ``first + K c`` to ``first + K c + K - 1`` are those of concept c, K being ``N_COLUMNS``; the last column of
    all is the logarithm of one more than the text's number of words.

    Attributes
    ----------
    n_concepts : int
        Concepts are the classes of the problem, in their order.
    alike : csr_matrix of float32, shape (n_concepts, n_concepts)
        Cosines of the names of two concepts, of 0.25 and more, the 30 largest a row; words weigh by their rarity among
        names. None of a concept with itself.
    """

    first: int
    n_concepts: int
    alike: sp.csr_matrix

    def split(self, X: sp.csr_matrix) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """The terms, shape (n_rows, first), and what is left, shape (n_rows, n_columns - first)."""
        return X[:, : self.first], X[:, self.first :]

    def named(self, matches: sp.csr_matrix) -> sp.csr_matrix:
        """Which concepts rows name: int8 ones, shape (n_rows, n_concepts); of the columns behind the terms."""
        inside = matches.indices < N_COLUMNS * self.n_concepts
        row = np.repeat(np.arange(matches.shape[0]), np.diff(matches.indptr))[inside]
        keys = np.unique(row * np.int64(self.n_concepts) + matches.indices[inside] // N_COLUMNS)
        row, concept = np.divmod(keys, np.int64(self.n_concepts))
        return sp.csr_matrix((np.ones(len(keys), np.int8), (row, concept)), shape=(matches.shape[0], self.n_concepts))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """As :meth:`from_arrays` takes them."""
        shape = np.array([self.first, self.n_concepts])
        alike = self.alike
        return {"shape": shape, "indptr": alike.indptr, "indices": alike.indices, "data": alike.data}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> NameBlock:
        """The block whose :meth:`arrays` these are."""
        first, n = (int(each) for each in arrays["shape"])
        return cls(first, n, stored_arrays.sparse(arrays, n, n))
