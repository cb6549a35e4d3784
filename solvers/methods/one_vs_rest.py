"""One binary machine a class against all others, trained for a block of classes at a time.

    minimise  1/2 sum_c |w_c|^2 + C sum_i sum_c max(0, 1 - s_ic w_c' x_i)^q,   s_ic = +1 if c = y_i else -1

with q = 1 (hinge) or q = 2 (squared hinge). The dual step is that of Hsieh et al. 2008, Algorithm 1, for up to 64
classes in the registers of the processor at once, so that one reading of an example serves all of them. Blocks do not
depend on each other: threads take them in turn, and the result does not depend on how many there are. The squared hinge
on few dense features is solved by Newton's method instead (``finite_newton``). The weights of a constant feature are
multipliers, which take a step before every pass (:mod:`solvers.linear.layouts.layouts`).

With an output code in place of "one against the rest" the same machine trains the columns of that code.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field, ValidationInfo, field_validator

from solvers.core.base import Handles, State, Step, relative_gap
from solvers.core.certain_answers import Reach, reach_of_classes
from solvers.core.certified_ascent import Certificate, ascend, bounded, is_due
from solvers.core.dual_variables import best_multiple, filled, share, snapped_to_bounds
from solvers.core.linear_model import LinearModel
from solvers.core.machine import Machine
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.linear import finite_newton
from solvers.linear.binary_blocks import Best, BlockRun, BlockTask
from solvers.linear.driver.params import AscentParams, precision
from solvers.linear.layouts.layouts import DenseLayout, share_of
from solvers.linear.steps import binary
from solvers.numerics.array_types import Bools, Floats, Ints, Ints8
from solvers.numerics.rows import features_by_frequency
from solvers.output_codes.codes import Code, participants

AUTO_FEATURES, AUTO_BYTES = 512, 2 << 30
REFINEMENTS = 4
PROMISING = 0.3
SLICE_PRODUCTS = 1 << 31


class OneVsRestParams(AscentParams):
    """Parameters of :class:`OneVsRest`."""

    loss: Literal["hinge", "squared_hinge"] = Field(default="hinge", description="Loss of each binary machine.")
    algorithm: Literal["auto", "ascent", "newton"] = Field(
        default="auto",
        description="Dual ascent, or Newton's method on the primal (squared hinge only); auto selects Newton "
        f"for dense rows of up to {AUTO_FEATURES} features.",
    )

    @field_validator("algorithm")
    @classmethod
    def _newton_is_for_the_squared_hinge(cls, algorithm: str, given: ValidationInfo) -> str:
        if algorithm == "newton" and given.data.get("loss") == "hinge":
            raise ValueError("newton needs loss squared_hinge: the hinge has no second derivative")
        return algorithm


class OneVsRest(Machine[OneVsRestParams]):
    """One linear SVM a class against the rest; the highest score wins."""

    name = "one_vs_rest"
    title = "One-vs-rest SVM"
    formula = r"\tfrac12 \sum_c \|w_c\|^2 + C \sum_i \sum_c (1 - s_{ic} w_c^\top x_i)_+^q"
    paper = "Hsieh et al. 2008; Rifkin and Klautau 2004"
    handles = Handles(flat=True, shards=True)
    Params = OneVsRestParams
    shards = "solvers.linear.sharded.one_vs_rest_shards:OneVsRestShards"
    lead = 2.0
    trains_columns = True
    bounds_answers = True
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

    def examples_of_columns(self, problem: Problem) -> Ints | None:
        """How many examples each column of the code is trained on; None where columns are classes."""
        return None if self.code is None else participants(self.code, problem.y)

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        """Train; memory is a float an example and column for the dual variables beside the weights.

        An epoch visits every active example of a block, then ``REFINEMENTS`` times those that its last visit moved.
        """
        if self._newton(problem):
            yield from self._newton_steps(problem, state)
            return
        task = self.task(problem)
        run = BlockRun.begin(task) if state is None else BlockRun.resume(task, state)
        with ThreadPoolExecutor(self.threads) as thread_pool:
            every = thread_pool.map if self.threads > 1 and task.n_blocks > 1 else map
            yield from ascend(_Training(self, task, run, every), self.params.tol)

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
        task = self.task(problem)
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

    def reach(self, problem: Problem, state: State, model: Model, primal: float, dual: float) -> Reach | None:
        """Each class has its own gap, as the machines do not depend on each other."""
        found = self.bounds_of_classes(problem, state)
        if found is None:
            return None
        problem, (P, D), apart = self.prepared(problem), found, None
        if not self._newton(problem):
            task, run = self.task(problem), BlockRun.looking_at(state)
            apart = _by_column(task, lambda block: run.apart(task, block))
        return reach_of_classes(model, P - D, P, apart, self.params.bias)

    def multiple(self, problem: Problem, state: State) -> float | None:
        """Every certificate makes W of the dual variables, but for biases that are multipliers."""
        problem = self.prepared(problem)
        return None if self._newton(problem) or self._share(problem) < 1.0 else 1.0

    def bounds_of_classes(self, problem: Problem, state: State) -> tuple[Floats, Floats] | None:
        if self.code is not None:
            return None
        problem = self.prepared(problem)
        if self._newton(problem):
            costs = self.params.C * problem.weights
            return finite_newton.column_bounds(problem.X.toarray(), self._signs(problem), costs, state["W"])
        task, run = self.task(problem), BlockRun.looking_at(state)
        dual = _by_column(task, lambda block: run.linear(block) - 0.5 * run.squares(task, block))
        gaps = _by_column(task, lambda block: run.column_gaps[block] + 0.5 * run.apart(task, block) ** 2)
        return dual + np.maximum(0.0, gaps), dual

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
        features = features_by_frequency(problem.X)
        names = problem.classes if self.code is None else [str(t) for t in range(self.code.shape[1])]
        if self._newton(problem):
            W = state["W"].T[np.sort(features)].astype(precision(self.params))
            return LinearModel(names, problem.n_features, np.sort(features), W)
        order, W = np.argsort(features), np.empty((len(features), len(names)), state["W"].dtype)
        # block by block, so that there is no second copy of all weights
        for block, begin in zip(state["W"], range(0, len(names), state["W"].shape[2]), strict=True):
            W[:, begin : begin + block.shape[1]] = block[order, : len(names) - begin]
        W[-1:] *= self.root(problem)
        return LinearModel(names, problem.n_features, np.sort(features), W)

    def largest_weights(self, problem: Problem, state: State, share: float) -> SparseLinearModel | None:
        """The fitted model without weights below ``share`` of the largest of their column.

        The last feature, a constant, keeps its weights, and takes over what the others contribute in the mean over the
        rows. It is made block by block, so that there is never a second copy of all weights. None where half of them
        would be left, or where Newton's method has trained them.
        """
        if self._newton(problem):
            return None
        features = features_by_frequency(problem.X)
        n_columns, last = self._signs_width(problem), len(features) - 1
        order, root = np.argsort(features), self.root(problem)
        mean = np.asarray(problem.X.mean(axis=0), state["W"].dtype).ravel()[np.sort(features)]

        def blocks() -> Iterator[tuple[int, Floats, Bools]]:
            for block, begin in zip(state["W"], range(0, n_columns, state["W"].shape[2]), strict=True):
                weights = block[order, : n_columns - begin]
                weights[-1] *= root
                sizes = np.abs(weights)
                kept = (sizes >= share * sizes[:last].max(axis=0, initial=0.0)) & (sizes > 0)
                kept[-1] = True
                weights[-1] += mean[:last] @ np.where(kept[:last], 0, weights[:last]) / mean[last]
                yield begin, weights, kept

        counts = np.zeros(len(features), np.int64)
        for _, _, kept in blocks():
            counts += np.count_nonzero(kept, axis=1)
        n_kept = int(counts.sum())
        if 2 * n_kept >= len(features) * n_columns:
            return None
        indices, data = np.empty(n_kept, np.int32), np.empty(n_kept, state["W"].dtype)
        # where the next weight of each feature goes
        place = np.cumsum(counts) - counts
        for begin, weights, kept in blocks():
            row, column = np.nonzero(kept)
            here = np.count_nonzero(kept, axis=1)
            at = np.arange(len(row)) + (place - (np.cumsum(here) - here))[row]
            indices[at], data[at] = column + begin, weights[row, column]
            place += here
        begins = np.zeros(problem.n_features + 1, np.int64)
        begins[np.sort(features) + 1] = counts
        whole = sp.csr_matrix((data, indices, np.cumsum(begins)), shape=(problem.n_features, n_columns))
        return SparseLinearModel([str(column) for column in range(n_columns)], whole)

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

    def task(self, problem: Problem) -> BlockTask:
        """What stays fixed while the columns are trained."""
        return BlockTask.from_problem(problem, self.params, self.params.loss == "squared_hinge", self.code)

    def root(self, problem: Problem) -> float:
        """What the weights of the last feature, the constant one if there is one, are multiplied by for a model."""
        return math.sqrt(self._share(problem))

    def _share(self, problem: Problem) -> float:
        """Of the biases, what is made of the dual variables; the rest are multipliers."""
        bounds = self.params.C * problem.weights
        return float(share_of(problem.X, self.params.bias, bounds, problem.n_classes))


class _Training:
    """The ascent on one problem; ``every`` maps over blocks, in threads where there are several."""

    def __init__(self, method: OneVsRest, task: BlockTask, run: BlockRun, every: Callable[..., Iterable[Any]]) -> None:
        self.params, self.seed, self.task, self.run, self.every = method.params, method.seed, task, run, every
        self.slice_blocks = max(method.threads, SLICE_PRODUCTS // max(1, len(task.rows.data) * task.width))

    @property
    def epoch(self) -> int:
        return self.run.epoch

    @property
    def max_epochs(self) -> int:
        return self.params.max_epochs

    @property
    def epoch_over(self) -> bool:
        return self.run.block == self.task.n_blocks

    def begin_epoch(self) -> None:
        self.run.epoch, self.run.block = self.run.epoch + 1, 0
        self.run.gain[:] = 0.0

    def advance(self) -> None:
        blocks = range(self.run.block, min(self.run.block + self.slice_blocks, self.task.n_blocks))
        list(self.every(partial(self.run.advance, self.task, self.seed, REFINEMENTS), blocks))
        self.run.block = blocks.stop

    def certifies(self) -> bool:
        self.run.dual += float(self.run.gain.sum())
        promising = float(self.run.gain[:, 0].sum()) <= PROMISING * self.params.tol * self.run.dual
        return promising or is_due(self.epoch, self.max_epochs, self.run.certified)

    def certify(self) -> Certificate:
        task, run = self.task, self.run
        run.certified += 1
        self.gaps, best = np.zeros((task.n_blocks, len(task.y))), Best(len(task.y))
        certify = partial(_certify_block, task, run, self.gaps, best)
        losses, total, squares, of_dual, as_stored = np.array(list(self.every(certify, range(task.n_blocks)))).sum(
            axis=0
        )
        primal = float(0.5 * squares + losses + task.constant)
        dual = bounded(primal, float(total - 0.5 * of_dual + task.constant), task.rows.data.dtype)
        # what passes raise is above the dual where biases are multipliers
        run.dual = max(run.dual, dual - task.constant)
        return Certificate(primal, dual, best.right(task, as_stored) if task.code is None else None)

    def learn(self, primal: float, gap: float) -> None:
        self.run.unchanged[self.gaps > 0.1 * self.params.tol * primal / self.gaps.size] = 0

    def step(self, primal: float, dual: float, *, converged: bool, right: Bools | None = None) -> Step:
        run = self.run
        return Step(run.epoch, primal, dual, run.largest(self.task), converged, run.state(), right=right)


def _by_column(task: BlockTask, of_block: Callable[[int], Floats]) -> Floats:
    """What each block has for its columns, shape (width,), of all columns."""
    return np.concatenate([of_block(block) for block in range(task.n_blocks)])[: task.n_columns]


def _certify_block(task: BlockTask, run: BlockRun, gaps: Floats, best: Best, block: int) -> Any:
    return run.certify(task, block, gaps[block], best)
