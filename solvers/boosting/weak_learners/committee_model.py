"""Models that add up votes of binary machines."""

from collections.abc import Iterator, Mapping

import numpy as np
import scipy.sparse as sp

from solvers.boosting.weak_learners.boosted_model import BoostedModel, Ensemble, shares
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints, Ints32
from solvers.output_codes.columns.models import ColumnModels

CHUNK_BYTES = 64 << 20


class CommitteeModel(BoostedModel):
    """The sum of binary machines, each with its weights: h_t says +1 where the margin of its machine is positive.

    Parameters
    ----------
    machines : ColumnModels
        The machines.
    learners : int64 array, shape (n_learners,)
        The machine of each h_t; -1 for the constant +1.
    ensemble : Ensemble
    """

    kind = "committee"
    unexplained = "its votes are the signs of margins, which jump from one side to the other"

    def __init__(self, machines: ColumnModels, learners: Ints, ensemble: Ensemble) -> None:
        super().__init__(ensemble)
        self.machines, self.learners = machines, learners
        self._weights = ensemble.weights(len(learners))

    @property
    def importances(self) -> Floats:
        """Each feature's share of the machines' absolute weights, those of each machine adding up to its votes'.

        Raises
        ------
        AttributeError
            The machines are not linear.
        """
        linear = self.machines.linear
        if linear is None:
            raise AttributeError("feature weights exist only for committees of linear machines")
        coefficients = abs(sp.csr_matrix(linear.W))
        sums = np.asarray(coefficients.sum(axis=0)).ravel()
        votes = np.zeros(self.machines.n_columns)
        real = self.learners >= 0
        np.add.at(votes, self.learners[real], np.abs(self._weights[real]).sum(axis=1))
        parts = np.zeros(self.n_features)
        parts[linear.features] = coefficients @ np.divide(votes, sums, out=np.zeros_like(votes), where=sums > 0)
        return shares(parts)

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        size = max(1, CHUNK_BYTES // (8 * max(self.machines.n_columns, len(self.classes))))
        parts = [self._responses(X[at : at + size]) @ self._weights for at in range(0, X.shape[0], size)]
        return self.decode(np.concatenate([np.empty((0, self._weights.shape[1])), *parts]))

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        responses = self._signs(self.machines.margins_one(indices, values)[None])
        return np.asarray(self.decode(responses @ self._weights)[0])

    def staged_scores(self, X: sp.csr_matrix) -> Iterator[AnyFloats]:
        """Scores after each round of training, shape (n_samples, n_classes); those of the last are :meth:`scores`."""
        size = max(1, CHUNK_BYTES // (8 * max(self.machines.n_columns, 1)))
        responses = np.empty((X.shape[0], len(self.learners)), np.int8)
        for at in range(0, X.shape[0], size):
            responses[at : at + size] = self._responses(X[at : at + size])
        return self.staged(len(responses), lambda t: responses[:, t])

    def _responses(self, X: sp.csr_matrix) -> Floats:
        return self._signs(self.machines.margins(X))

    def _signs(self, margins: Floats) -> Floats:
        """What every learner says, shape (n_samples, n_learners)."""
        responses = np.ones((len(margins), len(self.learners)))
        real = np.flatnonzero(self.learners >= 0)
        responses[:, real] = np.where(margins[:, self.learners[real]] > 0, 1.0, -1.0)
        return responses

    def arrays(self) -> dict[str, Array]:
        return self.ensemble.arrays() | self.machines.arrays() | {"learners": self.learners}

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "CommitteeModel":
        ensemble = Ensemble.of_arrays(classes, n_features, arrays)
        machines, learners = ColumnModels.from_arrays(n_features, arrays), arrays["learners"]
        stored_arrays.require_within("learners", learners, -1, machines.n_columns)
        ensemble.require_learners(len(learners))
        return cls(machines, learners, ensemble)
