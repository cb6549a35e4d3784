"""Ridge regression at every node of a label tree, on the examples that have the node's parent (H-RLS).

    minimise  1/2 sum_j |w_j|^2 + C/2 sum_j sum_{i with j's parent} (s_ij - w_j . x_i)^2,   s_ij as for ``node_svm``

The hierarchical regularised least squares of Cesa-Bianchi, Gentile, Tironi and Zaniboni 2004, which Rousu et al. 2005
compare with; both have C = 1. There the example x to be labelled counts among the inputs, without a label. That divides
the score by ``1 + x' (I + C S S')^-1 x``, S being the node's examples, and so changes no sign, which is all that
prediction looks at: it goes down the tree as long as scores are positive.

All nodes are solved at once by conjugate gradients. With the residual r of a node's equations half of ``|r|^2`` is its
duality gap.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from solvers.core.base import Handles, State, Step, relative_gap
from solvers.core.machine import MachineParams
from solvers.core.problem import Problem
from solvers.hierarchical.node_machine import signs, under_parents
from solvers.hierarchical.set_machine import SetMachine
from solvers.hierarchical.subtree_model import SubtreeModel

REFRESH_EPOCHS = 50


class HierarchicalRLSParams(MachineParams):
    """Parameters of H-RLS."""

    tol: float = Field(default=1e-4, gt=0, lt=1, description="Stop at this relative duality gap.")
    max_epochs: int = Field(
        default=1000, ge=1, le=10**9, description="Stop after so many conjugate gradient steps, converged or not."
    )


class HierarchicalRLS(SetMachine[HierarchicalRLSParams]):
    """Ridge regression a node, among its parent's examples."""

    name = "hierarchical_rls"
    title = "Hierarchical regularised least squares (H-RLS)"
    paper = "Cesa-Bianchi, Gentile, Tironi and Zaniboni 2004; Rousu et al. 2005"
    Params = HierarchicalRLSParams
    handles = Handles(flat=False, tree=True, multilabel=True)

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        system = _System.of(problem, self.params.C)
        if state is None:
            W = np.zeros_like(system.b)
            R, Q, best, epoch = system.b.copy(), system.b.copy(), np.zeros(W.shape[1]), 0
        else:
            W, R, Q, best = (np.array(state[name]) for name in ("W", "R", "Q", "best"))
            epoch = int(state["epoch"])
        tol = self.params.tol
        while epoch < self.params.max_epochs:
            epoch += 1
            if epoch % REFRESH_EPOCHS == 0:
                R = system.b - system.times(W, slice(None))
                Q = R.copy()
            squares = np.einsum("fj,fj->j", R, R)
            active = np.flatnonzero(squares > tol * system.values(W, R))
            if len(active):
                AQ = system.times(Q[:, active], active)
                steps = squares[active] / np.einsum("fj,fj->j", Q[:, active], AQ)
                W[:, active] += steps * Q[:, active]
                R[:, active] -= steps * AQ
                turned = np.einsum("fj,fj->j", R[:, active], R[:, active]) / squares[active]
                Q[:, active] = R[:, active] + turned * Q[:, active]
            squares = np.einsum("fj,fj->j", R, R)
            values = system.values(W, R)
            best = np.maximum(best, values - 0.5 * squares)
            primal = float(values.sum())
            dual = min(float(best.sum()), primal)
            converged = relative_gap(primal, dual) <= tol
            arrays = {"W": W, "R": R, "Q": Q, "best": best, "epoch": np.array(epoch)}
            yield Step(epoch, primal, dual, float(np.sqrt(squares.max())), converged, arrays)
            if converged:
                return

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        """Go on from the same weights."""
        system, W = _System.of(problem, self.params.C), np.array(state["W"])
        R = system.b - system.times(W, slice(None))
        return {"W": W, "R": R, "Q": R.copy(), "best": np.zeros(W.shape[1]), "epoch": np.array(0)}

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        return float("nan")

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        return 8 * n_classes * (5 * n_features + n_samples) + 2 * n_classes * n_samples

    def fitted(self, problem: Problem, state: State) -> SubtreeModel:
        used = np.unique(problem.X.indices).astype(np.int64)
        return self.shown(problem, used, np.array(state["W"]), "path")


@dataclass(frozen=True)
class _System:
    """The equations ``(I + C X' diag(omega m_j) X) w_j = b_j`` of all nodes, m_j flagging the examples that count.

    X has no unused features.
    """

    X: sp.csr_matrix
    XT: sp.csr_matrix
    costs: NDArray[np.float64]
    mask: NDArray[np.bool_]
    b: NDArray[np.float64]
    at_zero: NDArray[np.float64]

    @classmethod
    def of(cls, problem: Problem, C: float) -> "_System":
        X = problem.X[:, np.unique(problem.X.indices)]
        costs, mask = C * problem.weights, under_parents(problem)
        XT = X.T.tocsr()
        b = XT @ (costs[:, None] * np.where(mask, signs(problem), 0))
        return cls(X, XT, costs, mask, np.asarray(b), 0.5 * costs @ mask)

    def times(self, W: NDArray[np.float64], nodes: NDArray[np.int64] | slice) -> NDArray[np.float64]:
        """The left side for some nodes, W (n_used, len(nodes)) being their columns."""
        F = self.X @ W
        F *= self.costs[:, None] * self.mask[:, nodes]
        return np.asarray(W + self.XT @ F)

    def values(self, W: NDArray[np.float64], R: NDArray[np.float64]) -> NDArray[np.float64]:
        """The primal values of the nodes, where R is the residual of W."""
        return np.asarray(self.at_zero - 0.5 * np.einsum("fj,fj->j", self.b + R, W))
