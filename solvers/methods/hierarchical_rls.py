"""Ridge regression at every node of a label tree, on the examples that have the node's parent (H-RLS).

    minimise  1/2 sum_j |w_j|^2 + C/2 sum_j sum_{i with j's parent} (s_ij - w_j . x_i)^2,   s_ij as for ``node_svm``

The hierarchical regularised least squares of Cesa-Bianchi, Gentile, Tironi and Zaniboni 2004, which Rousu et al. 2005,
section 4, compare with; both have C = 1. There the example x to be labelled counts among the inputs, without a label.
That divides the score by ``1 + x' (I + C S S')^-1 x``, S being the node's examples, and so changes no sign, which is
all that prediction looks at: it goes down the tree as long as scores are positive.

All nodes are solved at once by conjugate gradients. With the residual r of a node's equations half of ``|r|^2`` is its
duality gap.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from solvers.core.base import Handles, State, Step, relative_gap
from solvers.core.problem import Problem
from solvers.hierarchical.drivers.driver import Driver
from solvers.hierarchical.node_columns import signs, under_parents
from solvers.hierarchical.set_machine import SetMachine, SetParams
from solvers.numerics.array_types import Floats, Ints

REFRESH_EPOCHS = 50


class HierarchicalRLSParams(SetParams):
    """Parameters of H-RLS."""

    tol: float = Field(default=1e-4, gt=0, lt=1, description="Stop at this relative duality gap.")
    max_epochs: int = Field(
        default=1000,
        ge=1,
        le=10**9,
        description="Stop after this many conjugate gradient steps even if training has not converged.",
    )


class HierarchicalRLS(SetMachine[HierarchicalRLSParams]):
    """Ridge regression a node, among its parent's examples."""

    name = "hierarchical_rls"
    title = "Hierarchical regularised least squares (H-RLS)"
    formula = (
        r"\tfrac12 \sum_j \|w_j\|^2 + \tfrac{C}{2} \sum_j \sum_{i \in \mathrm{parent}(j)} (s_{ij} - w_j^\top "
        r"x_i)^2"
    )
    paper = "Cesa-Bianchi, Gentile, Tironi and Zaniboni 2004; Rousu et al. 2005"
    Params = HierarchicalRLSParams
    handles = Handles(flat=False, tree=True, multilabel=True, graph=True)

    def driver(self, problem: Problem) -> Driver:
        return _ConjugateGradients(problem, self.params.C)

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        # weights, residuals, directions, right sides, and what a step makes of them; sums over examples; signs and mask
        return 8 * n_classes * (9 * n_features + 2 * n_samples) + 2 * n_classes * n_samples


class _ConjugateGradients:
    """Solves ``(I + C X' diag(omega m_j) X) w_j = b_j`` for all nodes, m_j flagging the examples that count.

    X has no unused features.
    """

    def __init__(self, problem: Problem, C: float) -> None:
        self.features = np.unique(problem.X.indices).astype(np.int64)
        self.X = problem.X[:, self.features]
        self.XT = self.X.T.tocsr()
        self.costs, self.mask = C * problem.weights, under_parents(problem)
        self.b = np.asarray(self.XT @ (self.costs[:, None] * np.where(self.mask, signs(problem), 0)))
        self.at_zero = 0.5 * self.costs @ self.mask

    def train(self, tol: float, max_epochs: int, seed: int, state: State | None) -> Iterator[Step]:
        """A step of conjugate gradients on all nodes an epoch; nothing in it is random."""
        run = self._begin(np.zeros_like(self.b)) if state is None else _Run.from_state(state)
        while run.epoch < max_epochs:
            run.epoch += 1
            self._step(run, tol)
            squares, values = _squares(run.R), self._values(run)
            run.best = np.maximum(run.best, values - 0.5 * squares)
            primal = float(values.sum())
            dual = min(float(run.best.sum()), primal)
            converged = relative_gap(primal, dual) <= tol
            yield Step(run.epoch, primal, dual, float(np.sqrt(squares.max())), converged, run.state())
            if converged:
                return

    def rescaled(self, state: State, ratio: float) -> State:
        """Go on from the same weights."""
        return self._begin(np.array(state["W"])).state()

    def nonzero_duals(self, state: State) -> float:
        """Unknown: there are no dual variables."""
        return float("nan")

    def weights(self, state: State) -> tuple[Ints, Floats]:
        """The features that some example has, and the weights of the nodes."""
        return self.features, np.array(state["W"])

    def coefficients(self, state: State) -> Floats:
        raise NotImplementedError("ridge regression supports only the linear kernel")

    def _begin(self, W: Floats) -> "_Run":
        R = self._residual(W)
        return _Run(W, R, R.copy(), np.zeros(W.shape[1]))

    def _step(self, run: "_Run", tol: float) -> None:
        """The step of every node whose own gap is above the tolerance."""
        W, R, Q = run.W, run.R, run.Q
        if run.epoch % REFRESH_EPOCHS == 0:
            R[:] = self._residual(W)
            Q[:] = R
        squares = _squares(R)
        active = np.flatnonzero(squares > tol * self._values(run))
        if len(active):
            AQ = self._times(Q[:, active], active)
            steps = squares[active] / np.einsum("fj,fj->j", Q[:, active], AQ)
            W[:, active] += steps * Q[:, active]
            R[:, active] -= steps * AQ
            Q[:, active] = R[:, active] + _squares(R[:, active]) / squares[active] * Q[:, active]

    def _residual(self, W: Floats) -> Floats:
        return np.asarray(self.b - self._times(W, slice(None)))

    def _times(self, W: Floats, nodes: Ints | slice) -> Floats:
        """The left side for some nodes, W (n_used, len(nodes)) being their columns."""
        F = self.X @ W
        F *= self.costs[:, None] * self.mask[:, nodes]
        return np.asarray(W + self.XT @ F)

    def _values(self, run: "_Run") -> Floats:
        return np.asarray(self.at_zero - 0.5 * np.einsum("fj,fj->j", self.b + run.R, run.W))


@dataclass
class _Run:
    """What changes: weights, residuals, directions, the nodes' best lower bounds."""

    W: Floats
    R: Floats
    Q: Floats
    best: Floats
    epoch: int = 0

    @classmethod
    def from_state(cls, state: State) -> "_Run":
        W, R, Q, best = (np.array(state[name]) for name in ("W", "R", "Q", "best"))
        return cls(W, R, Q, best, int(state["epoch"]))

    def state(self) -> State:
        """The arrays of a step's state."""
        return {name: np.asarray(value) for name, value in vars(self).items()}


def _squares(R: Floats) -> Floats:
    return np.asarray(np.einsum("fj,fj->j", R, R))
