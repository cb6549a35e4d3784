"""Binary machines of the columns of a code, in blocks of columns: what they train on, and what changes meanwhile."""

from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import NamedTuple

import numpy as np

from solvers.core.base import State
from solvers.core.certified_ascent import CERTIFY_SHARE
from solvers.core.problem import Problem
from solvers.linear.driver.params import AscentParams, precision
from solvers.linear.layouts.layouts import Constant, held_back, share_of
from solvers.linear.steps import binary
from solvers.numerics.array_types import Array, Bools, Bytes, Floats, Floats32, Ints8, Ints32
from solvers.numerics.orders import active, count_unchanged, moved, shuffled
from solvers.numerics.rows import Rows, arrange, sure_leads, weights


class Counters(NamedTuple):
    """Epochs begun, blocks of the epoch visited, and certificates taken."""

    epoch: int
    block: int
    certified: int


@dataclass(frozen=True, eq=False)
class BlockTask:
    """What stays fixed while training; ``held`` is the constant feature, if its weights are multipliers."""

    rows: Rows
    y: Ints32
    bounds: Floats
    filled: Ints32
    inverse: Array
    ridge: Array
    top: Array
    squared: bool
    code: Ints8 | None
    n_columns: int
    width: int
    constant: float
    held: Constant | None

    @classmethod
    def from_problem(cls, problem: Problem, params: AscentParams, squared: bool, code: Ints8 | None) -> "BlockTask":
        dtype = precision(params)
        bounds = params.C * problem.weights
        share, last = share_of(problem.X, params.bias, bounds, problem.n_classes), problem.X.shape[1] - 1
        rows, features = arrange(held_back(problem.X, share) if share < 1.0 else problem.X, dtype)
        held = Constant(int(np.flatnonzero(features == last)[0]), params.bias, share) if share < 1.0 else None
        ridge = 0.5 / bounds if squared else np.zeros_like(bounds)
        top = np.full_like(bounds, np.inf) if squared else bounds
        filled = rows.squares > 0
        inverse = np.zeros_like(bounds)
        inverse[filled] = 1.0 / (rows.squares + ridge)[filled]
        n_columns = problem.n_classes if code is None else code.shape[1]
        # the scores of an empty row vanish whatever W is, so each of its losses is 1
        sided = n_columns if code is None else np.count_nonzero(code, axis=1)[problem.y[~filled]]
        constant = float((bounds[~filled] * sided).sum())
        return cls(
            rows, problem.y, bounds, np.flatnonzero(filled).astype(np.int32), inverse.astype(dtype),
            ridge.astype(dtype), top.astype(dtype), squared, code, n_columns,
            binary.block_width(n_columns, dtype), constant, held,
        )  # fmt: skip

    @cached_property
    def scale(self) -> float:
        """How large a dual variable may be expected to be: at its bound, or where one step from nothing leads."""
        return float(min(self.bounds.max(), self.inverse[self.filled].min(initial=np.inf)))

    @cached_property
    def curvature(self) -> Array:
        """Of each example's steps, shape (n_samples,); 0 where it is empty."""
        return np.divide(1.0, self.inverse, out=np.zeros_like(self.inverse), where=self.inverse > 0)

    @property
    def n_blocks(self) -> int:
        return -(-self.n_columns // self.width)

    def sides(self, block: int) -> tuple[Ints32, Array]:
        """The kind of each example, and the signs (n_kinds, width) of each kind in the columns of a block.

        One against the rest, the kinds are the classes of the block and one for all others.
        """
        begin = block * self.width
        n_valid = min(self.width, self.n_columns - begin)
        if self.code is None:
            kinds = self.y - np.int32(begin)
            kinds[(kinds < 0) | (kinds > n_valid)] = n_valid
            signs: Array = 2 * np.eye(n_valid + 1, n_valid) - 1
        else:
            kinds, signs = self.y, self.code[:, begin : begin + n_valid]
        table = np.zeros((len(signs), self.width), self.rows.data.dtype)
        table[:, :n_valid] = signs
        return kinds, table


class Best:
    """The highest scores of every example on either side of the columns, of all blocks, in whatever order they come."""

    def __init__(self, n_samples: int) -> None:
        self._scores, self._lock = np.full((n_samples, 2), -np.inf), Lock()

    def take(self, scores: Floats) -> None:
        """Those of one block, shape (n_samples, 2): on the side of -1, and on that of +1."""
        with self._lock:
            np.maximum(self._scores, scores, out=self._scores)

    def right(self, task: BlockTask, square_sum: float) -> Bools:
        """One against the rest, the examples whose own class leads for sure; shape (n_samples,)."""
        leads, some = np.zeros(len(self._scores)), task.filled
        leads[some] = self._scores[some, 1] - self._scores[some, 0]
        return sure_leads(leads, np.diff(task.rows.indptr), task.rows.squares, square_sum, task.rows.data.dtype)


@dataclass(eq=False)
class BlockRun:
    """What changes while training: the state of a step.

    ``column_gaps`` (n_blocks, width) are those of the last certificate, of the columns without what biases add.
    ``biases`` (n_blocks, width) are the multipliers b of :mod:`solvers.linear.layouts.layouts`. Their step comes
    before every pass here.
    """

    W: Array
    beta: Array
    gains: Floats32
    unchanged: Bytes
    gain: Floats
    epoch: int
    block: int
    certified: int
    dual: float
    biases: Floats
    column_gaps: Floats

    @classmethod
    def begin(cls, task: BlockTask) -> "BlockRun":
        n, blocks, dtype = len(task.y), task.n_blocks, task.rows.data.dtype
        n_features = int(task.rows.indices.max(initial=0)) + 1
        W = weights(blocks * n_features, task.width, dtype).reshape(blocks, n_features, task.width)
        beta = weights(blocks * n, task.width, dtype).reshape(blocks, n, task.width)
        gains, unchanged = np.zeros((blocks, n), np.float32), np.zeros((blocks, n), np.uint8)
        of_columns = np.zeros((2, blocks, task.width))
        return cls(W, beta, gains, unchanged, np.zeros((blocks, 2)), 0, blocks, 0, 0.0, *of_columns)

    @classmethod
    def resume(cls, task: BlockTask, state: State) -> "BlockRun":
        run = cls.begin(task)
        for name in ("W", "beta", "gains", "unchanged", "gain", "biases", "column_gaps"):
            getattr(run, name)[:] = state[name]
        run.epoch, run.block, run.certified = Counters(*(int(value) for value in state["counters"]))
        run.dual = float(state["dual"])
        return run

    @classmethod
    def looking_at(cls, state: State) -> "BlockRun":
        """At its weights and dual variables, which are not copied."""
        names = ("W", "beta", "gains", "unchanged", "gain", "biases", "column_gaps")
        W, beta, gains, unchanged, gain, biases, column_gaps = (np.asarray(state[name]) for name in names)
        epoch, block, certified = Counters(*(int(value) for value in state["counters"]))
        dual = float(state["dual"])
        return cls(W, beta, gains, unchanged, gain, epoch, block, certified, dual, biases, column_gaps)

    @classmethod
    def of_columns(cls, task: BlockTask, state: State) -> "BlockRun":
        """From weights and dual variables with a column a class; every example is active."""
        run = cls.begin(task)
        run.epoch = int(state["epoch"][0])
        run.certified = int(CERTIFY_SHARE * run.epoch)
        for block in range(task.n_blocks):
            classes = slice(block * task.width, min((block + 1) * task.width, task.n_columns))
            n = classes.stop - classes.start
            run.W[block, :, :n], run.beta[block, :, :n] = state["W"][:, classes], state["beta"][:, classes]
            if task.held is not None:
                value, share, sums = task.held.value, task.held.share, run.beta[block].sum(axis=0, dtype=np.float64)
                run.biases[block] = (run.reached(task, block) - share * value * sums) / (1.0 - share)
            run.dual += float((run.linear(block) - 0.5 * run.squares(task, block)).sum())
        return run

    def state(self) -> dict[str, Array]:
        return {
            "W": self.W,
            "beta": self.beta,
            "gains": self.gains,
            "unchanged": self.unchanged,
            "gain": self.gain,
            "counters": np.array(Counters(self.epoch, self.block, self.certified)),
            "dual": np.array(self.dual),
            "biases": self.biases,
            "column_gaps": self.column_gaps,
        }

    def reached(self, task: BlockTask, block: int) -> Floats:
        """The biases u of a block, shape (width,)."""
        assert task.held is not None
        u: Floats = task.held.root * self.W[block, task.held.place].astype(np.float64)
        return u

    def linear(self, block: int) -> Floats:
        """The dual variables of each column of a block, summed, shape (width,)."""
        total: Floats = np.abs(self.beta[block]).sum(axis=0, dtype=np.float64)
        return total

    def apart(self, task: BlockTask, block: int) -> Floats:
        """How far each column's weights of a block are from those that its dual variables make, shape (width,).

        At a certificate they differ in the biases that are multipliers, if in anything.
        """
        if task.held is None:
            return np.zeros(task.width)
        u = self.reached(task, block)
        found: Floats = np.abs(u - self.biases[block]) * (1.0 - task.held.share) / task.held.share
        return found

    def squares(self, task: BlockTask, block: int) -> Floats:
        """Of each column of a block, what the dual takes half of, shape (width,)."""
        beta, held = self.beta[block].astype(np.float64), task.held
        squares: Floats = (self.W[block].astype(np.float64) ** 2).sum(axis=0) + task.ridge.astype(np.float64) @ beta**2
        if held is not None:
            u = self.reached(task, block)
            squares += ((u - (1.0 - held.share) * self.biases[block]) / held.share) ** 2 - (u / held.root) ** 2
        return squares

    def advance(self, task: BlockTask, seed: int, refinements: int, block: int) -> None:
        """One epoch of one block: its active examples, then so many times those that their last visit moved."""
        gains, unchanged = self.gains[block], self.unchanged[block]
        # a move below the precision of the numbers themselves is none
        trifle = float(np.finfo(task.rows.data.dtype).eps * task.scale) ** 2
        kinds, signs = task.sides(block)
        fixed = (task.rows, kinds, signs, task.inverse, task.ridge, task.top)
        W, beta = self.W[block], self.beta[block]
        order = shuffled(active(task.filled, unchanged, self.epoch), seed, self.epoch)
        if task.code is not None:
            order = order[(signs != 0).any(axis=1)[kinds[order]]]
        self._step_multipliers(task, block)
        self.gain[block, 0] = binary.visit(*fixed, order, trifle, W, beta, gains)
        count_unchanged(order, gains, unchanged)
        for number in range(1, 1 + refinements):
            self._step_multipliers(task, block)
            live = moved(task.filled, gains, seed, self.epoch, number)
            self.gain[block, 1] += binary.visit(*fixed, live, trifle, W, beta, gains)

    def largest(self, task: BlockTask) -> float:
        """The largest move of the last visits times the curvature: how far an example is from its optimum."""
        return float(np.sqrt(2.0 * (self.gains.max(axis=0) * task.curvature).max()))

    def certify(self, task: BlockTask, block: int, gaps: Floats, best: Best) -> tuple[float, ...]:
        """Of one block, W made afresh: losses, dual without norm, and squared norms; ``best`` takes its scores.

        The squared norms are those of the primal, of the dual, and of the weights as they are stored.
        """
        W, beta = self.W[block], self.beta[block]
        squares = of_dual = as_stored = binary.rebuild(task.rows, W, beta)
        if task.held is not None:
            row, root, share = W[task.held.place], task.held.root, task.held.share
            made = row.astype(np.float64)
            sums, rest = made / root, squares - made @ made
            u = self.biases[block] + share * (sums - self.biases[block])
            row[:] = u / root
            squares, of_dual, as_stored = (float(rest + b @ b) for b in (u, sums, u / root))
        scores = np.full((len(gaps), 2), -np.inf)
        self.column_gaps[block] = 0.0
        measured = gaps, self.column_gaps[block], scores
        losses, total = binary.certify(task.rows, *task.sides(block), task.bounds, task.squared, W, beta, *measured)
        best.take(scores)
        return losses, total, squares, of_dual, as_stored

    def _step_multipliers(self, task: BlockTask, block: int) -> None:
        """b = u, and u with it: of the way to what the dual variables make of the biases, once more the share tau."""
        if task.held is None:
            return
        u = self.reached(task, block)
        self.W[block, task.held.place] += (1.0 - task.held.share) / task.held.root * (u - self.biases[block])
        self.biases[block] = u
