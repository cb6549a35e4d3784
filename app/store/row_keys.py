"""Hashes of the content of rows: of equal texts, numbers and categories the same, whatever the labels."""

import hashlib
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.formats.table import Texts

_BLOCK = 1 << 22
_MIX = np.uint64(0x9E3779B97F4A7C15)


def row_keys(
    matrices: Sequence[csr_matrix], texts: Sequence[Texts], names: Sequence[str] | None = None
) -> NDArray[np.uint64]:
    """Hashes of the content of rows, shape (n_rows,); 0 for a row without content.

    Parameters
    ----------
    matrices : sequence of csr_matrix of float64
        Numbers and categories of the rows, one segment below the other; empty where rows have none.
    texts : sequence of Texts
        The texts of the same rows; empty where rows have none.
    names : sequence of str, optional
        Of the columns of the matrices. Without names, columns are compared by their numbers.
    """
    columns = None if names is None or not matrices else _digests(name.encode() for name in names)
    cells = np.concatenate([_cell_keys(X, columns) for X in matrices]) if matrices else None
    if not texts:
        return np.zeros(0, np.uint64) if cells is None else cells
    found = np.concatenate([_text_keys(each) for each in texts])
    is_empty = np.concatenate([np.diff(each.offsets) for each in texts]) == 0
    if cells is not None:
        found ^= mixed(cells)
        is_empty &= cells == 0
    found[is_empty] = 0
    return found


def _digests(pieces: Iterable[bytes | memoryview]) -> NDArray[np.uint64]:
    return np.frombuffer(b"".join(hashlib.blake2b(piece, digest_size=8).digest() for piece in pieces), np.uint64)


def _text_keys(texts: Texts) -> NDArray[np.uint64]:
    blob = np.ascontiguousarray(texts.blob).data
    return _digests(blob[begin:end] for begin, end in pairwise(texts.offsets.tolist()))


def _cell_keys(X: csr_matrix, columns: NDArray[np.uint64] | None) -> NDArray[np.uint64]:
    """Of each row the sum of its entries' hashes."""
    indptr = np.asarray(X.indptr, np.int64)
    keys = np.zeros(X.shape[0], np.uint64)
    # a block at a time, as several arrays of 64 bits an entry are made of it
    cuts = np.searchsorted(indptr, np.arange(0, indptr[-1], _BLOCK), "right") - 1
    bounds = np.unique([*cuts.tolist(), 0, len(keys)]).tolist()
    for begin, end in pairwise(bounds):
        entries = slice(indptr[begin], indptr[end])
        indices = X.indices[entries]
        place = indices.astype(np.uint64) + np.uint64(1) if columns is None else columns[indices]
        keys[begin:end] = sums(mixed(X.data[entries].view(np.uint64) ^ mixed(place)), indptr[begin : end + 1])
    return keys


def mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Other 64 bits for each, which no sum or xor of a few of them repeats by chance."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (keys ^ (keys >> np.uint64(31))) * _MIX


def sums(entries: NDArray[np.uint64], indptr: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The sum of each row's entries, modulo 2**64; ``indptr`` may begin above 0."""
    total = np.zeros(len(entries) + 1, np.uint64)
    np.cumsum(entries, out=total[1:])
    found: NDArray[np.uint64] = np.diff(total[indptr - indptr[0]])
    return found
