"""Answers along a label tree that stop where they are no longer sure enough.

The probability of a node is the sum of those of the classes at it and below. An answer goes down from the root to the
likeliest class, and stops at the deepest node that reaches a threshold: probabilities only fall on the way.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from solvers.labels import stored_arrays
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.confidence.reliability import Reliability, Threshold, threshold_curve
from solvers.numerics.array_types import AnyFloats, Array, Bools, Floats32, Ints, Ints32


@dataclass(frozen=True, eq=False)
class BackOff:
    """A label tree, and how sure held-out answers were at each of its levels.

    Attributes
    ----------
    tree : Taxonomy
    nodes : int32 array, shape (n_classes,)
        The node of each class.
    confidence : float32 array, shape (n_rows, depth)
        Probability of the node that the way down to the answer is at, by level, that below the root first; 0 below its
        end.
    correct : bool array, shape (n_rows, depth)
        Whether the true class is at that node or below.
    """

    tree: Taxonomy
    nodes: Ints32
    confidence: Floats32
    correct: Bools

    @classmethod
    def from_log_probabilities(
        cls, tree: Taxonomy, classes: Sequence[str], log_probabilities: Floats32, y: Ints32
    ) -> "BackOff":
        """From the scores of held-out rows, shape (n_rows, n_classes), and their classes, shape (n_rows,)."""
        empty = np.empty((0, tree.depth))
        found = cls(tree, tree.find(classes), empty.astype(np.float32), empty.astype(bool))
        ways, confidence = found.ways(np.exp(log_probabilities), log_probabilities.argmax(axis=1))
        correct = np.zeros(ways.shape, bool)
        above = found.nodes[y].astype(np.int64)
        while (above >= 0).any():
            correct |= (ways == above[:, None]) & (ways >= 0)
            above = np.where(above >= 0, tree.parent[above], -1)
        return replace(found, confidence=confidence, correct=correct)

    @property
    def n_rows(self) -> int:
        """Held-out rows."""
        return len(self.correct)

    def ways(self, probabilities: AnyFloats, best: Ints) -> tuple[Ints32, Floats32]:
        """The way down to the answer of each row and its probabilities, shape (n_rows, depth); -1 and 0 below its end.

        Parameters
        ----------
        probabilities : float array, shape (n_rows, n_classes)
        best : int64 array, shape (n_rows,)
            The class that is answered.
        """
        n, tree = len(probabilities), self.tree
        mass = np.asarray((self._ancestors @ np.asarray(probabilities, np.float32).T).T)
        ways = np.full((n, tree.depth), -1, np.int32)
        confidence = np.zeros((n, tree.depth), np.float32)
        at, rows = self.nodes[best].astype(np.int64), np.arange(n)
        while len(rows):
            levels = tree.level[at] - 1
            ways[rows, levels], confidence[rows, levels] = at, mass[rows, at]
            at = tree.parent[at].astype(np.int64)
            rows, at = rows[at >= 0], at[at >= 0]
        # a child's sum may be more than its parent's by rounding
        return ways, np.minimum.accumulate(np.minimum(confidence, np.float32(1.0)), axis=1)

    def depths(self, ways: Ints32, confidence: Floats32, threshold: float, level: int | None = None) -> Ints:
        """The level to which each row is sure, 0 if it is not: the deepest that reaches the threshold, or one level."""
        reached = (ways >= 0) & (confidence >= threshold)
        return np.asarray(reached.sum(axis=1) if level is None else np.where(reached[:, level - 1], level, 0))

    @cached_property
    def _ancestors(self) -> sp.csr_matrix:
        """1 where a class is at a node or below, float32, shape (n_nodes, n_classes)."""
        at, rows, columns = self.nodes.astype(np.int64), [], []
        while (at >= 0).any():
            there = np.flatnonzero(at >= 0)
            rows.append(at[there])
            columns.append(there)
            at = np.where(at >= 0, self.tree.parent[at], -1)
        where = np.concatenate(rows), np.concatenate(columns)
        shape = (self.tree.n_nodes, len(self.nodes))
        return sp.csr_matrix((np.ones(len(where[0]), np.float32), where), shape=shape)

    @cached_property
    def curve(self) -> list[Threshold]:
        """What answers from a threshold on are worth, by ascending thresholds."""
        return threshold_curve(self.confidence, self.correct)

    @cached_property
    def own(self) -> Reliability:
        """The answers at the end of each way down: the labels, without any broader node."""
        last = np.maximum((self.confidence > 0).sum(axis=1) - 1, 0)[:, None]
        confidence = np.take_along_axis(self.confidence, last, axis=1)[:, 0]
        return Reliability(confidence, np.take_along_axis(self.correct, last, axis=1)[:, 0])

    def at(self, level: int) -> Reliability:
        """The answers at a level of the tree, from 1; rows whose way ends above it have none."""
        return Reliability(self.confidence[:, level - 1], self.correct[:, level - 1])

    def arrays(self) -> dict[str, Array]:
        names = np.frombuffer(json.dumps(self.tree.names).encode(), np.uint8)
        own: dict[str, Array] = {"names": names, "parent": self.tree.parent, "nodes": self.nodes}
        return own | {"confidence": self.confidence, "correct": self.correct}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> "BackOff":
        """What :meth:`arrays` gave; raises ArrayFault."""
        tree = stored_arrays.tree(json.loads(bytes(arrays["names"])), np.asarray(arrays["parent"]))
        nodes, confidence, correct = np.asarray(arrays["nodes"]), arrays["confidence"], arrays["correct"]
        stored_arrays.require_within("nodes", nodes, 0, tree.n_nodes)
        stored_arrays.require_floats("confidence", confidence, len(confidence), tree.depth)
        stored_arrays.require_shape("correct", correct, *confidence.shape)
        return cls(tree, nodes, confidence, correct)
