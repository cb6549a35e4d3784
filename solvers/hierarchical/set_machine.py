"""What machines over sets of labels share: the sets of a problem, and the model of node weights."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, TypeVar

import numpy as np
from pydantic import Field

from solvers.core.base import State, Step
from solvers.core.linear_model import LinearModel
from solvers.core.machine import Machine, MachineParams
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.hierarchical.drivers.driver import Driver
from solvers.hierarchical.subtree_model import Rule, SubtreeModel
from solvers.kernel_svm.kernel_map import KernelMap, KernelMapParams
from solvers.numerics.array_types import Ints32


class SetParams(MachineParams):
    """What the machines over sets of labels have in common."""

    tol: float = Field(default=1e-2, gt=0, lt=1, description="Stop at this relative duality gap.")
    max_epochs: int = Field(
        default=1000, ge=1, le=10**9, description="Stop after this many passes even if training has not converged."
    )


S = TypeVar("S", bound=SetParams)


class SetMachine(Machine[S]):
    """A machine that learns sets of labels; a single label on a tree represents its path.

    Attributes
    ----------
    rule : {"best_set", "path"}
        How the scores of nodes make a set.
    kernel_map : KernelMap
        Of the linear kernel; a method that takes others has its own.
    """

    rule: ClassVar[Rule] = "path"
    kernel_map = KernelMap(KernelMapParams())

    @abstractmethod
    def driver(self, problem: Problem) -> Driver:
        """What trains the prepared problem."""

    @property
    def appends_constant(self) -> bool:
        return self.kernel_map.is_linear

    def prepared(self, problem: Problem) -> Problem:
        problem = super().prepared(problem)
        self.kernel_map.check(problem)
        return replace(problem, y=np.empty(0, np.int32), classes=problem.tree.names, labels=problem.label_sets())

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        return self.driver(problem).train(self.params.tol, self.params.max_epochs, self.seed, state)

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        return self.driver(problem).rescaled(state, ratio)

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        return self.driver(problem).nonzero_duals(state)

    def fitted(self, problem: Problem, state: State) -> SubtreeModel:
        driver = self.driver(problem)
        parts: Model
        if self.kernel_map.is_linear:
            features, W = driver.weights(state)
            if not (np.diff(features) > 0).all():
                order = np.argsort(features)
                features, W = features[order], np.ascontiguousarray(W[order])
            parts = LinearModel(problem.classes, problem.n_features, features, W)
        else:
            parts = self.kernel_map.model(problem, problem.classes, driver.coefficients(state))
        return SubtreeModel(problem.tree, parts, self.rule, nodes_with_rows(problem))


def nodes_with_rows(problem: Problem) -> Ints32 | None:
    """The nodes that some example has, ascending; None where all have some."""
    sets = problem.label_sets()
    nodes = np.unique(sets.indices[sets.data]).astype(np.int32)
    return None if len(nodes) == problem.tree.n_nodes else nodes
