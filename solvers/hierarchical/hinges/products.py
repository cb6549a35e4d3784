"""Products of an example with the weights of nodes, and changes of these: sparse rows, or dense ones.

Beside sparse rows R has one row a feature, so that the products with all nodes are a sum of few rows; beside dense rows
one row a node, so that the product with a node is one inner product. Which of the two a compiled function takes is
settled by the type of its rows.
"""

from typing import Any

import numpy as np
from numba.extending import overload

from solvers.linear.layouts import dense_simd
from solvers.linear.layouts.dense_simd import DenseRows, dot, dots
from solvers.numerics.row_sums import sum_rows


def _is_dense(rows: Any) -> bool:
    return rows.instance_class is DenseRows


def n_products(rows: Any, R: Any) -> int:
    """How many numbers :func:`with_all` writes: the nodes, and what pads them."""
    raise NotImplementedError("called only from compiled code")


@overload(n_products, inline="always")
def _n_products(rows: Any, R: Any) -> Any:
    if _is_dense(rows):

        def dense(rows: Any, R: Any) -> Any:
            return R.shape[0]

        return dense

    def sparse(rows: Any, R: Any) -> Any:
        return R.shape[1]

    return sparse


def with_all(rows: Any, i: int, R: Any, out: Any) -> None:
    """out = the products of row i with all nodes."""
    raise NotImplementedError("called only from compiled code")


@overload(with_all, inline="always")
def _with_all(rows: Any, i: Any, R: Any, out: Any) -> Any:
    if _is_dense(rows):

        def dense(rows: Any, i: Any, R: Any, out: Any) -> Any:
            dots(R, rows.data, i, out)

        return dense

    def sparse(rows: Any, i: Any, R: Any, out: Any) -> Any:
        sum_rows(R, rows.indices, rows.data, rows.indptr[i], rows.indptr[i + 1], out)

    return sparse


def with_range(rows: Any, i: int, R: Any, low: int, high: int, first: int, out: Any) -> None:
    """out[j - first] = the product of row i with node j, from ``low`` on and before ``high``."""
    raise NotImplementedError("called only from compiled code")


@overload(with_range, inline="always")
def _with_range(rows: Any, i: Any, R: Any, low: Any, high: Any, first: Any, out: Any) -> Any:
    def dense(rows: Any, i: Any, R: Any, low: Any, high: Any, first: Any, out: Any) -> Any:
        data = rows.data
        for j in range(low, high):
            out[j - first] = dot(R, j, data, i)

    def sparse(rows: Any, i: Any, R: Any, low: Any, high: Any, first: Any, out: Any) -> Any:
        indptr, indices, data, _ = rows
        begin = low - first
        for j in range(high - low):
            out[begin + j] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x, r = data[p], R[indices[p]]
            for j in range(high - low):
                out[begin + j] += x * r[low + j]

    return dense if _is_dense(rows) else sparse


def with_some(rows: Any, i: int, R: Any, nodes: Any, n: int, sums: Any, out: Any) -> None:
    """out[j] = the product of row i with node j, for the first n nodes given; ``sums`` is room for n numbers."""
    raise NotImplementedError("called only from compiled code")


@overload(with_some, inline="always")
def _with_some(rows: Any, i: Any, R: Any, nodes: Any, n: Any, sums: Any, out: Any) -> Any:
    def dense(rows: Any, i: Any, R: Any, nodes: Any, n: Any, sums: Any, out: Any) -> Any:
        data = rows.data
        for t in range(n):
            out[nodes[t]] = dot(R, nodes[t], data, i)

    def sparse(rows: Any, i: Any, R: Any, nodes: Any, n: Any, sums: Any, out: Any) -> Any:
        indptr, indices, data, _ = rows
        for t in range(n):
            sums[t] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x, r = data[p], R[indices[p]]
            for t in range(n):
                # not counted from the end: as of add_up in solvers/hierarchical/hinges/path_rivals.py
                sums[t] += x * r[np.uint64(nodes[t])]
        for t in range(n):
            out[nodes[t]] = sums[t]

    return dense if _is_dense(rows) else sparse


def add(rows: Any, i: int, nodes: Any, n: int, by_node: Any, R: Any) -> None:
    """Add row i times ``by_node[j]`` to the weights of node j, for the first n nodes given."""
    raise NotImplementedError("called only from compiled code")


@overload(add, inline="always")
def _add(rows: Any, i: Any, nodes: Any, n: Any, by_node: Any, R: Any) -> Any:
    def dense(rows: Any, i: Any, nodes: Any, n: Any, by_node: Any, R: Any) -> Any:
        data = rows.data
        for t in range(n):
            dense_simd.add(R, nodes[t], R.dtype.type(by_node[nodes[t]]), data, i)

    def sparse(rows: Any, i: Any, nodes: Any, n: Any, by_node: Any, R: Any) -> Any:
        indptr, indices, data, _ = rows
        for p in range(indptr[i], indptr[i + 1]):
            x, r = data[p], R[indices[p]]
            for t in range(n):
                j = np.uint64(nodes[t])
                r[j] += x * by_node[j]

    return dense if _is_dense(rows) else sparse
