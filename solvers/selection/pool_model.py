"""Models that are the log-linear pool of others: their scores are logarithms of probabilities."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.core.model import Contributions, Floats, LinearWeights, Model
from solvers.core.stored_models import find_kind
from solvers.labels import stored_arrays
from solvers.metrics.confidence.back_off import BackOff
from solvers.metrics.confidence.reliability import Reliability
from solvers.numerics.lazy_arrays import Parts, part_of
from solvers.selection.pooling import pooled


class PoolModel(Model):
    """``log p(c) = sum_m b_m s_m(c) - log sum_c exp(sum_m b_m s_m(c))`` over models m with scores s_m.

    Parameters
    ----------
    members : sequence of Model
        Of the same classes and features.
    coefficients : float64 array, shape (n_members,)
    reliability : Reliability, optional
        How sure the pool was of rows that none of its members had seen, and whether it was right; None where there
        were no such rows, so that the coefficients mean nothing.
    back_off : BackOff, optional
        The same at each level of the label tree.
    """

    kind = "pool"

    def __init__(
        self,
        members: Sequence[Model],
        coefficients: NDArray[np.float64],
        reliability: Reliability | None = None,
        back_off: BackOff | None = None,
    ) -> None:
        self.members = tuple(members)
        self.coefficients = coefficients
        self.reliability = reliability
        self.back_off = back_off
        self.classes = self.members[0].classes
        self.n_features = self.members[0].n_features

    def scores(self, X: sp.csr_matrix) -> Floats:
        return log_softmax(pooled([member.scores(X) for member in self.members], self.coefficients))

    def score_one(self, indices: NDArray[np.int32], values: NDArray[np.float64]) -> Floats:
        scores = [member.score_one(indices, values)[None] for member in self.members]
        return np.asarray(log_softmax(pooled(scores, self.coefficients))[0])

    def contributions(
        self, indices: NDArray[np.int32], values: NDArray[np.float64], best: int, rival: int | None
    ) -> Contributions | None:
        """Of pools of linear members; what all scores are lessened by cancels against a rival, and counts without."""
        parts, intercept = np.zeros(len(indices)), 0.0
        for member, coefficient in zip(self.members, self.coefficients.tolist(), strict=True):
            found = member.contributions(indices, values, best, rival)
            if found is None:
                return None
            parts += coefficient * found.parts
            intercept += coefficient * found.intercept
        if rival is None:
            intercept += float(self.score_one(indices, values)[best]) - intercept - parts.sum()
        return Contributions(parts, intercept)

    def linear_weights(self) -> LinearWeights | None:
        return self.members[0].linear_weights() if len(self.members) == 1 else None

    def arrays(self) -> dict[str, NDArray[Any]]:
        kinds = json.dumps([member.kind for member in self.members]).encode()
        parts = {f"member{place}": member.arrays() for place, member in enumerate(self.members)}
        if self.reliability is not None:
            parts["reliability"] = self.reliability.arrays()
        if self.back_off is not None:
            parts["back_off"] = self.back_off.arrays()
        arrays: dict[str, NDArray[Any]] = dict(Parts(parts))
        return arrays | {"kinds": np.frombuffer(kinds, np.uint8), "coefficients": self.coefficients}

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, NDArray[Any]]) -> "PoolModel":
        members = []
        for place, name in enumerate(json.loads(bytes(arrays["kinds"]))):
            kind = find_kind(name)
            if kind is None:
                raise ValueError(f"models of the kind {name} are not known to this version")
            members.append(kind.from_arrays(classes, n_features, part_of(arrays, f"member{place}")))
        stored_arrays.require_floats("coefficients", arrays["coefficients"], max(1, len(members)))
        held_out, levels = part_of(arrays, "reliability"), part_of(arrays, "back_off")
        if levels:
            stored_arrays.require_shape("back_off.nodes", levels["nodes"], len(classes))
        return cls(
            members,
            arrays["coefficients"],
            Reliability.from_arrays(held_out) if held_out else None,
            BackOff.from_arrays(levels) if levels else None,
        )


def log_softmax(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row less the logarithm of the sum of its exponentials."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))
