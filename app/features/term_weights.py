"""How often terms are in texts becomes their weights: TF-IDF or BM25, rows of length one.

TF-IDF: a term found n times weighs (1 + ln n) idf, or n idf if not sublinear, with idf = ln((1 + N) / (1 + N_t)) + 1
for N texts of which N_t have the term.

BM25 (Robertson and Zaragoza 2009, The Probabilistic Relevance Framework, equation 3.15): n (k1 + 1) / (n + k1 (1 - b +
b L / mean L)) idf, with idf = ln(1 + (N - N_t + 0.5) / (N_t + 0.5)), which is never negative, and L the number of the
text's known terms.

Each row is then divided by its Euclidean length, whichever it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from app.features.base import Row
from app.features.row_loops import weigh_counts
from app.schemas.texts import TextRecipe

# terms of a text that is not unusually long
_USUAL = 1024


class TermWeights:
    """Fitted weights of terms.

    Parameters
    ----------
    recipe : TextRecipe
    idf : float64 array, shape (n_terms,)
    mean_length : float64 array, shape (1,), optional
        Of the texts that BM25 was fitted on; other weights need none.
    """

    def __init__(
        self, recipe: TextRecipe, idf: npt.NDArray[np.float64], mean_length: npt.NDArray[np.float64] | None = None
    ) -> None:
        self._recipe, self._idf, self._mean_length = recipe, idf, mean_length
        self._usual = np.empty(0)
        if mean_length is None:
            self._usual = self._of_count(_USUAL)

    @classmethod
    def fit(cls, recipe: TextRecipe, counts: csr_matrix[np.float64], in_texts: npt.NDArray[np.int64]) -> TermWeights:
        """Learn the weights from counts, shape (n_texts, n_terms), and in how many texts each is, shape (n_terms,)."""
        n_texts = counts.shape[0]
        if recipe.weighting == "tfidf":
            return cls(recipe, np.log((1 + n_texts) / (1 + in_texts)) + 1.0)
        idf = np.log1p((n_texts - in_texts + 0.5) / (in_texts + 0.5))
        return cls(recipe, idf, np.array([counts.data.sum() / n_texts]))

    def placed(self, columns: npt.NDArray[np.int64], n_terms: int) -> TermWeights:
        """The weights of so many terms: those of all but the last at their columns, the last one everywhere else."""
        idf = np.full(n_terms, self._idf[-1])
        idf[columns] = self._idf[:-1]
        return TermWeights(self._recipe, idf, self._mean_length)

    @classmethod
    def from_arrays(cls, recipe: TextRecipe, arrays: Mapping[str, npt.NDArray[Any]]) -> TermWeights:
        """The weights whose `arrays` these are."""
        return cls(recipe, np.asarray(arrays["idf"], dtype=np.float64), arrays.get("mean_length"))

    def __len__(self) -> int:
        return len(self._idf)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """`idf` (float64, n_terms), and of BM25 `mean_length` (float64, 1)."""
        return {"idf": self._idf} if self._mean_length is None else {"idf": self._idf, "mean_length": self._mean_length}

    def weigh(self, counts: csr_matrix[np.float64]) -> csr_matrix[np.float64]:
        """Counts become weights, in place."""
        lengths = np.diff(counts.indptr)
        row = np.repeat(np.arange(len(lengths)), lengths)
        total = None
        if self._mean_length is not None:
            total = np.bincount(row, counts.data, minlength=len(lengths)).astype(np.float64)[row]
        self._weigh(counts.data, counts.indices, total)
        squares = np.bincount(row, counts.data**2, minlength=len(lengths))
        counts.data /= np.sqrt(np.where(squares > 0.0, squares, 1.0))[row]
        return counts

    def row(self, columns: list[int]) -> Row:
        """One text, by the column of a term for each time that it is there: a row of :meth:`weigh`, to the bit."""
        placed = np.array(columns, dtype=np.int32)
        placed.sort()
        indices, weights = np.empty_like(placed), np.empty(len(placed))
        n = weigh_counts(placed, self._of_count(len(placed)), self._idf, indices, weights)
        return indices[:n], weights[:n]

    def _of_count(self, n_terms: int) -> npt.NDArray[np.float64]:
        """What 0, 1, 2, ..., `n_terms` of the same term weigh in a text of so many, before their idf."""
        if self._mean_length is None and n_terms < len(self._usual):
            return self._usual
        counts = np.arange(n_terms + 1, dtype=np.float64)
        self._scale(counts[1:], None if self._mean_length is None else np.array([float(n_terms)]))
        return counts

    def _weigh(
        self, counts: npt.NDArray[np.float64], indices: npt.NDArray[np.int32], total: npt.NDArray[np.float64] | None
    ) -> None:
        """Not yet of length one; `total` is how many terms the text of each count has."""
        self._scale(counts, total)
        counts *= self._idf[indices]

    def _scale(self, counts: npt.NDArray[np.float64], total: npt.NDArray[np.float64] | None) -> None:
        if self._mean_length is not None and total is not None:
            k1, b = self._recipe.bm25_k1, self._recipe.bm25_b
            mean = max(float(self._mean_length[0]), 1e-300)
            counts *= (k1 + 1.0) / (counts + k1 * (1.0 - b + b * (total / mean)))
        elif self._recipe.sublinear_tf:
            np.log(counts, out=counts)
            counts += 1.0
