"""The best decision stump of every class in one pass over the binned features.

A weight is a whole number: ``u_ic`` times a scale of its class, rounded. Sums of whole numbers do not depend on their
order, so neither do results on threads, and what rounding can do to a sum is known: half a unit a row. Sixteen classes
make a block, one vector of the processor; a row's weights in a block lie side by side. A bin of a histogram holds such
a vector, and the histogram of a feature is made by one vector addition a row. Rows without an entry for a sparse
feature are never visited: their bin is what the others leave of the total.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

LANES = 16
_I32, _I64 = ir.IntType(32), ir.IntType(64)


@intrinsic
def _add(typing: Any, H: Any, at: Any, U: Any, i: Any) -> Any:
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
def _fill_rest(typing: Any, H: Any, n: Any, rest: Any, total: Any) -> Any:
    """Add to bin ``rest`` of H what its first n bins together lack of the total."""
    signature = types.void(H, types.int64, types.int64, total)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(_whole(signature.args[0]), LANES)
        zero, lanes = ir.Constant(_I64, 0), ir.Constant(_I64, LANES)
        _, total = _vector(context, builder, signature.args[3], args[3], zero, vector)
        before = builder.block
        head, body, done = (builder.append_basic_block(part) for part in ("head", "body", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        b, left = builder.phi(_I64), builder.phi(vector)
        b.add_incoming(zero, before)
        left.add_incoming(total, before)
        builder.cbranch(builder.icmp_signed("<", b, args[1]), body, done)
        builder.position_at_end(body)
        _, held = _vector(context, builder, signature.args[0], args[0], builder.mul(b, lanes), vector)
        b.add_incoming(builder.add(b, ir.Constant(_I64, 1)), body)
        left.add_incoming(builder.sub(left, held), body)
        builder.branch(head)
        builder.position_at_end(done)
        target, held = _vector(context, builder, signature.args[0], args[0], builder.mul(args[2], lanes), vector)
        builder.store(builder.add(held, left), target, align=4)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def scan_lanes(typing: Any, H: Any, at: Any, n: Any, total: Any, first: Any, best: Any, where: Any, signed: Any) -> Any:
    """Turn n bins of H from ``at`` on into prefix sums L, and keep the largest |2 L - total| of each lane.

    best[c] is replaced where bin b beats it, and with it where[c], by first + b, and signed[c], by 2 L - total itself.
    """
    signature = types.void(H, types.int64, types.int64, total, types.int64, best, where, signed)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = _whole(signature.args[0])
        vector = ir.VectorType(whole, LANES)
        zero, zeros = ir.Constant(_I64, 0), ir.Constant(vector, [0] * LANES)
        totals, *kept = (_vector(context, builder, signature.args[j], args[j], zero, vector) for j in (3, 5, 6, 7))
        before = builder.block
        head, body, done = (builder.append_basic_block(part) for part in ("head", "body", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        b = builder.phi(_I64)
        left, best, where, signed = (builder.phi(vector) for _ in range(4))
        for phi, start in zip((b, left, best, where, signed), (zero, zeros, *(k[1] for k in kept)), strict=True):
            phi.add_incoming(start, before)
        builder.cbranch(builder.icmp_signed("<", b, args[2]), body, done)
        builder.position_at_end(body)
        offset = builder.add(args[1], builder.mul(b, ir.Constant(_I64, LANES)))
        pointer, held = _vector(context, builder, signature.args[0], args[0], offset, vector)
        prefix = builder.add(left, held)
        builder.store(prefix, pointer, align=4)
        value = builder.sub(builder.add(prefix, prefix), totals[1])
        minus = builder.sub(zeros, value)
        size = builder.select(builder.icmp_signed(">", value, minus), value, minus)
        better = builder.icmp_signed(">", size, best)
        place = builder.add(args[4], b)
        place = builder.trunc(place, whole) if whole.width < 64 else place
        single = builder.insert_element(ir.Constant(vector, ir.Undefined), place, ir.Constant(_I32, 0))
        order = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
        places = builder.shuffle_vector(single, ir.Constant(vector, ir.Undefined), order)
        b.add_incoming(builder.add(b, ir.Constant(_I64, 1)), body)
        left.add_incoming(prefix, body)
        for phi, new in ((best, size), (where, places), (signed, value)):
            phi.add_incoming(builder.select(better, new, phi), body)
        builder.branch(head)
        builder.position_at_end(done)
        for phi, (target, _) in zip((best, where, signed), kept, strict=True):
            builder.store(phi, target, align=4)
        return context.get_dummy_value()

    return signature, codegen


def _whole(array: Any) -> Any:
    return _I32 if array.dtype == types.int32 else _I64


def _vector(context: Any, builder: Any, kind: Any, array: Any, i: Any, vector: Any) -> tuple[Any, Any]:
    """Pointer to the vector that begins at element i, and its value."""
    data = context.make_array(kind)(context, builder, array).data
    pointer = builder.bitcast(builder.gep(data, [i]), vector.as_pointer())
    return pointer, builder.load(pointer, align=4)


@njit(cache=True, nogil=True)
def histograms(
    dense: NDArray[Any],
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    codes: NDArray[Any],
    zero: NDArray[np.int32],
    n_bins: NDArray[np.int32],
    f: int,
    many: int,
    U: NDArray[Any],
    totals: NDArray[Any],
    stride: int,
    H: NDArray[Any],
) -> None:
    """H = histograms of ``many`` features from f on, ``stride`` numbers apart; either 4 dense ones or a single one."""
    n, n_dense = dense.shape[1], dense.shape[0]
    for q in range(many):
        H[q * stride : q * stride + n_bins[f + q] * LANES] = 0
    if many == 4:
        c0, c1, c2, c3 = dense[f], dense[f + 1], dense[f + 2], dense[f + 3]
        for i in range(n):
            at = np.int64(i) * LANES
            _add(H, np.int64(c0[i]) * LANES, U, at)
            _add(H, stride + np.int64(c1[i]) * LANES, U, at)
            _add(H, 2 * stride + np.int64(c2[i]) * LANES, U, at)
            _add(H, 3 * stride + np.int64(c3[i]) * LANES, U, at)
    elif f < n_dense:
        column = dense[f]
        for i in range(n):
            _add(H, np.int64(column[i]) * LANES, U, np.int64(i) * LANES)
    else:
        begin, end = indptr[f - n_dense], indptr[f - n_dense + 1]
        for p in range(begin, end):
            _add(H, np.int64(codes[p]) * LANES, U, np.int64(rows[p]) * LANES)
        _fill_rest(H, n_bins[f], zero[f - n_dense], totals)


@njit(cache=True, nogil=True)
def search(
    dense: NDArray[Any],
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    codes: NDArray[Any],
    zero: NDArray[np.int32],
    n_bins: NDArray[np.int32],
    first: NDArray[np.int64],
    begin: int,
    end: int,
    U: NDArray[Any],
    totals: NDArray[Any],
    H: NDArray[Any],
    best: NDArray[Any],
    where: NDArray[Any],
    signed: NDArray[Any],
    pointers: NDArray[np.int64],
    bins: NDArray[np.int32],
    lanes: NDArray[np.int32],
    values: NDArray[np.int64],
) -> None:
    """Stumps of the features [begin, end): the best of every lane, and the values of those that are asked for.

    A stump is +1 on the bins up to b and -1 above; its value is ``2 L - total`` with L the sum of u up to b. best,
    where and signed, shape (n_blocks, 16), are replaced where a stump beats best: by the size of its value, by
    ``first[f] + b``, and by the value. The stumps asked for
    are numbered by block and feature: those of block B and feature f stand at ``pointers[B, f] : pointers[B, f + 1]``
    of bins and lanes, and their values are written to ``values``.
    """
    stride = len(H) // 4
    n_dense = dense.shape[0]
    for block in range(U.shape[0]):
        u, total, top, place, value = U[block], totals[block], best[block], where[block], signed[block]
        f = begin
        while f < end:
            many = 4 if f + 4 <= min(end, n_dense) else 1
            histograms(dense, indptr, rows, codes, zero, n_bins, f, many, u, total, stride, H)
            for q in range(many):
                scan_lanes(H, q * stride, n_bins[f + q] - 1, total, first[f + q], top, place, value)
                for j in range(pointers[block, f + q], pointers[block, f + q + 1]):
                    values[j] = 2 * np.int64(H[q * stride + bins[j] * LANES + lanes[j]]) - np.int64(total[lanes[j]])
            f += many


@njit(cache=True, nogil=True)
def pool(
    dense: NDArray[Any],
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    codes: NDArray[Any],
    zero: NDArray[np.int32],
    n_bins: NDArray[np.int32],
    first: NDArray[np.int64],
    begin: int,
    end: int,
    U: NDArray[Any],
    totals: NDArray[Any],
    real: bool,
    H: NDArray[Any],
    values: NDArray[np.float64],
) -> None:
    """Add up over all lanes what stumps of the features [begin, end) are worth to each; values by threshold.

    A stump is worth ``|2 L - total|`` to a lane. Or, ``real``: lanes j and j + 8 hold the weights of the rows for and
    against one output, and a stump is worth minus ``sqrt(L_j L_{j + 8}) + sqrt(R_j R_{j + 8})``, half of what its best
    votes on both sides would leave of the loss.
    """
    stride = len(H) // 4
    n_dense, half = dense.shape[0], LANES // 2
    left = np.empty(LANES)
    for block in range(U.shape[0]):
        total = totals[block]
        f = begin
        while f < end:
            many = 4 if f + 4 <= min(end, n_dense) else 1
            histograms(dense, indptr, rows, codes, zero, n_bins, f, many, U[block], total, stride, H)
            for q in range(many):
                left[:] = 0.0
                for b in range(n_bins[f + q] - 1):
                    h = H[q * stride + b * LANES : q * stride + (b + 1) * LANES]
                    worth = 0.0
                    for c in range(LANES):
                        left[c] += h[c]
                    if real:
                        for c in range(half):
                            worth -= np.sqrt(left[c] * left[c + half])
                            worth -= np.sqrt((total[c] - left[c]) * (total[c + half] - left[c + half]))
                    else:
                        for c in range(LANES):
                            worth += abs(2.0 * left[c] - total[c])
                    values[first[f + q] + b] += worth
            f += many


@njit(cache=True, nogil=True)
def sides(
    dense: NDArray[Any],
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    codes: NDArray[Any],
    zero: NDArray[np.int32],
    features: NDArray[np.int64],
    bins: NDArray[Any],
    out: NDArray[np.int8],
) -> None:
    """out[j, i] = +1 where row i is in a bin of features[j] up to bins[j], else -1; +1 everywhere for feature -1.

    With bins of the codes' own type the comparison takes a vector of codes at a time.
    """
    n_dense = dense.shape[0]
    for j in range(len(features)):
        f, b, side = features[j], bins[j], out[j]
        if f < 0:
            side[:] = 1
        elif f < n_dense:
            column = dense[f]
            for i in range(len(side)):
                side[i] = 1 if column[i] <= b else -1
        else:
            side[:] = 1 if zero[f - n_dense] <= b else -1
            for p in range(indptr[f - n_dense], indptr[f - n_dense + 1]):
                side[rows[p]] = 1 if codes[p] <= b else -1
