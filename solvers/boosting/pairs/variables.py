"""Weights of weak learners for classes, in the order in which they were admitted."""

from collections.abc import Mapping

import numpy as np

from solvers.boosting.weak_learners.votes import with_capacity
from solvers.numerics.array_types import Array, Floats, Ints, Ints32

KINDS = {"learners": np.int64, "owners": np.int32, "weights": np.float64, "before": np.float64, "scored": np.float64}


class Variables:
    """Variables that are never dropped; each is the weight of a learner for the class that owns it.

    Attributes
    ----------
    learners : int64 array, shape (n,)
    owners : int32 array, shape (n,)
    weights, before, scored : float64 arrays, shape (n,)
        The weights, those when the round began, and those that the scores were last moved to.
    """

    learners: Ints
    owners: Ints32
    weights: Floats
    before: Floats
    scored: Floats

    def __init__(self) -> None:
        self._room = {name: np.empty(0, kind) for name, kind in KINDS.items()}
        self._places: dict[tuple[int, int], int] = {}
        self._show()

    def __len__(self) -> int:
        return len(self._places)

    def admit(self, learners: Ints, owners: Ints) -> Ints:
        """Places of variables; those that are not yet here come to the end, with weight 0."""
        n, places = len(self), self._places
        keys = zip(learners.tolist(), owners.tolist(), strict=True)
        at = np.array([places.setdefault(key, len(places)) for key in keys], np.int64)
        if len(self) > n:
            self._show()
            self.learners[at], self.owners[at] = learners, owners
        return at

    def changed(self, since: Floats, among: Ints | None) -> Ints:
        """The variables, of all or some, whose weights are not what they were."""
        if among is None:
            return np.flatnonzero(self.weights != since)
        differ = self.weights[among] != since[among]
        return among if differ.all() else np.asarray(among[differ])

    def arrays(self) -> dict[str, Array]:
        """All there is to know; live."""
        return {name: getattr(self, name) for name in KINDS}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Take back what :meth:`arrays` gave."""
        self._room = {name: np.array(arrays[name], kind) for name, kind in KINDS.items()}
        keys = zip(self._room["learners"].tolist(), self._room["owners"].tolist(), strict=True)
        self._places = {key: j for j, key in enumerate(keys)}
        self._show()

    def _show(self) -> None:
        """Let the attributes be the parts of larger arrays that are in use."""
        n = len(self)
        for name in KINDS:
            self._room[name] = with_capacity(self._room[name], n)
            setattr(self, name, self._room[name][:n])
