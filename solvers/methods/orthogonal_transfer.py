"""Hierarchical machine whose nodes are drawn towards directions orthogonal to those of their ancestors.

    minimise  1/2 sum_i K_ii |w_i|^2 + sum_{i, a above i} K_ia |w_i . w_a|
              + C sum_k max(0, max_{i on the path to y_k, j sibling of i} 1 - w_i . x_k + w_j . x_k)

Zhou et al. 2011, equation 4, whose C is n_samples times this one; prediction goes down the tree (equation 1). The
default algorithm ascends on the dual of the saddle form (``solvers/hierarchical/hinges``); the paper's
Algorithm 1 is kept beside it.
"""

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from solvers.core.base import Handles, ParamsError
from solvers.core.problem import Problem, ProblemError
from solvers.hierarchical.design import Design
from solvers.hierarchical.drivers.driver import Driver
from solvers.hierarchical.drivers.dual_averaging import DualAveraging
from solvers.hierarchical.tree_machine import TreeMachine, TreeParams
from solvers.labels import coupling
from solvers.labels.taxonomy import Taxonomy, TaxonomyError
from solvers.numerics.array_types import Floats


class OrthogonalTransferParams(TreeParams):
    """Parameters of orthogonal transfer."""

    alpha: float = Field(
        default=0.5,
        ge=0,
        allow_inf_nan=False,
        description="K between a node and each of its ancestors; the diagonal of K is the size of the node's subtree.",
    )
    K: list[tuple[str, str, float]] = Field(
        default=[],
        description="Entries of K that replace those of alpha: a node, the same node or an ancestor, and the value.",
    )
    repair: coupling.Repair = Field(
        default="refuse",
        description="What to do if K makes the objective not convex: refuse it, scale the entries off the "
        "diagonal, or raise the diagonal.",
    )
    algorithm: Literal["ascent", "rda"] = Field(
        default="ascent",
        description="ascent on the dual, or the paper's regularised dual averaging: a reference for the linear "
        "kernel that takes many times as long.",
    )

    @field_validator("algorithm")
    @classmethod
    def _dual_averaging_is_linear(cls, algorithm: str, info: ValidationInfo) -> str:
        kernel = info.data.get("kernel", "linear")
        if algorithm == "rda" and kernel != "linear":
            raise ValueError(f"rda supports only the linear kernel; {kernel} was given")
        return algorithm


class OrthogonalTransfer(TreeMachine[OrthogonalTransferParams]):
    """Orthogonal to the ancestors."""

    name = "orthogonal_transfer"
    title = "Hierarchical SVM with orthogonal transfer"
    formula = (
        r"\tfrac12 \sum_i K_{ii} \|w_i\|^2 + \sum_i \sum_{a \in \mathrm{above}(i)} K_{ia} |w_i^\top w_a| + C "
        r"\sum_k \Big( \max_{i \in \mathrm{path}(y_k), j \in \mathrm{sib}(i)} 1 - w_i^\top x_k + w_j^\top x_k "
        r"\Big)_+"
    )
    paper = "Zhou, Xiao and Wu 2011"
    Params = OrthogonalTransferParams
    handles = Handles(flat=False, tree=True, kernels=True)
    checks_tree = True

    def check_tree(self, tree: Taxonomy) -> None:
        self._coupling(tree)

    def design(self, problem: Problem) -> Design:
        try:
            K = self._coupling(problem.tree)
        except ParamsError as error:
            raise ProblemError(error.items[0][1]) from error
        return Design(problem.tree, problem.nodes(), K, absolute=True)

    def _coupling(self, tree: Taxonomy) -> Floats:
        """K along the paths of the tree; raises ParamsError."""
        try:
            K = coupling.with_entries(tree, coupling.by_size(tree, self.params.alpha), self.params.K)
        except (coupling.CouplingError, TaxonomyError) as error:
            raise ParamsError([("/K", str(error))]) from error
        try:
            return coupling.convex(tree, K, self.params.repair)
        except coupling.CouplingError as error:
            raise ParamsError([("/repair", str(error))]) from error

    def driver(self, problem: Problem, design: Design) -> Driver:
        if self.params.algorithm == "ascent":
            return super().driver(problem, design)
        return DualAveraging(design, problem, self.params.C)
