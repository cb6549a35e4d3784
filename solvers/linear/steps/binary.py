"""Steps of binary machines for a block of columns at once, held in registers from the scores to the update.

A column splits the classes into two sides: t_c = +1 or -1 by the example's class, or 0 where it is left out. The
signed variables beta_ic = t_ic alpha_ic make w_c = sum_i beta_ic x_i, and the best beta_c is
clip(beta_c + (t_c - f_c - ridge beta_c) / (|x|^2 + ridge)) between 0 and t_c top; columns do not depend on each other.

The step of binary machines on one example, as LLVM IR: nothing leaves the registers from the scores to the update.

The step itself is that of :mod:`solvers.linear.steps.binary`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from solvers.numerics.array_types import Array, Floats, Floats32, Ints32
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import ALIGNMENT, Rows
from solvers.numerics.simd import prefetch
from solvers.numerics.vectors import I32, I64, load, multiply_add, splat, store, turned, vector_of, zeros


class _Columns:
    """The columns of one example, ``vectors`` registers wide, in a function that is being built."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any, vectors: int) -> None:
        self.builder, self.vectors, self.begin, self.end = builder, vectors, args[3], args[4]
        self.W, self.indices, self.data, self.beta, self.signs = (
            context.make_array(signature.args[at])(context, builder, args[at]).data for at in (0, 1, 2, 5, 6)
        )
        self.vector = vector_of(signature.args[0])

    def moves(self, inverse: Any, ridge: Any, top: Any) -> tuple[list[Any], list[Any], Any]:
        """By vector the new variables and by how much they move; and the squared moves, summed lane by lane."""
        builder, zero = self.builder, zeros(self.vector)
        scores = self._over_rows([zero] * self.vectors, self._add_products)
        tops, ridges, inverses = (splat(builder, value, self.vector) for value in (top, ridge, inverse))
        new, moves, squares = [], [], zero
        for block, score in enumerate(scores):
            target = load(builder, self.signs, self._at(ir.Constant(I64, 0), block), self.vector)
            # infinite tops times a sign of zero would be no number
            positive, negative = (builder.fcmp_ordered(sense, target, zero) for sense in (">", "<"))
            lowest = builder.select(negative, builder.fsub(zero, tops), zero)
            highest = builder.select(positive, tops, zero)
            old = load(builder, self.beta, self._at(ir.Constant(I64, 0), block), self.vector)
            slope = builder.fsub(builder.fsub(target, score), builder.fmul(old, ridges))
            value = multiply_add(builder, slope, inverses, old)
            value = builder.select(builder.fcmp_ordered(">", value, lowest), value, lowest)
            value = builder.select(builder.fcmp_ordered("<", value, highest), value, highest)
            new.append(value)
            moves.append(builder.fsub(value, old))
            squares = multiply_add(builder, moves[-1], moves[-1], squares)
        return new, moves, squares

    def total(self, squares: Any) -> Any:
        """The sum of a vector's lanes, by halves."""
        shift = self.vector.count // 2
        while shift:
            squares = self.builder.fadd(squares, turned(self.builder, squares, shift))
            shift //= 2
        return self.builder.extract_element(squares, ir.Constant(I32, 0))

    def write(self, new: list[Any], moves: list[Any]) -> None:
        """Store the new variables, and add the moves times the example to W."""
        for block, value in enumerate(new):
            store(self.builder, value, self.beta, self._at(ir.Constant(I64, 0), block))

        def add(offset: Any, x: Any, _: Any) -> list[Any]:
            for block, move in enumerate(moves):
                at = self._at(offset, block)
                moved = multiply_add(self.builder, x, move, load(self.builder, self.W, at, self.vector))
                store(self.builder, moved, self.W, at)
            return []

        self._over_rows([], add)

    def _add_products(self, offset: Any, x: Any, sums: list[Any]) -> list[Any]:
        rows = [load(self.builder, self.W, self._at(offset, block), self.vector) for block in range(self.vectors)]
        return [multiply_add(self.builder, x, row, total) for row, total in zip(rows, sums, strict=True)]

    def _over_rows(self, start: list[Any], body: Callable[[Any, Any, list[Any]], list[Any]]) -> list[Any]:
        """A loop over the example's entries that carries vectors; body takes where the row of W is, the entry, them."""
        builder, before = self.builder, self.builder.block
        head, inside, done = (builder.append_basic_block(part) for part in ("head", "inside", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        p = builder.phi(I64)
        p.add_incoming(self.begin, before)
        carried = [builder.phi(self.vector) for _ in start]
        for phi, value in zip(carried, start, strict=True):
            phi.add_incoming(value, before)
        builder.cbranch(builder.icmp_signed("<", p, self.end), inside, done)
        builder.position_at_end(inside)
        index = builder.zext(builder.load(builder.gep(self.indices, [p])), I64)
        offset = builder.mul(index, ir.Constant(I64, self.vector.count * self.vectors))
        x = splat(builder, builder.load(builder.gep(self.data, [p])), self.vector)
        for phi, value in zip(carried, body(offset, x, carried), strict=True):
            phi.add_incoming(value, builder.block)
        p.add_incoming(builder.add(p, ir.Constant(I64, 1)), builder.block)
        builder.branch(head)
        builder.position_at_end(done)
        return carried

    def _at(self, offset: Any, block: int) -> Any:
        return self.builder.add(offset, ir.Constant(I64, self.vector.count * block))


def _step_of(vectors: int) -> Any:
    """The step for blocks of so many vectors, unrolled."""

    @intrinsic
    def step(
        typing: Any, W: Any, indices: Any, data: Any, begin: Any, end: Any, beta: Any, signs: Any, inverse: Any,
        ridge: Any, top: Any, trifle: Any,
    ) -> Any:  # fmt: skip
        """Move beta, and W if the squared moves sum to more than trifle; returns that sum."""
        number = W.dtype
        signature = number(W, indices, data, types.int64, types.int64, beta, signs, number, number, number, number)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            columns = _Columns(context, builder, signature, args, vectors)
            new, moves, squares = columns.moves(*args[7:10])
            moved = columns.total(squares)
            with builder.if_then(builder.fcmp_ordered(">", moved, args[10])):
                columns.write(new, moves)
            return moved

        return signature, codegen

    return step


step1, step2, step4 = _step_of(1), _step_of(2), _step_of(4)


AHEAD = 4


def block_width(n_columns: int, dtype: np.dtype[Any]) -> int:
    """Columns of one block: one, two or four vectors."""
    lanes = ALIGNMENT // dtype.itemsize
    return lanes * (1 if n_columns <= lanes else 2 if n_columns <= 2 * lanes else 4)


@njit(cache=True, nogil=True)
def visit(
    rows: Rows,
    kinds: Ints32,
    signs: Array,
    inverse: Array,
    ridge: Array,
    top: Array,
    order: Ints32,
    trifle: float,
    W: Array,
    beta: Array,
    gains: Floats32,
) -> float:
    """Exact steps on the examples of order for one block of columns; W (n_features, width), beta (n_samples, width).

    Row ``kinds[i]`` of ``signs`` (n_kinds, width) says on which side of each column the example is. Returns the
    least that the dual has gained.
    """
    indptr, indices, data = rows.indptr, rows.indices, rows.data
    vectors = W.shape[1] * W.itemsize // ALIGNMENT
    cells, width = W.reshape(-1), W.shape[1]
    spot = beta.reshape(-1)
    small, total = W.dtype.type(trifle), 0.0
    for at in range(order.shape[0]):
        if at + AHEAD < order.shape[0]:
            i = order[at + AHEAD]
            for p in range(indptr[i], indptr[i + 1], 16):
                prefetch(indices, p)
                prefetch(data, p)
            for c in range(0, width, ALIGNMENT // W.itemsize):
                prefetch(spot, np.int64(i) * width + c)
        if at + 2 < order.shape[0]:
            i = order[at + 2]
            for p in range(indptr[i], indptr[i + 1]):
                for c in range(0, width, ALIGNMENT // W.itemsize):
                    prefetch(cells, np.int64(indices[p]) * width + c)
        i = order[at]
        low, high = indptr[i], indptr[i + 1]
        one, side = beta[i], signs[kinds[i]]
        if vectors == 1:
            moved = step1(W, indices, data, low, high, one, side, inverse[i], ridge[i], top[i], small)
        elif vectors == 2:
            moved = step2(W, indices, data, low, high, one, side, inverse[i], ridge[i], top[i], small)
        else:
            moved = step4(W, indices, data, low, high, one, side, inverse[i], ridge[i], top[i], small)
        gains[i] = 0.0
        if moved > small:
            gains[i] = 0.5 * moved / inverse[i]
            total += gains[i]
    return total


@njit(cache=True, nogil=True)
def certify(
    rows: Rows, kinds: Ints32, signs: Array, bounds: Floats, squared: bool, W: Array, beta: Array, gaps: Floats,
    column_gaps: Floats, best: Array
) -> tuple[float, float]:  # fmt: skip
    """Of one block: weighted losses, and the dual objective without its norm; adds each example's gap to gaps.

    The gap of each column over all examples is added to ``column_gaps``.
    ``best[i]`` are the highest scores of example i on the two sides, -1 and +1; minus infinity where there is none.
    """
    f = np.zeros(W.shape[1], W.dtype)
    losses, total = 0.0, 0.0
    for i in range(kinds.shape[0]):
        low, high = rows.indptr[i], rows.indptr[i + 1]
        if low == high:
            continue
        sum_rows(W, rows.indices, rows.data, low, high, f)
        side = signs[kinds[i]]
        C, loss, dual, inner = bounds[i], 0.0, 0.0, 0.0
        other = own = -np.inf
        for c in range(f.shape[0]):
            if side[c] == 0:
                continue
            if side[c] > 0:
                own = max(own, np.float64(f[c]))
            else:
                other = max(other, np.float64(f[c]))
            score, alpha = np.float64(side[c] * f[c]), abs(np.float64(beta[i, c]))
            margin = max(1.0 - score, 0.0)
            of_margin = margin * margin if squared else margin
            of_alpha = alpha - (0.25 / C * alpha * alpha if squared else 0.0)
            loss += of_margin
            dual += of_alpha
            inner += alpha * score
            column_gaps[c] += C * of_margin + alpha * score - of_alpha
        gaps[i] += C * loss + inner - dual
        best[i, 0], best[i, 1] = other, own
        losses += C * loss
        total += dual
    return losses, total


@njit(cache=True, nogil=True)
def rebuild(rows: Rows, W: Array, beta: Array) -> float:
    """W of one block afresh from beta, free of the rounding of many small updates; returns the sum of its squares."""
    W[:] = 0
    for i in range(beta.shape[0]):
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            w, x = W[rows.indices[p]], rows.data[p]
            for c in range(w.shape[0]):
                w[c] += x * beta[i, c]
    total = 0.0
    for j in range(W.shape[0]):
        part = 0.0
        for c in range(W.shape[1]):
            part += np.float64(W[j, c]) * np.float64(W[j, c])
        total += part
    return total
