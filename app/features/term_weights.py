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

from app.datasets.recipe_schemas import TextRecipe
from app.features.base import Row
from app.features.row_loops import weigh_counts

# terms of a text that is not unusually long
_USUAL = 1024


class TermWeights:
    """Fitted weights of terms.

    Parameters
    ----------
    idf : float64 array, shape (n_terms,) or, with `found`, (n_found + 1,)
    mean_length : float64 array, shape (1,), optional
        Of the texts that BM25 was fitted on; other weights need none.
    found : int32 array, shape (n_found,), optional
        Of hashed terms: the columns that some text has, sorted, one at least. They have the first idfs, in this order,
        and all other columns the last one.
    """

    def __init__(
        self,
        recipe: TextRecipe,
        idf: npt.NDArray[np.float64],
        mean_length: npt.NDArray[np.float64] | None = None,
        found: npt.NDArray[np.int32] | None = None,
    ) -> None:
        if found is not None and not 0 < len(found) == len(idf) - 1:
            raise ValueError(f"{len(idf)} weights for {len(found)} columns and the others")
        self._recipe, self._idf, self._mean_length, self._found = recipe, idf, mean_length, found
        self._usual = np.empty(0)
        if mean_length is None:
            self._usual = self._of_count(_USUAL)

    @classmethod
    def fit(
        cls,
        recipe: TextRecipe,
        counts: csr_matrix[np.float64],
        in_texts: npt.NDArray[np.int64],
        n_texts: npt.NDArray[np.int64],
        found: npt.NDArray[np.int32] | None = None,
    ) -> TermWeights:
        """Learn the weights from counts.

        Parameters
        ----------
        counts : csr_matrix, shape (n_texts, n_terms)
        in_texts : int64 array, shape (n_terms,) or (n_found,)
            In how many texts each term is.
        n_texts : int64 array, shape (n_terms,) or (n_found,)
            Of how many: those in the term's language, if languages have terms of their own.
        found : int32 array, shape (n_found,), optional
            The columns of these terms, if they are not all.
        """
        if found is not None:
            in_texts, n_texts = np.append(in_texts, 0), np.append(n_texts, counts.shape[0])
        if recipe.weighting == "tfidf":
            return cls(recipe, np.log((1 + n_texts) / (1 + in_texts)) + 1.0, found=found)
        idf = np.log1p((n_texts - in_texts + 0.5) / (in_texts + 0.5))
        return cls(recipe, idf, np.array([counts.data.sum() / counts.shape[0]]), found)

    @classmethod
    def from_arrays(cls, recipe: TextRecipe, arrays: Mapping[str, npt.NDArray[Any]]) -> TermWeights:
        """The weights whose `arrays` these are."""
        idf = np.asarray(arrays["idf"], dtype=np.float64)
        return cls(recipe, idf, arrays.get("mean_length"), arrays.get("idf_columns"))

    def __len__(self) -> int:
        return len(self._idf) if self._found is None else self._recipe.hash_features or 0

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """`idf` (float64); of BM25 `mean_length` (float64, 1), of hashed terms `idf_columns` (int32, n_found).

        Earlier versions have an idf for every hashed column, and no `idf_columns`.
        """
        arrays = {"idf": self._idf, "mean_length": self._mean_length, "idf_columns": self._found}
        return {name: array for name, array in arrays.items() if array is not None}

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
        n = weigh_counts(placed, self._of_count(len(placed)), self._idf_of(placed), indices, weights)
        return indices[:n], weights[:n]

    def known(self, columns: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Which columns some text has that the weights were fitted on; all, where that was not kept."""
        if self._found is None:
            return np.ones(len(columns), dtype=bool)
        return np.asarray(self._found.take(np.searchsorted(self._found, columns), mode="clip") == columns)

    def _idf_of(self, columns: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        if self._found is None:
            return self._idf[columns]
        return self._idf[np.where(self.known(columns), np.searchsorted(self._found, columns), len(self._found))]

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
        counts *= self._idf_of(indices)

    def _scale(self, counts: npt.NDArray[np.float64], total: npt.NDArray[np.float64] | None) -> None:
        if self._mean_length is not None and total is not None:
            k1, b = self._recipe.bm25_k1, self._recipe.bm25_b
            mean = max(float(self._mean_length[0]), 1e-300)
            counts *= (k1 + 1.0) / (counts + k1 * (1.0 - b + b * (total / mean)))
        elif self._recipe.sublinear_tf:
            np.log(counts, out=counts)
            counts += 1.0
