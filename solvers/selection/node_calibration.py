"""Probabilities of the nodes of a label tree, and one threshold for all, fitted to the scores of rows held out.

    p_j(x) = sigmoid(a_j (s_j(x) - m_j) / dev_j + b_j)

a_j is drawn to the mean of all, b_j to the logit of the node's share, as rare nodes alone would fit noise.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from solvers.hierarchical import subtrees
from solvers.numerics.array_types import AnyFloats, AnyInts, Array, Floats

NEWTON_STEPS, SLOPE_PENALTY, OFFSET_PENALTY = 12, 3.0, 0.05
# no step of Newton's method is longer, in any direction
LONGEST = 2.0
COLUMNS = 128


class NodeCalibration(NamedTuple):
    """Of a node slope a, offset b, mean and deviation, float64 arrays (n_nodes,); thresholds of log-odds.

    There is one threshold for all nodes, shape (1,), or one for each, shape (n_nodes,).
    """

    slope: Floats
    offset: Floats
    mean: Floats
    deviation: Floats
    threshold: Floats = np.zeros(1)

    @classmethod
    def none(cls, n_nodes: int) -> "NodeCalibration":
        """Scores as they are."""
        return cls(np.ones(n_nodes), np.zeros(n_nodes), np.zeros(n_nodes), np.ones(n_nodes))

    @classmethod
    def fit(cls, scores: AnyFloats, labels: sp.csr_matrix) -> "NodeCalibration":
        """Fit all but the threshold.

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

    def of_nodes(self, scores: AnyFloats) -> Floats:
        """Log-odds of every node for itself, of the shape of scores, whose last axis is that of the nodes."""
        return np.asarray(self.slope * (scores - self.mean) / self.deviation + self.offset)

    def log_odds(self, scores: AnyFloats, parent: AnyInts) -> Floats:
        """The least log-odds on the path to each node, float64 array, shape (n_samples, n_nodes)."""
        found = np.ascontiguousarray(self.of_nodes(scores), np.float64)
        subtrees.least_on_path(parent, found)
        return found

    def margins(self, log_odds: Floats, parent: AnyInts) -> Floats:
        """By how much log-odds exceed their thresholds, never rising on the way down: positive in the predicted set."""
        found = log_odds - self.threshold
        if len(self.threshold) > 1:
            subtrees.least_on_path(parent, found)
        return found

    def arrays(self) -> dict[str, Array]:
        return {name: np.asarray(value) for name, value in self._asdict().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> "NodeCalibration":
        return cls(
            np.array(arrays["slope"]),
            np.array(arrays["offset"]),
            np.array(arrays["mean"]),
            np.array(arrays["deviation"]),
            np.array(arrays["threshold"], np.float64).reshape(-1),
        )


class Curve(NamedTuple):
    """All pairs of rows and nodes by falling score: the best micro F1, where it is, and the average precision.

    The average precision is the sum of precision times the growth of recall, equal scores taken at once.
    """

    micro_f1: float
    threshold: float
    average_precision: float

    @classmethod
    def of(cls, scores: Floats, labels: sp.csr_matrix) -> "Curve":
        """The curve; a pair counts as told where its score is above the threshold."""
        values, true = scores.ravel(), labels.toarray().ravel()
        order = np.argsort(-values, kind="stable")
        values, hits = values[order], np.cumsum(true[order])
        ends = np.flatnonzero(np.append(values[1:] < values[:-1], True))
        reported, hits = ends + 1.0, hits[ends].astype(np.float64)
        total = max(float(hits[-1]), 1.0)
        f1 = 2.0 * hits / (reported + total)
        best = int(f1.argmax())
        after = values[ends[best + 1]] if best + 1 < len(ends) else values[ends[best]] - 1.0
        precision = float((np.diff(hits, prepend=0.0) * hits / reported).sum() / total)
        return cls(float(f1[best]), float((values[ends[best]] + after) / 2.0), precision)


def log_loss(log_odds: Floats, labels: sp.csr_matrix) -> float:
    """Mean over all pairs of rows and nodes."""
    return float(np.where(labels.toarray(), np.logaddexp(0.0, -log_odds), np.logaddexp(0.0, log_odds)).mean())
