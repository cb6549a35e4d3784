"""How far the probabilities of a model can be trusted: what it said of rows that it had not seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.special import betaincinv

from solvers.labels import stored_arrays
from solvers.metrics.calibration import expected_calibration_error
from solvers.numerics.array_types import Array, Bools, Floats32, Ints, Ints32

# of the bound on a precision that is asked for
LEVEL = 0.05
# thresholds that are tried, at most
CANDIDATES = 512


class Threshold(NamedTuple):
    """The least probability from which answers reach a precision.

    Attributes
    ----------
    threshold : float
    precision : float
        Of the held-out answers from there on.
    lower_bound : float
        What their precision exceeds with a confidence of 95 % (Clopper and Pearson 1934).
    answered : float
        Share of the held-out rows that are answered.
    depth : float
        Mean level of their answers in a label tree; 1 without one.
    """

    threshold: float
    precision: float
    lower_bound: float
    answered: float
    depth: float = 1.0


@dataclass(frozen=True, eq=False)
class Reliability:
    """Held-out answers.

    Attributes
    ----------
    confidence : float32 array, shape (n_rows,)
        Probability of the label that was said.
    correct : bool array, shape (n_rows,)
    """

    confidence: Floats32
    correct: Bools

    @classmethod
    def of(cls, log_probabilities: Floats32, y: Ints32) -> "Reliability":
        """Of the held-out rows' scores, shape (n_rows, n_classes), and labels, shape (n_rows,)."""
        said = log_probabilities.argmax(axis=1)
        confidence = np.exp(log_probabilities[np.arange(len(y)), said]).astype(np.float32)
        return cls(np.minimum(confidence, np.float32(1.0)), said == y)

    @property
    def n_rows(self) -> int:
        """Held-out rows."""
        return len(self.correct)

    @cached_property
    def curve(self) -> list[Threshold]:
        """What answers from a threshold on are worth, by ascending thresholds."""
        return threshold_curve(self.confidence[:, None], self.correct[:, None])

    def threshold_for(self, precision: float) -> Threshold | None:
        """The least threshold whose answers exceed a precision with 95 % confidence; None if there is none.

        Parameters
        ----------
        precision : float
            In (0, 1).
        """
        return least(self.curve, precision)

    def calibration_error(self, bins: int = 15) -> float:
        """The expected calibration error by bins of equal width (Guo et al. 2017, equation 3); 0 of no answers."""
        if len(self.correct) == 0:
            return 0.0
        return float(expected_calibration_error(self.confidence.astype(np.float64), self.correct, bins)[0])

    def arrays(self) -> dict[str, Array]:
        return {"confidence": self.confidence, "correct": self.correct}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> "Reliability":
        confidence, correct = np.asarray(arrays["confidence"]), np.asarray(arrays["correct"])
        stored_arrays.require_floats("confidence", confidence, len(confidence))
        stored_arrays.require_shape("correct", correct, len(confidence))
        return cls(confidence, correct)


def threshold_curve(confidence: Floats32, correct: Bools) -> list[Threshold]:
    """What answers from a threshold on are worth, for up to 512 thresholds in ascending order.

    Parameters
    ----------
    confidence : float32 array, shape (n_rows, n_levels)
        Of the answer at each level, which never rises from one level to the next; the last that reaches the threshold
        is given.
    correct : bool array, shape (n_rows, n_levels)

    Notes
    -----
    The answer of a row is that of level l where ``confidence[l] >= threshold > confidence[l + 1]``, so that all sums
    are differences of counts of sorted columns.
    """
    n_rows, n_levels = confidence.shape
    tried = np.unique(confidence[confidence > 0])
    if len(tried) > CANDIDATES:
        tried = np.unique(np.quantile(tried, np.linspace(0, 1, CANDIDATES), method="nearest"))
    if len(tried) == 0:
        return []
    reached = np.zeros((n_levels, len(tried)), np.int64)
    hits = np.zeros(len(tried), np.int64)
    for level in range(n_levels):
        reached[level] = _from_there_on(confidence[:, level], tried)
        right = correct[:, level]
        hits += _from_there_on(confidence[right, level], tried)
        if level + 1 < n_levels:
            hits -= _from_there_on(confidence[right, level + 1], tried)
    counts = reached[0]
    with np.errstate(invalid="ignore"):
        bounds = np.where(hits > 0, betaincinv(hits, counts - hits + 1, LEVEL), 0.0)
    columns = tried, hits / counts, bounds, counts / n_rows, reached.sum(axis=0) / counts
    return [Threshold(*point) for point in zip(*(column.tolist() for column in columns), strict=True)]


def _from_there_on(values: Floats32, thresholds: Floats32) -> Ints:
    """How many values reach each threshold."""
    return np.asarray(len(values) - np.searchsorted(np.sort(values), thresholds))


class _Bounded(Protocol):
    @property
    def lower_bound(self) -> float: ...


_Point = TypeVar("_Point", bound=_Bounded)


def least(curve: Sequence[_Point], precision: float) -> _Point | None:
    """The first of a curve whose lower bound reaches a precision."""
    return next((point for point in curve if point.lower_bound >= precision), None)
