"""How far the probabilities of labels in sets can be trusted: what a model said of rows that it had not seen."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from solvers.labels import stored_arrays
from solvers.metrics.confidence.pairs import Pairs
from solvers.metrics.confidence.reliability import CANDIDATES, lower_bounds
from solvers.numerics.array_types import Array, Floats32, Ints


class SetThreshold(NamedTuple):
    """What the labels that are at least so probable are worth.

    Attributes
    ----------
    threshold : float
        A probability.
    precision : float
        Of those labels over all held-out rows together (micro precision).
    lower_bound : float
        As :class:`Threshold` has it, pairs of rows and labels taken as independent.
    answered : float
        Share of the held-out rows with such a label.
    recall : float
        Share of the true labels of all held-out rows that are among them.
    """

    threshold: float
    precision: float
    lower_bound: float
    answered: float
    recall: float


@dataclass(frozen=True, eq=False)
class SetReliability:
    """Counts over held-out rows of the labels that are at least so probable, for up to 512 thresholds.

    Attributes
    ----------
    threshold : float32 array, shape (n_thresholds,)
        Probabilities, ascending.
    n_said, n_right, n_answered : int64 array, shape (n_thresholds,)
        Pairs of rows and labels that are at least so probable, those of them that are true, and rows with such a label.
    n_rows, n_true : int
        Held-out rows, and their true labels.
    """

    threshold: Floats32
    n_said: Ints
    n_right: Ints
    n_answered: Ints
    n_rows: int
    n_true: int

    @classmethod
    def from_pairs(cls, pairs: Pairs) -> "SetReliability":
        """Of the pairs of rows held out and labels.

        Notes
        -----
        Most pairs of rows and labels are improbable. Of more than 512 probabilities those are tried above which the
        numbers of others grow by equal factors.
        """
        said = expit(pairs.log_odds).astype(np.float32)
        order = np.argsort(said)
        every, below = said[order], np.concatenate([[0], np.cumsum(pairs.counts[order])])
        tried = np.unique(every)
        if len(tried) > CANDIDATES:
            ranks = np.unique(np.geomspace(1, len(tried), CANDIDATES).round().astype(np.int64))
            tried = tried[len(tried) - ranks[::-1]]
        right, first = np.sort(said[pairs.true]), np.sort(expit(pairs.best).astype(np.float32))
        n_right, n_answered = (len(values) - np.searchsorted(values, tried) for values in (right, first))
        n_said = below[-1] - below[np.searchsorted(every, tried)]
        return cls(tried, n_said, n_right, n_answered, len(first), len(right))

    @cached_property
    def curve(self) -> list[SetThreshold]:
        """What labels from a threshold on are worth, by ascending thresholds."""
        said, right = self.n_said, self.n_right
        bounds = lower_bounds(right, said)
        answered, recall = self.n_answered / max(self.n_rows, 1), right / max(self.n_true, 1)
        columns = self.threshold, right / said, bounds, answered, recall
        return [SetThreshold(*point) for point in zip(*(column.tolist() for column in columns), strict=True)]

    def arrays(self) -> dict[str, Array]:
        counts = np.stack([self.n_said, self.n_right, self.n_answered])
        return {"threshold": self.threshold, "counts": counts, "totals": np.array([self.n_rows, self.n_true])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> "SetReliability":
        threshold, counts, totals = (np.asarray(arrays[name]) for name in ("threshold", "counts", "totals"))
        stored_arrays.require_floats("threshold", threshold, len(threshold))
        stored_arrays.require_shape("counts", counts, 3, len(threshold))
        stored_arrays.require_shape("totals", totals, 2)
        return cls(threshold, counts[0], counts[1], counts[2], int(totals[0]), int(totals[1]))
