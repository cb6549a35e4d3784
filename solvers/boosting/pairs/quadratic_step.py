"""A step on the weights of all classes at once, by a quadratic model of the loss of pairs."""

from collections.abc import Callable

import numpy as np
from numba import njit

from solvers.boosting.pairs import curvature, pair_sample
from solvers.boosting.pairs.pair_loss import PairLoss, chunks
from solvers.boosting.pairs.pair_sample import PairSample
from solvers.numerics.array_types import Array, Floats, Floats32, Ints, Ints8, Ints32
from solvers.numerics.thread_pool import ThreadPool

# pairs drawn for each weight, and at least; sweeps over the model, and the share of its gain that ends them
SAMPLE, LEAST_SAMPLE = 24, 4000
SWEEPS, ENOUGH = 200, 5e-3
# weights at most, entries of their learners' tables, and products for each example and pair of classes
MOST, ROOM, PRODUCTS = 2048, 1 << 23, 100
HALVINGS = 6
# how much a step may change the logarithm of any mu
REACH = 200.0
# the gain of the model that a step has to keep if the next one is to be of its kind
KEPT = 0.25

Responses = Callable[[Ints], Ints8]


def estimate_bytes(n_samples: int, n_classes: int) -> int:
    """What steps on all weights take: scores, tables and second derivatives."""
    return n_samples * (8 * n_classes + 64) + 4 * min(ROOM, n_samples * n_classes * MOST) + 4 * MOST**2


class QuadraticStep:
    """Steps on all weights, and the memory that they share.

    Parameters
    ----------
    responses : callable
        What the learners of some variables say, given their places; shape (many, n).
    signed : bool
        Whether weights may be negative.
    """

    def __init__(self, loss: PairLoss, responses: Responses, *, signed: bool) -> None:
        self.loss, self._responses, self._signed = loss, responses, signed
        self._buffers: dict[str, Array] = {}

    def fits(self, m: int) -> bool:
        """Whether a model of m weights is worth its making, and has room."""
        k, n = self.loss.F.shape
        drawn = self._wanted(m)
        # the sweeps over the model visit weights, each of them m others, where sweeps over the rows visit n
        if not 0 < m <= min(MOST, n // 2) or 4 * k > MOST:
            return False
        return drawn * m <= min(PRODUCTS * n * k**2, ROOM * k // 2)

    def take(
        self,
        thread_pool: ThreadPool,
        part: Ints,
        classes: Ints32,
        weights: Floats,
        gradient: Floats,
        rng: np.random.Generator,
        share: float = 1.0,
    ) -> tuple[Floats | None, bool]:
        """Lower the objective by a step on ``weights``; the factors of mu and the scores follow.

        Parameters
        ----------
        part : int64 array, shape (m,)
            Places of the variables, those of a class one after the other.
        classes : int32 array, shape (m,)
            Ascending.
        weights, gradient : float64 arrays, shape (m,)
            The derivatives are those of the losses alone.
        rng : Generator
            It decides which pairs the model is made of, and in which order its weights are visited.
        share : float
            How much of the way to the model's minimum to go.

        Returns
        -------
        float64 array, shape (m,)
            The step taken; None if none was found that lowers the objective.
        bool
            Whether the model was right about it, more or less.
        """
        loss = self.loss
        counts = np.bincount(classes, minlength=len(loss.F))
        offsets = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(-(-counts // curvature.FOUR) * curvature.FOUR, out=offsets[1:])
        positions = np.arange(len(part)) + (offsets[:-1] - np.cumsum(counts) + counts)[classes]
        mass = loss.total()
        H = self._model(thread_pool, part, classes, positions, offsets, mass, rng.random())
        if H is None:
            return None, False
        filled, padded, step = np.zeros(len(H)), np.zeros(len(H)), np.empty(len(H))
        filled[positions], padded[positions] = weights, gradient
        order = rng.permutation(positions)
        promised = minimise(H, padded, filled, order, self._signed, SWEEPS, ENOUGH, step)
        return self._follow(thread_pool, part, classes, weights, step[positions], mass, promised, share)

    def _wanted(self, m: int) -> int:
        k, n = self.loss.F.shape
        return min(n * (k - 1), max(LEAST_SAMPLE, SAMPLE * m))

    def _model(
        self,
        thread_pool: ThreadPool,
        part: Ints,
        classes: Ints32,
        positions: Ints,
        offsets: Ints,
        mass: float,
        shift: float,
    ) -> Floats32 | None:
        """Second derivatives of the loss, the weights at their positions."""
        loss, (k, n) = self.loss, self.loss.F.shape
        wanted = self._wanted(len(part))
        pairs = n * (k - 1)
        level = 0.0 if wanted == pairs else mass / wanted
        room = min(pairs, wanted + wanted // 4 + k * k) + 1
        rows, masses = self._buffer("rows", room, np.int32), self._buffer("masses", room, np.float64)
        ends = np.empty(k * k + 1, np.int64)
        starts = loss.mu.starts
        many = pair_sample.draw(starts, loss.mu.e, loss.mu.r, level, shift, rows, masses, ends)
        columns = self._buffer("columns", many + min(many, n), np.int32)
        scaled = self._buffer("scaled", len(columns), np.float32)
        places, bases = self._buffer("places", n, np.int32), np.empty(k + 1, np.int64)
        pair_sample.lay_out(starts, rows, masses, ends, loss.rate, columns, scaled, bases, places)
        begins = np.zeros(k + 1, np.int64)
        np.cumsum(np.diff(offsets) * np.diff(bases), out=begins[1:])
        if begins[-1] > ROOM:
            return None
        tables = self._buffer("tables", int(begins[-1]), np.float32)
        tables[:] = 0.0
        sample = PairSample(columns, scaled, bases, places, ends, offsets, begins, tables)
        for some in chunks(len(part), len(loss.y)):
            pair_sample.tabulate(self._responses(part[some]), classes[some], positions[some], sample)
        size = int(offsets[-1])
        H = self._buffer("H", size * size, np.float32).reshape(size, size)
        curvature.second_derivatives(thread_pool.work_queue, sample, H)
        return H

    def _follow(
        self,
        thread_pool: ThreadPool,
        part: Ints,
        classes: Ints32,
        weights: Floats,
        step: Floats,
        mass: float,
        promised: float,
        share: float,
    ) -> tuple[Floats | None, bool]:
        """Go as far as the objective falls."""
        loss = self.loss
        directions = self._buffer("directions", loss.F.size, np.float64).reshape(loss.F.shape)
        directions[:] = 0.0
        for some in chunks(len(part), len(loss.y)):
            loss.shift(thread_pool, self._responses(part[some]), classes[some], step[some], directions)
        reach = 2.0 * float(np.bincount(classes, np.abs(step)).max())
        done, target = 0.0, share * min(1.0, REACH / reach) if reach > 0.0 else 0.0
        before, first = float(np.abs(weights).sum()) + loss.rate * mass, target
        for _ in range(HALVINGS):
            value = loss.rate * loss.follow(thread_pool, directions, target - done)
            done = target
            gain = before - float(np.abs(weights + done * step).sum()) - value
            if gain > 0.0:
                if done != 1.0:
                    directions *= done
                loss.F += directions
                return done * step, done == first and gain >= KEPT * promised
            target *= 0.5
        loss.follow(thread_pool, directions, -done)
        return None, False

    def _buffer(self, name: str, size: int, kind: type) -> Array:
        """An array whose memory is kept for the next step."""
        if name not in self._buffers or len(self._buffers[name]) < size:
            self._buffers[name] = np.empty(size + size // 4, kind)
        return self._buffers[name][:size]


@njit(cache=True, nogil=True)
def minimise(
    H: Floats32, gradient: Floats, weights: Floats, order: Ints, signed: bool, sweeps: int, share: float, step: Floats
) -> float:
    """Lower ``gradient'd + d'H d / 2 + |weights + d|_1`` over d, weights + d >= 0 unless signed; d goes to ``step``.

    Coordinate descent in the given order, until a sweep has lowered it by less than ``share`` of the whole. Returns how
    much that is.
    """
    n, slopes, at = len(gradient), gradient.astype(np.float32), weights.copy()
    curvature, inverse = np.empty(n), np.zeros(n)
    for j in range(n):
        curvature[j] = H[j, j]
        if curvature[j] > 0.0:
            inverse[j] = 1.0 / curvature[j]
    total, gain = 0.0, np.inf
    for _ in range(sweeps):
        if gain <= share * total:
            break
        gain = 0.0
        for j in order:
            # without curvature nothing moves
            slope, here = np.float64(slopes[j]), at[j]
            best = here - (slope + 1.0) * inverse[j]
            if best < 0.0:
                best = min(0.0, here - (slope - 1.0) * inverse[j]) if signed else 0.0
            change = best - here
            if change != 0.0:
                gain -= abs(best) - abs(here) + change * (slope + 0.5 * curvature[j] * change)
                at[j] = best
                small, row = np.float32(change), H[j]
                for m in range(n):
                    slopes[m] += small * row[m]
        total += gain
    for j in range(n):
        step[j] = at[j] - weights[j]
    return total
