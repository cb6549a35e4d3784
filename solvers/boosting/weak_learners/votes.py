"""What rounds of boosting have added to a model: weights of weak learners for outputs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from solvers.numerics.array_types import Array, Floats, Ints, Ints8, Ints32


@dataclass(frozen=True, eq=False)
class Votes:
    """Changes of weights, round by round.

    Attributes
    ----------
    learners : int64 array, shape (n_votes,)
        The weak learner of each change.
    outputs : int32 array, shape (n_votes,)
        The output whose score it adds to.
    deltas : float64 array, shape (n_votes,)
        What was added to its weight.
    ends : int64 array, shape (n_rounds,)
        Votes up to the end of each round.
    """

    learners: Ints
    outputs: Ints32
    deltas: Floats
    ends: Ints

    def rounds(self) -> Iterator[tuple[Ints, Ints32, Floats]]:
        """Learners, outputs and deltas of each round."""
        begin = 0
        for end in self.ends.tolist():
            yield self.learners[begin:end], self.outputs[begin:end], self.deltas[begin:end]
            begin = end

    def upto(self, n_rounds: int) -> "Votes":
        """The first rounds alone."""
        ends = self.ends[:n_rounds]
        last = int(ends[-1]) if len(ends) else 0
        return Votes(self.learners[:last], self.outputs[:last], self.deltas[:last], ends)

    def renumbered(self) -> tuple[Ints, "Votes"]:
        """The different learners, ascending, and the votes with their places among them."""
        known, place = np.unique(self.learners, return_inverse=True)
        return known, Votes(place.astype(np.int64), self.outputs, self.deltas, self.ends)

    def weights(self, n_learners: int, n_outputs: int) -> Floats:
        """The weights after the last round, shape (n_learners, n_outputs); learners as :meth:`renumbered`."""
        place = self.learners * n_outputs + self.outputs
        return np.asarray(np.bincount(place, self.deltas, n_learners * n_outputs), np.float64).reshape(-1, n_outputs)

    def arrays(self) -> dict[str, Array]:
        """The arrays to be written."""
        return {
            "vote_learners": self.learners,
            "vote_outputs": self.outputs,
            "vote_deltas": self.deltas,
            "vote_ends": self.ends,
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> "Votes":
        """Votes around arrays that may be memory-mapped."""
        return cls(*(arrays[f"vote_{name}"] for name in ("learners", "outputs", "deltas", "ends")))


class GrowingVotes:
    """Votes to which every round adds its own."""

    def __init__(self, votes: Votes | None = None) -> None:
        self._votes = votes or Votes(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0), np.empty(0, np.int64))
        self._n_votes, self._n_rounds = len(self._votes.learners), len(self._votes.ends)

    def add_round(self, learners: Array, outputs: Array, deltas: Floats) -> None:
        """Note the changes of one round."""
        begin, end = self._n_votes, self._n_votes + len(learners)
        votes = self._votes
        if end > len(votes.learners) or self._n_rounds == len(votes.ends):
            votes = self._votes = Votes(
                with_capacity(votes.learners, end),
                with_capacity(votes.outputs, end),
                with_capacity(votes.deltas, end),
                with_capacity(votes.ends, self._n_rounds + 1),
            )
        votes.learners[begin:end], votes.outputs[begin:end], votes.deltas[begin:end] = learners, outputs, deltas
        votes.ends[self._n_rounds] = end
        self._n_votes, self._n_rounds = end, self._n_rounds + 1

    @property
    def so_far(self) -> Votes:
        """All votes so far; live."""
        votes, n = self._votes, self._n_votes
        return Votes(votes.learners[:n], votes.outputs[:n], votes.deltas[:n], votes.ends[: self._n_rounds])


def decoded(outputs: Floats, code: Ints8 | None) -> Floats:
    """Scores from outputs, shape (n, n_outputs): less their loss against each row of a code, or themselves.

    The loss is that of Allwein, Schapire and Singer 2000, equation 5, with the exponential function: row c of the code
    scores ``-sum_l exp(-code_cl f_l)``.
    """
    if code is None:
        return outputs
    # exp(f) and exp(-f) once each, for all classes
    up, down = np.exp(np.minimum(outputs, 700.0)), np.exp(np.minimum(-outputs, 700.0))
    return np.asarray(-(down @ (code == 1).T.astype(np.float64) + up @ (code == -1).T.astype(np.float64)))


def with_capacity(array: Array, size: int) -> Array:
    """The array, or a copy with room for so many numbers and more; what is new there is zero."""
    if size <= len(array):
        return array
    larger = np.zeros(max(size, 2 * len(array), 64), array.dtype)
    larger[: len(array)] = array
    return larger
