"""A CSR matrix built row by row, or block of rows by block."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from app.formats.growing import Growing

MAX_INDEX = 2**31 - 1


class Rows:
    """Rows of a sparse matrix as they are read."""

    def __init__(self) -> None:
        self._lengths = Growing(np.int64)
        self._indices = Growing(np.int32)
        self._values = Growing(np.float64)

    def __len__(self) -> int:
        return len(self._lengths)

    def add(
        self, lengths: npt.NDArray[np.int64], indices: npt.NDArray[np.int32], values: npt.NDArray[np.float64]
    ) -> None:
        """Append rows: `lengths` (k,) entries each, of the 0-based `indices` and `values` (sum of lengths,)."""
        self._lengths.extend(lengths)
        self._indices.extend(indices)
        self._values.extend(values)

    def build(self, n_features: int | None = None) -> csr_matrix[np.float64]:
        """The canonical matrix: sorted indices, no stored zeros; the caller vouches that no row repeats an index.

        Parameters
        ----------
        n_features : int, optional
            Number of columns; by default the largest index plus one.
        """
        indices, values, lengths = self._indices.build(), self._values.build(), self._lengths.build()
        if n_features is None:
            n_features = int(indices.max()) + 1 if len(indices) else 0
        indptr = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=indptr[1:])
        X = csr_matrix((values, indices, indptr), shape=(len(lengths), n_features))
        X.sort_indices()
        if np.count_nonzero(X.data) < X.nnz:
            X.eliminate_zeros()
        X.has_canonical_format = True
        return X
