"""Products of dense rows with weights that are kept one row a class, written as LLVM IR.

Rows are C-contiguous and padded with zeros to whole vectors of one cache line.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

_I32, _I64 = ir.IntType(32), ir.IntType(64)
TOGETHER = 4


class DenseRows(NamedTuple):
    """The rows of X padded to whole vectors, and their squared norms."""

    data: NDArray[Any]
    squares: NDArray[np.float64]


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
        zero = ir.Constant(_I64, 0)
        with cgutils.for_range_slice(builder, zero, n_rows, ir.Constant(_I64, TOGETHER)) as (c, _):
            w, x, width, vector = _rows_of(context, builder, signature, [args[0], c, args[1], args[2]], at=(0, 1))
            several = [builder.gep(w, [builder.mul(ir.Constant(_I64, r), width)]) for r in range(TOGETHER)]
            for r, total in enumerate(_products(builder, several, x, width, vector)):
                builder.store(_sum(builder, total), builder.gep(out, [builder.add(c, ir.Constant(_I64, r))]))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add(typing: Any, W: Any, c: Any, s: Any, X: Any, i: Any) -> Any:
    """W[c] += s X[i]."""
    signature = types.void(W, types.int64, W.dtype, X, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        w, x, width, vector = _rows_of(context, builder, signature, [args[0], args[1], args[3], args[4]], at=(0, 3))
        scale = _splat(builder, args[2], vector)
        with cgutils.for_range_slice(builder, ir.Constant(_I64, 0), width, ir.Constant(_I64, vector.count)) as (j, _):
            moved = _multiply_add(builder, scale, _load(builder, x, j, vector), _load(builder, w, j, vector))
            builder.store(moved, _place(builder, w, j, vector), align=64 // vector.count)
        return context.get_dummy_value()

    return signature, codegen


def _rows_of(context: Any, builder: Any, signature: Any, args: Any, at: tuple[int, int] = (0, 2)) -> Any:
    """Pointers to W[c] and X[i], the width of both and their vector; ``at`` tells where the arrays' types stand."""
    W = context.make_array(signature.args[at[0]])(context, builder, args[0])
    X = context.make_array(signature.args[at[1]])(context, builder, args[2])
    single = signature.args[at[0]].dtype == types.float32
    vector = ir.VectorType(ir.FloatType(), 16) if single else ir.VectorType(ir.DoubleType(), 8)
    width = builder.extract_value(W.shape, 1)
    w = builder.gep(W.data, [builder.mul(args[1], width)])
    x = builder.gep(X.data, [builder.mul(args[3], width)])
    return w, x, width, vector


def _products(builder: Any, rows: Any, x: Any, width: Any, vector: Any) -> Any:
    """The sums over whole vectors of each row times x, still spread over the lanes."""
    before = builder.block
    head, body, done = (builder.append_basic_block(part) for part in ("head", "body", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    j = builder.phi(_I64)
    j.add_incoming(ir.Constant(_I64, 0), before)
    sums = [builder.phi(vector) for _ in rows]
    for total in sums:
        total.add_incoming(ir.Constant(vector, [0.0] * vector.count), before)
    builder.cbranch(builder.icmp_signed("<", j, width), body, done)
    builder.position_at_end(body)
    value = _load(builder, x, j, vector)
    for row, total in zip(rows, sums, strict=True):
        total.add_incoming(_multiply_add(builder, _load(builder, row, j, vector), value, total), body)
    j.add_incoming(builder.add(j, ir.Constant(_I64, vector.count)), body)
    builder.branch(head)
    builder.position_at_end(done)
    return sums


def _sum(builder: Any, value: Any) -> Any:
    """The sum of a vector's lanes, by halves."""
    lanes = value.type.count
    while lanes > 1:
        lanes //= 2
        halves = [ir.Constant(ir.VectorType(_I32, lanes), list(range(first, first + lanes))) for first in (0, lanes)]
        low, high = (builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), half) for half in halves)
        value = builder.fadd(low, high)
    return builder.extract_element(value, ir.Constant(_I32, 0))


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    vector = a.type
    name = f"llvm.fmuladd.v{vector.count}f{1024 // vector.count // 2}"
    kind = ir.FunctionType(vector, [vector] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [a, b, c])


def _place(builder: Any, pointer: Any, j: Any, vector: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [j]), vector.as_pointer())


def _load(builder: Any, pointer: Any, j: Any, vector: Any) -> Any:
    value = builder.load(_place(builder, pointer, j, vector))
    value.align = 64 // vector.count
    return value


def _splat(builder: Any, value: Any, vector: Any) -> Any:
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(_I32, 0))
    zeros = ir.Constant(ir.VectorType(_I32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)
