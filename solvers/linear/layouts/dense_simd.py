"""Products of dense rows with weights that are kept one row a class, written as LLVM IR.

Rows are C-contiguous and padded with zeros to whole vectors of one cache line.
"""

from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from solvers.numerics.array_types import Array, Floats
from solvers.numerics.vectors import I32, I64, load, multiply_add, splat, store, vector_of, zeros

TOGETHER = 4


class DenseRows(NamedTuple):
    """The rows of X padded to whole vectors, and their squared norms."""

    data: Array
    squares: Floats


@intrinsic
def dot(typing: Any, W: Any, c: Any, X: Any, i: Any) -> Any:
    """The inner product of W[c] and X[i]."""
    signature = W.dtype(W, types.int64, X, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        w, x, width, vector = _rows_of(context, builder, signature, args)
        return _sum(builder, _products(builder, [w], x, width, vector)[0])

    return signature, codegen


@intrinsic
def dots(typing: Any, W: Any, X: Any, i: Any, f: Any) -> Any:
    """f = W X[i], all rows of W, whose number is a multiple of ``TOGETHER``."""
    signature = types.void(W, X, types.int64, f)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        W = context.make_array(signature.args[0])(context, builder, args[0])
        n_rows = builder.extract_value(W.shape, 0)
        out = context.make_array(signature.args[3])(context, builder, args[3]).data
        zero = ir.Constant(I64, 0)
        with cgutils.for_range_slice(builder, zero, n_rows, ir.Constant(I64, TOGETHER)) as (c, _):
            w, x, width, vector = _rows_of(context, builder, signature, [args[0], c, args[1], args[2]], at=(0, 1))
            several = [builder.gep(w, [builder.mul(ir.Constant(I64, r), width)]) for r in range(TOGETHER)]
            for r, total in enumerate(_products(builder, several, x, width, vector)):
                builder.store(_sum(builder, total), builder.gep(out, [builder.add(c, ir.Constant(I64, r))]))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add(typing: Any, W: Any, c: Any, s: Any, X: Any, i: Any) -> Any:
    """W[c] += s X[i]."""
    signature = types.void(W, types.int64, W.dtype, X, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        w, x, width, vector = _rows_of(context, builder, signature, [args[0], args[1], args[3], args[4]], at=(0, 3))
        scale = splat(builder, args[2], vector)
        with cgutils.for_range_slice(builder, ir.Constant(I64, 0), width, ir.Constant(I64, vector.count)) as (j, _):
            moved = multiply_add(builder, scale, load(builder, x, j, vector), load(builder, w, j, vector))
            store(builder, moved, w, j)
        return context.get_dummy_value()

    return signature, codegen


def _rows_of(context: Any, builder: Any, signature: Any, args: Any, at: tuple[int, int] = (0, 2)) -> Any:
    """Pointers to W[c] and X[i], the width of both and their vector; ``at`` has the places of the arrays' types."""
    W = context.make_array(signature.args[at[0]])(context, builder, args[0])
    X = context.make_array(signature.args[at[1]])(context, builder, args[2])
    width = builder.extract_value(W.shape, 1)
    w = builder.gep(W.data, [builder.mul(args[1], width)])
    x = builder.gep(X.data, [builder.mul(args[3], width)])
    return w, x, width, vector_of(signature.args[at[0]])


def _products(builder: Any, rows: Any, x: Any, width: Any, vector: Any) -> Any:
    """The sums over whole vectors of each row times x, still spread over the lanes."""
    before = builder.block
    head, body, done = (builder.append_basic_block(part) for part in ("head", "body", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    j = builder.phi(I64)
    j.add_incoming(ir.Constant(I64, 0), before)
    sums = [builder.phi(vector) for _ in rows]
    for total in sums:
        total.add_incoming(zeros(vector), before)
    builder.cbranch(builder.icmp_signed("<", j, width), body, done)
    builder.position_at_end(body)
    value = load(builder, x, j, vector)
    for row, total in zip(rows, sums, strict=True):
        total.add_incoming(multiply_add(builder, load(builder, row, j, vector), value, total), body)
    j.add_incoming(builder.add(j, ir.Constant(I64, vector.count)), body)
    builder.branch(head)
    builder.position_at_end(done)
    return sums


def _sum(builder: Any, value: Any) -> Any:
    """The sum of a vector's lanes, by halves."""
    lanes = value.type.count
    while lanes > 1:
        lanes //= 2
        halves = [ir.Constant(ir.VectorType(I32, lanes), list(range(first, first + lanes))) for first in (0, lanes)]
        low, high = (builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), half) for half in halves)
        value = builder.fadd(low, high)
    return builder.extract_element(value, ir.Constant(I32, 0))
