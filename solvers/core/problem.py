"""The training problem, checked once at the door so that no solver has to check again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from solvers.labels.label_sets import closed, of_nodes
from solvers.labels.name_block import NameBlock
from solvers.labels.taxonomy import Taxonomy, TaxonomyError
from solvers.numerics.array_types import Floats, Ints32


class ProblemError(ValueError):
    """The data cannot be a training problem; the message says what was given and what was expected."""


@dataclass(frozen=True)
class Problem:
    """Examples and their labels: one of each, or a set of labels of a tree.

    Attributes
    ----------
    X : csr_matrix of float64, shape (n_samples, n_features)
        Finite, indices sorted within a row, without duplicates.
    y : int32 array, shape (n_samples,)
        Class indices; every class has at least one example. Of sets of labels there are none, shape (0,).
    classes : tuple of str
        Label names, one a class. With sets of labels those of all nodes of the tree.
    weights : float64 array, shape (n_samples,)
        What the loss of each example is multiplied by; positive.
    taxonomy : Taxonomy, optional
        The label tree; every class is one of its nodes, a leaf or not. Methods that take no tree leave it aside.
    labels : csr_matrix of bool, shape (n_samples, n_nodes), optional
        Sets of labels in place of ``y``, closed upwards: with a node a row has the node's parent. A row may be empty.
    names : NameBlock, optional
        Which columns of X say which names of the classes occur in a text. Methods that take no names read them as any
        other columns; see :attr:`of_terms`.
    """

    X: sp.csr_matrix
    y: Ints32
    classes: tuple[str, ...]
    weights: Floats
    taxonomy: Taxonomy | None = None
    labels: sp.csr_matrix | None = None
    names: NameBlock | None = None

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def of_terms(self) -> "Problem":
        """The same without the columns of names."""
        if self.names is None:
            return self
        terms, _ = self.names.split(self.X)
        return replace(self, X=sp.csr_matrix(terms), names=None)

    def nodes(self) -> Ints32:
        """The node of the label tree that each example is labelled with, shape (n_samples,).

        Raises
        ------
        ProblemError
            There is no label tree, or examples have sets of labels.
        """
        if self.labels is not None:
            raise ProblemError("expected one label per example; sets of labels were given")
        return self.tree.find(self.classes)[self.y]

    def label_sets(self) -> sp.csr_matrix:
        """The set of labels of every example, bool, shape (n_samples, n_nodes); of one label the path that leads to it.

        Raises
        ------
        ProblemError
            There is no label tree.
        """
        return of_nodes(self.tree, self.nodes()) if self.labels is None else self.labels

    @property
    def tree(self) -> Taxonomy:
        """The label tree.

        Raises
        ------
        ProblemError
            There is none.
        """
        if self.taxonomy is None:
            raise ProblemError("the method needs a label tree: pass hierarchy")
        return self.taxonomy

    @classmethod
    def check(
        cls,
        X: Any,
        y: ArrayLike,
        classes: Sequence[str] | None = None,
        weights: ArrayLike | None = None,
        taxonomy: Taxonomy | None = None,
    ) -> "Problem":
        """Make a problem from any matrix and class indices.

        Parameters
        ----------
        X : array or sparse matrix, shape (n_samples, n_features)
            Dense input becomes CSR here, once; CSR that is canonical already is not copied.
        y : array of int, shape (n_samples,)
            Class indices in ``[0, len(classes))``.
        classes : sequence of str, optional
            Label names; by default the indices themselves, up to the largest.
        weights : array of float, shape (n_samples,), optional
            Positive weights of the examples; 1 by default.
        taxonomy : Taxonomy, optional
            A label tree with a node for every class.

        Raises
        ------
        ProblemError
            No rows or features, shapes that do not agree, NaN or infinity, indices out of range, a class
            without an example, fewer than two classes, weights that are not positive and finite, or a class that
            the label tree does not have.
        """
        X = _csr(X)
        n, d = X.shape
        if n == 0 or d == 0:
            raise ProblemError(f"X has {n} rows and {d} features; at least one of each is needed")
        index = np.asarray(y)
        if index.shape != (n,):
            raise ProblemError(f"y has shape {index.shape}; expected ({n},), as X has {n} rows")
        if not np.issubdtype(index.dtype, np.integer):
            raise ProblemError(f"y must contain integer class indices; got dtype {index.dtype}")
        names = tuple(map(str, range(int(index.max()) + 1))) if classes is None else tuple(classes)
        if index.min() < 0 or index.max() >= len(names):
            raise ProblemError(f"y must be between 0 and {len(names) - 1}; it runs from {index.min()} to {index.max()}")
        counts = np.bincount(index, minlength=len(names))
        if np.count_nonzero(counts) < 2:
            raise ProblemError("y has only one class; at least two are needed")
        if not counts.all():
            empty = int(np.argmin(counts))
            raise ProblemError(f"class {names[empty]!r:.80} has no example; every class needs one")
        if taxonomy is not None:
            try:
                taxonomy.find(names)
            except TaxonomyError as error:
                raise ProblemError(str(error)) from error
        return cls(X, np.ascontiguousarray(index, np.int32), names, _weights(weights, n), taxonomy)

    @classmethod
    def check_sets(cls, X: Any, labels: Any, taxonomy: Taxonomy, weights: ArrayLike | None = None) -> "Problem":
        """Make a problem of sets of labels.

        Parameters
        ----------
        X : array or sparse matrix, shape (n_samples, n_features)
            As for :meth:`check`.
        labels : array or sparse matrix, shape (n_samples, n_nodes)
            Which nodes of the tree each example has, 0 or 1; closed upwards, as ``label_sets.closed`` makes it.
        taxonomy : Taxonomy
        weights : array of float, shape (n_samples,), optional
            Positive weights of the examples; 1 by default.

        Raises
        ------
        ProblemError
            As for :meth:`check`; no example has a label; or a label is given without its parent.
        """
        X = _csr(X)
        n, d = X.shape
        if n == 0 or d == 0:
            raise ProblemError(f"X has {n} rows and {d} features; at least one of each is needed")
        given = sp.csr_matrix(labels, dtype=bool)
        if given.shape != (n, taxonomy.n_nodes):
            raise ProblemError(
                f"labels have shape {given.shape}; expected {(n, taxonomy.n_nodes)}, rows by nodes of the tree"
            )
        given.sum_duplicates()
        given.eliminate_zeros()
        if given.nnz == 0:
            raise ProblemError("no example has a label; at least one needs one")
        try:
            sets, _ = closed(taxonomy, given.indptr, given.indices, "refuse")
        except TaxonomyError as error:
            raise ProblemError(str(error)) from error
        return cls(X, np.empty(0, np.int32), taxonomy.names, _weights(weights, n), taxonomy, sets)


def _csr(X: Any) -> sp.csr_matrix:
    if not sp.issparse(X):
        X = np.asarray(X)
        if X.ndim != 2:
            raise ProblemError(f"X has {X.ndim} dimensions; expected 2")
    try:
        matrix = sp.csr_matrix(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ProblemError("X must be numeric; it contains values that are not real numbers") from error
    if not matrix.has_canonical_format:
        if matrix is X or np.shares_memory(matrix.data, getattr(X, "data", matrix.data)):
            matrix = matrix.copy()
        matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise ProblemError("X must be finite; it contains NaN or infinity")
    return matrix


def _weights(weights: ArrayLike | None, n: int) -> Floats:
    if weights is None:
        return np.ones(n)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n,):
        raise ProblemError(f"weights have shape {array.shape}; expected ({n},)")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ProblemError("weights must be positive and finite")
    return array
