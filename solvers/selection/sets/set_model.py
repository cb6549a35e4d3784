"""Models over sets of labels with probabilities: scores are log-odds, and sets are where these pass one threshold."""

from collections.abc import Collection, Mapping
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from solvers.core.model import Contributions, Model, Prune
from solvers.core.stored_models import find_kind
from solvers.hierarchical import subtrees
from solvers.hierarchical.subtree_model import ClosedSetModel, SubtreeModel
from solvers.labels import stored_arrays
from solvers.labels.taxonomy import Taxonomy
from solvers.labels.tree_part import TreePart
from solvers.metrics.confidence.set_reliability import SetReliability
from solvers.metrics.ranking import Ranking
from solvers.numerics.array_types import AnyFloats, Array, Bools, Floats, Ints, Ints32
from solvers.numerics.best import best
from solvers.numerics.lazy_arrays import Parts, part_of
from solvers.selection.sets.node_calibration import NodeCalibration
from solvers.selection.sets.own_labels import closed, of_own


class SetPoolModel(ClosedSetModel):
    """``log-odds(j) = min of a (s - m) / dev + b over the nodes at or above j``; sets are where they pass thresholds.

    Log-odds never rise on the way down, so that the set is closed upwards. A node that no training row has is not
    scored: its own log-odds, b, are the same for every row. A ``flat`` member scores labels as the own labels of rows;
    then the log-odds of a node are the best of the own labels at or below it.

    What is ranked are the labels that training rows have as their own, by the log-odds that a row has them so: of a
    flat member its own, else those that no label below them takes.

    Parameters
    ----------
    tree : Taxonomy
        Its nodes are the model's classes.
    member : Model
        Scores the nodes, or those that ``scored`` has.
    calibration : NodeCalibration
        Of all nodes.
    set_reliability : SetReliability, optional
        What the probabilities were worth on held-out rows; None where there were no such rows, and of models that were
        trained before it was kept.
    scored : int32 array, shape (n_scored,), optional
        The numbers of the nodes that the member scores, ascending, with each its parent; left out, all.
    ranked : int32 array, shape (n_ranked,), optional
        The numbers of the nodes that training rows have as their own labels, ascending; left out, all nodes are ranked.
    """

    kind = "set_pool"

    def __init__(
        self,
        tree: Taxonomy,
        member: Model,
        calibration: NodeCalibration,
        set_reliability: SetReliability | None = None,
        scored: Ints32 | None = None,
        ranked: Ints32 | None = None,
        *,
        flat: bool = False,
    ) -> None:
        self.ranked, self.flat = ranked, flat
        self.ranks_own = ranked is not None
        self.classes = tree.names
        self.n_features = member.n_features
        self.tree = tree
        self.member = member
        self.calibration = calibration
        self.set_reliability = set_reliability
        self.least_probability = float(expit(calibration.threshold.min()))
        self.unexplained = member.unexplained
        self.part = TreePart(tree, np.arange(tree.n_nodes, dtype=np.int32) if scored is None else scored)

    @cached_property
    def learnt(self) -> Collection[int] | None:
        """The nodes that the member scores."""
        return None if self.part.is_whole else frozenset(self.part.nodes.tolist())

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        """Log-odds of the nodes: float64 array, shape (n_samples, n_nodes)."""
        return self._log_odds(node_scores(self.member, X))

    def ranking(self, X: sp.csr_matrix) -> Ranking:
        scores = node_scores(self.member, X)
        log_odds = self._log_odds(scores)
        sets = sp.csr_matrix(self.margins(log_odds) > 0)
        return Ranking(self._ranks(scores, log_odds), sets=sets, set_scores=log_odds)

    def top(self, indices: Ints32, values: Floats, k: int = 1) -> tuple[Ints, AnyFloats]:
        """The k best own labels of one sparse example by falling log-odds, and these."""
        if self.ranked is None:
            return super().top(indices, values, k)
        scores = np.asarray(scorer(self.member).score_one(indices, values))[None]
        places, found = best(self._ranks(scores, self._log_odds(scores))[:, self.ranked], k)
        return np.asarray(self.ranked[places[0]], np.int64), found[0]

    def predict(self, X: sp.csr_matrix, chunk_bytes: int = 64 << 20) -> Ints:
        """The first label of the ranking, shape (n_samples,); see :meth:`predict_sets`."""
        rows = max(1, chunk_bytes // (16 * len(self.classes)))
        parts = [self.ranking(X[begin : begin + rows]).first() for begin in range(0, X.shape[0], rows)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def _ranks(self, scores: AnyFloats, log_odds: Floats) -> Floats:
        """What labels are ranked by; -inf of those that are no row's own."""
        if self.ranked is None:
            return log_odds
        if self.flat:
            found = self.calibration.of_nodes(self.part.spread(scores))
        else:
            found = of_own(log_odds, self._is_ranked, self.tree.parents)
        return np.where(self._is_ranked, found, -np.inf)

    @cached_property
    def _is_ranked(self) -> Bools:
        found = np.ones(self.tree.n_nodes, bool)
        if self.ranked is not None:
            found[:] = False
            found[self.ranked] = True
        return found

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        return np.asarray(self._log_odds(scorer(self.member).score_one(indices, values)[None])[0])

    def _log_odds(self, scores: AnyFloats) -> Floats:
        if self.flat:
            found = closed(self.calibration.of_nodes(self.part.spread(scores)), self._is_ranked, self.tree.parents)
            if not self.part.is_whole:
                rest = np.setdiff1d(np.arange(self.tree.n_nodes), self.part.nodes)
                found[:, rest] = self.calibration.curve(self.calibration.offset[rest])
                subtrees.least_above(self.tree.parents, found)
            return found
        return self.calibration.log_odds(self.part.spread(scores), self.tree.parents)

    def probabilities(self, X: sp.csr_matrix) -> Floats:
        """Of each node for itself that a row has it: shape (n_samples, n_nodes), never rising on the way down."""
        return np.asarray(expit(self.scores(X)))

    def margins(self, scores: AnyFloats) -> Floats:
        """Log-odds above thresholds."""
        return self.calibration.margins(np.asarray(scores, np.float64), self.tree.parents)

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions | None:
        """Of the scores of the nodes on both paths whose log-odds are the least; of flat members the best below."""
        if self.unexplained:
            return None
        member, fitted = scorer(self.member), self.calibration
        scores = self.part.spread(member.score_one(indices, values))
        log_odds = fitted.of_nodes(scores)
        slope, offset = fitted.lines(scores)
        parts, intercept = np.zeros(len(indices)), 0.0
        for sign, of in ((1.0, best), (-1.0, rival)):
            for node in [] if of is None else self._deciding(log_odds, of):
                place = self.part.place(node)
                if place is None:
                    intercept += sign * float(log_odds[node])
                    continue
                found = member.contributions(indices, values, place, None)
                assert found is not None
                parts += sign * float(slope[node]) * found.parts
                intercept += sign * float(slope[node] * found.intercept + offset[node])
        return Contributions(parts, intercept, additive=False)

    def _deciding(self, log_odds: Floats, node: int) -> list[int]:
        """The node whose own log-odds are those of a node of the set."""
        if not self.flat:
            return [int(each) for each in subtrees.nodes_of_least(self.tree, log_odds, node)]
        if self._is_ranked[node]:
            return [node]
        start, above = self.tree.at_or_above
        below = np.repeat(np.arange(self.tree.n_nodes), np.diff(start))[above == node]
        own = below[self._is_ranked[below]]
        return [int(own[log_odds[own].argmax()])] if len(own) else [node]

    def smaller(self, prune: Prune, half: bool) -> "SetPoolModel":
        member = self.member.smaller(prune, half)
        tree, nodes, ranked = self.tree, self.part.nodes, self.ranked
        return SetPoolModel(tree, member, self.calibration, self.set_reliability, nodes, ranked, flat=self.flat)

    def arrays(self) -> dict[str, Array]:
        parts = {"member": self.member.arrays(), "calibration": self.calibration.arrays()}
        if self.set_reliability is not None:
            parts["set_reliability"] = self.set_reliability.arrays()
        own = stored_arrays.of_tree(self.tree) | {"form": np.array([self.member.kind])}
        if not self.part.is_whole:
            own["scored"] = self.part.nodes
        if self.ranked is not None:
            own["ranked"] = self.ranked
        if self.flat:
            own["flat"] = np.ones(1, bool)
        return dict(Parts(parts)) | own

    @classmethod
    def row_arrays(cls, arrays: Mapping[str, Array]) -> dict[str, str]:
        kind = find_kind(str(arrays["form"][0]))
        found = {} if kind is None else kind.row_arrays(part_of(arrays, "member"))
        return {f"member.{rows}": f"member.{features}" for rows, features in found.items()}

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "SetPoolModel":
        kind = find_kind(str(arrays["form"][0]))
        if kind is None:
            raise ValueError(f"this version does not support models of the kind {arrays['form'][0]}")
        tree, scored = stored_arrays.graph(classes, arrays), None
        if "scored" in arrays:
            scored = np.asarray(arrays["scored"])
            stored_arrays.require_ascending("scored", scored, tree.n_nodes)
        ranked = np.asarray(arrays["ranked"]) if "ranked" in arrays else None
        if ranked is not None:
            stored_arrays.require_ascending("ranked", ranked, tree.n_nodes)
        names = classes if scored is None else tuple(classes[node] for node in scored.tolist())
        member = kind.from_arrays(names, n_features, part_of(arrays, "member"))
        calibration = NodeCalibration.from_arrays(part_of(arrays, "calibration"))
        for name, values in zip(("slope", "offset", "mean", "deviation"), calibration, strict=False):
            stored_arrays.require_floats(f"calibration.{name}", np.asarray(values), tree.n_nodes)
        calibration.curve.require_sound()
        if len(calibration.threshold) != 1:
            stored_arrays.require_floats("calibration.threshold", calibration.threshold, tree.n_nodes)
        held_out = part_of(arrays, "set_reliability")
        reliability = SetReliability.from_arrays(held_out) if held_out else None
        return cls(tree, member, calibration, reliability, scored, ranked, flat="flat" in arrays)


def scorer(model: Model) -> Model:
    """What scores each node for itself: the parts of a model that goes down the tree; of best sets, the model."""
    return model.parts if isinstance(model, SubtreeModel) and model.rule == "path" else model


def node_scores(model: Model, X: sp.csr_matrix) -> AnyFloats:
    """The scores that are calibrated, shape (n_samples, n_nodes)."""
    return scorer(model).scores(X)
