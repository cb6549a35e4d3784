"""Vectors of one cache line in LLVM IR: what functions that are built of them share.

A vector is 16 floats or 8 doubles; where the processor's registers are narrower, LLVM splits it. Loads and stores rely
on no more alignment than that of one number.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

I32, I64 = ir.IntType(32), ir.IntType(64)


def vector_of(array: Any) -> Any:
    """The vector of an array type's numbers, which are float32 or float64."""
    return ir.VectorType(ir.FloatType(), 16) if array.dtype == types.float32 else ir.VectorType(ir.DoubleType(), 8)


def zeros(vector: Any) -> Any:
    """A vector of zeros."""
    return ir.Constant(vector, [0.0] * vector.count)


def splat(builder: Any, value: Any, vector: Any) -> Any:
    """The value in all lanes."""
    blank = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(blank, value, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, blank, ir.Constant(ir.VectorType(I32, vector.count), [0] * vector.count))


def load(builder: Any, pointer: Any, i: Any, vector: Any) -> Any:
    """The vector that begins at element i."""
    value = builder.load(_place(builder, pointer, i, vector))
    value.align = 64 // vector.count
    return value


def store(builder: Any, value: Any, pointer: Any, i: Any) -> None:
    """Store a vector that begins at element i."""
    builder.store(value, _place(builder, pointer, i, value.type), align=64 // value.type.count)


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """A b + c, rounded once where the processor has such an instruction."""
    name = f"llvm.fmuladd.v{a.type.count}f{512 // a.type.count}"
    kind = ir.FunctionType(a.type, [a.type] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [a, b, c])


def turned(builder: Any, value: Any, shift: int) -> Any:
    """The vector whose lanes are those of value, so many places on."""
    n = value.type.count
    order = ir.Constant(ir.VectorType(I32, n), [(lane + shift) % n for lane in range(n)])
    return builder.shuffle_vector(value, value, order)


def _place(builder: Any, pointer: Any, i: Any, vector: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [i]), vector.as_pointer())
