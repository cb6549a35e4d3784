"""Maximum-margin Markov tree over sets of labels (H-M3).

    minimise  1/2 |w|^2 + C sum_i max_u [ loss(y_i, u) - w . (phi(x_i, y_i) - phi(x_i, u)) ]

over one weight vector for each edge of the label tree and each of the four ways to label its two ends; phi puts x
where an edge's labels are. Rousu et al. 2005, equation 2; the losses are those of section 2.1. Prediction is the closed
set with the largest score, found by dynamic programming (section 4).

The paper's dual (equation 7) has four marginals for each edge and example. A distribution over closed sets is given by
its node marginals alone, one over all labelings by those and one marginal an edge; the weights follow from as many
vectors (``solvers/hierarchical/marginals``). In a label graph, where a node may have several parents, each edge has
four weight vectors, too, and closed sets, the best of which is a minimum cut, still need node marginals alone.

With a kernel the examples become vectors whose inner products are its values (``solvers/kernel_svm/kernel_map.py``),
and all else stays.
"""

from typing import Literal

from pydantic import Field

from solvers.core.base import Handles
from solvers.core.problem import Problem
from solvers.hierarchical.drivers.driver import Driver
from solvers.hierarchical.marginals.ascent import MarkovAscent
from solvers.hierarchical.set_machine import SetMachine, SetParams
from solvers.kernel_svm.kernel_map import KernelMap, KernelMapParams
from solvers.labels.taxonomy import Weighting


class HM3Params(KernelMapParams, SetParams):
    """Parameters of H-M3."""

    loss: Literal["symmetric", "hierarchical"] = Field(
        default="symmetric",
        description="Loss of a wrong set: symmetric counts every wrong node; hierarchical counts wrong nodes "
        "whose parent is right.",
    )
    scaling: Weighting = Field(
        default="uniform",
        description="Weight of a node in the loss: 1 (uniform); its parent's weight divided among the children "
        "(sibling); the share of all nodes that are below it (subtree).",
    )
    labelings: Literal["consistent", "all"] = Field(
        default="consistent",
        description="Sets that compete with the true one in training: closed sets, or all sets as in the paper.",
    )


class HM3(SetMachine[HM3Params]):
    """Maximum-margin Markov tree."""

    name = "hm3"
    title = "Maximum-margin Markov tree over sets of labels (H-M3)"
    formula = (
        r"\tfrac12 \|w\|^2 + C \sum_i \max_u \big( \ell(y_i, u) - w^\top (\varphi(x_i, y_i) - \varphi(x_i, "
        r"u)) \big)"
    )
    paper = "Rousu, Saunders, Szedmak and Shawe-Taylor 2005"
    Params = HM3Params
    handles = Handles(flat=False, tree=True, multilabel=True, graph=True, kernels=True)
    rule = "best_set"

    def __init__(self, params: HM3Params, *, seed: int = 0, threads: int = 1) -> None:
        super().__init__(params, seed=seed, threads=threads)
        self.kernel_map = KernelMap(params)

    @property
    def graph_fault(self) -> str | None:
        return "hm3 with labelings=all needs a label tree" if self.params.labelings == "all" else None

    def driver(self, problem: Problem) -> Driver:
        params, mapped = self.params, self.kernel_map.mapped(problem)
        kind = params.scaling, params.loss == "hierarchical", params.labelings == "all"
        return MarkovAscent(mapped, params.C, *kind, of_duals=not self.kernel_map.is_linear)

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        n_columns = n_classes * (1 if self.params.labelings == "consistent" else 2)
        if self.kernel_map.is_linear:
            return 8 * n_features * n_columns + 17 * n_samples
        return 8 * n_samples * (n_columns + 3 * n_samples) + 17 * n_samples
