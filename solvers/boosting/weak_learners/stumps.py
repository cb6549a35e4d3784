"""Weak learners: functions of an example to +1 or -1, sought by weights of the examples, several at once."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.boosting.simd import LANES
from solvers.boosting.weak_learners import stump_search as kernels
from solvers.boosting.weak_learners.binning import Bins
from solvers.boosting.weak_learners.stumps_model import StumpsModel
from solvers.boosting.weak_learners.votes import Votes
from solvers.core.model import Model
from solvers.numerics.thread_pool import ThreadPool

PIECE = 1 << 22
ALIGNMENT = 64
GROUPS, LEAST_WORK = 32, 1 << 15


class Channels:
    """Weights for which weak learners are sought, one channel a learner: u[j, i] of channel j and row i.

    They are kept as whole numbers, ``scales[j]`` times as large and rounded, in blocks of 16 channels.

    Parameters
    ----------
    m, n : int
        Channels and rows.
    fine : bool
        Take 62 bits in place of 31, at more than twice the cost.

    Attributes
    ----------
    U : int array, shape (n_blocks, 16 n)
    totals : int array, shape (n_blocks, 16)
        Sums over the rows.
    scales : float64 array, shape (m,)
    masses : float64 array, shape (m,)
        The sum of \\|u[j, i]\\| over the rows.
    slack : float64 array, shape (m,)
        What rounding may have taken from the value of any learner.
    """

    def __init__(self, m: int, n: int, *, fine: bool = False) -> None:
        self.m, self.n, self.fine = m, n, fine
        dtype = np.dtype(np.int64 if fine else np.int32)
        blocks = -(-m // LANES)
        self.U = aligned((blocks, n * LANES), dtype)
        self.totals = np.zeros((blocks, LANES), dtype)
        self.scales, self.masses, self.slack = np.ones(m), np.zeros(m), np.zeros(m)
        self.top = float((1 << 62) if fine else (1 << 31) - 1 - n)

    def fit(self, masses: NDArray[np.float64]) -> None:
        """Choose the scales so that channels of these masses make full use of the whole numbers' range."""
        self.masses[:] = masses
        kernels.scale(self.masses, self.n, self.top, self.scales, self.slack)

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Set the weights of all other rows to zero."""
        self.U.reshape(len(self.U), self.n, LANES)[:, ~rows] = 0
        self.totals[:] = self.U.reshape(len(self.U), self.n, LANES).sum(axis=1, dtype=self.totals.dtype)

    def weights(self, j: int) -> NDArray[np.float64]:
        """u of one channel, as it was rounded."""
        return np.asarray(self.U[j // LANES, j % LANES :: LANES] / self.scales[j])


@dataclass(frozen=True, eq=False)
class Found:
    """The best learner of every channel.

    Attributes
    ----------
    learners : int64 array, shape (m,)
        Their numbers.
    values : float64 array, shape (m,)
        ``sum_i u_i h(x_i)``, up to rounding.
    """

    learners: NDArray[np.int64]
    values: NDArray[np.float64]

    @cached_property
    def sizes(self) -> NDArray[np.float64]:
        """Absolute values."""
        return np.abs(self.values)

    @cached_property
    def largest(self) -> float:
        """The largest of all sizes."""
        return float(self.sizes.max())


class WeakLearners(ABC):
    """All weak learners of one kind on the training rows, and on rows held out.

    A learner has a number; -1 is the constant +1, which every kind has.

    Attributes
    ----------
    exact : bool
        Whether :meth:`find` finds the best learner there is.
    work : int
        Rough cost of :meth:`find`, in products a channel.
    """

    exact: bool
    work: int

    @abstractmethod
    def find(self, channels: Channels, thread_pool: ThreadPool, seed: list[int]) -> Found | None:
        """The best learner for every channel, or a good one; ``seed`` decides what chance there is.

        None says that the work has only begun, and that the next call, which may be a restored object's, goes on.
        """

    @abstractmethod
    def sides(self, learners: NDArray[np.int64], *, held: bool = False) -> NDArray[np.int8]:
        """What learners say, +1 or -1, shape (len(learners), n_rows), of the training rows or those held out."""

    @abstractmethod
    def model(
        self,
        classes: tuple[str, ...],
        n_features: int,
        learners: NDArray[np.int64],
        votes: Votes,
        code: NDArray[np.int8] | None,
    ) -> Model:
        """The model of the votes; they number ``learners`` by their place."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What has to be kept of the learners found so far: nothing where their numbers say all."""
        return {}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:  # noqa: B027
        """Take back what :meth:`arrays` gave."""


class Stumps(WeakLearners):
    """Stumps ``x_j <= threshold``; their number is that of the threshold.

    Parameters
    ----------
    bins : Bins
        Of the training rows.
    held : Bins
        Of the rows held out.
    """

    exact = True

    def __init__(self, bins: Bins, held: Bins) -> None:
        self.bins, self.held = bins, held
        self.work = int(bins.work().sum())
        self._edges = groups(bins)

    def find(self, channels: Channels, thread_pool: ThreadPool, seed: list[int]) -> Found:
        return self.survey(channels, thread_pool, np.empty(0, np.int64), np.empty(0, np.int64))[0]

    def survey(
        self, channels: Channels, thread_pool: ThreadPool, learners: NDArray[np.int64], of: NDArray[np.int64]
    ) -> tuple[Found, NDArray[np.float64]]:
        """The best stump for every channel and, by the way, the values of known ones.

        Parameters
        ----------
        channels : Channels
        thread_pool : ThreadPool
        learners, of : int64 arrays, shape (n,)
            Known stumps, and the channel of each.

        Returns
        -------
        Found
        float64 array, shape (n,)
            ``sum_i u_i h(x_i)`` of the known ones.
        """
        pointers, bins, lanes, order = self._asked(learners, of, len(channels.U))
        asked, m = np.zeros(len(order), np.int64), channels.m
        found, signed = np.empty(channels.totals.size, np.int64), np.empty(channels.totals.size, np.int64)
        wanted = pointers, bins, lanes, asked
        kernels.search(
            thread_pool.work_queue, *self.bins.arrays, self._edges, channels.U, channels.totals, *wanted, found, signed
        )
        best = Found(found[:m], signed[:m] / channels.scales)
        if len(learners) == 0:
            return best, np.empty(0)
        values = np.empty(len(learners))
        values[order] = asked
        constant = learners < 0
        values[constant] = channels.totals.reshape(-1)[of[constant]]
        return best, values / channels.scales[of]

    def sides(self, learners: NDArray[np.int64], *, held: bool = False) -> NDArray[np.int8]:
        bins = self.held if held else self.bins
        out = np.empty((len(learners), bins.n), np.int8)
        kernels.say(*bins.arrays, learners, out)
        return out

    def model(
        self,
        classes: tuple[str, ...],
        n_features: int,
        learners: NDArray[np.int64],
        votes: Votes,
        code: NDArray[np.int8] | None,
    ) -> StumpsModel:
        features, _ = self._place(learners)
        real = features >= 0
        columns, thresholds = np.full(len(learners), -1, np.int64), np.zeros(len(learners))
        columns[real] = self.bins.features[features[real]]
        thresholds[real] = self.bins.thresholds[learners[real]]
        return StumpsModel.of_votes(classes, n_features, columns, thresholds, votes, code)

    def _place(self, learners: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Feature and bin of each stump; feature -1 of the constant."""
        features = np.where(learners < 0, -1, self.bins.feature_of(learners))
        return features, np.where(learners < 0, 0, learners - self.bins.first[features])

    def _asked(
        self, learners: NDArray[np.int64], of: NDArray[np.int64], n_blocks: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Known stumps by block and feature: pointers, bins, lanes, and the order they were put in."""
        if len(learners) == 0:
            none = np.zeros(0, np.int32)
            return np.zeros((n_blocks, self.bins.n_features + 1), np.int64), none, none, learners
        features, cut = self._place(learners)
        order = np.lexsort((features, of // LANES))
        order = order[learners[order] >= 0]
        place = (of[order] // LANES) * self.bins.n_features + features[order]
        ends = np.searchsorted(place, np.arange(n_blocks * self.bins.n_features + 1))
        pointers = np.empty((n_blocks, self.bins.n_features + 1), np.int64)
        pointers[:, :-1] = ends[:-1].reshape(n_blocks, -1)
        pointers[:, -1] = ends[self.bins.n_features :: self.bins.n_features] if self.bins.n_features else 0
        return pointers, cut[order].astype(np.int32), (of[order] % LANES).astype(np.int32), order


def shared_out(bins: Bins, n_blocks: int, thread_pool: ThreadPool) -> list[tuple[int, int]]:
    """Features shared out by their work; one piece where threads would cost more than they gain."""
    ends = np.cumsum(bins.work())
    total = int(ends[-1]) if len(ends) else 0
    n = min(2 * thread_pool.size, 1 + total * n_blocks * LANES // PIECE) if thread_pool.size > 1 else 1
    cuts = np.searchsorted(ends, np.arange(1, n) * (total / n)).tolist() if n > 1 else []
    edges = [0, *cuts, bins.n_features]
    return [(begin, end) for begin, end in pairwise(edges) if begin < end] or [(0, 0)]


def groups(bins: Bins) -> NDArray[np.int64]:
    """Where to cut the features into groups of about the same work; dense ones by fours, as they are read."""
    n_dense = len(bins.dense)
    fours = np.append(np.arange(0, n_dense, 4 * max(1, -(-n_dense // (4 * GROUPS)))), n_dense)
    ends = np.cumsum(bins.work()[n_dense:])
    if len(ends) == 0:
        return np.asarray(fours, np.int64)
    n = int(min(GROUPS, 1 + ends[-1] // LEAST_WORK))
    cuts = n_dense + np.searchsorted(ends, np.arange(1, n) * (ends[-1] / n))
    return np.unique(np.concatenate([fours, cuts, [bins.n_features]])).astype(np.int64)


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros that begin at a cache line."""
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    shift = -raw.ctypes.data % ALIGNMENT
    return raw[shift : shift + size].view(dtype).reshape(shape)
