"""A binary SVM at every node of a label tree, all trained as the columns of one code: the driver of two methods."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from solvers.core.base import State, Step
from solvers.core.methods import all_methods
from solvers.core.problem import Problem
from solvers.hierarchical.set_machine import SetMachine, SetParams
from solvers.numerics.array_types import Array, Bools, Floats, Ints, Ints8


class NodeParams(SetParams):
    """Parameters of the methods with a binary SVM at every node."""

    loss: Literal["hinge", "squared_hinge"] = Field(default="hinge", description="Loss of each binary machine.")
    dtype: Literal["auto", "float32", "float64"] = Field(
        default="auto", description="Precision of the weights; auto selects float32 if tol is 1e-4 or more."
    )


class NodeColumns:
    """One-vs-rest whose columns are nodes, in a problem in which every example is a class of its own.

    Parameters
    ----------
    solver : SetMachine
        Whose parameters, seed and threads the columns are trained with.
    problem : Problem
        Prepared.
    sides : int8 array, shape (n_samples, n_nodes)
        +1 where an example has a node, -1 where it has not, 0 where it is left out.
    """

    def __init__(self, solver: SetMachine[NodeParams], problem: Problem, sides: Ints8) -> None:
        numbers = np.arange(problem.n_samples, dtype=np.int32)
        self._flat = replace(problem, y=numbers, classes=tuple(map(str, numbers.tolist())), labels=None)
        self._machine = one_vs_rest(solver).of_code(sides)

    def train(self, tol: float, max_epochs: int, seed: int, state: State | None) -> Iterator[Step]:
        return iter(self._machine.train(self._flat, state))

    def rescaled(self, state: State, ratio: float) -> State:
        return dict(self._machine.rescale(self._flat, state, ratio))

    def nonzero_duals(self, state: State) -> float:
        return float(self._machine.nonzero_duals(self._flat, state))

    def weights(self, state: State) -> tuple[Ints, Array]:
        columns = self._machine.fitted(self._flat, state)
        return columns.features, columns.W

    def largest_weights(self, state: State, share: float) -> sp.csr_matrix | None:
        """Weights of at least ``share`` of the largest of their node, (n_features, n_nodes); None where most are."""
        found = self._machine.largest_weights(self._flat, state, share)
        return None if found is None else found.W

    def coefficients(self, state: State) -> Floats:
        raise NotImplementedError("machines at nodes support only the linear kernel")


def one_vs_rest(solver: SetMachine[NodeParams]) -> Any:
    """The machine of the columns; the constant feature is in the problem already."""
    method = all_methods()["one_vs_rest"]
    params = method.Params.model_validate(solver.params.model_dump(exclude={"bias"}))
    return method(params, seed=solver.seed, threads=solver.threads)


def bytes_needed(solver: SetMachine[NodeParams], n_samples: int, n_features: int, n_nodes: int) -> int:
    """What the columns take, and their sides."""
    return int(one_vs_rest(solver).bytes_needed(n_samples, n_features, n_nodes)) + n_samples * n_nodes


def signs(problem: Problem) -> Ints8:
    """+1 where an example has a node, else -1; shape (n_samples, n_nodes)."""
    return np.asarray(2 * problem.label_sets().toarray().astype(np.int8) - 1)


def under_parents(problem: Problem) -> Bools:
    """Where an example has all of the node's parents, shape (n_samples, n_nodes); all have the root."""
    tree, labels = problem.tree, problem.label_sets().toarray()
    under = np.where(tree.parent >= 0, labels[:, tree.parent], True)
    for node, above in tree.others.tolist():
        under[:, node] &= labels[:, above]
    return np.asarray(under)
