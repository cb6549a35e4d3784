"""Models that add up votes of binary machines."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.boosting.weak_learners.votes import Votes, decoded
from solvers.core.model import Floats, Model
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.output_codes.column_models import Bank

CHUNK_BYTES = 64 << 20


class CommitteeModel(Model):
    """``F_c(x) = sum_t w_tc h_t(x)``, where h_t says +1 where the margin of its machine is positive, else -1.

    Parameters
    ----------
    classes : tuple of str
    bank : Bank
        The machines.
    learners : int64 array, shape (n_learners,)
        The machine of each h_t; -1 for the constant +1.
    votes : Votes
        What each round of training has added.
    code : int8 array, shape (n_classes, n_outputs), optional
        What turns outputs into scores, as :func:`solvers.boosting.weak_learners.votes.decoded` does.
    """

    kind = "committee"

    def __init__(
        self,
        classes: tuple[str, ...],
        bank: Bank,
        learners: NDArray[np.int64],
        votes: Votes,
        code: NDArray[np.int8] | None = None,
    ) -> None:
        self.classes = classes
        self.n_features = bank.n_features
        self.bank = bank
        self.learners = learners
        self.votes = votes
        self.code = code
        self._weights = votes.weights(len(learners), len(classes) if code is None else code.shape[1])

    @property
    def importances(self) -> NDArray[np.float64]:
        """Each feature's share of the machines' absolute weights, those of each machine adding up to its votes'.

        Raises
        ------
        AttributeError
            The machines are not linear.
        """
        linear = self.bank.linear
        if linear is None:
            raise AttributeError("only committees of linear machines know how much features weigh")
        weights = linear.W if isinstance(linear, SparseLinearModel) else sp.csr_matrix(linear.coef.T)
        coefficients = abs(weights)
        sums = np.asarray(coefficients.sum(axis=0)).ravel()
        votes = np.zeros(self.bank.n_columns)
        real = self.learners >= 0
        np.add.at(votes, self.learners[real], np.abs(self._weights[real]).sum(axis=1))
        shares = coefficients @ np.divide(votes, sums, out=np.zeros_like(votes), where=sums > 0)
        return np.asarray(shares / shares.sum() if shares.any() else shares)

    @property
    def n_rounds(self) -> int:
        """Rounds of training that went into the model."""
        return len(self.votes.ends)

    def scores(self, X: sp.csr_matrix) -> Floats:
        size = max(1, CHUNK_BYTES // (8 * max(self.bank.n_columns, len(self.classes))))
        parts = [self._sides(X[at : at + size]) @ self._weights for at in range(0, X.shape[0], size)]
        return decoded(np.concatenate([np.empty((0, self._weights.shape[1])), *parts]), self.code)

    def score_one(self, indices: NDArray[np.int32], values: NDArray[np.float64]) -> Floats:
        sides = self._said(self.bank.margins_one(indices, values)[None])
        return np.asarray(decoded(sides @ self._weights, self.code)[0])

    def staged_scores(self, X: sp.csr_matrix) -> Iterator[Floats]:
        """Scores after each round of training, shape (n_samples, n_classes); those of the last are :meth:`scores`."""
        size = max(1, CHUNK_BYTES // (8 * max(self.bank.n_columns, 1)))
        sides = np.empty((X.shape[0], len(self.learners)), np.int8)
        for at in range(0, X.shape[0], size):
            sides[at : at + size] = self._sides(X[at : at + size])
        outputs = np.zeros((X.shape[0], self._weights.shape[1]))
        for learners, targets, deltas in self.votes.rounds():
            for t, c, delta in zip(learners.tolist(), targets, deltas, strict=True):
                outputs[:, c] += delta * sides[:, t]
            yield decoded(outputs.copy(), self.code)

    def _sides(self, X: sp.csr_matrix) -> NDArray[np.float64]:
        return self._said(self.bank.margins(X))

    def _said(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """What every learner says, shape (n_samples, n_learners)."""
        sides = np.ones((len(margins), len(self.learners)))
        real = np.flatnonzero(self.learners >= 0)
        sides[:, real] = np.where(margins[:, self.learners[real]] > 0, 1.0, -1.0)
        return sides

    def arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = self.votes.arrays() | self.bank.arrays() | {"learners": self.learners}
        return arrays if self.code is None else arrays | {"code": self.code}

    @classmethod
    def from_arrays(
        cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, NDArray[Any]]
    ) -> "CommitteeModel":
        bank = Bank.from_arrays(n_features, arrays)
        return cls(classes, bank, arrays["learners"], Votes.of_arrays(arrays), arrays.get("code"))
