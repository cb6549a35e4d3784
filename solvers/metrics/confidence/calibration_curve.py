"""From the log-odds that are said of labels to those that are observed: a rising curve of straight pieces.

Sigmoids fitted to all pairs of rows and labels are right on the whole, which improbable pairs dominate, and can be
wrong by a factor where labels are probable. Each knot of the curve is the mean probability that was said of some pairs,
and the share of them that are true: first of the most probable pairs, down to the thirtieth that is true, then down to
the forty-fifth, the sixty-seventh and so on, and down to nine tenths of the true ones. As the curve rises strictly, no
order changes.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.special import logit

from solvers.labels import stored_arrays
from solvers.numerics.array_types import Array, Bools, Floats, Ints

FEWEST_TRUE, GROWTH = 30, 1.5
_LAST = 0.9
_LEAST_SLOPE = 0.05


class CalibrationCurve(NamedTuple):
    """Knots, float64 arrays of one length, both ascending; none: log-odds are as they were said."""

    said: Floats = np.empty(0)
    observed: Floats = np.empty(0)

    @classmethod
    def fit(cls, log_odds: Floats, true: Bools, counts: Ints | None = None) -> "CalibrationCurve":
        """Fit the curve to pairs of rows held out and labels.

        Parameters
        ----------
        log_odds : float64 array, shape (n_entries,)
        true : bool array, shape (n_entries,)
        counts : int64 array, shape (n_entries,), optional
            How many pairs an entry counts for; one of them at most is true. Left out, 1.
        """
        falling = -np.sort(-log_odds[true])
        n_edges = int(np.log(max(1.0, len(falling) / FEWEST_TRUE)) / np.log(GROWTH)) + 1
        ranks = (FEWEST_TRUE * GROWTH ** np.arange(n_edges)).astype(np.int64)
        ranks = np.append(ranks[ranks <= len(falling)], int(_LAST * len(falling)))
        edges = np.unique(falling[ranks[ranks > 0] - 1])
        if len(edges) < 2:
            return cls()
        # what is below the last edge has a knot of its own
        entries = np.broadcast_to(np.int64(1), len(log_odds)) if counts is None else counts
        sizes, right, claims = _by_knot(edges, log_odds, true, entries)
        there = sizes > 0
        sizes, right = sizes[there], right[there]
        claimed = claims[there] / sizes
        said = logit(np.clip(claimed, 1e-12, 1.0 - 1e-9))
        observed = logit((right + 1.0) / (sizes + 2.0))
        # imported here: every process that knows the methods would wait for it
        from scipy.optimize import isotonic_regression

        rising = isotonic_regression(observed - _LEAST_SLOPE * said, weights=right + 1.0).x + _LEAST_SLOPE * said
        apart = np.append(True, np.diff(said) > 1e-6)
        return cls(said[apart], rising[apart]) if apart.sum() > 1 else cls()

    def __call__(self, log_odds: Floats) -> Floats:
        """Of each log-odds, float64 array of their shape."""
        if not len(self.said):
            return log_odds
        slope, offset = self.lines(log_odds)
        return slope * log_odds + offset

    def lines(self, log_odds: Floats) -> tuple[Floats, Floats]:
        """Slope and offset of the piece that each log-odds is on, float64 arrays of their shape."""
        if not len(self.said):
            return np.ones_like(log_odds), np.zeros_like(log_odds)
        slopes = np.diff(self.observed) / np.diff(self.said)
        # below the first knot distances stay; nothing shows that labels above the last knot are right more often
        slopes = np.concatenate([[1.0], slopes, [_LEAST_SLOPE]])
        said, observed = (np.append(knots[:1], knots) for knots in self)
        offsets = observed - slopes * said
        piece = np.searchsorted(self.said, log_odds)
        return slopes[piece], offsets[piece]

    def arrays(self) -> dict[str, Array]:
        return {"curve": np.stack(self)} if len(self.said) else {}

    def require_sound(self) -> None:
        """Raise ValueError where knots of an artefact are not ascending."""
        stored_arrays.require_floats("curve", self.observed, len(self.said))
        if any((np.diff(knots) <= 0.0).any() for knots in self):
            raise ValueError("curve: its knots must be ascending")


@njit(cache=True, nogil=True)
def _by_knot(edges: Floats, log_odds: Floats, true: Bools, counts: Ints) -> tuple[Floats, Floats, Floats]:
    """How many pairs are between edges, how many of them are true, and the sum of the probabilities said of them."""
    sizes, right, claims = np.zeros(len(edges) + 1), np.zeros(len(edges) + 1), np.zeros(len(edges) + 1)
    for i in range(len(log_odds)):
        knot = np.searchsorted(edges, log_odds[i], side="right")
        sizes[knot] += counts[i]
        right[knot] += true[i]
        claims[knot] += counts[i] / (1.0 + np.exp(-log_odds[i]))
    return sizes, right, claims
