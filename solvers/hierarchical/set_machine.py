"""What machines over sets of labels share: the sets of a problem, a constant feature, and the model of node weights."""

from abc import abstractmethod
from dataclasses import replace
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
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
        sets = replace(problem, y=np.empty(0, np.int32), classes=tree.names, labels=problem.label_sets())
        if self.params.bias == 0 or not self.appends_constant:
            return sets
        constant = sp.csr_matrix(np.full((problem.n_samples, 1), self.params.bias))
        return replace(sets, X=sp.csr_matrix(sp.hstack([problem.X, constant], format="csr")))

    @property
    def appends_constant(self) -> bool:
        """Whether a bias is one more feature."""
        return True

    def model(self, problem: Problem, state: State) -> SubtreeModel:
        """The model that ``state`` stands for; its report tells the shares of weights and dual variables not zero."""
        prepared = self.prepared(problem)
        model = self.fitted(prepared, state)
        parts, nonzero = model.parts, self.nonzero_duals(prepared, state)
        told = {} if np.isnan(nonzero) else {"nonzero_duals": nonzero}
        if isinstance(parts, LinearModel):
            if self.params.bias > 0:
                parts = parts.with_last_as_intercept(self.params.bias)
                model = SubtreeModel(model.tree, parts, model.rule)
            told["nonzero_weights"] = float(np.count_nonzero(parts.W) / (parts.n_features * len(parts.classes)))
        model.report = told
        return model

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
