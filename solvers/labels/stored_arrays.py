"""What is asked of a stored model's arrays before compiled loops, which check no index, may read them."""

from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp

from solvers.labels.taxonomy import Taxonomy
from solvers.numerics.array_types import Array


class ArrayFault(ValueError):
    """Arrays of a stored model do not fit one another; the message names the array, what it has and what was due."""


def require_shape(name: str, array: Array, *shape: int) -> None:
    """Raise ArrayFault unless ``array`` has that shape."""
    if array.shape != shape:
        raise ArrayFault(f"the array {name} has the shape {array.shape}; expected {shape}")


def require_floats(name: str, array: Array | None, *shape: int, half: bool = False) -> None:
    """Raise ArrayFault unless ``array`` is None, or has floating-point numbers in that shape.

    Those of half precision are allowed with ``half``: few loops read them.
    """
    if array is None:
        return
    if array.dtype.kind != "f" or (array.dtype == np.float16 and not half):
        raise ArrayFault(f"the array {name} has the type {array.dtype}; expected floating-point numbers")
    require_shape(name, array, *shape)


def require_numbers(name: str, array: Array, *shape: int) -> None:
    """Raise ArrayFault unless ``array`` has signed integers or floating-point numbers in that shape."""
    if array.dtype.kind != "i":
        require_floats(name, array, *shape)
    require_shape(name, array, *shape)


def require_within(name: str, array: Array, least: int, end: int) -> None:
    """Raise ArrayFault unless ``array`` has one axis of signed integers, all from ``least`` to ``end - 1``."""
    if array.ndim != 1 or array.dtype.kind != "i":
        raise ArrayFault(f"the array {name} has the shape {array.shape} and the type {array.dtype}; expected integers")
    if len(array) and not (least <= array.min() and array.max() < end):
        raise ArrayFault(f"the array {name} runs from {array.min()} to {array.max()}; expected {least} to {end - 1}")


def require_ascending(name: str, array: Array, end: int) -> None:
    """Raise ArrayFault unless ``array`` has integers from 0 to ``end - 1``, each larger than the one before."""
    require_within(name, array, 0, end)
    if not (array[1:] > array[:-1]).all():
        raise ArrayFault(f"the array {name} is not strictly increasing")


def require_starts(name: str, array: Array, n_parts: int, end: int) -> None:
    """Raise ArrayFault unless ``array``, shape (n_parts + 1,), goes from 0 to ``end`` and never falls."""
    require_within(name, array, 0, end + 1)
    require_shape(name, array, n_parts + 1)
    if array[0] != 0 or array[-1] != end or not (array[1:] >= array[:-1]).all():
        raise ArrayFault(f"the array {name} does not rise from 0 to {end}")


def of_sparse(W: sp.csr_matrix, half: bool) -> dict[str, Array]:
    """The arrays ``data``, ``indices`` and ``indptr`` of a csr_matrix.

    With ``half`` the data are float16, and the indices uint16 where that is enough.
    """
    short = half and W.shape[1] <= np.iinfo(np.uint16).max + 1
    indices = W.indices.astype(np.uint16) if short else W.indices
    return {"indptr": W.indptr, "indices": indices, "data": W.data.astype(np.float16) if half else W.data}


def sparse_nbytes(W: sp.csr_matrix) -> int:
    """Bytes of a csr_matrix in memory."""
    return int(W.data.nbytes + W.indices.nbytes + W.indptr.nbytes)


def sparse(arrays: Mapping[str, Array], n_rows: int, n_columns: int) -> sp.csr_matrix:
    """The csr_matrix of the arrays of :func:`of_sparse`, in memory float32 and int32; raises ArrayFault."""
    data, indices, indptr = arrays["data"], arrays["indices"], arrays["indptr"]
    indices = indices.astype(np.int32) if indices.dtype == np.uint16 else indices
    require_floats("data", data, len(indices), half=True)
    require_within("indices", indices, 0, n_columns)
    require_starts("indptr", indptr, n_rows, len(indices))
    data = data.astype(np.float32) if data.dtype == np.float16 else data
    return sp.csr_matrix((data, indices, indptr), shape=(n_rows, n_columns))


def require_parents(parent: Array) -> None:
    """Raise ArrayFault unless each node's parent is -1 or a smaller node, and there is a node."""
    require_within("parent", parent, -1, len(parent))
    if len(parent) == 0 or not (parent < np.arange(len(parent))).all():
        raise ArrayFault("the array parent has no node, or has a node before its parent")


def tree(names: Sequence[str], parent: Array) -> Taxonomy:
    """The label tree of stored names and parents; raises ArrayFault."""
    require_parents(parent)
    require_shape("parent", parent, len(names))
    if not (parent[1:] >= parent[:-1]).all():
        raise ArrayFault("the array parent decreases; nodes must be numbered level by level")
    return Taxonomy(tuple(names), parent)


def of_tree(tree: Taxonomy) -> dict[str, Array]:
    """The arrays that :func:`graph` reads."""
    own: dict[str, Array] = {"parent": tree.parent}
    return own if tree.is_tree else own | {"others": tree.others}


def graph(names: Sequence[str], arrays: Mapping[str, Array]) -> Taxonomy:
    """The label tree or graph of stored names and the arrays ``parent`` and ``others``; raises ArrayFault."""
    found = tree(names, np.asarray(arrays["parent"]))
    if "others" not in arrays:
        return found
    others = np.asarray(arrays["others"])
    if others.ndim != 2 or len(others) == 0:
        raise ArrayFault(f"the array others has the shape {others.shape}; expected at least one edge")
    require_shape("others", others, len(others), 2)
    for column in others.T:
        require_within("others", column, 0, len(names))
    child, above = others.T
    # the parent with the longest way up is the tree's, so that all parents are on higher levels
    if not (found.level[above] < found.level[child]).all() or (found.parent[child] == above).any():
        raise ArrayFault("the array others has an edge that is not beside the tree")
    if not (np.diff(child) >= 0).all():
        raise ArrayFault("the array others decreases; edges must be in the order of children")
    return Taxonomy(found.names, found.parent, others)
