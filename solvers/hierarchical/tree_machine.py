"""What the machines over a label tree share: their parameters, and the way from a design to a model."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from pydantic import Field

from solvers.core.base import State, Step
from solvers.core.machine import Machine, SingleLabelParams
from solvers.core.problem import Problem
from solvers.hierarchical.design import Design
from solvers.hierarchical.drivers.driver import Driver
from solvers.hierarchical.hinges.ascent import HingeAscent
from solvers.hierarchical.kernel_taxonomy_model import KernelTaxonomyModel
from solvers.hierarchical.taxonomy_model import TaxonomyModel
from solvers.kernel_svm.kernel_map import KernelMap, KernelMapParams


class TreeParams(KernelMapParams, SingleLabelParams):
    """What the machines over a label tree have in common."""

    tol: float = Field(default=1e-2, gt=0, lt=1, description="Stop at this relative duality gap.")
    max_epochs: int = Field(
        default=1000, ge=1, le=10**9, description="Stop after this many passes even if training has not converged."
    )


M = TypeVar("M", bound=TreeParams)


class TreeMachine(Machine[M]):
    """A machine over a label tree; a method says how it couples nodes, and who rivals whom.

    C is the weight of each example's loss, as in all machines here; that of Zhou et al. is n_samples times it.
    """

    def __init__(self, params: M, *, seed: int = 0, threads: int = 1) -> None:
        super().__init__(params, seed=seed, threads=threads)
        self.kernel_map = KernelMap(params)

    @abstractmethod
    def design(self, problem: Problem) -> Design:
        """What is trained on the prepared problem."""

    def driver(self, problem: Problem, design: Design) -> Driver:
        """What trains it."""
        of_duals = not self.kernel_map.is_linear
        return HingeAscent(design, self.kernel_map.mapped(problem), self.params.C, self.params.tol, of_duals)

    @property
    def appends_constant(self) -> bool:
        return self.kernel_map.is_linear

    def prepared(self, problem: Problem) -> Problem:
        problem = super().prepared(problem)
        self.kernel_map.check(problem)
        return problem

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        self.admit(problem)
        self.check_features(problem)
        n_features = int(np.count_nonzero(np.bincount(problem.X.indices, minlength=problem.n_features)))
        self.check_memory(problem.n_samples, n_features, problem.tree.n_nodes)
        return super().steps(problem, state)

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        return self._driver(problem).train(self.params.tol, self.params.max_epochs, self.seed, state)

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        return self._driver(problem).rescaled(state, ratio)

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        return self._driver(problem).nonzero_duals(state)

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        if self.kernel_map.is_linear:
            return 8 * n_features * n_classes + 29 * n_samples
        return 8 * n_samples * (n_classes + 3 * n_samples) + 29 * n_samples

    def fitted(self, problem: Problem, state: State) -> TaxonomyModel | KernelTaxonomyModel:
        design, tree = self.design(problem), problem.tree
        driver = self.driver(problem, design)
        if not self.kernel_map.is_linear:
            coefficients = design.widened(driver.coefficients(state), tree.n_nodes)
            parts = self.kernel_map.model(problem, tree.names, coefficients)
            return KernelTaxonomyModel(tree, parts, design.candidates)
        features, W = driver.weights(state)
        order = np.argsort(features)
        W = np.ascontiguousarray(design.widened(W, tree.n_nodes)[order])
        return TaxonomyModel(tree, problem.n_features, features[order], W, candidates=design.candidates)

    def _driver(self, problem: Problem) -> Driver:
        return self.driver(problem, self.design(problem))
