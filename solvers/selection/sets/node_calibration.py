"""Probabilities of the nodes of a label tree, and one threshold for all, fitted to the scores of rows held out.

    p_j(x) = sigmoid(g(a_j (s_j(x) - m_j) / dev_j + b_j))

a_j is drawn to the mean of all, b_j to the logit of the node's share, as rare nodes alone would fit noise. The curve g
is common to all nodes.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from solvers.hierarchical import subtrees
from solvers.labels.tree_part import TreePart
from solvers.labels.tree_paths import Adjacency
from solvers.metrics.confidence.calibration_curve import CalibrationCurve
from solvers.numerics.array_types import AnyFloats, Array, Floats

NEWTON_STEPS, SLOPE_PENALTY, OFFSET_PENALTY = 12, 3.0, 0.05
# no step of Newton's method is longer, in any direction
LONGEST = 2.0
COLUMNS = 128


class NodeCalibration(NamedTuple):
    """Of a node slope a, offset b, mean and deviation, float64 arrays (n_nodes,); thresholds of log-odds; the curve g.

    There is one threshold for all nodes, shape (1,), or one for each, shape (n_nodes,).
    """

    slope: Floats
    offset: Floats
    mean: Floats
    deviation: Floats
    threshold: Floats = np.zeros(1)
    curve: CalibrationCurve = CalibrationCurve()

    @classmethod
    def none(cls, n_nodes: int) -> "NodeCalibration":
        """Scores as they are."""
        return cls(np.ones(n_nodes), np.zeros(n_nodes), np.zeros(n_nodes), np.ones(n_nodes))

    @classmethod
    def fit(cls, scores: AnyFloats, labels: sp.csr_matrix) -> "NodeCalibration":
        """Fit all but the threshold and the curve.

        Parameters
        ----------
        scores : float array, shape (n_samples, n_nodes)
        labels : csr_matrix of bool, same shape
        """
        n, k = scores.shape
        mean, deviation = scores.mean(axis=0, dtype=np.float64), scores.std(axis=0, dtype=np.float64)
        deviation[deviation < 1e-12] = 1.0
        counts = np.asarray(labels.sum(axis=0), np.float64).ravel()
        prior = np.log((counts + 0.5) / (n - counts + 0.5))
        slope, offset = np.ones(k), prior.copy()
        columns = labels.tocsc()
        for _ in range(NEWTON_STEPS):
            common = slope.mean()
            for begin in range(0, k, COLUMNS):
                part = slice(begin, begin + COLUMNS)
                z = (scores[:, part] - mean[part]) / deviation[part]
                p = expit(slope[part] * z + offset[part])
                errors, weights = p - columns[:, part].toarray(), p * (1.0 - p)
                to_slope = (errors * z).sum(axis=0) + SLOPE_PENALTY * (slope[part] - common)
                to_offset = errors.sum(axis=0) + OFFSET_PENALTY * (offset[part] - prior[part])
                aa = (weights * z * z).sum(axis=0) + SLOPE_PENALTY
                ab, bb = (weights * z).sum(axis=0), weights.sum(axis=0) + OFFSET_PENALTY
                scale = aa * bb - ab * ab
                slope[part] -= np.clip((bb * to_slope - ab * to_offset) / scale, -LONGEST, LONGEST)
                offset[part] -= np.clip((aa * to_offset - ab * to_slope) / scale, -LONGEST, LONGEST)
        return cls(slope, offset, mean, deviation)

    @classmethod
    def of_rest(cls, n_samples: int) -> float:
        """The log-odds of a node that no row has, which :meth:`fit` finds where its scores are all the same."""
        none = np.zeros((n_samples, 1))
        return float(cls.fit(none, sp.csr_matrix(none, dtype=bool)).offset[0])

    def spread(self, part: TreePart, rest: float) -> "NodeCalibration":
        """Of all nodes of a tree, where this one is of a part, whose other nodes have the offset ``rest``.

        The threshold stays, so that it is one for all nodes.
        """
        return NodeCalibration(
            part.spread(self.slope),
            part.spread(self.offset, rest),
            part.spread(self.mean),
            part.spread(self.deviation, 1.0),
            self.threshold,
            self.curve,
        )

    def lines(self, scores: AnyFloats) -> tuple[Floats, Floats]:
        """Slope and offset of the log-odds in each score, where it is; float64 arrays of the shape of scores."""
        slope = self.slope / self.deviation
        offset = self.offset - slope * self.mean
        on_curve, constant = self.curve.lines(np.asarray(slope * scores + offset))
        return on_curve * slope, on_curve * offset + constant

    def of_nodes(self, scores: AnyFloats) -> Floats:
        """Log-odds of every node for itself, of the shape of scores, whose last axis is that of the nodes."""
        return self.curve(np.asarray(self.slope * (scores - self.mean) / self.deviation + self.offset))

    def log_odds(self, scores: AnyFloats, parents: Adjacency) -> Floats:
        """The least log-odds at or above each node, float64 array, shape (n_samples, n_nodes)."""
        found = np.ascontiguousarray(self.of_nodes(scores), np.float64)
        subtrees.least_above(parents, found)
        return found

    def margins(self, log_odds: Floats, parents: Adjacency) -> Floats:
        """By how much log-odds exceed their thresholds, never rising on the way down: positive in the predicted set."""
        found = log_odds - self.threshold
        if len(self.threshold) > 1:
            subtrees.least_above(parents, found)
        return found

    def arrays(self) -> dict[str, Array]:
        own = {name: np.asarray(value) for name, value in self._asdict().items() if name != "curve"}
        return own | self.curve.arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> "NodeCalibration":
        return cls(
            np.array(arrays["slope"]),
            np.array(arrays["offset"]),
            np.array(arrays["mean"]),
            np.array(arrays["deviation"]),
            np.array(arrays["threshold"], np.float64).reshape(-1),
            CalibrationCurve(*np.asarray(arrays["curve"])) if "curve" in arrays else CalibrationCurve(),
        )
