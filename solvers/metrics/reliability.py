"""How far the probabilities of a model can be trusted: what it said of rows that it had not seen."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from solvers.metrics.calibration import expected_calibration_error

# of the bound on a precision that is asked for
LEVEL = 0.05


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
    """

    threshold: float
    precision: float
    lower_bound: float
    answered: float


class Reliability(NamedTuple):
    """Held-out answers, the surest first.

    Attributes
    ----------
    confidence : float32 array, shape (n_rows,)
        Probability of the label that was said; descending.
    correct : bool array, shape (n_rows,)
    """

    confidence: NDArray[np.float32]
    correct: NDArray[np.bool_]

    @classmethod
    def of(cls, log_probabilities: NDArray[np.float32], y: NDArray[np.int32]) -> "Reliability":
        """Of the held-out rows' scores, shape (n_rows, n_classes), and labels, shape (n_rows,)."""
        said = log_probabilities.argmax(axis=1)
        confidence = np.exp(log_probabilities[np.arange(len(y)), said]).astype(np.float32)
        order = np.argsort(-confidence, kind="stable")
        return cls(confidence[order], (said == y)[order])

    def threshold_for(self, precision: float) -> Threshold | None:
        """The least threshold whose answers exceed a precision with 95 % confidence; None if there is none.

        Parameters
        ----------
        precision : float
            In (0, 1).
        """
        n = len(self.confidence)
        if n == 0:
            return None
        counts = np.arange(1, n + 1)
        right = np.cumsum(self.correct)
        # answers of one confidence are given together
        ends = np.flatnonzero(np.append(self.confidence[1:] < self.confidence[:-1], True))
        counts, right = counts[ends], right[ends]
        with np.errstate(invalid="ignore"):
            bounds = np.where(right > 0, beta.ppf(LEVEL, right, counts - right + 1), 0.0)
        reached = np.flatnonzero(bounds >= precision)
        if len(reached) == 0:
            return None
        at = int(reached[-1])
        threshold = float(self.confidence[ends[at]])
        return Threshold(threshold, float(right[at] / counts[at]), float(bounds[at]), float(counts[at] / n))

    def calibration_error(self, bins: int = 15) -> float:
        """The expected calibration error by bins of equal width (Guo et al. 2017, equation 3); 0 of no answers."""
        if len(self.correct) == 0:
            return 0.0
        return float(expected_calibration_error(self.confidence.astype(np.float64), self.correct, bins)[0])

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"confidence": self.confidence, "correct": self.correct}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "Reliability":
        return cls(arrays["confidence"], arrays["correct"])
