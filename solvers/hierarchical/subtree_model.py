"""Models that name a set of labels: scores of all nodes of a label tree, and a rule that makes a closed set of them.

In a label graph a closed set has with a node all its parents.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp

from solvers.core.model import Contributions, Explanation, Model, Prune
from solvers.core.stored_models import find_kind
from solvers.hierarchical import isotonic, subtrees
from solvers.labels import stored_arrays
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.ranking import Ranking
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints, Ints32

Rule = Literal["best_set", "path"]


class ClosedSetModel(Model):
    """Names the nodes of a label tree whose margins are positive; margins never rise on the way down.

    The set is closed so: it holds a node's parents with the node. The model's classes are the nodes.
    """

    names_sets = True
    tree: Taxonomy

    def margins(self, scores: AnyFloats) -> AnyFloats:
        """What is positive for the nodes of the set, from what :meth:`scores` gives; both (n_samples, n_nodes)."""
        return scores

    def set_margins(self, scores: AnyFloats) -> AnyFloats:
        return self.margins(scores)

    def ranking(self, X: sp.csr_matrix) -> Ranking:
        scores = self.scores(X)
        return Ranking(scores, sets=sp.csr_matrix(self.margins(scores) > 0))

    def predict_sets(self, X: sp.csr_matrix, chunk_bytes: int = 64 << 20) -> sp.csr_matrix:
        """The predicted sets: csr_matrix of bool, shape (n_samples, n_nodes); made ``chunk_bytes`` bytes at a time."""
        rows = max(1, chunk_bytes // (16 * len(self.classes)))
        begins = range(0, max(1, X.shape[0]), rows)
        parts = [sp.csr_matrix(self.margins(self.scores(X[begin : begin + rows])) > 0) for begin in begins]
        return sp.csr_matrix(sp.vstack(parts, format="csr"))

    def subtree(self, indices: Ints32, values: Floats) -> tuple[Ints, AnyFloats]:
        """The predicted set of one sparse example, parents before children, and the margin of every node in it."""
        margins = self.margins(self.score_one(indices, values)[None])[0]
        nodes = np.flatnonzero(margins > 0)
        return nodes, margins[nodes]

    def explain(self, indices: Ints32, values: Floats, best: int) -> Explanation:
        """The predicted set of one sparse example, whatever its best node."""
        nodes, margins = self.subtree(indices, values)
        names, parents = self.classes, self.tree.parent[nodes].tolist()
        return Explanation(
            subtree=[
                (names[node], None if above < 0 else names[above], margin)
                for node, above, margin in zip(nodes.tolist(), parents, margins.tolist(), strict=True)
            ]
        )

    def contests(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> list[tuple[int, int | None]]:
        """Every node of the predicted set for itself; where that is empty, the best."""
        nodes, _ = self.subtree(indices, values)
        return [(node, None) for node in nodes.tolist() or [best]]

    def path(self, node: int) -> list[str]:
        """The names from a child of the root down to a node, itself the last."""
        return [self.classes[i] for i in self.tree.path(node).tolist()]


class SubtreeModel(ClosedSetModel):
    """Scores are the margins.

    Parameters
    ----------
    tree : Taxonomy
        Its nodes are the model's classes.
    parts : Model
        Scores the nodes, each for itself; its classes are those of the tree.
    rule : {"best_set", "path"}
        ``best_set`` takes the closed set with the largest sum of scores (Rousu et al. 2005, section 4), found by
        dynamic programming; the margin of a node is by how much the best set with it is worth more than the best one
        without it. In a graph that set is a minimum cut's, and the margin the price of every node at which this one
        leaves the best set. ``path`` goes down as long as scores are positive, in a graph those of all ways down; the
        margin is the least score at or above the node.
    learnt : int array, optional
        The nodes that some training row had; None: all, or they are not known.
    """

    kind = "subtree"

    def __init__(self, tree: Taxonomy, parts: Model, rule: Rule, learnt: Ints | Ints32 | None = None) -> None:
        self.classes = tree.names
        self.n_features = parts.n_features
        self.tree = tree
        self.parts = parts
        self.rule = rule
        self._learnt = learnt
        self.unexplained = parts.unexplained

    @cached_property
    def learnt(self) -> Collection[int] | None:
        return None if self._learnt is None else frozenset(self._learnt.tolist())

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        """Margins of the nodes: float64 array, shape (n_samples, n_nodes)."""
        return self._decided(self.parts.scores(X))

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        return np.asarray(self._decided(self.parts.score_one(indices, values)[None])[0])

    def _decided(self, scores: AnyFloats) -> Floats:
        margins = np.array(scores, np.float64, order="C")
        if self.rule == "path":
            subtrees.least_above(self.tree.parents, margins)
        elif self.tree.is_tree:
            subtrees.best_set(self.tree.parent, margins)
        else:
            isotonic.leave_prices(self.tree.parents, margins)
        return margins

    def _deciding(self, scores: Floats, node: int) -> tuple[Ints, float]:
        """The nodes whose scores, times a number, add up to the margin of a node."""
        if self.rule == "path":
            return subtrees.nodes_of_least(self.tree, scores, node), 1.0
        if self.tree.is_tree:
            return subtrees.nodes_of_best_set(self.tree.parent, scores, node), 1.0
        nodes = isotonic.nodes_of_part(self.tree.parents, scores, node)
        return nodes, 1.0 / len(nodes)

    def predict(self, X: sp.csr_matrix, chunk_bytes: int = 64 << 20) -> Ints:
        """The node of the largest margin, shape (n_samples,), always a child of the root; see :meth:`predict_sets`."""
        return super().predict(X, chunk_bytes)

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions | None:
        """A margin is a sum of scores: by ``path`` of one node's, by ``best_set`` of those that come or go with it.

        In a graph it is the mean of these.
        """
        if self.unexplained:
            return None
        scores = np.asarray(self.parts.score_one(indices, values), np.float64)
        parts, intercept = np.zeros(len(indices)), 0.0
        for sign, of in ((1.0, best), (-1.0, rival)):
            if of is None:
                continue
            nodes, share = self._deciding(scores, of)
            for node in nodes.tolist():
                found = self.parts.contributions(indices, values, node, None)
                assert found is not None
                parts += sign * share * found.parts
                intercept += sign * share * found.intercept
        return Contributions(parts, intercept, additive=False)

    def smaller(self, prune: Prune, half: bool) -> "SubtreeModel":
        return self.with_parts(self.parts.smaller(prune, half))

    def with_last_as_intercept(self, value: float) -> "SubtreeModel":
        return self.with_parts(self.parts.with_last_as_intercept(value))

    def with_parts(self, parts: Model) -> "SubtreeModel":
        """The same with other scores of the nodes."""
        return SubtreeModel(self.tree, parts, self.rule, self._learnt)

    @property
    def nonzero_weights(self) -> float:
        return self.parts.nonzero_weights

    def arrays(self) -> dict[str, Array]:
        own = stored_arrays.of_tree(self.tree) | {"form": np.array([self.rule, self.parts.kind])}
        if self._learnt is not None:
            own["learnt"] = self._learnt
        return own | {f"parts_{name}": array for name, array in self.parts.arrays().items()}

    @classmethod
    def row_arrays(cls, arrays: Mapping[str, Array]) -> dict[str, str]:
        kind = find_kind(str(arrays["form"][1]))
        inner = {key.removeprefix("parts_"): array for key, array in arrays.items() if key.startswith("parts_")}
        found = {} if kind is None else kind.row_arrays(inner)
        return {f"parts_{rows}": f"parts_{features}" for rows, features in found.items()}

    @classmethod
    def from_arrays(cls, classes: Sequence[str], n_features: int, arrays: Mapping[str, Array]) -> "SubtreeModel":
        tree = stored_arrays.graph(classes, arrays)
        rule, name = (str(word) for word in arrays["form"])
        kind = find_kind(name)
        if kind is None or rule not in get_args(Rule):
            raise stored_arrays.ArrayFault(f"the array form names {rule!r:.80} and {name!r:.80}, which are unknown")
        inner = {key.removeprefix("parts_"): array for key, array in arrays.items() if key.startswith("parts_")}
        learnt = None
        if "learnt" in arrays:
            learnt = np.asarray(arrays["learnt"])
            stored_arrays.require_ascending("learnt", learnt, tree.n_nodes)
        parts = kind.from_arrays(tuple(classes), n_features, inner)
        return cls(tree, parts, rule, learnt)  # type: ignore[arg-type]
