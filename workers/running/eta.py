"""How far a solver has come, and how long it will still take: an estimate from the trend of the gap."""

import math
from collections import deque

_POINTS = 8
# below this share of the maximum, epochs say nothing about the end: most trainings end long before the maximum
_TELLING = 0.1
_MOST = 0.99


class EtaEstimate:
    """Fed with steps; the gap of these methods falls about log-linearly with time.

    Parameters
    ----------
    tol : float or None
        The gap at which training ends.
    """

    def __init__(self, tol: float | None, max_epochs: int | None) -> None:
        self._tol = tol
        self._max_epochs = max_epochs
        self._gaps: deque[tuple[float, float]] = deque(maxlen=_POINTS)
        self._fraction = 0.0

    def step(self, epoch: int, gap: float, seconds: float, reported: float = math.nan) -> tuple[float, float | None]:
        """The fraction done, which never falls, and the seconds left, None while unknown.

        Parameters
        ----------
        gap : float
            Relative; nan where not measured.
        seconds : float
            Training time so far.
        reported : float
            The share done by the method's own estimate, which is taken where there is one.
        """
        if math.isfinite(reported):
            self._fraction = max(self._fraction, min(_MOST, reported))
            return self._fraction, seconds * (1.0 / self._fraction - 1.0) if self._fraction > 0 else None
        if gap > 0 and math.isfinite(gap):
            self._gaps.append((seconds, math.log(gap)))
        left = [
            estimate for estimate in (self._by_gap(seconds), self._by_epochs(epoch, seconds)) if estimate is not None
        ]
        if not left:
            return self._fraction, None
        eta = min(left)
        done = seconds / (seconds + eta) if seconds + eta > 0 else 0.0
        self._fraction = max(self._fraction, min(_MOST, done))
        return self._fraction, eta

    def _by_gap(self, seconds: float) -> float | None:
        if not self._tol or len(self._gaps) < 2:
            return None
        mean_time = sum(time for time, _ in self._gaps) / len(self._gaps)
        mean_log = sum(log for _, log in self._gaps) / len(self._gaps)
        spread = sum((time - mean_time) ** 2 for time, _ in self._gaps)
        if spread <= 0:
            return None
        slope = sum((time - mean_time) * (log - mean_log) for time, log in self._gaps) / spread
        if slope >= 0:
            return None
        end = mean_time + (math.log(self._tol) - mean_log) / slope
        return max(0.0, end - seconds)

    def _by_epochs(self, epoch: int, seconds: float) -> float | None:
        if not self._max_epochs or epoch < _TELLING * self._max_epochs:
            return None
        return seconds / epoch * max(0, self._max_epochs - epoch)
