"""Vector primitives that LLVM's loop vectoriser does not find by itself, written as LLVM IR."""

from typing import Any

from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from solvers.numerics.vectors import I32, I64, load, multiply_add, splat, store, turned, vector_of, zeros

_I8 = ir.IntType(8)
_BLOCKS = (8, 4, 2, 1)
# whether code is compiled for a processor that spreads what lies in a row over the lanes of a mask
EXPANDS = config.CPU_NAME is None and bool(binding.get_host_cpu_features().get("avx512f"))


@intrinsic
def sum_narrow_rows(typing: Any, W: Any, indices: Any, data: Any, begin: Any, end: Any, f: Any) -> Any:
    """f = sum of data[p] W[indices[p]] over begin <= p < end.

    W is C-contiguous with rows of whole vectors, of the same floats as data and f. The sums of eight vectors stay in
    registers while the rows go by; a loop that adds row after row to f would load and store f for each of them. Where
    rows are longer, see :func:`solvers.numerics.row_sums.sum_rows`.
    """
    signature = types.void(W, indices, data, types.int64, types.int64, f)
    vector = vector_of(W)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        W, indices, data, _, _, f = (
            context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
            for kind, value in zip(signature.args, args, strict=True)
        )
        begin, end = args[3], args[4]
        width = builder.extract_value(W.shape, 1)
        lanes = vector.count
        column = cgutils.alloca_once_value(builder, ir.Constant(I64, 0))
        for blocks in _BLOCKS:
            step = ir.Constant(I64, lanes * blocks)
            head, body, done = (builder.append_basic_block(f"{part}{blocks}") for part in ("head", "body", "done"))
            builder.branch(head)
            builder.position_at_end(head)
            c = builder.load(column)
            following = builder.add(c, step)
            builder.cbranch(builder.icmp_signed("<=", following, width), body, done)
            builder.position_at_end(body)
            loop, row, leave = (builder.append_basic_block(f"{part}{blocks}") for part in ("loop", "row", "leave"))
            builder.branch(loop)
            builder.position_at_end(loop)
            p = builder.phi(I64)
            p.add_incoming(begin, body)
            sums = [builder.phi(vector) for _ in range(blocks)]
            for total in sums:
                total.add_incoming(zeros(vector), body)
            builder.cbranch(builder.icmp_signed("<", p, end), row, leave)
            builder.position_at_end(row)
            index = builder.zext(builder.load(builder.gep(indices.data, [p])), I64)
            base = builder.add(builder.mul(index, width), c)
            x = splat(builder, builder.load(builder.gep(data.data, [p])), vector)
            for block, total in enumerate(sums):
                w = load(builder, W.data, builder.add(base, ir.Constant(I64, lanes * block)), vector)
                total.add_incoming(multiply_add(builder, x, w, total), row)
            p.add_incoming(builder.add(p, ir.Constant(I64, 1)), row)
            builder.branch(loop)
            builder.position_at_end(leave)
            for block, total in enumerate(sums):
                at = builder.add(c, ir.Constant(I64, lanes * block))
                store(builder, total, f.data, at)
            builder.store(following, column)
            builder.branch(head)
            builder.position_at_end(done)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add_packed_rows(typing: Any, f: Any, xs: Any, bits: Any, rows: Any, weights: Any, begins: Any) -> Any:
    """f += sum of x w over the rows of the tuples, one row after the other for each entry of f.

    Row r of bits, uint8, has a bit for each entry of f, which is a whole number of vectors; its weights lie in a row
    from its begin on, one for each bit that is set. Other entries of f stay as they are. Products are rounded before
    they are added. Where the processor has no such instruction, LLVM makes branches of it, which take long.
    """
    signature = types.void(f, xs, bits, rows, weights, begins)
    vector, n_rows = vector_of(f), len(xs)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to, flags, given = (context.make_array(signature.args[at])(context, builder, args[at]).data for at in (0, 2, 4))
        n_bytes = builder.extract_value(context.make_array(signature.args[2])(context, builder, args[2]).shape, 1)
        mask, lanes = ir.IntType(vector.count), ir.Constant(I64, vector.count)
        which = ir.VectorType(ir.IntType(1), vector.count)
        expand = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, [given.type, which, vector]),
            f"llvm.masked.expandload.v{vector.count}f{512 // vector.count}",
        )
        count = builder.module.declare_intrinsic("llvm.ctpop", [mask])
        n = builder.udiv(n_bytes, ir.Constant(I64, vector.count // 8))
        factors, first_bits, first_weights = [], [], []
        for at in range(n_rows):
            factors.append(splat(builder, builder.extract_value(args[1], at), vector))
            row = builder.mul(builder.extract_value(args[3], at), n_bytes)
            first_bits.append(builder.bitcast(builder.gep(flags, [row]), mask.as_pointer()))
            first_weights.append(builder.gep(given, [builder.extract_value(args[5], at)]))
        before = builder.block
        head, body, done = (builder.append_basic_block(part) for part in ("head", "body", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        t, left = builder.phi(I64), [builder.phi(given.type) for _ in range(n_rows)]
        for phi, start in zip((t, *left), (ir.Constant(I64, 0), *first_weights), strict=True):
            phi.add_incoming(start, before)
        builder.cbranch(builder.icmp_signed("<", t, n), body, done)
        builder.position_at_end(body)
        column = builder.mul(t, lanes)
        total = load(builder, to, column, vector)
        for x, masks, weight in zip(factors, first_bits, left, strict=True):
            there = builder.load(builder.gep(masks, [t]), align=1)
            lit = builder.bitcast(there, which)
            w = builder.call(expand, [weight, lit, zeros(vector)])
            total = builder.select(lit, builder.fadd(total, builder.fmul(x, w)), total)
            n_weights = builder.zext(builder.call(count, [there]), I64)
            weight.add_incoming(builder.gep(weight, [n_weights]), body)
        store(builder, total, to, column)
        t.add_incoming(builder.add(t, ir.Constant(I64, 1)), body)
        builder.branch(head)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def above_mask(typing: Any, f: Any, c: Any, threshold: Any) -> Any:
    """Bit j is set where f[c + j] > threshold, over the lanes of one vector.

    Block steps look through the scores of all classes by it: with a thousand of them a loop over single scores takes a
    sixth longer.
    """
    signature = types.uint32(f, types.int64, f.dtype)
    vector = vector_of(f)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = context.make_array(signature.args[0])(context, builder, args[0]).data
        larger = builder.fcmp_ordered(">", load(builder, pointer, args[1], vector), splat(builder, args[2], vector))
        return builder.zext(builder.bitcast(larger, ir.IntType(vector.count)), I32)

    return signature, codegen


@intrinsic
def largest(typing: Any, f: Any) -> Any:
    """The largest entry of f, whose length is a whole number of vectors."""
    signature = f.dtype(f)
    vector = vector_of(f)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = vector.count
        array = context.make_array(signature.args[0])(context, builder, args[0])
        before = builder.block
        head, body, done = (builder.append_basic_block(part) for part in ("head", "body", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        c, top = builder.phi(I64), builder.phi(vector)
        c.add_incoming(ir.Constant(I64, 0), before)
        top.add_incoming(ir.Constant(vector, [float("-inf")] * lanes), before)
        builder.cbranch(builder.icmp_signed("<", c, builder.extract_value(array.shape, 0)), body, done)
        builder.position_at_end(body)
        values = load(builder, array.data, c, vector)
        top.add_incoming(builder.select(builder.fcmp_ordered(">", values, top), values, top), body)
        c.add_incoming(builder.add(c, ir.Constant(I64, lanes)), body)
        builder.branch(head)
        builder.position_at_end(done)
        folded: Any = top
        shift = lanes // 2
        while shift:
            turned_by = turned(builder, folded, shift)
            folded = builder.select(builder.fcmp_ordered(">", folded, turned_by), folded, turned_by)
            shift //= 2
        return builder.extract_element(folded, ir.Constant(I32, 0))

    return signature, codegen


@intrinsic
def lowest_bit(typing: Any, mask: Any) -> Any:
    """The number of the lowest bit set."""
    signature = types.int64(types.uint32)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(I32, [I32, ir.IntType(1)])
        count = builder.module.declare_intrinsic("llvm.cttz", [I32], kind)
        return builder.zext(builder.call(count, [args[0], ir.Constant(ir.IntType(1), 0)]), I64)

    return signature, codegen


@intrinsic
def equal_mask(typing: Any, array: Any, i: Any, wanted: Any) -> Any:
    """Bit j is set where array[i + j] == wanted, over 16 int32s."""
    signature = types.uint32(array, types.int64, types.int32)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(I32, 16)
        pointer = context.make_array(signature.args[0])(context, builder, args[0]).data
        values = builder.load(builder.bitcast(builder.gep(pointer, [args[1]]), vector.as_pointer()))
        values.align = 4
        equal = builder.icmp_signed("==", values, splat(builder, args[2], vector))
        return builder.zext(builder.bitcast(equal, ir.IntType(16)), I32)

    return signature, codegen


@intrinsic
def bit_length(typing: Any, number: Any) -> Any:
    """How many bits a number that is not negative takes; 0 takes none."""
    signature = types.int64(types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(I64, [I64, ir.IntType(1)])
        count = builder.module.declare_intrinsic("llvm.ctlz", [I64], kind)
        return builder.sub(ir.Constant(I64, 64), builder.call(count, [args[0], ir.Constant(ir.IntType(1), 0)]))

    return signature, codegen


@intrinsic
def prefetch(typing: Any, array: Any, i: Any) -> Any:
    """Ask for the cache line of element i of a contiguous array; any i is safe."""
    signature = types.void(array, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = context.make_array(signature.args[0])(context, builder, args[0]).data
        line = builder.bitcast(builder.gep(pointer, [args[1]]), _I8.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [_I8.as_pointer(), I32, I32, I32])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        read, keep, is_data = ir.Constant(I32, 0), ir.Constant(I32, 3), ir.Constant(I32, 1)
        builder.call(fetch, [line, read, keep, is_data])
        return context.get_dummy_value()

    return signature, codegen
