"""Linear models over a label tree: a weight vector a node, and a rule that leads from scores to a label."""

import heapq
from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp

from solvers.core.linear_model import LinearModel, stored_weights
from solvers.core.model import Explanation, Prune
from solvers.core.sparse_linear_model import smaller_weights, sparse_takes_less
from solvers.hierarchical import tree_search
from solvers.labels import stored_arrays
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.ranking import Ranking
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints, Ints32
from solvers.numerics.predicted_scores import readable


class TaxonomyModel(LinearModel):
    """Scores ``w_i . x`` of all nodes of a label tree, and how they name a label.

    The recursive rule (Zhou et al. 2011, equation 1) starts at the root and goes on to the child with the largest
    score until it reaches a leaf; the flat rule (equation 2) takes the largest score among ``candidates``. In
    both, equal scores go to the smaller number. The margin of a node against its rivals, its siblings or the other
    candidates, is its score less the best of theirs, and positive for what the rule chooses. A node without rivals has
    an infinite one.

    Parameters
    ----------
    tree : Taxonomy
        Its nodes are the model's classes.
    n_features, features, W, intercept
        As :class:`LinearModel` has them; W has one column a node.
    candidates : int32 array, optional
        The nodes among which the flat rule chooses, ascending; None takes the recursive rule.
    """

    kind = "taxonomy"
    tree: Taxonomy

    def __init__(
        self,
        tree: Taxonomy,
        n_features: int,
        features: Ints,
        W: AnyFloats,
        intercept: AnyFloats | None = None,
        candidates: Ints32 | None = None,
    ) -> None:
        super().__init__(tree.names, n_features, features, W, intercept)
        self.tree = tree
        self.candidates = candidates

    def smaller(self, prune: Prune, half: bool) -> "TaxonomyModel":
        """As others have it; sparse weights are dense in memory."""
        W, intercept = smaller_weights(self.W, self.intercept, prune, half)
        made = TaxonomyModel(self.tree, self.n_features, self.features, W, intercept, self.candidates)
        made.written_sparse = sparse_takes_less(W, len(W))
        return made

    def with_last_as_intercept(self, value: float) -> "TaxonomyModel":
        plain = super().with_last_as_intercept(value)
        return TaxonomyModel(self.tree, plain.n_features, plain.features, plain.W, plain.intercept, self.candidates)

    def predict(self, X: sp.csr_matrix, chunk_bytes: int = 64 << 20) -> Ints:
        """Node numbers, shape (n_samples,); the recursive rule scores only the children of nodes that it passes."""
        if self.candidates is None:
            return self.descend(X)[0]
        rows = max(1, chunk_bytes // (8 * len(self.classes)))
        parts = [self.scores(X[i : i + rows])[:, self.candidates].argmax(axis=1) for i in range(0, X.shape[0], rows)]
        return np.asarray(self.candidates[np.concatenate([np.empty(0, np.int64), *parts])], np.int64)

    def ranking(self, X: sp.csr_matrix) -> Ranking:
        ranked = self.ranking_of(self.scores(X))
        return ranked if self.candidates is not None else ranked._replace(predicted=self.descend(X)[0])

    def ranking_of(self, scores: AnyFloats) -> Ranking:
        """By what :meth:`top` orders nodes of such scores, shape (n_samples, n_nodes)."""
        if self.candidates is not None:
            values = np.full(scores.shape, -np.inf)
            values[:, self.candidates] = scores[:, self.candidates]
            return Ranking(values)
        worth, ties = np.array(scores, np.float64, order="C"), np.empty(scores.shape)
        tree_search.worth(self.tree.parent, self.tree.first_child, worth, ties)
        return Ranking(worth, ties)

    def descend(self, X: sp.csr_matrix) -> tuple[Ints, Floats]:
        """Where the recursive rule ends, whatever the model's own, and by what margins.

        Returns
        -------
        leaves : int64 array, shape (n_samples,)
        margins : float64 array, shape (n_samples, depth)
            Of the chosen node at every level; infinite for an only child, nan below the leaf.
        """
        self.check_width(X)
        place = np.full(self.n_features, -1, np.int64)
        place[self.features] = np.arange(len(self.features))
        base = np.zeros(len(self.classes)) if self.intercept is None else np.asarray(self.intercept, np.float64)
        leaves, margins = np.empty(X.shape[0], np.int64), np.full((X.shape[0], self.tree.depth), np.nan)
        values = X.data.astype(np.float64, copy=False)
        tree_search.descend(
            X.indptr, X.indices, values, place, readable(self.W), base, self.tree.first_child, leaves, margins
        )
        return leaves, margins

    def path(self, node: int) -> list[str]:
        """The names from a child of the root down to a node, itself the last."""
        return [self.classes[i] for i in self.tree.path(node).tolist()]

    def level_margins(self, indices: Ints32, values: Floats, node: int) -> AnyFloats:
        """The margin of every node on the path to ``node`` against its siblings, for one sparse example.

        Returns
        -------
        float array, shape (level of the node,)
            Infinite for only children; the recursive rule goes to where all are positive.
        """
        rows, factors = self._rows(indices, values)
        margins = []
        for i in self.tree.path(node).tolist():
            group = self.tree.children(int(self.tree.parent[i]))
            scores = self._group_scores(rows, factors, group)
            rivals = np.delete(scores, i - group.start)
            margins.append(scores[i - group.start] - rivals.max() if len(rivals) else np.inf)
        return np.array(margins)

    def explain(self, indices: Ints32, values: Floats, best: int) -> Explanation:
        """The path to ``best``, with :meth:`level_margins`."""
        margins = self.level_margins(indices, values, best).tolist()
        return Explanation(path=list(zip(self.path(best), margins, strict=True)))

    def contests(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> list[tuple[int, int | None]]:
        """With the recursive rule, every node on the path to ``best`` against the best of its siblings."""
        if self.candidates is not None:
            return [(best, rival)]
        rows, factors = self._rows(indices, values)
        found: list[tuple[int, int | None]] = []
        for i in self.tree.path(best).tolist():
            group = self.tree.children(int(self.tree.parent[i]))
            scores = self._group_scores(rows, factors, group)
            scores[i - group.start] = -np.inf
            found.append((i, group.start + int(scores.argmax()) if len(group) > 1 else None))
        return found

    def top(self, indices: Ints32, values: Floats, k: int = 1) -> tuple[Ints, AnyFloats]:
        """The k best labels of one sparse example, and what each is worth; the first is the prediction.

        With the flat rule those are candidates and their scores. With the recursive rule they are leaves, and each is
        worth the smallest margin along its path, as in training: positive for the prediction, the negative rest shows
        by how much a leaf loses where it loses most. Equal ones go by how far their paths fall behind in sum. Both
        numbers only grow worse further down, so a best-first search that scores the children of the nodes it opens
        finds the k best.
        """
        if self.candidates is not None:
            scores = self.score_one(indices, values)[self.candidates]
            order = np.argsort(-scores, kind="stable")[:k]
            return self.candidates[order].astype(np.int64), scores[order]
        rows, factors = self._rows(indices, values)
        found: list[tuple[int, float]] = []
        # (-smallest margin, sum of lags, children that are not the first best, node): the heap's first is the best
        heap = [(-np.inf, 0.0, 0, -1)]
        while heap and len(found) < min(k, len(self.tree.leaves)):
            cost, lag, astray, node = heapq.heappop(heap)
            if node >= 0 and self.tree.is_leaf[node]:
                found.append((node, -cost))
                continue
            group = self.tree.children(node)
            scores = self._group_scores(rows, factors, group)
            first = int(scores.argmax())
            second = np.delete(scores, first).max(initial=-np.inf)
            for j, score in enumerate(scores.tolist()):
                margin = score - (second if j == first else scores[first])
                lags = lag + float(scores[first]) - score
                heapq.heappush(heap, (max(cost, -float(margin)), lags, astray + (j != first), group.start + j))
        return np.array([node for node, _ in found], np.int64), np.array([worth for _, worth in found])

    def _rows(self, indices: Ints32, values: Floats) -> tuple[Ints, Floats]:
        """The rows of W that a sparse example meets, and their factors."""
        at = np.searchsorted(self.features, indices)
        known = at < len(self.features)
        known[known] = self.features[at[known]] == indices[known]
        return at[known], values[known]

    def _group_scores(self, rows: Ints, factors: Floats, group: range) -> AnyFloats:
        """Scores of siblings."""
        scores = np.asarray(factors @ self.W[rows, group.start : group.stop], np.float64)
        return scores if self.intercept is None else scores + self.intercept[group.start : group.stop]

    def arrays(self) -> dict[str, Array]:
        arrays = super().arrays() | {"parent": self.tree.parent}
        return arrays if self.candidates is None else arrays | {"candidates": self.candidates}

    @classmethod
    def from_arrays(cls, classes: Sequence[str], n_features: int, arrays: Mapping[str, Array]) -> "TaxonomyModel":
        tree = stored_arrays.tree(classes, np.asarray(arrays["parent"]))
        weights = stored_weights(len(classes), n_features, arrays)
        return cls(tree, n_features, *weights, stored_candidates(tree, arrays))


def stored_candidates(tree: Taxonomy, arrays: Mapping[str, Array]) -> Ints32 | None:
    """The nodes of a stored flat rule, None of a recursive one; raises ArrayFault."""
    candidates = arrays.get("candidates")
    if candidates is not None:
        stored_arrays.require_ascending("candidates", candidates, tree.n_nodes)
        if len(candidates) == 0:
            raise stored_arrays.ArrayFault("the array candidates is empty; expected at least one node")
    return candidates
