"""Features cut into bins, once, so that weak learners are sought among whole numbers."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from solvers.boosting.weak_learners import bin_codes
from solvers.boosting.weak_learners.bin_codes import BinArrays
from solvers.numerics.array_types import Array, Floats, Ints, Ints32

DENSE = 0.25
CHUNK_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class Bins:
    """The bin of every value of a matrix; features with a single value are left out.

    A value's bin is the number of its feature's thresholds below it, so ``x <= thresholds[first[f] + b]`` holds for the
    bins up to b. Features of which a quarter of the values or more are not zero come first, one code a row; of the
    others only the entries are kept, and all other rows are in the bin of zero.

    Attributes
    ----------
    n : int
        Rows.
    features : int64 array, shape (n_kept,)
        The column of each kept feature.
    n_bins : int32 array, shape (n_kept,)
        At least 2.
    first : int64 array, shape (n_kept + 1,)
        Where the thresholds of each feature begin.
    thresholds : float64 array, shape (first[-1],)
        Ascending within a feature.
    dense : array of uint8, uint16 or int32, shape (n_dense, n)
    indptr : int64 array, shape (n_kept - n_dense + 1,)
        Where the entries of each sparse feature begin.
    rows : int32 array, shape (nnz,)
    codes : array as dense, shape (nnz,)
    zero : int32 array, shape (n_kept - n_dense,)
        The bin of zero of each sparse feature.
    """

    n: int
    features: Ints
    n_bins: Ints32
    first: Ints
    thresholds: Floats
    dense: Array
    indptr: Ints
    rows: Ints32
    codes: Array
    zero: Ints32

    @classmethod
    def from_matrix(cls, X: sp.csr_matrix, limit: int | None = None) -> "Bins":
        """Cut the features of X, shape (n, n_features), into at most ``limit`` bins each.

        A feature with no more distinct values than that, and any with ``limit`` None, is cut between all of them.
        """
        n = X.shape[0]
        columns = X.tocsc()
        counts = np.diff(columns.indptr)
        dense = np.flatnonzero(counts >= DENSE * n)
        sparse = np.flatnonzero((counts > 0) & (counts < DENSE * n))
        most = n + 1 if limit is None else limit
        cuts, thresholds = [], []
        for chunk in _chunks(dense, n):
            ordered = np.sort(_dense(columns, chunk), axis=1)
            found = _cut(np.arange(len(chunk) + 1, dtype=np.int64) * n, ordered.ravel(), n, most)
            cuts.append(found[0])
            thresholds.append(found[1])
        entries = columns[:, sparse]
        for begin, end in zip(entries.indptr[:-1], entries.indptr[1:], strict=True):
            entries.data[begin:end].sort()
        found = _cut(entries.indptr.astype(np.int64), entries.data, n, most)
        n_cuts = np.concatenate([*cuts, found[0]])
        cut = n_cuts > 0
        return cls._encoded(
            columns,
            np.concatenate([dense, sparse])[cut].astype(np.int64),
            int(np.count_nonzero(cut[: len(dense)])),
            n_cuts[cut],
            np.concatenate([*thresholds, found[1]]),
        )

    def encode(self, X: sp.csr_matrix) -> "Bins":
        """The rows of another matrix in the same bins."""
        return self._encoded(X.tocsc(), self.features, len(self.dense), self.n_bins - 1, self.thresholds)

    @classmethod
    def _encoded(
        cls, columns: sp.csc_matrix, features: Ints, n_dense: int, n_cuts: Ints32, thresholds: Floats
    ) -> "Bins":
        n = columns.shape[0]
        first = np.concatenate([[0], np.cumsum(n_cuts, dtype=np.int64)])
        most = int(n_cuts.max(initial=0)) + 1
        dtype = np.uint8 if most <= 1 << 8 else np.uint16 if most <= 1 << 16 else np.int32
        dense = np.empty((n_dense, n), dtype)
        at = 0
        for chunk in _chunks(features[:n_dense], n):
            bin_codes.encode_dense(
                _dense(columns, chunk), first[at : at + len(chunk) + 1], thresholds, dense[at : at + len(chunk)]
            )
            at += len(chunk)
        entries = columns[:, features[n_dense:]]
        indptr = entries.indptr.astype(np.int64)
        codes = np.empty(len(entries.data), dtype)
        bin_codes.encode_sparse(indptr, entries.data, first[n_dense:], thresholds, codes)
        zeros = np.arange(len(features) - n_dense + 1, dtype=np.int64)
        zero = np.empty(len(features) - n_dense, dtype)
        bin_codes.encode_sparse(zeros, np.zeros(len(zero)), first[n_dense:], thresholds, zero)
        return cls(
            n, features, (n_cuts + 1).astype(np.int32), first, thresholds, dense, indptr,
            entries.indices.astype(np.int32), codes, zero.astype(np.int32),
        )  # fmt: skip

    @cached_property
    def arrays(self) -> BinArrays:
        """What compiled loops take of it."""
        return BinArrays(self.dense, self.indptr, self.rows, self.codes, self.zero, self.n_bins, self.first)

    @property
    def n_features(self) -> int:
        """Features that are kept."""
        return len(self.features)

    def feature_of(self, position: Ints) -> Ints:
        """The kept feature to which each threshold belongs."""
        return np.searchsorted(self.first, position, side="right") - 1

    def work(self) -> Ints:
        """Rows that a visit of each feature reads."""
        n_dense = len(self.dense)
        visits = np.concatenate([np.full(n_dense, self.n, np.int64), np.diff(self.indptr)])
        return np.asarray(visits + self.n_bins, np.int64)


def _cut(indptr: Ints, values: Floats, n: int, limit: int) -> tuple[Ints32, Floats]:
    room = int(np.minimum(np.diff(indptr), limit).sum())
    thresholds = np.empty(room)
    n_cuts = bin_codes.cuts(indptr, values, n, limit, thresholds)
    return n_cuts, thresholds[: int(n_cuts.sum())]


def _chunks(columns: Array, n: int) -> list[Array]:
    size = max(1, CHUNK_BYTES // (8 * max(n, 1)))
    return [columns[begin : begin + size] for begin in range(0, len(columns), size)]


def _dense(columns: sp.csc_matrix, chosen: Array) -> Floats:
    """Columns as contiguous rows, shape (len(chosen), n)."""
    return np.ascontiguousarray(columns[:, chosen].toarray(order="F").T)
