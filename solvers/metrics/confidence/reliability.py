"""How far the probabilities of a model can be trusted: what it said of rows that it had not seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.special import betainc, betaincinv

from solvers.labels import stored_arrays
from solvers.metrics.calibration import expected_calibration_error
from solvers.numerics.array_types import Array, Bools, Floats, Floats32, Ints, Ints32

# of the bound on a precision that is asked for
LEVEL = 0.05
# thresholds that are tried, at most
CANDIDATES = 512
# levels of simultaneous bounds are simulated at these precisions, by so many sequences, at so many of their lengths
PRECISIONS = (0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
PATHS, SIZES, LEVEL_STEPS = 1000, 48, 3


class Threshold(NamedTuple):
    """The least probability from which answers reach a precision.

    Attributes
    ----------
    threshold : float
    precision : float
        Of the held-out answers from there on.
    lower_bound : float
        Their precision exceeds it, for all thresholds at once with a confidence of 95 %; see :func:`lower_bounds`.
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
    def from_log_probabilities(cls, log_probabilities: Floats32, y: Ints32) -> "Reliability":
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
    bounds = lower_bounds(hits, counts)
    columns = tried, hits / counts, bounds, counts / n_rows, reached.sum(axis=0) / counts
    return [Threshold(*point) for point in zip(*(column.tolist() for column in columns), strict=True)]


def lower_bounds(hits: Ints, counts: Ints) -> Floats:
    """Lower bounds on the precisions of many thresholds, which hold for all of them at once with 95 % confidence.

    Parameters
    ----------
    hits, counts : int array, shape (n_thresholds,)
        Correct answers, and all answers, from each threshold on.

    Returns
    -------
    float64 array, shape (n_thresholds,)

    Notes
    -----
    The bound of Clopper and Pearson (1934) holds for a threshold that is fixed beforehand. The least threshold whose
    bound reaches a precision is chosen by the same rows, so the same level misses more often. The level is lowered
    until some bound of a sequence of answers with one precision, at any length, misses in 5 % of all cases; it depends
    on that precision, as small counts of rare errors are conservative already.
    """
    found = np.zeros(len(counts))
    some = np.flatnonzero(hits > 0)
    if len(some) == 0:
        return found
    right, wrong = hits[some], counts[some] - hits[some] + 1
    # powers of two, as the levels change slowly and are computed once for each
    levels = _levels(1 << int(counts.max() - 1).bit_length())
    bounds = betaincinv(right, wrong, LEVEL)
    for _ in range(LEVEL_STEPS):
        bounds = betaincinv(right, wrong, np.interp(bounds, PRECISIONS, levels))
    found[some] = bounds
    return found


@lru_cache(maxsize=256)
def _levels(n: int) -> Floats:
    """The levels of bounds at each of ``PRECISIONS``, which hold at once for the first 1 to n answers."""
    rng = np.random.default_rng(n)
    sizes = np.unique(np.geomspace(1, n, min(n, SIZES)).round().astype(np.int64))
    steps = np.diff(sizes, prepend=0)
    found = []
    for precision in PRECISIONS:
        hits = rng.binomial(steps, precision, (PATHS, len(sizes))).cumsum(axis=1)
        chances = np.where(hits > 0, betainc(np.maximum(hits, 1), sizes - hits + 1, precision), 1.0).min(axis=1)
        # a bound misses where its chance falls to the level
        found.append(min(LEVEL, float(np.nextafter(np.quantile(chances, LEVEL, method="lower"), 0.0))))
    return np.array(found)


def _from_there_on(values: Floats32, thresholds: Floats32) -> Ints:
    return np.asarray(len(values) - np.searchsorted(np.sort(values), thresholds))


class _Bounded(Protocol):
    @property
    def threshold(self) -> float: ...

    @property
    def lower_bound(self) -> float: ...

    def _asdict(self) -> dict[str, Any]: ...


_Point = TypeVar("_Point", bound=_Bounded)


def threshold_for(curve: Sequence[_Point], precision: float) -> _Point | None:
    """The least threshold whose answers exceed a precision with 95 % confidence; None if there is none.

    Parameters
    ----------
    curve : sequence of Threshold or SetThreshold
        By ascending thresholds.
    precision : float
        In (0, 1).
    """
    return next((point for point in curve if point.lower_bound >= precision), None)
