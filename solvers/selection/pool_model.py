"""Models that are the log-linear pool of others: their scores are logarithms of probabilities."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp

from solvers.core.model import Contributions, LinearWeights, Model, Prune
from solvers.core.stored_models import find_kind
from solvers.labels import stored_arrays
from solvers.metrics.confidence.back_off import BackOff
from solvers.metrics.confidence.reliability import Reliability
from solvers.numerics.array_types import AnyFloats, Array, Floats, Floats32, Ints32
from solvers.numerics.lazy_arrays import Parts, part_of
from solvers.selection.later_places import LaterPlaces
from solvers.selection.pooling import log_softmax, pooled
from solvers.selection.temperature_scaling import TemperatureScaling

# of a block of rows: arrays of many rows take longer to be mapped than to be filled
BLOCK_SCORES = 1 << 18


class PoolModel(Model):
    """``log p(c) = t z(c) - log sum_c exp(t z(c))``, ``z(c) = sum_m b_m s_m(c)`` over models m with scores s_m.

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
    tempering : TemperatureScaling, optional
        The factor t of each row; 1 where there is none.
    later : LaterPlaces, optional
        How the classes but the likeliest share what it leaves to them; in proportion to p(c) where there is none.
    """

    kind = "pool"

    def __init__(
        self,
        members: Sequence[Model],
        coefficients: Floats,
        reliability: Reliability | None = None,
        back_off: BackOff | None = None,
        tempering: TemperatureScaling | None = None,
        later: LaterPlaces | None = None,
    ) -> None:
        self.members = tuple(members)
        self.coefficients = coefficients
        self.reliability = reliability
        self.back_off = back_off
        self.tempering = tempering
        self.later = later
        self.classes = self.members[0].classes
        self.n_features = self.members[0].n_features
        self.unexplained = next((member.unexplained for member in self.members if member.unexplained), "")
        self.scores_rows_alone = all(member.scores_rows_alone for member in self.members)

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        return self._log_probabilities([member.scores(X) for member in self.members])

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        return np.asarray(self._log_probabilities(self._members_one(indices, values))[0])

    def _members_one(self, indices: Ints32, values: Floats) -> list[AnyFloats]:
        return [member.score_one(indices, values)[None] for member in self.members]

    def _log_probabilities(self, members: Sequence[AnyFloats]) -> Floats32:
        """Of the members' scores, each of shape (n_rows, n_classes); by blocks of rows that stay in cache."""
        n, k = members[0].shape
        rows = max(1, BLOCK_SCORES // k)
        if n <= rows:
            return self._of_block(members)
        said = np.empty((n, k), np.float32)
        for begin in range(0, n, rows):
            said[begin : begin + rows] = self._of_block([each[begin : begin + rows] for each in members])
        return said

    def _of_block(self, members: Sequence[AnyFloats]) -> Floats32:
        scores = pooled(members, self.coefficients)
        said = log_softmax(scores if self.tempering is None else self.tempering.apply(scores))
        return said if self.later is None else self.later.apply(said, members)

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions | None:
        """Of its members; what all scores are lessened by cancels against a rival, and counts without.

        Between the likeliest class and another, the members count as they do for the first place, and between others as
        for the later ones; what these two add to the lead is no feature's.
        """
        members = self._members_one(indices, values)
        whole = pooled(members, self.coefficients)
        coefficients, factor = self.coefficients, 1.0
        if self.later is not None and int(whole.argmax()) not in (best, rival):
            coefficients = self.later.coefficients
        elif self.tempering is not None:
            factor = float(self.tempering.factors(whole)[0, 0])
        parts, intercept, additive = np.zeros(len(indices)), 0.0, self.tempering is None and self.later is None
        for member, coefficient in zip(self.members, (factor * coefficients).tolist(), strict=True):
            found = member.contributions(indices, values, best, rival)
            if found is None:
                return None
            parts += coefficient * found.parts
            intercept += coefficient * found.intercept
            additive = additive and found.additive
        if rival is None or self.later is not None:
            said = self._log_probabilities(members)[0].astype(np.float64)
            intercept = float(said[best] - (0.0 if rival is None else said[rival]) - parts.sum())
        return Contributions(parts, intercept, additive)

    def linear_weights(self) -> LinearWeights | None:
        return self.members[0].linear_weights() if len(self.members) == 1 else None

    def smaller(self, prune: Prune, half: bool) -> "PoolModel":
        members = [member.smaller(prune, half) for member in self.members]
        return PoolModel(members, self.coefficients, self.reliability, self.back_off, self.tempering, self.later)

    def arrays(self) -> dict[str, Array]:
        kinds = json.dumps([member.kind for member in self.members]).encode()
        parts = {f"member{place}": member.arrays() for place, member in enumerate(self.members)}
        if self.reliability is not None:
            parts["reliability"] = self.reliability.arrays()
        if self.back_off is not None:
            parts["back_off"] = self.back_off.arrays()
        if self.tempering is not None:
            parts["tempering"] = self.tempering.arrays()
        if self.later is not None:
            parts["later_places"] = self.later.arrays()
        arrays: dict[str, Array] = dict(Parts(parts))
        return arrays | {"kinds": np.frombuffer(kinds, np.uint8), "coefficients": self.coefficients}

    @property
    def nbytes(self) -> int:
        """Bytes in memory, of the members."""
        return sum(member.nbytes for member in self.members)

    @classmethod
    def row_arrays(cls, arrays: Mapping[str, Array]) -> dict[str, str]:
        found: dict[str, str] = {}
        for place, name in enumerate(json.loads(bytes(arrays["kinds"]))):
            kind, prefix = find_kind(name), f"member{place}"
            of_member = {} if kind is None else kind.row_arrays(part_of(arrays, prefix))
            found |= {f"{prefix}.{rows}": f"{prefix}.{features}" for rows, features in of_member.items()}
        return found

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "PoolModel":
        members = []
        for place, name in enumerate(json.loads(bytes(arrays["kinds"]))):
            kind = find_kind(name)
            if kind is None:
                raise ValueError(f"this version does not support models of the kind {name}")
            members.append(kind.from_arrays(classes, n_features, part_of(arrays, f"member{place}")))
        stored_arrays.require_floats("coefficients", arrays["coefficients"], max(1, len(members)))
        kept = ("reliability", "back_off", "tempering", "later_places")
        held_out, levels, tempering, later = (part_of(arrays, name) for name in kept)
        if levels:
            stored_arrays.require_shape("back_off.nodes", levels["nodes"], len(classes))
        return cls(
            members,
            arrays["coefficients"],
            Reliability.from_arrays(held_out) if held_out else None,
            BackOff.from_arrays(levels) if levels else None,
            TemperatureScaling.from_arrays(tempering) if tempering else None,
            LaterPlaces.from_arrays(later, len(members)) if later else None,
        )
