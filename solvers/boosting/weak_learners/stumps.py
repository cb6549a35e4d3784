"""Decision stumps as weak learners: one question of one feature."""

from functools import partial
from itertools import pairwise

import numpy as np

from solvers.boosting.simd import LANES
from solvers.boosting.weak_learners import stump_search
from solvers.boosting.weak_learners.base import WeakLearners
from solvers.boosting.weak_learners.binning import Bins
from solvers.boosting.weak_learners.boosted_model import Ensemble
from solvers.boosting.weak_learners.channels import Channels, Found, aligned
from solvers.boosting.weak_learners.stump_search import Queries
from solvers.boosting.weak_learners.stumps_model import StumpsModel
from solvers.numerics.array_types import Floats, Ints, Ints8
from solvers.numerics.thread_pool import ThreadPool

PIECE = 1 << 22
GROUPS, LEAST_WORK = 32, 1 << 15


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
        return self.find_and_evaluate(channels, thread_pool, np.empty(0, np.int64), np.empty(0, np.int64))[0]

    def find_and_evaluate(
        self, channels: Channels, thread_pool: ThreadPool, learners: Ints, of: Ints
    ) -> tuple[Found, Floats]:
        queries, order = self._queries(learners, of, len(channels.U))
        best, value = np.empty(channels.totals.size, np.int64), np.empty(channels.totals.size, np.int64)
        stump_search.search(
            thread_pool.work_queue, self.bins.arrays, self._edges, channels.U, channels.totals, queries, best, value
        )
        found = Found(best[: channels.m], value[: channels.m] / channels.scales)
        if len(learners) == 0:
            return found, np.empty(0)
        values = np.empty(len(learners))
        values[order] = queries.values
        constant = learners < 0
        values[constant] = channels.totals.reshape(-1)[of[constant]]
        return found, values / channels.scales[of]

    def find_shared(self, channels: Channels, thread_pool: ThreadPool, *, real: bool) -> int:
        values, dtype = np.zeros(len(self.bins.thresholds)), channels.U.dtype
        width = 4 * LANES * int(self.bins.n_bins.max(initial=1))
        thread_pool.run(
            partial(
                stump_search.add_values, self.bins.arrays, begin, end, channels.U, channels.totals, real,
                aligned((width,), dtype), values,
            )
            for begin, end in shared_out(self.bins, len(channels.U), thread_pool)
        )  # fmt: skip
        totals, half = channels.totals.astype(np.float64), LANES // 2
        constant = -np.sqrt(totals[:, :half] * totals[:, half:]).sum() if real else np.abs(totals).sum()
        return int(values.argmax()) if values.max(initial=-np.inf) > constant else -1

    def responses(self, learners: Ints, *, held: bool = False) -> Ints8:
        bins = self.held if held else self.bins
        out = np.empty((len(learners), bins.n), np.int8)
        stump_search.predict(bins.arrays, learners, out)
        return out

    def model(self, learners: Ints, ensemble: Ensemble) -> StumpsModel:
        real = learners >= 0
        columns, thresholds = np.full(len(learners), -1, np.int64), np.zeros(len(learners))
        columns[real] = self.bins.features[self.bins.feature_of(learners[real])]
        thresholds[real] = self.bins.thresholds[learners[real]]
        return StumpsModel.of_stumps(columns, thresholds, ensemble)

    def _queries(self, learners: Ints, of: Ints, n_blocks: int) -> tuple[Queries, Ints]:
        """Known stumps by block and feature, without the constants, and the order they were put in."""
        n_features = self.bins.n_features
        pointers = np.zeros((n_blocks, n_features + 1), np.int64)
        if len(learners) == 0:
            none = np.empty(0, np.int32)
            return Queries(pointers, none, none, np.empty(0, np.int64)), learners
        features = np.where(learners < 0, -1, self.bins.feature_of(learners))
        order = np.lexsort((features, of // LANES))
        order = order[learners[order] >= 0]
        place = (of[order] // LANES) * n_features + features[order]
        ends = np.searchsorted(place, np.arange(n_blocks * n_features + 1))
        if n_features:
            pointers[:, :-1] = ends[:-1].reshape(n_blocks, -1)
            pointers[:, -1] = ends[n_features::n_features]
        cuts = (learners[order] - self.bins.first[features[order]]).astype(np.int32)
        return Queries(pointers, cuts, (of[order] % LANES).astype(np.int32), np.zeros(len(order), np.int64)), order


def shared_out(bins: Bins, n_blocks: int, thread_pool: ThreadPool) -> list[tuple[int, int]]:
    """Features shared out by their work; one piece where threads would cost more than they gain."""
    ends = np.cumsum(bins.work())
    total = int(ends[-1]) if len(ends) else 0
    n = min(2 * thread_pool.size, 1 + total * n_blocks * LANES // PIECE) if thread_pool.size > 1 else 1
    cuts = np.searchsorted(ends, np.arange(1, n) * (total / n)).tolist() if n > 1 else []
    edges = [0, *cuts, bins.n_features]
    return [(begin, end) for begin, end in pairwise(edges) if begin < end] or [(0, 0)]


def groups(bins: Bins) -> Ints:
    """Where to cut the features into groups of about the same work; dense ones by fours, as they are read."""
    n_dense = len(bins.dense)
    fours = np.append(np.arange(0, n_dense, 4 * max(1, -(-n_dense // (4 * GROUPS)))), n_dense)
    ends = np.cumsum(bins.work()[n_dense:])
    if len(ends) == 0:
        return np.asarray(fours, np.int64)
    n = int(min(GROUPS, 1 + ends[-1] // LEAST_WORK))
    cuts = n_dense + np.searchsorted(ends, np.arange(1, n) * (ends[-1] / n))
    return np.unique(np.concatenate([fours, cuts, [bins.n_features]])).astype(np.int64)
