"""One binary machine a class against all others, trained for a block of classes at a time.

    minimise  1/2 sum_c |w_c|^2 + C sum_i sum_c max(0, 1 - s_ic w_c' x_i)^q,   s_ic = +1 if c = y_i else -1

with q = 1 (hinge) or q = 2 (squared hinge). The dual step is that of Hsieh et al. 2008, Algorithm 1, for up to 64
classes in the registers of the processor at once, so that one reading of an example serves all of them. Blocks do not
depend on each other: threads take them in turn, and the result does not depend on how many there are. The squared hinge
on few dense features is solved by Newton's method instead (``finite_newton``). The weights of a constant feature are
multipliers, which take a step before every pass (:mod:`solvers.linear.layouts.constant`).

With an output code in place of "one against the rest" the same machine trains the columns of that code.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from solvers.core.base import Handles, State, Step, relative_gap
from solvers.core.dual_variables import best_multiple, filled, share, snapped_to_bounds
from solvers.core.linear_model import LinearModel
from solvers.core.machine import Machine
from solvers.core.problem import Problem
from solvers.linear import finite_newton
from solvers.linear.binary_blocks import Best, BlockRun, BlockTask, Counters
from solvers.linear.driver.ascent import CERTIFY_SHARE, bounded
from solvers.linear.driver.params import AscentParams, precision
from solvers.linear.layouts.constant import share_of
from solvers.linear.layouts.layouts import DenseLayout
from solvers.linear.sharded.linear_shards import LinearShards, Part
from solvers.linear.steps import binary
from solvers.numerics.array_types import Bools, Ints8, Ints32
from solvers.numerics.lazy_arrays import Lazy
from solvers.numerics.rows import arrange
from solvers.output_codes.codes import Code, participants
from solvers.sharding.exchange import Exchange, ExchangeKind
from solvers.sharding.independent import together
from solvers.sharding.partition import balanced

AUTO_FEATURES, AUTO_BYTES = 512, 2 << 30
REFINEMENTS = 4
PROMISING = 0.3
SLICE_PRODUCTS = 1 << 31


class OneVsRestParams(AscentParams):
    """Parameters of :class:`OneVsRest`."""

    loss: Literal["hinge", "squared_hinge"] = Field(default="hinge", description="Loss of each binary machine.")
    algorithm: Literal["auto", "ascent", "newton"] = Field(
        default="auto",
        description="Dual ascent, or Newton's method on the primal, for the squared hinge alone; auto takes the latter "
        f"for dense rows of up to {AUTO_FEATURES} features.",
    )

    @field_validator("algorithm")
    @classmethod
    def _newton_is_for_the_squared_hinge(cls, algorithm: str, given: ValidationInfo) -> str:
        if algorithm == "newton" and given.data.get("loss") == "hinge":
            raise ValueError("newton needs loss squared_hinge: the hinge has no second derivative")
        return algorithm


class OneVsRest(Machine[OneVsRestParams], LinearShards):
    """One linear SVM a class against the rest; the highest score wins.

    In shards always by dual ascent, with one message an epoch. A training that is resumed there looks at all examples
    afresh, also at those that rested.
    """

    name = "one_vs_rest"
    title = "One-vs-rest SVM"
    formula = r"\tfrac12 \sum_c \|w_c\|^2 + C \sum_i \sum_c (1 - s_{ic} w_c^\top x_i)_+^q"
    paper = "Hsieh et al. 2008; Rifkin and Klautau 2004"
    handles = Handles(flat=True, shards=True)
    Params = OneVsRestParams
    columns = ("W", "beta")
    exchange_kinds = ("bounds",)
    lead = 2.0
    trains_columns = True
    code: Code | None = None

    def of_code(self, code: Code) -> "OneVsRest":
        """The same machine for other columns: s_ic = code[y_i, c], and an example is left out where that is 0.

        Parameters
        ----------
        code : int8 array of -1, 0 and +1, shape (n_classes, n_columns)

        Returns
        -------
        OneVsRest
            Its models score columns in place of classes.
        """
        other = OneVsRest(self.params, seed=self.seed, threads=self.threads)
        other.code = code
        return other

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        """Train; memory is a float an example and column for the dual variables beside the weights.

        An epoch visits every active example of a block, then ``REFINEMENTS`` times those that its last visit moved.
        """
        if self._newton(problem):
            yield from self._newton_steps(problem, state)
            return
        task = self._task(problem)
        run = BlockRun.begin(task) if state is None else BlockRun.resume(task, state)
        slice_blocks = max(self.threads, SLICE_PRODUCTS // max(1, len(task.rows.data) * task.width))
        with ThreadPoolExecutor(self.threads) as thread_pool:
            while run.epoch < self.params.max_epochs or run.block < task.n_blocks:
                if run.block == task.n_blocks:
                    run.epoch, run.block = run.epoch + 1, 0
                    run.gain[:] = 0.0
                blocks = range(run.block, min(run.block + slice_blocks, task.n_blocks))
                advance = partial(run.advance, task, self.seed, REFINEMENTS)
                list(thread_pool.map(advance, blocks) if self._in_threads(task) else map(advance, blocks))
                run.block = blocks.stop
                certificate = self._certificate(task, run, thread_pool) if run.block == task.n_blocks else None
                primal, dual, right = certificate or (np.nan, np.nan, None)
                converged = relative_gap(primal, dual) <= self.params.tol
                yield Step(run.epoch, primal, dual, run.largest(task), converged, run.state(), right=right)
                if converged:
                    return

    def partition(self, problem: Problem, size: int) -> Ints32:
        if self.code is None:
            return super().partition(problem, size)
        return balanced(participants(self.code, problem.y), size, "columns")

    def sharded(
        self, problem: Problem, exchange: Exchange, state: State | None = None, kind: ExchangeKind | None = None
    ) -> Iterator[Step]:
        problem = self.prepared(problem)
        own = np.flatnonzero(self.partition(problem, exchange.size) == exchange.rank).astype(np.int32)
        params = self.params.model_copy(update={"algorithm": "ascent"})
        if self.code is None:
            code = np.where(np.arange(problem.n_classes)[:, None] == own, 1, -1).astype(np.int8)
        else:
            code = np.ascontiguousarray(self.code[:, own])
        machine = OneVsRest(params, seed=self.seed, threads=self.threads).of_code(code)
        run = None if state is None else BlockRun.of_columns(machine._task(problem), state).state()
        n_blocks = -(-len(own) // binary.block_width(len(own), precision(params)))
        steps = (step for step in machine.train(problem, run) if Counters(*step.state["counters"]).block == n_blocks)

        def arrays(step: Step, epoch: int) -> State:
            found = step.state
            return Lazy(
                {
                    "own": lambda: own,
                    "W": lambda: np.concatenate(list(found["W"]), axis=1)[:, : len(own)],
                    "beta": lambda: np.concatenate(list(found["beta"]), axis=1)[:, : len(own)],
                    "epoch": lambda: np.array([epoch]),
                }
            )

        return together(steps, exchange, arrays)

    def part(self, problem: Problem, state: State) -> Part:
        prepared, own = self.prepared(problem), np.asarray(state["own"])
        _, features = arrange(prepared.X, precision(self.params))
        W = np.ascontiguousarray(state["W"][np.argsort(features), : len(own)])
        W[-1:] *= self._root(prepared)
        each = len(own) if self.code is None else np.count_nonzero(self.code[:, own], axis=1)[prepared.y]
        duals = share(np.count_nonzero(state["beta"][:, : len(own)]), float((filled(prepared) * each).sum()))
        return Part(np.sort(features), own, W, self.params.bias, duals)

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        """As for all machines, but each class takes its own multiple: they do not depend on each other.

        Newton's method goes on from the same weights, which are feasible at any C.
        """
        if self._newton(problem):
            return {
                "W": state["W"],
                "converged": np.zeros_like(state["converged"]),
                "counters": np.array([0, len(state["W"])]),
            }
        task = self._task(problem)
        run, last, most = BlockRun.begin(task), BlockRun.looking_at(state), np.inf if task.squared else ratio
        for block in range(task.n_blocks):
            W, beta, linear, square = last.W[block], last.beta[block], last.linear(block), last.squares(task, block)
            factors = np.array([best_multiple(*pair, most) for pair in zip(linear, square, strict=True)])
            factors[linear == 0] = 0.0
            run.W[block], run.beta[block], run.biases[block] = W * factors, beta * factors, last.biases[block] * factors
            if not task.squared:
                run.beta[block] = np.sign(beta) * snapped_to_bounds(np.abs(run.beta[block]), task.top[:, None])
            run.dual += float((factors * linear - 0.5 * factors**2 * square).sum())
        return run.state()

    @property
    def weight_bytes(self) -> int:
        return precision(self.params).itemsize

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        dtype = precision(self.params)
        n_columns = n_classes if self.code is None else self.code.shape[1]
        width = binary.block_width(n_columns, dtype)
        n_blocks = -(-n_columns // width)
        trained = (n_samples + n_features) * n_blocks * width * dtype.itemsize
        # gains and unchanged visits of examples; then either the gaps of a certificate or the weights of the model
        return (
            trained + 5 * n_samples * n_blocks + max(8 * n_samples * n_blocks, n_features * n_columns * dtype.itemsize)
        )

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        each = problem.n_classes if self.code is None else np.count_nonzero(self.code, axis=1)[problem.y]
        there = filled(problem)
        if self._newton(problem):
            signs = self._signs(problem)
            positive = (signs * (problem.X @ state["W"].T) < 1.0) & (signs != 0)
            return share(np.count_nonzero(positive[there]), float((there * each).sum()))
        return share(np.count_nonzero(state["beta"]), float((there * each).sum()))

    def fitted(self, problem: Problem, state: State) -> LinearModel:
        _, features = arrange(problem.X, precision(self.params))
        names = problem.classes if self.code is None else [str(t) for t in range(self.code.shape[1])]
        if self._newton(problem):
            W = state["W"].T[np.sort(features)].astype(precision(self.params))
            return LinearModel(names, problem.n_features, np.sort(features), W)
        order, W = np.argsort(features), np.empty((len(features), len(names)), state["W"].dtype)
        # block by block, so that there is no second copy of all weights
        for block, begin in zip(state["W"], range(0, len(names), state["W"].shape[2]), strict=True):
            W[:, begin : begin + block.shape[1]] = block[order, : len(names) - begin]
        W[-1:] *= self._root(problem)
        return LinearModel(names, problem.n_features, np.sort(features), W)

    def _newton(self, problem: Problem) -> bool:
        """Whether Newton's method is the one to take."""
        if self.params.loss == "hinge" or self.params.algorithm != "auto":
            return self.params.algorithm == "newton"
        n, d = problem.X.shape
        n_bytes = finite_newton.estimate_bytes(n, d, self._signs_width(problem))
        return d <= AUTO_FEATURES and n_bytes <= AUTO_BYTES and DenseLayout.suits(problem.X)

    def _newton_steps(self, problem: Problem, state: State | None) -> Iterator[Step]:
        costs = self.params.C * problem.weights
        for at in finite_newton.iterations(problem.X.toarray(), self._signs(problem), costs, state):
            dual = min(at.dual, at.primal)
            converged = relative_gap(at.primal, dual) <= self.params.tol
            yield Step(at.number, at.primal, dual, at.violation, converged, at.state)
            if converged or (at.number >= self.params.max_epochs and not np.isnan(dual)):
                return

    def _signs(self, problem: Problem) -> Ints8:
        table = 2 * np.eye(problem.n_classes, dtype=np.int8) - 1 if self.code is None else self.code
        return np.asarray(table[problem.y], np.int8)

    def _signs_width(self, problem: Problem) -> int:
        return problem.n_classes if self.code is None else int(self.code.shape[1])

    def _task(self, problem: Problem) -> BlockTask:
        return BlockTask.of(problem, self.params, self.params.loss == "squared_hinge", self.code)

    def _root(self, problem: Problem) -> float:
        """What the weights of the last feature, the constant one if there is one, are multiplied by for a model."""
        bounds = self.params.C * problem.weights
        return float(np.sqrt(share_of(problem.X, self.params.bias, bounds, problem.n_classes)))

    def _in_threads(self, task: BlockTask) -> bool:
        """Whether threads share the blocks: handing one over takes as long as a hundred visits."""
        return self.threads > 1 and task.n_blocks > 1

    def _certificate(
        self, task: BlockTask, run: BlockRun, thread_pool: ThreadPoolExecutor
    ) -> tuple[float, float, Bools | None] | None:
        run.dual += float(run.gain.sum())
        promising = float(run.gain[:, 0].sum()) <= PROMISING * self.params.tol * run.dual
        due = CERTIFY_SHARE * run.epoch >= 1 + run.certified or run.epoch == self.params.max_epochs
        if not (promising or due):
            return None
        run.certified += 1
        gaps, best = np.zeros((task.n_blocks, len(task.y))), Best(len(task.y))
        every = thread_pool.map if self._in_threads(task) else map
        parts = np.array(list(every(lambda block: run.certify(task, block, gaps[block], best), range(task.n_blocks))))
        losses, total, squares, of_dual, as_stored = parts.sum(axis=0)
        primal = float(0.5 * squares + losses + task.constant)
        dual = float(total - 0.5 * of_dual + task.constant)
        dual = bounded(primal, dual, task.rows.data.dtype)
        # what passes raise is above the dual where biases are multipliers
        run.dual = max(run.dual, dual - task.constant)
        run.unchanged[gaps > 0.1 * self.params.tol * primal / gaps.size] = 0
        return primal, dual, best.right(task, as_stored) if self.code is None else None
