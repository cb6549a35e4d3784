"""One binary machine a class against all others, trained for a block of classes at a time.

    minimise  1/2 sum_c |w_c|^2 + C sum_i sum_c max(0, 1 - s_ic w_c' x_i)^q,   s_ic = +1 if c = y_i else -1

with q = 1 (hinge) or q = 2 (squared hinge). The dual step is that of Hsieh et al. 2008, Algorithm 1, for up to 64
classes in the registers of the processor at once, so that one reading of an example serves all of them. Blocks do not
depend on each other: threads take them in turn, and the result does not depend on how many there are. The squared hinge
on few dense features is solved by Newton's method instead (``finite_newton``).

With an output code in place of "one against the rest" the same machine trains the columns of that code.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from solvers.core.base import Handles, State, Step, relative_gap
from solvers.core.dual_variables import best_multiple, filled, share, snapped_to_bounds
from solvers.core.linear_model import LinearModel
from solvers.core.machine import Machine
from solvers.core.problem import Problem
from solvers.linear import finite_newton
from solvers.linear.ascent import CERTIFY_SHARE, AscentParams, bounded, precision
from solvers.linear.layouts.layouts import DenseLayout
from solvers.linear.sharded.linear_shards import LinearShards, Part
from solvers.linear.steps import binary
from solvers.numerics.lazy_arrays import Lazy
from solvers.numerics.orders import awake
from solvers.numerics.rows import Rows, arrange, weights
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

        An epoch visits every awake example of a block, then ``REFINEMENTS`` times those that its last visit moved.
        """
        if self._newton(problem):
            yield from self._newton_steps(problem, state)
            return
        task = _Task.of(problem, self.params, self.code)
        run = _Run.begin(task) if state is None else _Run.resume(task, state)
        slice_blocks = max(self.threads, SLICE_PRODUCTS // max(1, len(task.rows.data) * task.width))
        with ThreadPoolExecutor(self.threads) as thread_pool:
            while run.epoch < self.params.max_epochs or run.block < task.n_blocks:
                if run.block == task.n_blocks:
                    run.epoch, run.block = run.epoch + 1, 0
                    run.gain[:] = 0.0
                blocks = range(run.block, min(run.block + slice_blocks, task.n_blocks))
                orders = self._orders(task, run.epoch)
                list(thread_pool.map(partial(run.advance, task, orders), blocks))
                run.block = blocks.stop
                certificate = self._certificate(task, run, thread_pool) if run.block == task.n_blocks else None
                primal, dual = certificate or (np.nan, np.nan)
                converged = relative_gap(primal, dual) <= self.params.tol
                yield Step(run.epoch, primal, dual, run.largest(task), converged, run.state())
                if converged:
                    return

    def partition(self, problem: Problem, size: int) -> NDArray[np.int32]:
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
        run = None if state is None else _Run.of_columns(_Task.of(problem, params, code), state).state()
        n_blocks = -(-len(own) // binary.block_width(len(own), precision(params)))
        steps = (step for step in machine.train(problem, run) if step.state["clock"][1] == n_blocks)

        def arrays(step: Step, epoch: int) -> State:
            found = step.state
            return Lazy(
                {
                    "own": lambda: own,
                    "W": lambda: np.concatenate(list(found["W"]), axis=1)[:, : len(own)],
                    "beta": lambda: np.concatenate(list(found["beta"]), axis=1)[:, : len(own)],
                    "clock": lambda: np.array([epoch]),
                }
            )

        return together(steps, exchange, arrays)

    def part(self, problem: Problem, state: State) -> Part:
        prepared, own = self.prepared(problem), np.asarray(state["own"])
        _, features = arrange(prepared.X, precision(self.params))
        W = np.ascontiguousarray(state["W"][np.argsort(features), : len(own)])
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
                "settled": np.zeros_like(state["settled"]),
                "clock": np.array([0, len(state["W"])]),
            }
        task = _Task.of(problem, self.params, self.code)
        run = _Run.begin(task)
        ridge, most = task.ridge.astype(np.float64), np.inf if task.squared else ratio
        for block in range(task.n_blocks):
            W, beta = state["W"][block], state["beta"][block]
            linear = np.abs(beta).sum(axis=0, dtype=np.float64)
            square = (W.astype(np.float64) ** 2).sum(axis=0) + ridge @ beta.astype(np.float64) ** 2
            factors = np.array([best_multiple(*pair, most) for pair in zip(linear, square, strict=True)])
            factors[linear == 0] = 0.0
            run.W[block], run.beta[block] = W * factors, beta * factors
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
        # gains and rests of examples; then either the gaps of a certificate or the weights of the model
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

    def _signs(self, problem: Problem) -> NDArray[np.int8]:
        table = 2 * np.eye(problem.n_classes, dtype=np.int8) - 1 if self.code is None else self.code
        return np.asarray(table[problem.y], np.int8)

    def _signs_width(self, problem: Problem) -> int:
        return problem.n_classes if self.code is None else int(self.code.shape[1])

    def _orders(self, task: "_Task", epoch: int) -> list[NDArray[np.int32]]:
        rng = np.random.default_rng([self.seed, epoch])
        return [rng.permutation(task.filled) for _ in range(1 + REFINEMENTS)]

    def _certificate(self, task: "_Task", run: "_Run", thread_pool: ThreadPoolExecutor) -> tuple[float, float] | None:
        run.dual += float(run.gain.sum())
        promising = float(run.gain[:, 0].sum()) <= PROMISING * self.params.tol * run.dual
        due = CERTIFY_SHARE * run.epoch >= 1 + run.certified or run.epoch == self.params.max_epochs
        if not (promising or due):
            return None
        run.certified += 1
        gaps = np.zeros((task.n_blocks, len(task.y)))
        parts = np.array(
            list(thread_pool.map(lambda block: run.certify(task, block, gaps[block]), range(task.n_blocks)))
        )
        losses, total, squares = parts.sum(axis=0)
        primal = float(0.5 * squares + losses + task.constant)
        dual = float(total - 0.5 * squares + task.constant)
        dual = bounded(primal, dual, task.rows.data.dtype)
        run.dual = dual - task.constant
        run.rest[gaps > 0.1 * self.params.tol * primal / gaps.size] = 0
        return primal, dual


@dataclass(frozen=True, eq=False)
class _Task:
    """What stays fixed while training."""

    rows: Rows
    y: NDArray[np.int32]
    bounds: NDArray[np.float64]
    filled: NDArray[np.int32]
    inverse: NDArray[Any]
    ridge: NDArray[Any]
    top: NDArray[Any]
    squared: bool
    code: Code | None
    n_columns: int
    width: int
    constant: float

    @classmethod
    def of(cls, problem: Problem, params: OneVsRestParams, code: Code | None) -> "_Task":
        dtype = precision(params)
        rows, _ = arrange(problem.X, dtype)
        bounds, squared = params.C * problem.weights, params.loss == "squared_hinge"
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
            binary.block_width(n_columns, dtype), constant,
        )  # fmt: skip

    @property
    def scale(self) -> float:
        """How large a dual variable may be expected to be: at its bound, or where one step from nothing leads."""
        return float(min(self.bounds.max(), self.inverse[self.filled].min(initial=np.inf)))

    @property
    def n_blocks(self) -> int:
        return -(-self.n_columns // self.width)

    def sides(self, block: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """The kind of each example, and the signs (n_kinds, width) of each kind in the columns of a block.

        One against the rest, the kinds are the classes of the block and one for all others.
        """
        begin = block * self.width
        n_valid = min(self.width, self.n_columns - begin)
        if self.code is None:
            kinds = self.y - np.int32(begin)
            kinds[(kinds < 0) | (kinds > n_valid)] = n_valid
            signs: NDArray[Any] = 2 * np.eye(n_valid + 1, n_valid) - 1
        else:
            kinds, signs = self.y, self.code[:, begin : begin + n_valid]
        table = np.zeros((len(signs), self.width), self.rows.data.dtype)
        table[:, :n_valid] = signs
        return kinds, table


@dataclass(eq=False)
class _Run:
    """What changes while training: the state of a step."""

    W: NDArray[Any]
    beta: NDArray[Any]
    gains: NDArray[np.float32]
    rest: NDArray[np.uint8]
    gain: NDArray[np.float64]
    epoch: int
    block: int
    certified: int
    dual: float

    @classmethod
    def begin(cls, task: _Task) -> "_Run":
        n, blocks, dtype = len(task.y), task.n_blocks, task.rows.data.dtype
        n_features = int(task.rows.indices.max(initial=0)) + 1
        W = weights(blocks * n_features, task.width, dtype).reshape(blocks, n_features, task.width)
        beta = weights(blocks * n, task.width, dtype).reshape(blocks, n, task.width)
        gains, rest = np.zeros((blocks, n), np.float32), np.zeros((blocks, n), np.uint8)
        return cls(W, beta, gains, rest, np.zeros((blocks, 2)), 0, blocks, 0, 0.0)

    @classmethod
    def resume(cls, task: _Task, state: State) -> "_Run":
        run = cls.begin(task)
        for name in ("W", "beta", "gains", "rest", "gain"):
            getattr(run, name)[:] = state[name]
        run.epoch, run.block, run.certified = (int(value) for value in state["clock"])
        run.dual = float(state["dual"])
        return run

    @classmethod
    def of_columns(cls, task: _Task, state: State) -> "_Run":
        """From weights and dual variables with a column a class; no example rests."""
        run = cls.begin(task)
        run.epoch = int(state["clock"][0])
        run.certified = int(CERTIFY_SHARE * run.epoch)
        for block in range(task.n_blocks):
            classes = slice(block * task.width, min((block + 1) * task.width, task.n_columns))
            n = classes.stop - classes.start
            run.W[block, :, :n], run.beta[block, :, :n] = state["W"][:, classes], state["beta"][:, classes]
        beta = run.beta.astype(np.float64)
        squares = float((run.W.astype(np.float64) ** 2).sum() + (task.ridge[:, None] * beta**2).sum())
        run.dual = float(np.abs(beta).sum()) - 0.5 * squares
        return run

    def state(self) -> dict[str, NDArray[Any]]:
        return {
            "W": self.W,
            "beta": self.beta,
            "gains": self.gains,
            "rest": self.rest,
            "gain": self.gain,
            "clock": np.array([self.epoch, self.block, self.certified]),
            "dual": np.array(self.dual),
        }

    def advance(self, task: _Task, orders: list[NDArray[np.int32]], block: int) -> None:
        """One epoch of one block."""
        gains, rest = self.gains[block], self.rest[block]
        # a move below the precision of the numbers themselves is none
        trifle = float(np.finfo(task.rows.data.dtype).eps * task.scale) ** 2
        kinds, signs = task.sides(block)
        fixed = (task.rows, kinds, signs, task.inverse, task.ridge, task.top)
        W, beta = self.W[block], self.beta[block]
        order = awake(orders[0], rest, self.epoch)
        order = order[(signs != 0).any(axis=1)[kinds[order]]]
        self.gain[block, 0] = binary.visit(*fixed, order, trifle, W, beta, gains)
        moved = gains[order] > 0
        rest[order] = np.where(moved, 0, np.minimum(rest[order], 254) + 1)
        for later in orders[1:]:
            live = later[gains[later] > 0]
            self.gain[block, 1] += binary.visit(*fixed, live, trifle, W, beta, gains)

    def largest(self, task: _Task) -> float:
        """The largest move of the last visits times the curvature: how far an example is from its optimum."""
        curvature = np.divide(1.0, task.inverse, out=np.zeros_like(task.inverse), where=task.inverse > 0)
        return float(np.sqrt(2.0 * self.gains.max(axis=0) * curvature).max())

    def certify(self, task: _Task, block: int, gaps: NDArray[np.float64]) -> tuple[float, float, float]:
        """Losses, dual without norm and squared norm of one block, whose W is made afresh."""
        W, beta = self.W[block], self.beta[block]
        squares = binary.rebuild(task.rows, W, beta)
        losses, total = binary.certify(task.rows, *task.sides(block), task.bounds, task.squared, W, beta, gaps)
        return losses, total, squares
