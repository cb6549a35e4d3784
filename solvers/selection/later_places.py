"""Coefficients of a pool for the places after the first.

    p(first) as the pool has it,    p(c) = r exp(z(c)) / sum over c' other than first of exp(z(c')),

where first is the pool's likeliest class, r the probability that it leaves to all others, and z(c) the sum over models
m of b_m s_m(x, c). The log-likelihood is that of the first place, right or wrong, and that of the others where it is
wrong, so that the coefficients b minimise the mean log loss on those rows alone, without their first class: as if it
had been refused, and the next one was asked for. Where r is large it is lessened so that the first place stays first,
and all are scaled to a sum of 1.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, Array, Floats, Floats32, Ints, Ints32
from solvers.selection.pooling import WORTH, cautious, fit_pool, log_softmax, pooled
from solvers.selection.temperature_scaling import LEAST_GAIN

# of logarithms of probabilities: by how much the second place stays below the first
MARGIN = np.float32(1e-4)
# probability that is left to all others at least
LEAST = np.float32(1e-30)


class LaterPlaces(NamedTuple):
    """One coefficient a model, float64 array, shape (n_members,)."""

    coefficients: Floats

    @classmethod
    def fit(cls, said: Floats32, members: Sequence[Floats32], y: Ints32) -> "LaterPlaces | None":
        """Of the least log loss; None where that gains too little. As with pools the least sure of equals is taken.

        Parameters
        ----------
        said : float32 array, shape (n_rows, n_classes)
            The logarithms of the pool's probabilities, for rows that the models were not trained on.
        members : sequence of float32 arrays, each of that shape
            The models' scores.
        y : int32 array, shape (n_rows,)
        """
        first = said.argmax(axis=1)
        wrong = np.flatnonzero(first != y)
        if len(wrong) == 0:
            return None
        first, y, places = first[wrong], y[wrong], tuple(range(len(members)))
        before = -float(_without(said[wrong], first)[np.arange(len(y)), y].mean(dtype=np.float64))
        left = [_lowered(each[wrong], first) for each in members]
        start = [1.0 / (len(members) * max(float(np.std(each)), 1e-12)) for each in members]
        found = fit_pool(left, y, places, start)
        if before - found.log_loss < WORTH * before + LEAST_GAIN / len(y):
            return None
        return cls(cautious(found, left, y).coefficients)

    def apply(self, said: Floats32, members: Sequence[AnyFloats]) -> Floats32:
        """Logarithms of probabilities, shape (n_rows, n_classes), of the pool's and of the models' scores."""
        rows, first = np.arange(len(said)), said.argmax(axis=1)
        sure = said[rows, first]
        left = np.exp(said)
        left[rows, first] = 0.0
        rest = np.log(np.maximum(left.sum(axis=1), LEAST))
        others = _without(pooled(members, self.coefficients), first)
        share = np.minimum(rest, sure - MARGIN - others.max(axis=1))
        whole = np.logaddexp(sure, share)
        others += (share - whole)[:, None]
        others[rows, first] = sure - whole
        return others

    def arrays(self) -> dict[str, Array]:
        return {"coefficients": self.coefficients}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], n_members: int) -> "LaterPlaces":
        coefficients = np.asarray(arrays["coefficients"])
        stored_arrays.require_floats("later_places", coefficients, n_members)
        return cls(coefficients)


def _without(scores: Floats32, first: Ints) -> Floats32:
    """The log softmax of each row without one of its classes, whose own becomes minus infinity, in place."""
    scores[np.arange(len(scores)), first] = -np.inf
    return log_softmax(scores)


def _lowered(scores: Floats32, first: Ints) -> Floats32:
    """The same with one class of each row so far below the others that it has no probability, but finite."""
    scores = scores.copy()
    scores[np.arange(len(scores)), first] = scores.min(axis=1) - 1e3 * max(float(np.std(scores)), 1e-12)
    return scores
