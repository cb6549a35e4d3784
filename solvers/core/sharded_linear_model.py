"""Linear models that stay in class shards on disk: one file of weights a shard, one manifest with all their hashes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.core.linear_model import LinearModel
from solvers.core.model import Contributions, Floats, Model
from solvers.labels import stored_arrays


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

    def __init__(
        self,
        classes: tuple[str, ...],
        n_features: int,
        features: NDArray[np.int64],
        owner: NDArray[np.int32],
        blocks: list[Floats],
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

    def gathered(self) -> LinearModel:
        """The same model in one piece, in memory."""
        W = np.empty((len(self.features), len(self.classes)), self.blocks[0].dtype)
        for own, block in zip(self._own, self.blocks, strict=True):
            W[:, own] = block
        n_features = self.n_features + (self.bias != 0)
        model = LinearModel(self.classes, n_features, np.asarray(self.features), W)
        return model.with_last_as_intercept(self.bias) if self.bias != 0 else model

    def scores(self, X: sp.csr_matrix) -> Floats:
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features; the model has {self.n_features}")
        dtype = self.blocks[0].dtype
        used = X if self._rows == self.n_features else X[:, self.features[: self._rows]]
        used = used.astype(dtype, copy=False)
        scores = np.empty((X.shape[0], len(self.classes)), dtype)
        for own, block in zip(self._own, self.blocks, strict=True):
            scores[:, own] = np.asarray(used @ block[: self._rows]) + self._intercept(block)
        return scores

    def score_one(self, indices: NDArray[np.int32], values: NDArray[np.float64]) -> Floats:
        features = self.features[: self._rows]
        if self._rows == 0:
            indices, values = indices[:0], values[:0]
        elif self._rows != self.n_features:
            at = np.searchsorted(features, indices)
            at[at == self._rows] = 0
            known = features[at] == indices
            indices, values = at[known], values[known]
        dtype = self.blocks[0].dtype
        scores, values = np.empty(len(self.classes), dtype), values.astype(dtype)
        for own, block in zip(self._own, self.blocks, strict=True):
            scores[own] = values @ block[indices] + self._intercept(block)
        return scores

    def contributions(
        self, indices: NDArray[np.int32], values: NDArray[np.float64], best: int, rival: int | None
    ) -> Contributions:
        at = np.searchsorted(self.features[: self._rows], indices)
        known = at < self._rows
        known[known] = self.features[at[known]] == indices[known]
        parts, intercept = np.zeros(len(indices)), 0.0
        for c, sign in [(best, 1.0)] if rival is None else [(best, 1.0), (rival, -1.0)]:
            block = self.blocks[self.owner[c]]
            column = int(np.searchsorted(self._own[self.owner[c]], c))
            parts[known] += sign * values[known] * block[at[known], column]
            intercept += sign * float(block[-1, column]) * self.bias if self.bias != 0 else 0.0
        return Contributions(parts, intercept)

    def _intercept(self, block: Floats) -> Any:
        return block[-1] * block.dtype.type(self.bias) if self.bias != 0 else block.dtype.type(0)

    def arrays(self) -> dict[str, NDArray[Any]]:
        blocks = {block_name(rank): block for rank, block in enumerate(self.blocks)}
        return {**blocks, "features": self.features, "owner": self.owner, "bias": np.array([self.bias])}

    @classmethod
    def from_arrays(
        cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, NDArray[Any]]
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
            stored_arrays.require_floats(block_name(rank), block, len(features), n_own)
        return cls(classes, n_features, features, owner, blocks, bias)


def block_name(rank: int) -> str:
    """The name of the array that holds a shard's weights."""
    return f"W-{rank}"
