"""Rounds of boosting: what stays fixed while a method trains, what changes, and how a round ends."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solvers.boosting.params import BoostingParams
from solvers.boosting.weak_learners.base import WeakLearners
from solvers.boosting.weak_learners.channels import Channels, Found
from solvers.boosting.weak_learners.votes import GrowingVotes, Votes
from solvers.core.base import State
from solvers.numerics.array_types import Array, Floats, Ints, Ints32
from solvers.numerics.thread_pool import ThreadPool

BAG = 1 << 30


@dataclass(frozen=True, eq=False)
class Task:
    """What stays fixed while training: rows sorted by class, their bins, and the rows held out.

    Attributes
    ----------
    y : int32 array, shape (n,)
        Ascending.
    omega : float64 array, shape (n,)
        Weights of the rows.
    held_y : int32 array, shape (n_held,)
    """

    classes: tuple[str, ...]
    n_features: int
    y: Ints32
    omega: Floats
    learners: WeakLearners
    held_y: Ints32

    @property
    def n_classes(self) -> int:
        return len(self.classes)


class Report(NamedTuple):
    """How a round ended: bounds of the objective or nan, the largest violation or nan, rows wrong, and whether to stop.

    ``more`` has other measures by name.
    """

    primal: float
    dual: float
    violation: float
    n_wrong: int
    converged: bool
    exhausted: bool = False
    more: Mapping[str, float] = {}


class Run(ABC):
    """What changes while a method trains."""

    def __init__(self, task: Task, n_outputs: int, params: BoostingParams, seed: int) -> None:
        self.task, self.params, self.seed = task, params, seed
        self.epoch = 0
        self.votes = GrowingVotes()
        self.held_scores = np.zeros((n_outputs, len(task.held_y)))
        self.best_epoch, self.best_error = 0, np.inf

    def measure(self, report: Report) -> dict[str, float]:
        """Measures of a round beside its bounds; records the least error on held-out rows."""
        measures = {"train_error": report.n_wrong / len(self.task.y), **report.more}
        if len(self.task.held_y):
            error = float(np.mean(self.classify(self.held_scores) != self.task.held_y))
            measures["validation_error"] = error
            if error < self.best_error:
                self.best_epoch, self.best_error = self.epoch, error
        return measures

    @property
    def under_way(self) -> bool:
        """Whether the last slice left a round unfinished."""
        return False

    @abstractmethod
    def advance(self, thread_pool: ThreadPool) -> Report | None:
        """One slice of a round; its report if that ended the round."""

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """What the method itself has to keep; live."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Take back what :meth:`arrays` gave."""

    def classify(self, scores: Floats) -> Ints:
        """Class indices from scores of shape (n_outputs, n)."""
        return np.asarray(scores.argmax(axis=0))

    def find(self, channels: Channels, thread_pool: ThreadPool) -> Found | None:
        """Weak learners for the next round, sought in its bag; None if the work has only begun."""
        self.draw_bag(channels)
        return self.task.learners.find(channels, thread_pool, [self.seed, self.epoch + 1])

    def draw_bag(self, channels: Channels) -> None:
        """Leave only the rows of the next round's bag their weights."""
        if self.params.bag < 1:
            n, rng = len(self.task.y), np.random.default_rng([self.seed, self.epoch + 1, BAG])
            channels.keep_rows(rng.permutation(n) < max(1.0, self.params.bag * n))

    def vote(self, learners: Array, outputs: Array, deltas: Floats) -> None:
        """Enter what a round has changed, and let the scores of the held out rows follow."""
        self.votes.add_round(learners, outputs, deltas)
        if len(self.task.held_y) and len(learners):
            responses = self.task.learners.responses(learners, held=True)
            for response, c, delta in zip(responses, outputs, deltas, strict=True):
                self.held_scores[c] += delta * response

    def state(self) -> dict[str, Array]:
        """All arrays of a step."""
        own = {
            "epoch": np.array(self.epoch),
            "best_epoch": np.array(self.best_epoch),
            "best_error": np.array(self.best_error),
            "held_scores": self.held_scores,
        }
        return own | self.votes.so_far.arrays() | self.task.learners.arrays() | self.arrays()

    def resume(self, state: State) -> None:
        """Go on from the arrays of a step."""
        self.epoch = int(state["epoch"])
        self.best_epoch, self.best_error = int(state["best_epoch"]), float(state["best_error"])
        self.held_scores[:] = state["held_scores"]
        self.votes = GrowingVotes(Votes.of_arrays({name: np.array(array) for name, array in state.items()}))
        self.task.learners.restore(state)
        self.restore(state)
