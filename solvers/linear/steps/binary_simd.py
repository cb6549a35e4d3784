"""The step of binary machines on one example, as LLVM IR: nothing leaves the registers from the scores to the update.

The step itself is that of :mod:`solvers.linear.steps.binary`.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

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
