"""A binary SVM at every node of a label tree, all trained as the columns of one code: the driver of two methods."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from solvers.core.base import State, Step
from solvers.core.machine import MachineParams
from solvers.core.methods import all_methods
from solvers.core.model import LinearModel
from solvers.core.problem import Problem
from solvers.hierarchical.set_machine import SetMachine
from solvers.hierarchical.subtree_model import SubtreeModel

BASE = "one_vs_rest"


class NodeParams(MachineParams):
    """Parameters of the methods with a binary SVM at every node."""

    loss: Literal["hinge", "squared_hinge"] = Field(default="hinge", description="Loss of each binary machine.")
    tol: float = Field(default=1e-2, gt=0, lt=1, description="Stop at this relative duality gap.")
    max_epochs: int = Field(default=1000, ge=1, le=10**9, description="Stop after so many passes, converged or not.")
    dtype: Literal["auto", "float32", "float64"] = Field(
        default="auto", description="Precision of the weights; auto takes float32 for tol of 1e-4 and more."
    )


class NodeMachine(SetMachine[NodeParams]):
    """One-vs-rest whose columns are nodes: a method says which examples count for which node."""

    @abstractmethod
    def sides(self, problem: Problem) -> NDArray[np.int8]:
        """+1 where an example has a node, -1 where it has not, 0 where it is left out, shape (n_samples, n_nodes)."""

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        machine, flat = self._flat(problem)
        return iter(machine.train(flat, state))

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        machine, flat = self._flat(problem)
        return dict(machine.rescale(flat, state, ratio))

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        machine, flat = self._flat(problem)
        return float(machine.nonzero_duals(flat, state))

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        return int(self._base().bytes_needed(n_samples, n_features, n_classes)) + n_samples * n_classes

    def fitted(self, problem: Problem, state: State) -> SubtreeModel:
        assert problem.taxonomy is not None
        machine, flat = self._flat(problem)
        columns = machine.fitted(flat, state)
        parts = LinearModel(problem.classes, columns.n_features, columns.features, columns.W)
        return SubtreeModel(problem.taxonomy, parts, "path")

    def _base(self) -> Any:
        method = all_methods()[BASE]
        settings = self.params.model_dump(exclude={"bias"})
        return method(method.Params.model_validate(settings), seed=self.seed, threads=self.threads)

    def _flat(self, problem: Problem) -> tuple[Any, Problem]:
        """The machine of the columns, and the problem in which every example is a class of its own."""
        numbers = np.arange(problem.n_samples, dtype=np.int32)
        flat = replace(problem, y=numbers, classes=tuple(map(str, numbers.tolist())), labels=None)
        return self._base().of_code(self.sides(problem)), flat


def signs(problem: Problem) -> NDArray[np.int8]:
    """+1 where an example has a node, else -1."""
    return np.asarray(2 * problem.label_sets().toarray().astype(np.int8) - 1)


def under_parents(problem: Problem) -> NDArray[np.bool_]:
    """Where an example has the node's parent, shape (n_samples, n_nodes); all have the root."""
    tree = problem.taxonomy
    assert tree is not None
    labels = problem.label_sets().toarray()
    return np.asarray(np.where(tree.parent >= 0, labels[:, tree.parent], True))
