"""Kernel models over a label tree: node scores from kernel values, and a rule that leads from scores to a label."""

from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp

from solvers.core.model import Contributions, Explanation, Model
from solvers.hierarchical.taxonomy_model import TaxonomyModel, stored_candidates
from solvers.kernel_svm.kernel_model import KernelModel
from solvers.labels import stored_arrays
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.ranking import Ranking
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints, Ints32

CHUNK_BYTES = 16 << 20


class KernelTaxonomyModel(Model):
    """Scores ``sum_s coefficients[s, i] K(support vector s, x)`` of all nodes i of a label tree, and a rule.

    An example's kernel values against the support vectors are to this model what its features are to
    :class:`TaxonomyModel`, whose rules, margins and answers it has.

    Parameters
    ----------
    tree : Taxonomy
        Its nodes are the model's classes.
    parts : KernelModel
        Scores the nodes, each for itself; its classes are those of the tree.
    candidates : int32 array, optional
        The nodes among which the flat rule chooses, ascending; None takes the recursive rule.
    """

    kind = "kernel_taxonomy"
    tree: Taxonomy

    def __init__(self, tree: Taxonomy, parts: KernelModel, candidates: Ints32 | None = None) -> None:
        self.classes = tree.names
        self.n_features = parts.n_features
        self.tree = tree
        self.parts = parts
        self.candidates = candidates
        self.unexplained = parts.unexplained
        n = parts.n_support
        self._rule = TaxonomyModel(tree, n, np.arange(n), parts.coefficients, parts.intercept, candidates)

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        return self.parts.scores(X)

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        return self.parts.score_one(indices, values)

    def predict(self, X: sp.csr_matrix, chunk_bytes: int = CHUNK_BYTES) -> Ints:
        """Node numbers, shape (n_samples,); made for about ``chunk_bytes`` bytes of rows at a time."""
        if self.candidates is None:
            return self.descend(X, chunk_bytes)[0]
        rows = max(1, chunk_bytes // (8 * len(self.classes)))
        parts = [self.scores(X[i : i + rows])[:, self.candidates].argmax(axis=1) for i in range(0, X.shape[0], rows)]
        return np.asarray(self.candidates[np.concatenate([np.empty(0, np.int64), *parts])], np.int64)

    def ranking(self, X: sp.csr_matrix) -> Ranking:
        ranked = self._rule.ranking_of(self.parts.scores(X))
        return ranked if self.candidates is not None else ranked._replace(predicted=self.descend(X)[0])

    def descend(self, X: sp.csr_matrix, chunk_bytes: int = CHUNK_BYTES) -> tuple[Ints, Floats]:
        """Leaves and margins as :meth:`TaxonomyModel.descend` has them."""
        leaves, margins = [np.empty(0, np.int64)], [np.empty((0, self.tree.depth))]
        rows = max(1, chunk_bytes // (8 * max(self.parts.n_support, 1)))
        for begin in range(0, X.shape[0], rows):
            values = sp.csr_matrix(self.parts.kernel_values(X[begin : begin + rows]))
            some, theirs = self._rule.descend(values)
            leaves.append(some)
            margins.append(theirs)
        return np.concatenate(leaves), np.concatenate(margins)

    def path(self, node: int) -> list[str]:
        """The names from a child of the root down to a node, itself the last."""
        return self._rule.path(node)

    def level_margins(self, indices: Ints32, values: Floats, node: int) -> AnyFloats:
        """As :meth:`TaxonomyModel.level_margins`."""
        return self._rule.level_margins(*self._values(indices, values), node)

    def explain(self, indices: Ints32, values: Floats, best: int) -> Explanation:
        """The path to ``best``, with :meth:`level_margins`."""
        margins = self.level_margins(indices, values, best).tolist()
        return Explanation(path=list(zip(self.path(best), margins, strict=True)))

    def contests(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> list[tuple[int, int | None]]:
        return self._rule.contests(*self._values(indices, values), best, rival)

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions | None:
        return self.parts.contributions(indices, values, best, rival)

    def top(self, indices: Ints32, values: Floats, k: int = 1) -> tuple[Ints, AnyFloats]:
        """As :meth:`TaxonomyModel.top`."""
        return self._rule.top(*self._values(indices, values), k)

    def _values(self, indices: Ints32, values: Floats) -> tuple[Ints32, Floats]:
        """The kernel values of one sparse example, as a sparse example."""
        return np.arange(self.parts.n_support, dtype=np.int32), self.parts.kernel_values_of_one(indices, values)

    def arrays(self) -> dict[str, Array]:
        arrays = {"parent": self.tree.parent} | {f"parts_{name}": array for name, array in self.parts.arrays().items()}
        return arrays if self.candidates is None else arrays | {"candidates": self.candidates}

    @classmethod
    def from_arrays(cls, classes: Sequence[str], n_features: int, arrays: Mapping[str, Array]) -> "KernelTaxonomyModel":
        tree = stored_arrays.tree(classes, np.asarray(arrays["parent"]))
        inner = {key.removeprefix("parts_"): array for key, array in arrays.items() if key.startswith("parts_")}
        return cls(tree, KernelModel.from_arrays(tree.names, n_features, inner), stored_candidates(tree, arrays))
