"""What machines over sets of labels share: the sets of a problem, a constant feature, and the model of node weights."""

from abc import abstractmethod
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from solvers.core.base import State
from solvers.core.machine import Machine, MachineParams
from solvers.core.model import LinearModel
from solvers.core.problem import Problem
from solvers.hierarchical.subtree_model import Rule, SubtreeModel

S = TypeVar("S", bound=MachineParams)


class SetMachine(Machine[S]):
    """A machine that learns sets of labels; single labels on a tree stand for their paths."""

    def prepared(self, problem: Problem) -> Problem:
        """The problem of sets that is solved; with a bias it has one more feature."""
        problem = super().prepared(problem)
        tree = problem.taxonomy
        assert tree is not None
        return replace(problem, y=np.empty(0, np.int32), classes=tree.names, labels=problem.label_sets())

    def shown(self, problem: Problem, features: NDArray[np.int64], W: NDArray[np.float64], rule: Rule) -> SubtreeModel:
        """The model of weights (n_used, n_nodes) in the order of ``features``."""
        assert problem.taxonomy is not None
        ascending = np.argsort(features)
        parts = LinearModel(
            problem.classes, problem.n_features, features[ascending], np.ascontiguousarray(W[ascending])
        )
        return SubtreeModel(problem.taxonomy, parts, rule)

    @abstractmethod
    def fitted(self, problem: Problem, state: State) -> SubtreeModel: ...
