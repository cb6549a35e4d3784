"""What models of boosting share: votes of weak learners, added up round by round."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from solvers.boosting.weak_learners.votes import Votes, decoded
from solvers.core.model import Model
from solvers.labels import stored_arrays
from solvers.numerics.array_types import Array, Floats, Ints8


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Votes, and what they vote for.

    Attributes
    ----------
    votes : Votes
        What each round of training has added; they number the weak learners by their place in the model.
    code : int8 array, shape (n_classes, n_outputs), or None
        What turns outputs into scores, as :func:`solvers.boosting.weak_learners.votes.decoded` does. Without it the
        outputs are the scores.
    """

    classes: tuple[str, ...]
    n_features: int
    votes: Votes
    code: Ints8 | None = None

    @classmethod
    def of_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "Ensemble":
        """What :meth:`arrays` gave; raises ArrayFault."""
        code = arrays.get("code")
        if code is not None:
            stored_arrays.require_numbers("code", code, len(classes), *code.shape[1:2])
        return cls(classes, n_features, Votes.of_arrays(arrays), code)

    def require_learners(self, n_learners: int) -> None:
        """Raise ArrayFault where a vote is that of a learner, or for an output, that there is not."""
        votes = self.votes
        n_votes = len(votes.learners)
        stored_arrays.require_within("vote_learners", votes.learners, 0, n_learners)
        stored_arrays.require_within("vote_outputs", votes.outputs, 0, self.n_outputs)
        stored_arrays.require_shape("vote_outputs", votes.outputs, n_votes)
        stored_arrays.require_floats("vote_deltas", votes.deltas, n_votes)
        stored_arrays.require_within("vote_ends", votes.ends, 0, n_votes + 1)

    def arrays(self) -> dict[str, Array]:
        """The arrays to be written."""
        votes = self.votes.arrays()
        return votes if self.code is None else votes | {"code": self.code}

    @property
    def n_outputs(self) -> int:
        """Sums of votes: as many as classes, or as columns of the code."""
        return len(self.classes) if self.code is None else int(self.code.shape[1])

    def weights(self, n_learners: int) -> Floats:
        """The weights after the last round, shape (n_learners, n_outputs)."""
        return self.votes.weights(n_learners, self.n_outputs)


class BoostedModel(Model):
    """``F_c(x) = sum_t w_tc h_t(x)`` over weak learners h_t, or what a code makes of such outputs."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble
        self.classes, self.n_features = ensemble.classes, ensemble.n_features
        self.votes, self.code = ensemble.votes, ensemble.code

    @property
    def n_rounds(self) -> int:
        """Rounds of training that went into the model."""
        return len(self.votes.ends)

    @property
    @abstractmethod
    def importances(self) -> Floats:
        """Each feature's share of the absolute weights of the weak learners, shape (n_features,)."""

    def staged(self, n: int, response: Callable[[int], Array]) -> Iterator[Floats]:
        """Scores of n rows after each round of training; ``response`` gives a learner's outputs for them."""
        outputs = np.zeros((n, self.ensemble.n_outputs))
        for learners, targets, deltas in self.votes.rounds():
            for t, c, delta in zip(learners.tolist(), targets, deltas, strict=True):
                outputs[:, c] += delta * response(t)
            yield self.decode(outputs.copy())

    def decode(self, outputs: Floats) -> Floats:
        """Scores from outputs, shape (n, n_outputs)."""
        return decoded(outputs, self.code)


def shares(values: Array) -> Floats:
    """Values over their sum; all zero where that is."""
    return np.asarray(values / values.sum() if values.any() else values)
