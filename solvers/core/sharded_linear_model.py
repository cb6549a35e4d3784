"""Linear models that stay in class shards on disk: one file of weights a shard, one manifest with all their hashes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.core.linear_model import LinearModel
from solvers.core.model import Contributions, Model, Prune
from solvers.core.sparse_linear_model import SparseLinearModel, smaller_weights, sparse_rows, sparse_takes_less
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, AnyInts, Array, Floats, Ints, Ints32
from solvers.numerics.predicted_scores import by_dense, one_by_dense, places, score_type


class ShardedLinearModel(Model):
    """One weight vector a class, in blocks of classes.

    Parameters
    ----------
    classes : sequence of str
    n_features : int
    features : int64 array, shape (n_rows,)
        The features that have a row in every block, ascending; with an intercept the last is ``n_features``.
    owner : int32 array, shape (n_classes,)
        The block of each class; its columns are its classes by rising index.
    blocks : list of float arrays, shape (n_rows, n_own)
    bias : float
        The value of the constant feature ``n_features``, by which the last rows add to the scores; 0 without.
    """

    kind = "sharded_linear"
    in_shards = True
    scores_rows_alone = True

    def __init__(
        self,
        classes: tuple[str, ...],
        n_features: int,
        features: Ints,
        owner: Ints32,
        blocks: list[AnyFloats],
        bias: float = 0.0,
    ) -> None:
        self.classes = tuple(classes)
        self.n_features = n_features
        self.features = features
        self.owner = owner
        self.blocks = blocks
        self.bias = bias
        self._own = [np.flatnonzero(np.asarray(owner) == block) for block in range(len(blocks))]
        self._rows = len(features) - (bias != 0)

    def smaller(self, prune: Prune, half: bool) -> Model:
        """The weights of each shard by themselves; where sparse ones take less, all in one piece."""

        def pruned(block: AnyFloats) -> AnyFloats:
            return np.concatenate([prune(block[: self._rows]), block[self._rows :]])

        blocks = [smaller_weights(block, None, pruned, half)[0] for block in self.blocks]
        if not all(sparse_takes_less(block, self.n_features) for block in blocks):
            return ShardedLinearModel(self.classes, self.n_features, self.features, self.owner, blocks, self.bias)
        columns = np.argsort(np.concatenate(self._own))
        features = self.features[: self._rows]
        parts = [sparse_rows(block[: self._rows], features, self.n_features) for block in blocks]
        W = sp.csr_matrix(sp.hstack(parts, format="csr")[:, columns])
        intercept = np.concatenate([self._intercept(block) for block in blocks])[columns] if self.bias != 0 else None
        return SparseLinearModel(self.classes, W, intercept, half)

    def gathered(self) -> LinearModel:
        """The same model in one piece, in memory."""
        W = np.empty((len(self.features), len(self.classes)), self.blocks[0].dtype)
        for own, block in zip(self._own, self.blocks, strict=True):
            W[:, own] = block
        n_features = self.n_features + (self.bias != 0)
        model = LinearModel(self.classes, n_features, np.asarray(self.features), W)
        return model.with_last_as_intercept(self.bias) if self.bias != 0 else model

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        self.check_width(X)
        dtype = score_type(self.blocks[0])
        used = X if self._rows == self.n_features else X[:, self.features[: self._rows]]
        scores = np.empty((X.shape[0], len(self.classes)), dtype)
        for own, block in zip(self._own, self.blocks, strict=True):
            scores[:, own] = by_dense(used, block[: self._rows]) + self._intercept(block)
        return scores

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        rows: AnyInts = indices
        if self._rows != self.n_features:
            at, known = places(self.features[: self._rows], indices)
            rows, values = at[known], values[known]
        dtype = score_type(self.blocks[0])
        scores = np.empty(len(self.classes), dtype)
        for own, block in zip(self._own, self.blocks, strict=True):
            scores[own] = one_by_dense(rows, values, block[: self._rows]) + self._intercept(block)
        return scores

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions:
        at, known = places(self.features[: self._rows], indices)
        parts, intercept = np.zeros(len(indices)), 0.0
        for c, sign in [(best, 1.0)] if rival is None else [(best, 1.0), (rival, -1.0)]:
            block = self.blocks[self.owner[c]]
            column = int(np.searchsorted(self._own[self.owner[c]], c))
            parts[known] += sign * values[known] * block[at[known], column]
            intercept += sign * float(block[-1, column]) * self.bias if self.bias != 0 else 0.0
        return Contributions(parts, intercept)

    def _intercept(self, block: AnyFloats) -> Any:
        dtype = score_type(block)
        return block[-1].astype(dtype) * dtype.type(self.bias) if self.bias != 0 else dtype.type(0)

    def arrays(self) -> dict[str, Array]:
        blocks = {block_name(rank): block for rank, block in enumerate(self.blocks)}
        return {**blocks, "features": self.features, "owner": self.owner, "bias": np.array([self.bias])}

    @classmethod
    def row_arrays(cls, arrays: Mapping[str, Array]) -> dict[str, str]:
        return {block_name(rank): "features" for rank in range(int(arrays["owner"].max(initial=-1)) + 1)}

    @classmethod
    def from_arrays(
        cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]
    ) -> "ShardedLinearModel":
        n_blocks = sum(name.startswith("W-") for name in arrays)
        # every slice of an np.memmap is another one, at several times the cost of a plain view of the same bytes
        blocks = [np.asarray(arrays[block_name(rank)]) for rank in range(n_blocks)]
        features, owner = np.asarray(arrays["features"]), np.asarray(arrays["owner"])
        stored_arrays.require_floats("bias", arrays["bias"], 1)
        bias = float(arrays["bias"][0])
        stored_arrays.require_ascending("features", features, n_features + (bias != 0))
        stored_arrays.require_within("owner", owner, 0, n_blocks)
        stored_arrays.require_shape("owner", owner, len(classes))
        for rank, (block, n_own) in enumerate(zip(blocks, np.bincount(owner, minlength=n_blocks), strict=True)):
            stored_arrays.require_floats(block_name(rank), block, len(features), n_own, half=True)
        return cls(classes, n_features, features, owner, blocks, bias)


def block_name(rank: int) -> str:
    """The name of the array that holds a shard's weights."""
    return f"W-{rank}"
