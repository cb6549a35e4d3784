"""Machines over a label tree by block ascent on the dual: the driver that they share.

It minimises ``Omega(W) + sum_b C_b loss_b(W)`` over one weight vector a node, where

    Omega(W) = 1/2 sum_i K_ii |w_i|^2 + sum_{i, a above i} K_ia |w_i . w_a|     or the same without the bars,

and a loss is the largest of the scaled violations of its pairs of nodes. Without the bars the coupling is fixed. With
them ``Omega(W) = max_S 1/2 sum_ij (S o K)_ij w_i . w_j`` over S_ij in [-1, 1] off the diagonal: all these matrices are
positive definite if the comparison matrix of K is. So the optimum is ``max D(alpha, S)``, jointly concave, over dual
variables and S, and every (alpha, S) gives a true lower bound. At the optimum most pairs are exactly orthogonal
with S inside its bounds, which is why S has to be continuous.

An epoch is one exact step on every awake block in a fresh random order, then one Newton step on S.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from solvers.core.base import State, Step, relative_gap
from solvers.core.dual_variables import best_multiple
from solvers.core.machine import SingleLabelParams
from solvers.core.problem import Problem
from solvers.hierarchical import tree_ascent
from solvers.hierarchical.kernel_taxonomy_model import KernelTaxonomyModel
from solvers.hierarchical.taxonomy_model import TaxonomyModel
from solvers.hierarchical.tree_ascent import Blocks, Tree
from solvers.kernel_svm.kernel_model import KernelModel
from solvers.kernel_svm.mapped_machine import MappedMachine, MappedParams
from solvers.labels import tree_factor
from solvers.labels.coupling import diagonal
from solvers.labels.taxonomy import Taxonomy
from solvers.numerics import coefficients
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.orders import awake
from solvers.numerics.rows import Rows, arrange, weights

CERTIFY_SHARE = 0.1
# by how much more the gaps met on the way sum up to than the gap at the end of an epoch
SHRINKS = 2.0
SLICE_OPERATIONS = 1 << 27
ROOM = 1 << 16
HALVINGS = 30


class TreeParams(MappedParams, SingleLabelParams):
    """What the machines over a label tree have in common."""

    tol: float = Field(default=1e-2, gt=0, lt=1, description="Stop at this relative duality gap.")
    max_epochs: int = Field(default=1000, ge=1, le=10**9, description="Stop after so many passes, converged or not.")


@dataclass(frozen=True)
class Design:
    """What a machine makes of a label tree.

    Attributes
    ----------
    tree : Taxonomy
        That is trained on.
    labels : int32 array, shape (n_samples,)
        The node of that tree for every example.
    K : float64 array
        The coupling along its paths.
    absolute : bool
        Whether the regulariser has the bars.
    each_level : bool
        Whether every level of an example has a loss of its own.
    all_rival : bool
        Whether a label has all other nodes as rivals, scaled by their distance, in place of its path's siblings.
    """

    tree: Taxonomy
    labels: NDArray[np.int32]
    K: NDArray[np.float64]
    absolute: bool = False
    each_level: bool = False
    all_rival: bool = False

    def blocks(self, bounds: NDArray[np.float64]) -> Blocks:
        """The hinges of examples with these bounds."""
        n, level = len(self.labels), self.tree.level[self.labels]
        if not self.each_level:
            row = np.arange(n, dtype=np.int32)
            return Blocks(row, self.labels, np.zeros(n, np.int32), bounds, self.all_rival)
        row = np.repeat(np.arange(n, dtype=np.int32), level)
        first = np.arange(len(row)) - np.repeat(np.cumsum(level) - level, level)
        node = self.tree.path_nodes[self.tree.path_start[self.labels[row]] + first]
        return Blocks(row, node, first.astype(np.int32), bounds[row], False)


M = TypeVar("M", bound=TreeParams)


class TreeMachine(MappedMachine[M]):
    """A machine over a label tree; a method says how it couples nodes, and who rivals whom.

    C is the weight of each example's loss, as in all machines here; that of Zhou et al. is n_samples times it.
    """

    @abstractmethod
    def design(self, problem: Problem) -> Design:
        """What is trained on the prepared problem."""

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        self.admit(problem)
        assert problem.taxonomy is not None
        n_features = int(np.count_nonzero(np.bincount(problem.X.indices, minlength=problem.n_features)))
        self.check_memory(problem.n_samples, n_features, problem.taxonomy.n_nodes)
        return super().steps(problem, state)

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        params = self.params
        task = self._task(problem)
        run = _Run.begin(task) if state is None else _Run.of_state(task, state)
        gaps, examples = np.zeros(len(task.blocks.row)), np.flatnonzero(task.filled).astype(np.int32)
        while True:
            if run.position == len(run.order):
                if run.epoch == params.max_epochs:
                    return
                if run.epoch > 0:
                    run.turn(task)
                run.epoch, run.tally[:] = run.epoch + 1, 0.0
                rng = np.random.default_rng([self.seed, run.epoch])
                run.order = rng.permutation(awake(examples, run.rest, run.epoch))
                run.position = 0
            run.advance(task, SLICE_OPERATIONS)
            if run.position < len(run.order):
                yield run.step(np.nan, np.nan, converged=False)
                continue
            excess = run.excess(task)
            rough = run.tally[0] + excess <= SHRINKS * params.tol * (run.tally[1] + 0.5 * run.square())
            if not (rough or run.epoch == params.max_epochs or CERTIFY_SHARE * run.epoch >= 1 + run.certified):
                yield run.step(np.nan, np.nan, converged=False)
                continue
            run.certified += 1
            primal, dual = run.certificate(task, gaps, excess)
            converged = relative_gap(primal, dual) <= params.tol
            run.rest[gaps > 0.1 * params.tol * primal / len(gaps)] = 0
            yield run.step(primal, dual, converged=converged)
            if converged:
                return

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        task = self._task(problem)
        run, last = _Run.begin(task), _Run.of_state(task, state)
        run.pool, run.S, run.B = last.pool, last.S, last.B
        run.R[:] = last.R
        factor = best_multiple(last.linear(task), last.square(), ratio)
        run.pool.values[:] *= factor
        run.R *= factor
        run.products = None
        return run.step(np.nan, np.nan, converged=False).state

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        if self.params.kernel == "linear":
            return 8 * n_features * n_classes + 29 * n_samples
        return 8 * n_samples * (n_classes + 3 * n_samples) + 29 * n_samples

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        design = self.design(problem)
        task = self._task(problem)
        lengths = np.diff(task.rows.indptr)[task.blocks.row] + 1.0
        pairs = (task.costs / lengths)[task.filled].sum()
        if design.all_rival:
            pairs -= np.count_nonzero(task.filled)
        else:
            pairs -= (design.tree.level[task.blocks.node] - task.blocks.first)[task.filled].sum()
        return float(state["dual_length"].sum() / pairs) if pairs > 0 else 0.0

    def fitted(self, problem: Problem, state: State) -> TaxonomyModel | KernelTaxonomyModel:
        if self.params.kernel != "linear":
            return self._of_kernel(problem, state)
        task = self._task(problem)
        run = _Run.of_state(task, state)
        W = np.empty((len(task.features), task.design.tree.n_nodes))
        tree_factor.to_weights(task.tree.start, task.tree.nodes, run.B, run.R, W)
        return self.shown(problem, task.design, task.features, W)

    def shown(
        self, problem: Problem, design: Design, features: NDArray[np.int64], W: NDArray[np.float64]
    ) -> TaxonomyModel:
        """The model of weights (n_used, n_nodes) in the order of ``features``."""
        ascending = np.argsort(features)
        return TaxonomyModel(design.tree, problem.n_features, features[ascending], np.ascontiguousarray(W[ascending]))

    def _of_kernel(self, problem: Problem, state: State) -> KernelTaxonomyModel:
        """The model of what each example adds to the weights of the nodes (Zhou et al. 2011, Theorem 3)."""
        n = problem.n_samples
        alone = replace(problem, X=sp.identity(n, format="csr"))
        task = _Task.of(self.design(problem), alone, self.params.C)
        m = task.design.tree.n_nodes
        added, coefficients = weights(n, m, np.dtype(np.float64)), np.empty((n, m))
        B = _factor(task, np.array(state["S"]))
        tree_ascent.to_rates(task.rows, task.blocks, task.tree, _pool(state), added)
        tree_factor.to_factor(task.tree.start, task.tree.nodes, B, added)
        tree_factor.to_weights(task.tree.start, task.tree.nodes, B, added, coefficients)
        shown = self.shown(alone, task.design, task.features, coefficients)
        W = np.asarray(shown.W, np.float64)
        support = np.flatnonzero((W != 0).any(axis=1))
        parts = KernelModel.of_training(
            shown.classes, problem.X, self.kernel_function(problem), support, W[support], self.params.bias**2
        )
        return KernelTaxonomyModel(shown.tree, parts, shown.candidates)

    def _task(self, problem: Problem) -> "_Task":
        return _Task.of(self.design(problem), self.mapped(problem), self.params.C)


@dataclass(frozen=True)
class _Task:
    """All that stays fixed while a machine trains."""

    design: Design
    rows: Rows
    features: NDArray[np.int64]
    tree: Tree
    blocks: Blocks
    filled: NDArray[np.bool_]
    costs: NDArray[np.float64]
    constant: float

    @classmethod
    def of(cls, design: Design, problem: Problem, C: float) -> "_Task":
        t = design.tree
        rows, features = arrange(problem.X, np.dtype(np.float64))
        tree = Tree(t.parent, t.level, t.path_start, t.path_nodes, t.first_child)
        blocks = design.blocks(C * problem.weights)
        at_zero = tree_ascent.losses_at_zero(blocks, tree)
        empty = rows.squares[blocks.row] == 0
        constant = float((blocks.bound * at_zero)[empty].sum())
        width = t.n_nodes if design.all_rival else np.diff(t.first_child)[t.parent + 1]
        spread = np.broadcast_to(width, t.n_nodes).astype(np.float64)
        if not design.all_rival:
            spread = np.add.reduceat(spread[t.path_nodes], t.path_start[:-1])
        costs = (1.0 + np.diff(rows.indptr))[blocks.row] * spread[blocks.node]
        filled = ~empty & (at_zero > 0)
        return cls(design, rows, features, tree, blocks, filled, costs, constant)


@dataclass
class _Run:
    """What changes while a machine trains: the state of a step."""

    R: NDArray[np.float64]
    S: NDArray[np.float64]
    B: NDArray[np.float64]
    pool: Coefficients
    rest: NDArray[np.uint8]
    order: NDArray[np.int32]
    tally: NDArray[np.float64]
    best: float
    epoch: int
    position: int
    certified: int
    products: NDArray[np.float64] | None = None
    turned: float = 0.0

    @classmethod
    def begin(cls, task: _Task) -> "_Run":
        n, t = len(task.blocks.row), task.design.tree
        S = np.zeros(len(task.design.K)) if task.design.absolute else np.ones(len(task.design.K))
        S[diagonal(t)] = 1.0
        pool = coefficients.empty(n, max(ROOM, 4 * t.n_nodes))
        R = weights(len(task.features), t.n_nodes, np.dtype(np.float64))
        return cls(
            R, S, _factor(task, S), pool, np.zeros(n, np.uint8), np.empty(0, np.int32), np.zeros(3), -np.inf, 0, 0, 0
        )

    @classmethod
    def of_state(cls, task: _Task, state: State) -> "_Run":
        R = weights(len(task.features), task.design.tree.n_nodes, np.dtype(np.float64))
        R[:] = state["R"]
        S = np.array(state["S"])
        pool = _pool(state)
        rest, order, tally = (np.array(state[name]) for name in ("rest", "order", "tally"))
        epoch, position, certified = (int(value) for value in state["clock"])
        return cls(
            R, S, _factor(task, S), pool, rest, order, tally, float(state["best"][0]), epoch, position, certified
        )

    def step(self, primal: float, dual: float, *, converged: bool) -> Step:
        """The step at this point."""
        arrays: dict[str, NDArray[Any]] = {
            "R": self.R,
            "S": self.S,
            "rest": self.rest,
            "order": self.order,
            "tally": self.tally,
        }
        arrays |= {f"dual_{name}": array for name, array in self.pool._asdict().items()}
        arrays["clock"] = np.array([self.epoch, self.position, self.certified])
        arrays["best"] = np.array([self.best])
        return Step(self.epoch, primal, dual, float(self.tally[2]), converged, arrays)

    def advance(self, task: _Task, budget: float) -> None:
        """Visit on to the end of the epoch, or until it has cost the budget."""
        ahead = self.order[self.position :]
        work = np.cumsum(task.costs[ahead])
        stop = self.position + min(len(ahead), 1 + int(np.searchsorted(work, budget)))
        room = task.design.tree.n_nodes + 1 + tree_ascent.CANDIDATES * int(task.tree.level[-1])
        while self.position < stop:
            self.pool = coefficients.with_room(self.pool, max(ROOM, 2 * room))
            self.position = tree_ascent.visit(
                task.rows, task.blocks, task.tree, self.B, self.order, self.position, stop, self.R, self.pool,
                self.rest, self.tally,
            )  # fmt: skip
        self.products = None

    def square(self) -> float:
        """``|R|^2``."""
        return float(np.vdot(self.R, self.R))

    def linear(self, task: _Task) -> float:
        """The dual variables times their scales."""
        gaps = np.zeros(len(task.blocks.row))
        _, linear, _ = tree_ascent.certify(task.rows, task.blocks, task.tree, self.B, self.R, self.pool, gaps)
        return float(linear)

    def excess(self, task: _Task) -> float:
        """By how much Omega(W) exceeds ``|R|^2 / 2``, as S is not yet that of W."""
        if not task.design.absolute:
            return 0.0
        if self.products is None:
            self.products = np.empty(len(self.S))
            tree_factor.products(task.tree.start, task.tree.nodes, self.B, self.R, self.products)
        G = self.products
        terms = task.design.K * (np.abs(G) - self.S * G)
        terms[diagonal(task.design.tree)] = 0.0
        return float(terms.sum())

    def certificate(self, task: _Task, gaps: NDArray[np.float64], excess: float) -> tuple[float, float]:
        """Primal value of the weights and the best lower bound so far; ``gaps`` takes each block's part."""
        losses, linear, violation = tree_ascent.certify(
            task.rows, task.blocks, task.tree, self.B, self.R, self.pool, gaps
        )  # fmt: skip
        half = 0.5 * self.square()
        primal, dual = half + excess + losses + task.constant, linear - half + task.constant
        if dual - primal > 1e-9 * abs(primal):
            raise FloatingPointError(f"dual {dual} above primal {primal}: the weights have lost their precision")
        self.tally[2] = violation
        self.best = max(self.best, dual)
        return primal, min(self.best, primal)

    def turn(self, task: _Task) -> None:
        """Make R afresh from the dual variables, after a step on S where it is free.

        A step that lets the dual fall is halved until it does not.
        """
        before, new = self.square(), self.S
        if task.design.absolute:
            self.excess(task)
            assert self.products is not None
            new = np.empty_like(self.S)
            tree_factor.newton(
                task.tree.start, task.tree.nodes, task.design.K, self.B, self.products, self.S, new
            )  # fmt: skip
        for _ in range(HALVINGS):
            B = _factor(task, new)
            tree_ascent.to_rates(task.rows, task.blocks, task.tree, self.pool, self.R)
            tree_factor.to_factor(task.tree.start, task.tree.nodes, B, self.R)
            if not task.design.absolute or self.square() <= before * (1.0 + 1e-12):
                self.S, self.B = new, B
                break
            new = 0.5 * (self.S + new)
        else:
            tree_ascent.to_rates(task.rows, task.blocks, task.tree, self.pool, self.R)
            tree_factor.to_factor(task.tree.start, task.tree.nodes, self.B, self.R)
        self.products = None


def _pool(state: State) -> Coefficients:
    """A copy of the dual variables of a state."""
    return Coefficients(*(np.array(state[f"dual_{name}"]) for name in Coefficients._fields))


def _factor(task: _Task, S: NDArray[np.float64]) -> NDArray[np.float64]:
    """B of the coupling with signs S."""
    B = np.empty_like(S)
    if not tree_factor.factor(task.tree.start, task.tree.nodes, S * task.design.K, 0.0, B):
        raise FloatingPointError("the coupling is not positive definite")
    return B
