"""Models over learnt label trees: every class scored by the margins along its path, in several trees."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numba import njit

from solvers.core.model import Contributions, Model, Prune
from solvers.core.sparse_linear_model import smaller_sparse
from solvers.hierarchical.learnt_trees.secants import hinge_secants, log_mean_exp, mean_secants
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, Array, Floats, Floats32, Ints32
from solvers.numerics.copies import copy
from solvers.numerics.sparse_scores import (
    SparseProducts,
    SparseWeights,
    add_products,
    one_sparse_product,
    padded_width,
    sparse_products,
)

# of the mean of the exponentials, so that every score is finite
LEAST = np.float32(1e-30)


class LabelTreeModel(Model):
    """Scores ``log(mean over the trees of exp(- sum over the path of max(0, 1 - z)^2))``, z being a node's margin.

    Every class is scored, without a beam.

    Parameters
    ----------
    classes : sequence of str
    W : csr_matrix of float32, shape (n_features, n_nodes)
        A column for each node of all trees; those of roots are empty.
    intercept : float32 array, shape (n_nodes,)
    parent : int32 array, shape (n_nodes,)
        Smaller than the node; -1 of a root.
    label : int32 array, shape (n_nodes,)
        The class of a leaf; -1 of all other nodes.
    half : bool
        All weights are numbers of half precision, and are written so.
    """

    kind = "label_trees"
    scores_rows_alone = True

    def __init__(
        self,
        classes: Sequence[str],
        W: sp.csr_matrix,
        intercept: Floats32,
        parent: Ints32,
        label: Ints32,
        half: bool = False,
    ) -> None:
        self.classes = tuple(classes)
        self.n_features = int(W.shape[0])
        self.W = W
        self.intercept = intercept
        self.parent = parent
        self.label = label
        self.half = half

    @cached_property
    def _weights(self) -> SparseWeights:
        return SparseWeights.of(self.W)

    @property
    def nonzero_weights(self) -> float:
        return float(self.W.nnz / max(1, self.W.shape[0] * self.W.shape[1]))

    def smaller(self, prune: Prune, half: bool) -> "LabelTreeModel":
        W = smaller_sparse(self.W, prune, half)
        return LabelTreeModel(self.classes, W, self.intercept, self.parent, self.label, half)

    def with_last_as_intercept(self, value: float) -> "LabelTreeModel":
        intercept = self.W[-1].toarray()[0] * np.float32(value)
        return LabelTreeModel(self.classes, self.W[:-1], intercept, self.parent, self.label)

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        self.check_width(X)
        return self._scored(sparse_products(X, self._weights))

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        return np.asarray(self._scored(one_sparse_product(indices, values, self._weights))[0])

    def _scored(self, products: SparseProducts) -> Floats32:
        scores = np.zeros((len(products.indptr) - 1, len(self.classes)), np.float32)
        _score_rows(products, self.intercept, self.parent, self.label, scores)
        return scores

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions:
        """By secants from the empty row: the intercept is what its score is."""
        found = self._parts(indices, values, best)
        if rival is None:
            return found
        other = self._parts(indices, values, rival)
        return Contributions(found.parts - other.parts, found.intercept - other.intercept, additive=False)

    def _parts(self, indices: Ints32, values: Floats, class_: int) -> Contributions:
        """Those of one class's score: the paths to its leaves, and what each of their nodes brings."""
        paths = [self._path(leaf) for leaf in np.flatnonzero(self.label == class_).tolist()]
        nodes = [node for path in paths for node in path]
        lengths = [len(path) for path in paths]
        products = self.W[indices][:, nodes].toarray().astype(np.float64) * values[:, None]
        before = self.intercept[nodes].astype(np.float64)
        after = before + products.sum(axis=0)
        first = np.cumsum([0, *lengths[:-1]])
        losses = [-np.add.reduceat(np.maximum(0.0, 1.0 - z) ** 2, first) for z in (after, before)]
        floor = float(np.log(LEAST))
        of_trees = mean_secants(losses[0], losses[1], floor)
        multipliers = hinge_secants(after, before) * np.repeat(of_trees, lengths)
        return Contributions(products @ multipliers, log_mean_exp(losses[1], floor), additive=False)

    def _path(self, node: int) -> list[int]:
        """From a node up to the child of the root."""
        path = []
        while self.parent[node] >= 0:
            path.append(node)
            node = int(self.parent[node])
        return path

    def arrays(self) -> dict[str, Array]:
        weights = stored_arrays.of_sparse(self.W, self.half)
        return weights | {"intercept": self.intercept, "parent": self.parent, "label": self.label}

    @property
    def nbytes(self) -> int:
        """Bytes in memory, without the bits by which scores read them; half precision takes fewer in files."""
        rest = self.intercept.nbytes + self.parent.nbytes + self.label.nbytes
        return stored_arrays.sparse_nbytes(self.W) + int(rest)

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "LabelTreeModel":
        intercept, parent, label = arrays["intercept"], arrays["parent"], arrays["label"]
        n_nodes = len(parent)
        stored_arrays.require_parents(parent)
        stored_arrays.require_within("label", label, -1, len(classes))
        stored_arrays.require_shape("label", label, n_nodes)
        stored_arrays.require_floats("intercept", intercept, n_nodes)
        half = arrays["data"].dtype == np.float16
        return cls(classes, stored_arrays.sparse(arrays, n_features, n_nodes), intercept, parent, label, half)


@njit(cache=True, nogil=True)
def _score_rows(products: SparseProducts, intercept: Floats32, parent: Ints32, label: Ints32, scores: Floats32) -> None:
    """Margins of all nodes, losses summed down the trees, and the mean of their exponentials, row by row."""
    n_nodes = len(parent)
    z = np.zeros(padded_width(products.of), np.float32)
    n_trees = 0
    for node in range(n_nodes):
        n_trees += parent[node] < 0
    for i in range(scores.shape[0]):
        copy(intercept, z)
        add_products(products, i, z)
        for node in range(n_nodes):
            above = parent[node]
            if above < 0:
                z[node] = 0.0
                continue
            short = max(np.float32(0.0), np.float32(1.0) - z[node])
            z[node] = z[above] - short * short
            if label[node] >= 0:
                scores[i, label[node]] += np.exp(z[node])
        for c in range(scores.shape[1]):
            scores[i, c] = np.log(max(scores[i, c] / n_trees, LEAST))
