"""The whole model of shards' parts most of whose weights are zero."""

from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp
from numba import njit

from solvers.core.sharded_linear_model import block_name
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, Array, Ints, Ints32

CHUNK = 1 << 24


def has_sparse_part(arrays: Mapping[str, Array]) -> bool:
    """Whether any shard has given sparse weights."""
    return any(name.startswith("indptr-") for name in arrays)


def sparse_model(
    classes: Sequence[str], n_features: int, owner: Ints32, arrays: Mapping[str, Array]
) -> SparseLinearModel:
    """The model of the files of all shards, of which some may have given dense weights.

    Parameters
    ----------
    classes : sequence of str
    n_features : int
        Without the constant.
    owner : int32 array, shape (n_classes,)
        The rank of each class.
    arrays : mapping
        May be memory-mapped.

    Raises
    ------
    ArrayFault
        The arrays do not fit one another.
    """
    n_shards, bias = int(owner.max()) + 1, float(arrays["bias"][0])
    features = np.asarray(arrays["features"])
    stored_arrays.require_ascending("features", features, n_features + (bias != 0))
    owns = [np.flatnonzero(owner == rank).astype(np.int32) for rank in range(n_shards)]
    blocks = [_block(rank, arrays, len(features), len(own)) for rank, own in enumerate(owns)]
    intercept: AnyFloats | None = None
    if bias != 0:
        intercept = np.empty(len(classes), blocks[0].dtype)
        for own, block in zip(owns, blocks, strict=True):
            intercept[own] = block[-1].toarray()[0] * block.dtype.type(bias)
    W = _side_by_side(blocks, owns, features[: len(features) - (bias != 0)], n_features)
    return SparseLinearModel(classes, W, intercept)


def _block(rank: int, arrays: Mapping[str, Array], n_rows: int, n_own: int) -> sp.csr_matrix:
    """The weights of a shard; dense ones are read some rows at a time."""
    if block_name(rank) not in arrays:
        mine = {name: np.asarray(arrays[f"{name}-{rank}"]) for name in ("indptr", "indices", "data")}
        return stored_arrays.sparse(mine, n_rows, n_own)
    W = arrays[block_name(rank)]
    stored_arrays.require_floats(block_name(rank), W, n_rows, n_own)
    step = max(1, CHUNK // n_own)
    return sp.csr_matrix(sp.vstack([sp.csr_matrix(W[j : j + step]) for j in range(0, n_rows, step)], format="csr"))


def _side_by_side(
    blocks: Sequence[sp.csr_matrix], owns: Sequence[Ints32], features: Ints, n_features: int
) -> sp.csr_matrix:
    """One matrix of all features and classes: row j of a block is that of ``features[j]``, its columns are ``owns``."""
    n_rows, indptr = len(features), np.zeros(n_features + 1, np.int64)
    for block in blocks:
        indptr[features + 1] += np.diff(block.indptr[: n_rows + 1])
    np.cumsum(indptr, out=indptr)
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], blocks[0].dtype)
    free = indptr[features]
    for block, own in zip(blocks, owns, strict=True):
        _put(np.asarray(block.indptr, np.int64), block.indices, block.data, own, free, indices, data)
    W = sp.csr_matrix((data, indices, indptr), shape=(n_features, sum(map(len, owns))))
    W.sort_indices()
    return W


@njit(cache=True, nogil=True)
def _put(begins: Ints, columns: Ints32, weights: Array, own: Ints32, free: Ints, indices: Ints32, data: Array) -> None:
    """Copy the rows of a block, each to where the matrix has room for it, which moves behind it."""
    for j in range(free.shape[0]):
        to = free[j]
        for p in range(begins[j], begins[j + 1]):
            indices[to], data[to] = own[columns[p]], weights[p]
            to += 1
        free[j] = to
