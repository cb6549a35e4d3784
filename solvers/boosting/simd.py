"""Sixteen whole numbers side by side, one vector of the processor: what LLVM does not make of loops by itself."""

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from solvers.numerics.array_types import Array
from solvers.numerics.vectors import I32, I64, splat

LANES = 16


@intrinsic
def add_vector(typing: Any, H: Any, at: Any, U: Any, i: Any) -> Any:
    """H[at : at + 16] += U[i : i + 16], as one vector."""
    signature = types.void(H, types.int64, U, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(_whole(signature.args[0]), LANES)
        target, _ = _vector(context, builder, signature.args[0], args[0], args[1], vector)
        _, more = _vector(context, builder, signature.args[2], args[2], args[3], vector)
        builder.store(builder.add(builder.load(target, align=4), more), target, align=4)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def scan_bins(typing: Any, H: Any, at: Any, n: Any, total: Any, first: Any, best: Any, where: Any, signed: Any) -> Any:
    """Turn n bins of H from ``at`` on into prefix sums L, and keep the largest |2 L - total| of each lane.

    best[c] is replaced where bin b beats it, and with it where[c], by first + b, and signed[c], by 2 L - total itself.
    """
    signature = types.void(H, types.int64, types.int64, total, types.int64, best, where, signed)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = _whole(signature.args[0])
        vector = ir.VectorType(whole, LANES)
        zero, zeros = ir.Constant(I64, 0), ir.Constant(vector, [0] * LANES)
        totals, *kept = (_vector(context, builder, signature.args[j], args[j], zero, vector) for j in (3, 5, 6, 7))
        before = builder.block
        head, body, done = (builder.append_basic_block(part) for part in ("head", "body", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        b = builder.phi(I64)
        left, best, where, signed = (builder.phi(vector) for _ in range(4))
        for phi, start in zip((b, left, best, where, signed), (zero, zeros, *(k[1] for k in kept)), strict=True):
            phi.add_incoming(start, before)
        builder.cbranch(builder.icmp_signed("<", b, args[2]), body, done)
        builder.position_at_end(body)
        offset = builder.add(args[1], builder.mul(b, ir.Constant(I64, LANES)))
        pointer, held = _vector(context, builder, signature.args[0], args[0], offset, vector)
        prefix = builder.add(left, held)
        builder.store(prefix, pointer, align=4)
        value = builder.sub(builder.add(prefix, prefix), totals[1])
        minus = builder.sub(zeros, value)
        size = builder.select(builder.icmp_signed(">", value, minus), value, minus)
        better = builder.icmp_signed(">", size, best)
        place = builder.add(args[4], b)
        place = builder.trunc(place, whole) if whole.width < 64 else place
        places = splat(builder, place, vector)
        b.add_incoming(builder.add(b, ir.Constant(I64, 1)), body)
        left.add_incoming(prefix, body)
        for phi, new in ((best, size), (where, places), (signed, value)):
            phi.add_incoming(builder.select(better, new, phi), body)
        builder.branch(head)
        builder.position_at_end(done)
        for phi, (target, _) in zip((best, where, signed), kept, strict=True):
            builder.store(phi, target, align=4)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _turn(typing: Any, q: Any, lanes: Any, first: Any, U: Any, at: Any) -> Any:
    """U[at + 16 i + lane] = q[lane, first + i] for 16 i, and 0 in all other lanes: 16 vectors turned round."""
    signature = types.void(q, types.int64, types.int64, U, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector, zero = ir.VectorType(_whole(signature.args[0]), LANES), ir.Constant(I64, 0)
        array = context.make_array(signature.args[0])(context, builder, args[0])
        start = builder.ptrtoint(builder.gep(array.data, [args[2]]), I64)
        stride, rows = builder.extract_value(array.strides, 0), []
        for lane in range(LANES):
            number = ir.Constant(I64, lane)
            there = builder.icmp_signed("<", number, args[1])
            place = builder.add(start, builder.select(there, builder.mul(number, stride), zero))
            held = builder.load(builder.inttoptr(place, vector.as_pointer()), align=4)
            rows.append(builder.select(there, held, ir.Constant(vector, [0] * LANES)))
        for half in (8, 4, 2, 1):
            low, high = _swaps(half)
            for j in [j for j in range(LANES) if not j & half]:
                one, other = rows[j], rows[j + half]
                rows[j], rows[j + half] = (builder.shuffle_vector(one, other, order) for order in (low, high))
        for i, row in enumerate(rows):
            place = builder.add(args[4], ir.Constant(I64, i * LANES))
            target, _ = _vector(context, builder, signature.args[3], args[3], place, vector)
            builder.store(row, target, align=4)
        return context.get_dummy_value()

    return signature, codegen


def _swaps(half: int) -> list[Any]:
    """Which elements of two vectors make up the two that have swapped the parts ``half`` elements long."""
    kind = ir.VectorType(I32, LANES)
    low = [j if not j & half else LANES + j - half for j in range(LANES)]
    return [ir.Constant(kind, low), ir.Constant(kind, [j + half for j in low])]


def _whole(array: Any) -> Any:
    return I32 if array.dtype == types.int32 else I64


def _vector(context: Any, builder: Any, kind: Any, array: Any, i: Any, vector: Any) -> tuple[Any, Any]:
    """Pointer to the vector that begins at element i, and its value."""
    data = context.make_array(kind)(context, builder, array).data
    pointer = builder.bitcast(builder.gep(data, [i]), vector.as_pointer())
    return pointer, builder.load(pointer, align=4)


@njit(cache=True, nogil=True)
def interleave(q: Array, first: int, many: int, U: Array) -> None:
    """Write lanes, one a row of q, side by side: ``U[(first + i) 16 + lane]``, over the blocks of U."""
    for block in range(U.shape[0]):
        u = U[block][first * LANES :]
        lanes = min(LANES, q.shape[0] - block * LANES)
        part = q[block * LANES : block * LANES + lanes]
        turned = many // LANES * LANES
        for i in range(0, turned, LANES):
            _turn(part, lanes, i, u, i * LANES)
        for i in range(turned, many):
            for lane in range(lanes):
                u[i * LANES + lane] = part[lane, i]
