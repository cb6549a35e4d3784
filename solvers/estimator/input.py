"""Labels, weights and label trees as scikit-learn's users give them."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.labels.taxonomy import Taxonomy
from solvers.numerics.array_types import Array

Hierarchy = Sequence[tuple[Any, Any]] | None


def tree_of(hierarchy: Hierarchy) -> Taxonomy:
    """The label tree, or graph, of edges (parent, child)."""
    return Taxonomy.from_graph([(str(parent), str(child)) for parent, child in hierarchy or ()])


def node_labels(tree: Taxonomy, hierarchy: Hierarchy, known: Mapping[str, Any]) -> Array:
    """The nodes as they were given: as the labels ``known`` by their names, or else in the tree."""
    given = {str(node): node for edge in hierarchy or () for node in edge} | dict(known)
    nodes = [given[name] for name in tree.names]
    # labels of several kinds stay what they are
    return np.array(nodes, None if len({type(node) for node in nodes}) == 1 else object)


def narrowed(X: Any) -> Any:
    """Sparse rows with 32-bit indices, which the methods read; all else as it is.

    Raises
    ------
    ValueError
        X has more columns or stored values than 32 bits count.
    """
    given: Any = X
    if not sp.issparse(X) or given.indices.dtype == given.indptr.dtype == np.int32:
        return given
    rows = sp.csr_matrix((given.data, given.indices, given.indptr), given.shape)  # with 32 bits where they suffice
    if rows.indices.dtype != np.int32:
        raise ValueError(
            f"X has {rows.nnz:,} stored values in {rows.shape[1]:,} columns; at most 2,147,483,647 are read"
        )
    return rows


def are_sets(y: Any) -> bool:
    """Whether labels come as a collection for each example."""
    if isinstance(y, np.ndarray) and (y.dtype != object or y.ndim != 1):
        return False
    given = list(y) if isinstance(y, np.ndarray | list | tuple) else []
    return bool(given) and all(isinstance(labels, list | tuple | set | frozenset) for labels in given)


def indicator_form(y: Any) -> tuple[str, list[Any]] | None:
    """``dense`` or ``sparse`` and the labels of an indicator matrix's columns; None of other labels.

    The labels are the names of a data frame's columns, of other matrices their numbers.
    """
    columns, given = getattr(y, "columns", None), y
    if sp.issparse(y):
        return "sparse", list(range(given.shape[1]))
    matrix = np.asarray(y) if columns is not None else y
    if isinstance(matrix, np.ndarray) and matrix.ndim == 2 and matrix.shape[1] > 1 and matrix.dtype.kind in "biuf":
        if not np.isin(matrix, (0, 1)).all():
            raise ValueError("a two-dimensional y must be an indicator matrix of 0 and 1; it has other values")
        labels = list(range(matrix.shape[1])) if columns is None else list(columns)
        if len({str(label) for label in labels}) < len(labels):
            raise ValueError("the columns of y, which are its labels, must have different names")
        return "dense", labels
    return None


def require_own_labels(class_weight: Mapping[Any, Any], labels: Sequence[Any]) -> None:
    """Raise ValueError if keys of ``class_weight`` are labels of ``y`` but for their type, as "3" is of 3."""
    names = {str(label): label for label in labels}
    wrong = [key for key in class_weight if str(key) in names and key != names[str(key)]]
    if wrong:
        key, label = wrong[0], names[str(wrong[0])]
        kinds = f"{type(label).__name__}, as {label!r}, not {type(key).__name__}"
        raise ValueError(
            f"keys of class_weight must be labels as y has them: {kinds}; got {', '.join(map(repr, wrong))}"
        )


def sets_of_indicators(y: Any, labels: Sequence[Any]) -> list[list[Any]]:
    """The labels of the columns that each row has."""
    given: Any = y if sp.issparse(y) else np.asarray(y)
    rows = sp.csr_matrix(given, copy=True)
    rows.eliminate_zeros()
    rows.sort_indices()
    return [[labels[at] for at in rows.indices[a:b].tolist()] for a, b in itertools.pairwise(rows.indptr.tolist())]


def indicators_of(sets: list[list[Any]], form: tuple[str, list[Any]]) -> Any:
    """The indicator matrix of sets of labels, sparse or dense; a label that is no column, as a parent, is left out."""
    kind, labels = form
    place = {label: at for at, label in enumerate(labels)}
    columns = [[place[label] for label in each if label in place] for each in sets]
    indptr = np.cumsum([0, *map(len, columns)])
    indices = np.array([at for each in columns for at in each], np.int64)
    found = sp.csr_matrix((np.ones(len(indices), int), indices, indptr), shape=(len(sets), len(labels)))
    return found if kind == "sparse" else found.toarray()


def plain(value: Any) -> Any:
    """A number of numpy's as one of Python's; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def texts_of(X: Any) -> list[str]:
    """Texts as a list; raises ValueError if they are one text, or not all texts."""
    texts = [] if isinstance(X, str) else list(X)
    if isinstance(X, str) or not all(isinstance(text, str) for text in texts):
        raise ValueError("with a vocabulary, X must be a sequence of texts")
    return texts
