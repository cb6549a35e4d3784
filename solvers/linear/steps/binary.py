"""Steps of binary machines for a block of columns at once, held in registers from the scores to the update.

A column splits the classes into two sides: t_c = +1 or -1 by the example's class, or 0 where it is left out. The
signed variables beta_ic = t_ic alpha_ic make w_c = sum_i beta_ic x_i, and the best beta_c is
clip(beta_c + (t_c - f_c - ridge beta_c) / (|x|^2 + ridge)) between 0 and t_c top; columns do not depend on each other.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import ALIGNMENT, Rows
from solvers.numerics.simd import prefetch

_I32, _I64 = ir.IntType(32), ir.IntType(64)
AHEAD = 4


def _step_of(vectors: int) -> Any:
    """The step for blocks of so many vectors; unrolled, so that nothing leaves the registers."""

    @intrinsic
    def step(
        typing: Any, W: Any, indices: Any, data: Any, begin: Any, end: Any, beta: Any, signs: Any, inverse: Any,
        ridge: Any, top: Any, trifle: Any,
    ) -> Any:  # fmt: skip
        """Move beta, and W if the squared moves sum to more than trifle; returns that sum."""
        number = W.dtype
        signature = number(W, indices, data, types.int64, types.int64, beta, signs, number, number, number, number)
        real, lanes = (ir.FloatType(), 16) if number == types.float32 else (ir.DoubleType(), 8)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector, integers = ir.VectorType(real, lanes), ir.VectorType(_I32, lanes)
            arrays = (0, 1, 2, 5, 6)
            pointers = [context.make_array(signature.args[at])(context, builder, args[at]).data for at in arrays]
            cells, indices, data, beta, signs = pointers
            begin, end = args[3], args[4]
            inverse, ridge, top, trifle = args[7:]
            name = f"llvm.fmuladd.v{lanes}f{32 if lanes == 16 else 64}"
            fused = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), name)

            def splat(value: Any) -> Any:
                blank = ir.Constant(vector, ir.Undefined)
                first = builder.insert_element(blank, value, ir.Constant(_I32, 0))
                return builder.shuffle_vector(first, blank, ir.Constant(integers, [0] * lanes))

            def place(pointer: Any, offset: Any, block: int) -> Any:
                at = builder.add(offset, ir.Constant(_I64, lanes * block))
                return builder.bitcast(builder.gep(pointer, [at]), vector.as_pointer())

            def load(pointer: Any) -> Any:
                value = builder.load(pointer)
                value.align = 64 // lanes
                return value

            def over_rows(start: list[Any], body: Any) -> list[Any]:
                before = builder.block
                head, inside, done = (builder.append_basic_block(part) for part in ("head", "inside", "done"))
                builder.branch(head)
                builder.position_at_end(head)
                p = builder.phi(_I64)
                p.add_incoming(begin, before)
                carried = [builder.phi(vector) for _ in start]
                for phi, value in zip(carried, start, strict=True):
                    phi.add_incoming(value, before)
                builder.cbranch(builder.icmp_signed("<", p, end), inside, done)
                builder.position_at_end(inside)
                index = builder.zext(builder.load(builder.gep(indices, [p])), _I64)
                offset = builder.mul(index, ir.Constant(_I64, lanes * vectors))
                x = splat(builder.load(builder.gep(data, [p])))
                for phi, value in zip(carried, body(offset, x, carried), strict=True):
                    phi.add_incoming(value, builder.block)
                p.add_incoming(builder.add(p, ir.Constant(_I64, 1)), builder.block)
                builder.branch(head)
                builder.position_at_end(done)
                return carried

            def constant(value: float) -> Any:
                return ir.Constant(vector, [value] * lanes)

            zero = constant(0.0)
            scores = over_rows(
                [zero] * vectors,
                lambda offset, x, sums: [
                    builder.call(fused, [x, load(place(cells, offset, block)), sums[block]]) for block in range(vectors)
                ],
            )
            tops, ridges, inverses = splat(top), splat(ridge), splat(inverse)
            new, moves, squares = [], [], zero
            for block in range(vectors):
                target = load(place(signs, ir.Constant(_I64, 0), block))
                # infinite tops times a sign of zero would be no number
                positive, negative = (builder.fcmp_ordered(sense, target, zero) for sense in (">", "<"))
                lowest = builder.select(negative, builder.fsub(zero, tops), zero)
                highest = builder.select(positive, tops, zero)
                old = load(place(beta, ir.Constant(_I64, 0), block))
                slope = builder.fsub(builder.fsub(target, scores[block]), builder.fmul(old, ridges))
                value = builder.call(fused, [slope, inverses, old])
                value = builder.select(builder.fcmp_ordered(">", value, lowest), value, lowest)
                value = builder.select(builder.fcmp_ordered("<", value, highest), value, highest)
                move = builder.fsub(value, old)
                new.append(value)
                moves.append(move)
                squares = builder.call(fused, [move, move, squares])
            shift = lanes // 2
            while shift:
                turn = ir.Constant(integers, [(lane + shift) % lanes for lane in range(lanes)])
                squares = builder.fadd(squares, builder.shuffle_vector(squares, squares, turn))
                shift //= 2
            moved = builder.extract_element(squares, ir.Constant(_I32, 0))
            with builder.if_then(builder.fcmp_ordered(">", moved, trifle)):
                for block in range(vectors):
                    at = place(beta, ir.Constant(_I64, 0), block)
                    builder.store(new[block], at, align=64 // lanes)

                def add(offset: Any, x: Any, _: Any) -> list[Any]:
                    for block in range(vectors):
                        at = place(cells, offset, block)
                        builder.store(builder.call(fused, [x, moves[block], load(at)]), at, align=64 // lanes)
                    return []

                over_rows([], add)
            return moved

        return signature, codegen

    return step


_step1, _step2, _step4 = _step_of(1), _step_of(2), _step_of(4)


def block_width(n_columns: int, dtype: np.dtype[Any]) -> int:
    """Columns of one block: one, two or four vectors."""
    lanes = ALIGNMENT // dtype.itemsize
    return lanes * (1 if n_columns <= lanes else 2 if n_columns <= 2 * lanes else 4)


@njit(cache=True, nogil=True)
def visit(
    rows: Rows,
    kinds: NDArray[np.int32],
    signs: NDArray[Any],
    inverse: NDArray[Any],
    ridge: NDArray[Any],
    top: NDArray[Any],
    order: NDArray[np.int32],
    trifle: float,
    W: NDArray[Any],
    beta: NDArray[Any],
    gains: NDArray[np.float32],
) -> float:
    """Exact steps on the examples of order for one block of columns; W (n_features, width), beta (n_samples, width).

    Row ``kinds[i]`` of ``signs`` (n_kinds, width) says on which side of each column the example stands. Returns the
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
        if vectors == 1:
            moved = _step1(
                W, indices, data, low, high, beta[i], signs[kinds[i]], inverse[i], ridge[i], top[i], small
            )  # fmt: skip
        elif vectors == 2:
            moved = _step2(
                W, indices, data, low, high, beta[i], signs[kinds[i]], inverse[i], ridge[i], top[i], small
            )  # fmt: skip
        else:
            moved = _step4(
                W, indices, data, low, high, beta[i], signs[kinds[i]], inverse[i], ridge[i], top[i], small
            )  # fmt: skip
        gains[i] = 0.0
        if moved > small:
            gains[i] = 0.5 * moved / inverse[i]
            total += gains[i]
    return total


@njit(cache=True, nogil=True)
def certify(
    rows: Rows,
    kinds: NDArray[np.int32],
    signs: NDArray[Any],
    bounds: NDArray[np.float64],
    squared: bool,
    W: NDArray[Any],
    beta: NDArray[Any],
    gaps: NDArray[np.float64],
) -> tuple[float, float]:
    """Of one block: weighted losses, and the dual objective without its norm; adds each example's gap to gaps."""
    f = np.zeros(W.shape[1], W.dtype)
    losses, total = 0.0, 0.0
    for i in range(kinds.shape[0]):
        low, high = rows.indptr[i], rows.indptr[i + 1]
        if low == high:
            continue
        sum_rows(W, rows.indices, rows.data, low, high, f)
        side = signs[kinds[i]]
        C, loss, dual, inner = bounds[i], 0.0, 0.0, 0.0
        for c in range(f.shape[0]):
            if side[c] == 0:
                continue
            score, alpha = np.float64(side[c] * f[c]), abs(np.float64(beta[i, c]))
            margin = max(1.0 - score, 0.0)
            loss += margin * margin if squared else margin
            dual += alpha - (0.25 / C * alpha * alpha if squared else 0.0)
            inner += alpha * score
        gaps[i] += C * loss + inner - dual
        losses += C * loss
        total += dual
    return losses, total


@njit(cache=True, nogil=True)
def rebuild(rows: Rows, W: NDArray[Any], beta: NDArray[Any]) -> float:
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
