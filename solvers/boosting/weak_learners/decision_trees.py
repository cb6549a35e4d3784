"""Small decision trees as weak learners, grown for all channels at once."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from solvers.boosting.simd import LANES
from solvers.boosting.weak_learners import decision_tree_growth, stump_search
from solvers.boosting.weak_learners.base import WeakLearners
from solvers.boosting.weak_learners.binning import Bins
from solvers.boosting.weak_learners.boosted_model import Ensemble
from solvers.boosting.weak_learners.channels import Channels, Found, aligned
from solvers.boosting.weak_learners.decision_tree_growth import Level
from solvers.boosting.weak_learners.decision_trees_model import DecisionTreesModel
from solvers.boosting.weak_learners.stumps import shared_out
from solvers.numerics.array_types import Array, Bytes, Ints, Ints8
from solvers.numerics.thread_pool import ThreadPool, pieces

CHUNK = 64
ROWS = 1 << 14


class DecisionTrees(WeakLearners):
    """Trees whose nodes have the best stump each; a leaf says +1 or -1 by the sum of the weights in it.

    The root's stump is the best of all, those below are the best for what the tree above them has made of the rows: a
    greedy choice, so a tree found is good, and not known to be the best. Their numbers count them as they are found.

    Parameters
    ----------
    bins, held : Bins
        Of the training rows and of those held out.
    depth : int
        At least 2.
    store_bytes : int
        Keep the histograms of a level, which halves the work on the next, if they take no more than this.
    """

    def __init__(self, bins: Bins, held: Bins, depth: int, store_bytes: int) -> None:
        self.bins, self.held, self.depth, self.store_bytes = bins, held, depth, store_bytes
        self.work = int(bins.work().sum()) << (depth - 1)
        self.splits = np.empty((0, (1 << depth) - 1), np.int64)
        self.leaves = np.empty((0, 1 << depth), np.int8)
        self._n = 0
        self._known: dict[bytes, int] = {}

    def find(self, channels: Channels, thread_pool: ThreadPool, seed: list[int]) -> Found:
        m, n, dtype = channels.m, channels.n, channels.U.dtype
        Q, nodes = np.empty((m, n), dtype), np.zeros((m, n), np.uint8)
        thread_pool.run(
            partial(decision_tree_growth.deinterleave, channels.U, begin, end, Q)
            for begin, end in pieces(n, min(thread_pool.size, 1 + n // ROWS))
        )
        U, totals, above = channels.U, channels.totals, np.empty((0, 0), dtype)
        splits = np.full((m, (1 << self.depth) - 1), -1, np.int64)
        for depth in range(self.depth):
            last = depth == self.depth - 1
            level = Level(U, totals, above, self._store(totals, keep=not last))
            where, signed = self._best_splits(level, thread_pool)
            part = splits[:, (1 << depth) - 1 : (2 << depth) - 1]
            part[:] = where.reshape(1 << depth, -1)[:, :m].T
            if not last:
                above = level.store
                self._descend(self.bins, part, nodes)
                U, totals = self._next_level(Q, nodes, level, depth, thread_pool)
        # at the last level, L + R = total and L - R = signed
        sums = np.stack([totals.reshape(-1) + signed, totals.reshape(-1) - signed])
        leaves = np.where(sums >= 0, 1, -1).reshape(2 << (self.depth - 1), -1)[:, :m].T.astype(np.int8)
        values = 0.5 * np.abs(sums).astype(np.float64).reshape(len(leaves[0]), -1)[:, :m].sum(axis=0) / channels.scales
        return Found(np.array([self._number(*tree) for tree in zip(splits, leaves, strict=True)]), values)

    def _store(self, totals: Array, *, keep: bool) -> Array:
        """Room for the histograms of a level, if it may be had."""
        width = (len(self.bins.thresholds) + self.bins.n_features) * LANES
        fits = len(totals) * width * totals.itemsize <= self.store_bytes
        return np.empty((len(totals) if keep and fits else 0, width), totals.dtype)

    def _best_splits(self, level: Level, thread_pool: ThreadPool) -> tuple[Ints, Ints]:
        totals, dtype = level.totals, level.U.dtype
        pieces = shared_out(self.bins, len(level.U), thread_pool)
        best = stump_search.start(totals, len(pieces))
        width = 5 * LANES * int(self.bins.n_bins.max(initial=1))
        thread_pool.run(
            partial(decision_tree_growth.grow, self.bins.arrays, begin, end, level, aligned((width,), dtype), best, j)
            for j, (begin, end) in enumerate(pieces)
        )
        where, value = np.empty(totals.size, np.int64), np.empty(totals.size, np.int64)
        stump_search.unite(best, where, value)
        return where, value

    def _next_level(
        self, Q: Array, nodes: Bytes, level: Level, depth: int, thread_pool: ThreadPool
    ) -> tuple[Array, Array]:
        """Weights and totals of the nodes below a level; weights of the left ones alone, where that is enough."""
        m, n = Q.shape
        halves, blocks = len(level.store) > 0, -(-m // LANES)
        n_nodes, rows = (1 if halves else 2) << depth, pieces(n, min(thread_pool.size, 1 + n // ROWS))
        U = aligned((n_nodes * blocks, n * LANES), Q.dtype)
        sums = np.zeros((len(rows), n_nodes * blocks * LANES), np.int64)
        thread_pool.run(
            partial(decision_tree_growth.mask, Q, nodes, n_nodes, begin, end, U, sums[j])
            for j, (begin, end) in enumerate(rows)
        )
        left = sums.sum(axis=0).reshape(-1, LANES).astype(Q.dtype)
        return U, np.concatenate([left, level.totals - left]) if halves else left

    def _descend(self, bins: Bins, splits: Ints, nodes: Bytes) -> None:
        features = np.where(splits >= 0, self.bins.feature_of(splits), -1)
        decision_tree_growth.descend(bins.arrays, features, splits - self.bins.first[features], nodes)

    def _number(self, splits: Ints, leaves: Ints8) -> int:
        """The number of a tree, which is new unless the very same has been found before."""
        key = splits.tobytes() + leaves.tobytes()
        if key not in self._known:
            if self._n == len(self.splits):
                room = max(64, 2 * self._n)
                self.splits = np.concatenate([self.splits, np.empty((room, splits.size), np.int64)])
                self.leaves = np.concatenate([self.leaves, np.empty((room, leaves.size), np.int8)])
            self.splits[self._n], self.leaves[self._n] = splits, leaves
            self._known[key] = self._n
            self._n += 1
        return self._known[key]

    def responses(self, learners: Ints, *, held: bool = False) -> Ints8:
        bins = self.held if held else self.bins
        out = np.ones((len(learners), bins.n), np.int8)
        real = np.flatnonzero(learners >= 0)
        for at in range(0, len(real), CHUNK):
            chosen = learners[real[at : at + CHUNK]]
            nodes = np.zeros((len(chosen), bins.n), np.uint8)
            for level in range(self.depth):
                self._descend(bins, self.splits[chosen, (1 << level) - 1 : (2 << level) - 1], nodes)
            responses = np.empty(nodes.shape, np.int8)
            decision_tree_growth.read_leaves(nodes, self.leaves[chosen], responses)
            out[real[at : at + CHUNK]] = responses
        return out

    def arrays(self) -> dict[str, Array]:
        return {"tree_splits": self.splits[: self._n], "tree_leaves": self.leaves[: self._n]}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        self.splits, self.leaves = np.array(arrays["tree_splits"]), np.array(arrays["tree_leaves"])
        self._n = len(self.splits)
        self._known = {
            s.tobytes() + v.tobytes(): t for t, (s, v) in enumerate(zip(self.splits, self.leaves, strict=True))
        }

    def model(self, learners: Ints, ensemble: Ensemble) -> DecisionTreesModel:
        splits = np.full((len(learners), self.splits.shape[1]), -1, np.int64)
        leaves = np.ones((len(learners), self.leaves.shape[1]), np.int8)
        real = learners >= 0
        splits[real], leaves[real] = self.splits[learners[real]], self.leaves[learners[real]]
        asks = splits >= 0
        features, thresholds = np.full(splits.shape, -1, np.int64), np.zeros(splits.shape)
        features[asks] = self.bins.features[self.bins.feature_of(splits[asks])]
        thresholds[asks] = self.bins.thresholds[splits[asks]]
        return DecisionTreesModel(features, thresholds, leaves, ensemble)
