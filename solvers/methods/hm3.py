"""Maximum-margin Markov tree over sets of labels (H-M3).

    minimise  1/2 |w|^2 + C sum_i max_u [ loss(y_i, u) - w . (phi(x_i, y_i) - phi(x_i, u)) ]

over one weight vector for each edge of the label tree and each of the four ways to label its two ends; phi puts x
where an edge's labels are. Rousu et al. 2005, equation 2; the losses are those of section 2.1. Prediction is the closed
set with the largest score, found by dynamic programming (section 4).

The paper's dual has four marginals for each edge and example. A distribution over closed sets is told by its node
marginals alone, one over all labelings by those and one marginal an edge; the weights follow from as many vectors
(``solvers/hierarchical/order_blocks.py`` and ``marginal_blocks.py``). With a kernel the examples become vectors whose
inner products are its values (``solvers/kernel_svm/kernel_map.py``), and all else stays.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from solvers.core.base import Handles, State, Step
from solvers.core.problem import Problem
from solvers.hierarchical import markov_ascent
from solvers.hierarchical.markov_ascent import Task
from solvers.hierarchical.set_machine import SetMachine
from solvers.hierarchical.subtree_model import SubtreeModel
from solvers.kernel_svm.kernel_model import KernelModel
from solvers.kernel_svm.mapped_machine import MappedMachine, MappedParams
from solvers.labels.taxonomy import Weighting


class HM3Params(MappedParams):
    """Parameters of H-M3."""

    loss: Literal["symmetric", "hierarchical"] = Field(
        default="symmetric",
        description="Loss of a wrong set: symmetric counts every wrong node; hierarchical those whose parent is right.",
    )
    scaling: Weighting = Field(
        default="uniform",
        description="What a node counts in the loss: 1; its parent's part divided among the children (sibling); the "
        "share of all nodes that are below it (subtree).",
    )
    labelings: Literal["consistent", "all"] = Field(
        default="consistent",
        description="Which sets compete with the true one in training: closed ones, or all, as in the paper.",
    )
    tol: float = Field(default=1e-2, gt=0, lt=1, description="Stop at this relative duality gap.")
    max_epochs: int = Field(default=1000, ge=1, le=10**9, description="Stop after so many passes, converged or not.")


class HM3(MappedMachine[HM3Params], SetMachine[HM3Params]):
    """Maximum-margin Markov tree."""

    name = "hm3"
    title = "Maximum-margin Markov tree over sets of labels (H-M3)"
    paper = "Rousu, Saunders, Szedmak and Shawe-Taylor 2005"
    Params = HM3Params
    handles = Handles(flat=False, tree=True, multilabel=True, kernels=True)

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        return markov_ascent.ascend(self._task(problem), self.params.tol, self.params.max_epochs, self.seed, state)

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        return markov_ascent.rescaled(self._task(problem), state, ratio)

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        return markov_ascent.share_of_wrong(self._task(problem), state)

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        n_columns = n_classes * (1 if self.params.labelings == "consistent" else 2)
        if self.params.kernel == "linear":
            return 8 * n_features * n_columns + 17 * n_samples
        return 8 * n_samples * (n_columns + 3 * n_samples) + 17 * n_samples

    def fitted(self, problem: Problem, state: State) -> SubtreeModel:
        task = self._task(problem)
        if self.params.kernel == "linear":
            return self.shown(problem, task.features, markov_ascent.node_weights(task, state), "best_set")
        assert problem.taxonomy is not None
        coefficients = markov_ascent.node_coefficients(task, state)
        support = np.flatnonzero((coefficients != 0).any(axis=1) & task.filled)
        function, offset = self.kernel_function(problem), self.params.bias**2
        parts = KernelModel.of_training(problem.classes, problem.X, function, support, coefficients[support], offset)
        return SubtreeModel(problem.taxonomy, parts, "best_set")

    def _task(self, problem: Problem) -> Task:
        params, mapped = self.params, self.mapped(problem)
        return Task.of(mapped, params.C, params.scaling, params.loss == "hierarchical", params.labelings)
