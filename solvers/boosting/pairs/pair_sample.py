"""A sample of the pairs of an example and a wrong class, and what weak learners say of it.

Few pairs carry most of the loss, ``mu_iq`` in :mod:`solvers.boosting.pairs.pair_weights`. Those above a level are all
taken, the others with a probability in proportion to mu, and with the level in its place: ``level`` is the sum of all
mu over the number of pairs wanted. Which are taken is decided by fractional parts of multiples of irrational numbers,
spread more evenly than random numbers are.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.numerics.array_types import Bytes, Floats, Floats32, Ints, Ints8, Ints32

GOLDEN, PLASTIC = 0.6180339887498949, 0.7548776662466927


class PairSample(NamedTuple):
    """Pairs of k classes, class after class: those for which it is the wrong one, then its own rows that were drawn.

    Attributes
    ----------
    columns : int32 array, shape (n_columns,)
        The row of each.
    scaled : float32 array, shape (n_columns,)
        The mass of each.
    bases : int64 array, shape (k + 1,)
        Where those of each class begin.
    places : int32 array, shape (n,)
        The column, within its class, of a row among the own ones.
    ends : int64 array, shape (k * k + 1,)
        Pairs of wrong class q and a row's class c begin at ``ends[q k + c]``, before own rows are counted.
    offsets : int64 array, shape (k + 1,)
        Where the weights of each class begin.
    begins : int64 array, shape (k + 1,)
        Where the table of each class begins.
    tables : float32 array, shape (begins[k],)
        What each class's learners say of its columns, a row a learner.
    """

    columns: Ints32
    scaled: Floats32
    bases: Ints
    places: Ints32
    ends: Ints
    offsets: Ints
    begins: Ints
    tables: Floats32


@njit(cache=True, nogil=True)
def _draw(e: Floats, r: Floats, level: float, shift: float, mu: Floats, drawn: Bytes) -> None:
    for i in range(len(e)):
        loss = e[i] * r[i]
        chance = i * GOLDEN + shift
        chance -= np.floor(chance)
        mu[i] = max(loss, level)
        drawn[i] = np.uint8(loss > level * chance)


@njit(cache=True, nogil=True)
def draw(starts: Ints, e: Floats, r: Floats, level: float, shift: float, rows: Ints32, mass: Floats, ends: Ints) -> int:
    """Draw pairs; those of wrong class q and a row's class c are ``ends[q k + c]`` up to the next of the ends.

    ``rows`` and ``mass`` become their rows and masses. Returns how many there are, at most one less than
    there is room for.
    """
    k, n, most, many = e.shape[0], len(r), len(rows) - 1, 0
    mu, drawn = np.empty(n), np.empty(n, np.uint8)
    for q in range(k):
        _draw(e[q], r, level, shift + q * PLASTIC, mu, drawn)
        for c in range(k):
            ends[q * k + c] = many
            if c == q:
                continue
            for i in range(starts[c], starts[c + 1]):
                # without a branch, which would be guessed wrong for every other pair drawn
                rows[many], mass[many] = i, mu[i]
                many = int(min(many + int(drawn[i]), most))
    ends[k * k] = many
    return many


@njit(cache=True, nogil=True)
def lay_out(
    starts: Ints,
    rows: Ints32,
    mass: Floats,
    ends: Ints,
    rate: float,
    columns: Ints32,
    scaled: Floats32,
    bases: Ints,
    places: Ints32,
) -> None:
    """Columns of the tables: first the pairs for which a class is the wrong one, then its own rows that were drawn.

    Those of class c are ``columns[bases[c]:bases[c + 1]]``, rows each, with ``scaled``, their mass times ``rate``;
    ``places`` is the column, within its class, of a row among the own ones.
    """
    k, at = len(starts) - 1, 0
    own = np.zeros(starts[k])
    for p in range(ends[k * k]):
        own[rows[p]] += mass[p]
    for c in range(k):
        bases[c] = at
        for p in range(ends[c * k], ends[c * k + k]):
            columns[at], scaled[at] = rows[p], mass[p] * rate
            at += 1
        for i in range(starts[c], starts[c + 1]):
            if own[i] > 0.0:
                columns[at], scaled[at], places[i] = i, own[i] * rate, at - bases[c]
                at += 1
    bases[k] = at


@njit(cache=True, nogil=True)
def tabulate(responses: Ints8, classes: Ints32, positions: Ints, sample: PairSample) -> None:
    """Enter what learners say: that of ``positions[j]`` in row ``positions[j] - offsets[c]`` of its class's table."""
    bases = sample.bases
    for j in range(len(responses)):
        h, c = responses[j], classes[j]
        size = bases[c + 1] - bases[c]
        begin = sample.begins[c] + (positions[j] - sample.offsets[c]) * size
        line, where = sample.tables[begin : begin + size], sample.columns[bases[c] : bases[c + 1]]
        for p in range(size):
            line[p] = h[where[p]]
