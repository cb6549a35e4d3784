"""Small trees as weak learners, grown for all channels at once."""

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.boosting.simd import LANES
from solvers.boosting.weak_learners import decision_tree_growth as kernels
from solvers.boosting.weak_learners.binning import Bins
from solvers.boosting.weak_learners.decision_trees_model import TreesModel
from solvers.boosting.weak_learners.stumps import Channels, Found, WeakLearners, aligned, shared_out
from solvers.boosting.weak_learners.votes import Votes
from solvers.numerics.thread_pool import ThreadPool

CHUNK = 64
ROWS = 1 << 14


class Trees(WeakLearners):
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

    exact = False

    def __init__(self, bins: Bins, held: Bins, depth: int, store_bytes: int) -> None:
        self.bins, self.held, self.depth, self.store_bytes = bins, held, depth, store_bytes
        self.work = int(bins.work().sum()) << (depth - 1)
        self.splits = np.empty((0, (1 << depth) - 1), np.int64)
        self.leaves = np.empty((0, 1 << depth), np.int8)
        self._n = 0
        self._known: dict[bytes, int] = {}

    def find(self, channels: Channels, thread_pool: ThreadPool, seed: list[int]) -> Found:
        m, n, blocks = channels.m, channels.n, len(channels.U)
        Q = np.empty((m, n), channels.U.dtype)
        rows = _pieces(n, thread_pool)
        thread_pool.run(partial(kernels.apart, channels.U, begin, end, Q) for begin, end in rows)
        nodes = np.zeros((m, n), np.uint8)
        U, totals = channels.U, channels.totals
        total_bins = len(self.bins.thresholds) + self.bins.n_features
        above = np.empty((0, 0), U.dtype)
        splits = np.full((m, (1 << self.depth) - 1), -1, np.int64)
        for level in range(self.depth):
            last = level == self.depth - 1
            room = (len(totals) * total_bins * LANES * U.itemsize) <= self.store_bytes
            store = np.empty((0 if last or not room else len(totals), total_bins * LANES), U.dtype)
            where, signed = self._level(U, totals, above, store, thread_pool)
            splits[:, (1 << level) - 1 : (2 << level) - 1] = where.reshape(1 << level, -1)[:, :m].T
            if last:
                break
            above = store
            self._descend(self.bins, splits[:, (1 << level) - 1 : (2 << level) - 1], nodes)
            n_nodes = (1 if len(above) else 2) << level
            U = aligned((n_nodes * blocks, n * LANES), channels.U.dtype)
            sums = np.zeros((len(rows), n_nodes * blocks * LANES), np.int64)
            thread_pool.run(
                partial(kernels.mask, Q, nodes, n_nodes, begin, end, U, sums[j]) for j, (begin, end) in enumerate(rows)
            )
            left = sums.sum(axis=0).reshape(-1, LANES).astype(U.dtype)
            totals = np.concatenate([left, totals - left]) if len(above) else left
        # at the last level, L + R = total and L - R = signed
        sums = np.stack([totals.reshape(-1) + signed, totals.reshape(-1) - signed])
        leaves = np.where(sums >= 0, 1, -1).reshape(2 << (self.depth - 1), -1)[:, :m].T.astype(np.int8)
        values = 0.5 * np.abs(sums).astype(np.float64).reshape(len(leaves[0]), -1)[:, :m].sum(axis=0) / channels.scales
        return Found(np.array([self._number(*tree) for tree in zip(splits, leaves, strict=True)]), values)

    def _level(
        self, U: NDArray[Any], totals: NDArray[Any], above: NDArray[Any], store: NDArray[Any], thread_pool: ThreadPool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The best split of each node and its value."""
        pieces = shared_out(self.bins, len(U), thread_pool)
        best = _Best.of_totals(totals, len(pieces))
        width = 5 * LANES * int(self.bins.n_bins.max(initial=1))
        thread_pool.run(
            partial(
                kernels.grow, *self.bins.arrays, begin, end, U, totals, above, aligned((width,), U.dtype),
                *best.piece(j), store,
            )
            for j, (begin, end) in enumerate(pieces)
        )  # fmt: skip
        return best.united()

    def _descend(self, bins: Bins, splits: NDArray[np.int64], nodes: NDArray[np.uint8]) -> None:
        real = splits >= 0
        features = np.where(real, self.bins.feature_of(splits), -1)
        cut = np.where(real, splits - self.bins.first[features], 0)
        kernels.descend(*bins.arrays[:5], features, cut.astype(bins.dense.dtype), nodes)

    def _number(self, splits: NDArray[np.int64], leaves: NDArray[np.int8]) -> int:
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

    def sides(self, learners: NDArray[np.int64], *, held: bool = False) -> NDArray[np.int8]:
        bins = self.held if held else self.bins
        out = np.ones((len(learners), bins.n), np.int8)
        real = np.flatnonzero(learners >= 0)
        for at in range(0, len(real), CHUNK):
            chosen = learners[real[at : at + CHUNK]]
            nodes = np.zeros((len(chosen), bins.n), np.uint8)
            for level in range(self.depth):
                self._descend(bins, self.splits[chosen, (1 << level) - 1 : (2 << level) - 1], nodes)
            said = np.empty(nodes.shape, np.int8)
            kernels.read_leaves(nodes, self.leaves[chosen], said)
            out[real[at : at + CHUNK]] = said
        return out

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"tree_splits": self.splits[: self._n], "tree_leaves": self.leaves[: self._n]}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.splits, self.leaves = np.array(arrays["tree_splits"]), np.array(arrays["tree_leaves"])
        self._n = len(self.splits)
        self._known = {
            s.tobytes() + v.tobytes(): t for t, (s, v) in enumerate(zip(self.splits, self.leaves, strict=True))
        }

    def model(
        self,
        classes: tuple[str, ...],
        n_features: int,
        learners: NDArray[np.int64],
        votes: Votes,
        code: NDArray[np.int8] | None,
    ) -> TreesModel:
        splits = np.full((len(learners), self.splits.shape[1]), -1, np.int64)
        leaves = np.ones((len(learners), self.leaves.shape[1]), np.int8)
        real = learners >= 0
        splits[real], leaves[real] = self.splits[learners[real]], self.leaves[learners[real]]
        asks = splits >= 0
        features, thresholds = np.full(splits.shape, -1, np.int64), np.zeros(splits.shape)
        features[asks] = self.bins.features[self.bins.feature_of(splits[asks])]
        thresholds[asks] = self.bins.thresholds[splits[asks]]
        return TreesModel(classes, n_features, features, thresholds, leaves, votes, code)


class _Best(NamedTuple):
    """The best stump of each channel that each of several searches has found; all have begun with the constant.

    Attributes
    ----------
    size, where, signed : int arrays, shape (n_pieces, n_blocks, 16)
        Size of the value, number of the stump, and the value.
    """

    size: NDArray[Any]
    where: NDArray[Any]
    signed: NDArray[Any]

    @classmethod
    def of_totals(cls, totals: NDArray[Any], n_pieces: int) -> "_Best":
        """Nothing found yet in channels with these totals."""
        signed = np.repeat(totals[None], n_pieces, axis=0)
        return cls(np.abs(signed), np.full_like(signed, -1), signed)

    def piece(self, j: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The arrays of one search."""
        return self.size[j], self.where[j], self.signed[j]

    def united(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number and value of the best of all, by channel; the first of equals."""
        for j in range(1, len(self.size)):
            better = self.size[j] > self.size[0]
            for array in self:
                array[0][better] = array[j][better]
        return self.where[0].reshape(-1).astype(np.int64), self.signed[0].reshape(-1).astype(np.int64)


def _pieces(n: int, thread_pool: ThreadPool) -> list[tuple[int, int]]:
    many = min(thread_pool.size, 1 + n // ROWS)
    edges = (np.arange(many + 1) * n // many).tolist()
    return list(pairwise(edges))
