"""Loops of compiled code that idle threads help with, a few microseconds long.

A phase is a function to be called once for each of n pieces, with arrays that all pieces share. The thread that opens
it (:func:`parallel_for`) works through the pieces from the front, helpers (:func:`serve`) from the back, so that each
mostly has the rows that are in its own cache. It goes on when the last piece is done; helpers that sleep, or that come
too late, are not waited for unless they hold a piece; where one has lost its processor in the midst of a piece, some of
the next phases are done without help. Pieces must not depend on who does them; then neither do results on the number of
threads.

Threads communicate only through a work queue, an int64 array. Its word has the number of the phase and of
its pieces, and how many of these have been claimed from either end; a claim is an atomic exchange of the whole word, so
one that is based on an older phase fails.
"""

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from solvers.numerics.array_types import Ints

# places in a work queue, each on a cache line of its own but for what is written together
WORD, DONE, TASK, ARRAYS, LEAVE, SERVING, FAILED, UNAIDED = 0, 8, 16, 17, 24, 32, 40, 48
QUEUE_LENGTH = 56
# the word: the number of the phase above, the number of its pieces, claimed from the back, claimed from the front
BITS = 12
MOST_PIECES = 1 << BITS
SPINS = 64
# a wait of so many looks is a late helper's, and for every so many of them a phase is done without help
LATE, LOOKS = 8192, 1024

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_yield = types.ExternalFunction("sched_yield", types.int32())


def _slot(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Pointer to element args[1] of the array args[0]."""
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    return builder.gep(data, [args[1]])


@intrinsic
def _read(typing: Any, work_queue: Any, at: Any) -> Any:
    """work_queue[at]; what another thread has written before it wrote that can be read afterwards."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_slot(context, builder, signature, args), "acquire", 8)

    return types.int64(work_queue, types.int64), codegen


@intrinsic
def _write(typing: Any, work_queue: Any, at: Any, value: Any) -> Any:
    """work_queue[at] = value, after all that was written before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _slot(context, builder, signature, args), "release", 8)
        return context.get_dummy_value()

    return types.void(work_queue, types.int64, types.int64), codegen


@intrinsic
def _add(typing: Any, work_queue: Any, at: Any, more: Any) -> Any:
    """work_queue[at] += more, at once; returns what was there."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _slot(context, builder, signature, args), args[2], "acq_rel")

    return types.int64(work_queue, types.int64, types.int64), codegen


@intrinsic
def _exchange(typing: Any, work_queue: Any, at: Any, old: Any, new: Any) -> Any:
    """work_queue[at] = new if it is old; whether it was."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _slot(context, builder, signature, args)
        return builder.extract_value(builder.cmpxchg(pointer, args[2], args[3], "acq_rel", "acquire"), 1)

    return types.boolean(work_queue, types.int64, types.int64, types.int64), codegen


def _kind(context: Any) -> Any:
    """Type of a task: numba's own two arguments, a place for a value and one for an error; the arrays; the piece."""
    error = context.call_conv.get_function_type(types.none, ()).args[1]
    return ir.FunctionType(_I32, [_I8.as_pointer(), error, _I8.as_pointer(), _I64])


@intrinsic
def _address_of_task(typing: Any, function: Any, arrays: Any) -> Any:
    """Address of a function that calls ``function(piece, *arrays)``, given where the arrays are kept."""
    call = function.get_call_type(typing, (types.int64, *arrays.types), {})

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = _kind(context)
        task = ir.Function(builder.module, kind, builder.module.get_unique_name("task"))
        task.linkage = "internal"
        within = ir.IRBuilder(task.append_basic_block("entry"))
        place = within.bitcast(task.args[2], context.get_value_type(arrays).as_pointer())
        kept = cgutils.unpack_tuple(within, within.load(place), len(arrays.types))
        called = context.get_function(function, call)
        context.add_linking_libs(getattr(called, "libs", ()))
        called(within, [task.args[3], *kept])
        within.ret(ir.Constant(_I32, 0))
        return builder.ptrtoint(task, _I64)

    return types.int64(function, arrays), codegen


@intrinsic
def _address_of_arrays(typing: Any, arrays: Any) -> Any:
    """Where a tuple is kept, for as long as the calling function runs."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = cgutils.alloca_once(builder, context.get_value_type(arrays))
        builder.store(args[0], place)
        return builder.ptrtoint(place, _I64)

    return types.int64(arrays), codegen


@intrinsic
def _call(typing: Any, task: Any, arrays: Any, piece: Any) -> Any:
    """Call the task at an address; returns 0 unless it raised."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = _kind(context)
        value = cgutils.alloca_once(builder, _I64)
        error = cgutils.alloca_once(builder, kind.args[1].pointee)
        task = builder.inttoptr(args[0], kind.as_pointer())
        kept = builder.inttoptr(args[1], _I8.as_pointer())
        return builder.call(task, [builder.bitcast(value, _I8.as_pointer()), error, kept, args[2]])

    return types.int32(types.int64, types.int64, types.int64), codegen


@njit(cache=True, nogil=True)
def _claim(work_queue: Ints, front: bool) -> int:
    """A piece of the phase under way that is the caller's now; -1 if there is none."""
    while True:
        word = _read(work_queue, WORD)
        ahead, behind, n = (
            word & (MOST_PIECES - 1),
            (word >> BITS) & (MOST_PIECES - 1),
            (word >> (2 * BITS)) & (MOST_PIECES - 1),
        )
        if ahead + behind >= n:
            return -1
        if _exchange(work_queue, WORD, word, word + (1 if front else MOST_PIECES)):
            return int(ahead if front else n - 1 - behind)


@njit(cache=True, nogil=True)
def _work(work_queue: Ints, front: bool) -> int:
    """Do pieces of the phase under way until none is left; returns how many."""
    done = 0
    while True:
        piece = _claim(work_queue, front)
        if piece < 0:
            return done
        if _call(work_queue[TASK], work_queue[ARRAYS], piece) != 0:
            _write(work_queue, FAILED, 1)
        _add(work_queue, DONE, 1)
        done += 1


@njit(cache=True, nogil=True)
def _share(work_queue: Ints, task: int, arrays: int, n: int) -> None:
    if _read(work_queue, SERVING) == 0 or n == 1 or work_queue[UNAIDED] > 0:
        work_queue[UNAIDED] = max(0, work_queue[UNAIDED] - 1)
        for piece in range(n):
            if _call(task, arrays, piece) != 0:
                _write(work_queue, FAILED, 1)
    else:
        work_queue[TASK], work_queue[ARRAYS] = task, arrays
        _write(work_queue, DONE, 0)
        number = (_read(work_queue, WORD) >> (3 * BITS)) + 1
        _write(work_queue, WORD, (number << (3 * BITS)) | (n << (2 * BITS)))
        _work(work_queue, True)
        spins = 0
        while _read(work_queue, DONE) < n:
            spins += 1
            if spins % SPINS == 0:
                _yield()
        work_queue[UNAIDED] = spins // LOOKS if spins > LATE else 0
    if _read(work_queue, FAILED) != 0:
        _write(work_queue, FAILED, 0)
        raise RuntimeError("a piece of a shared loop has failed")


@njit(inline="always")
def parallel_for(work_queue: Ints, function: Any, n: int, arrays: tuple[Any, ...]) -> None:
    """Call ``function(piece, *arrays)`` for every piece < n; all who serve the work queue help.

    It becomes part of its caller: as a function of its own it would take as long to compile as all that a piece calls.

    Parameters
    ----------
    work_queue : int64 array, shape (QUEUE_LENGTH,)
    function : compiled function
        Of a piece and the arrays; it returns nothing.
    n : int
        At most ``MOST_PIECES - 1``.
    arrays : tuple

    Raises
    ------
    RuntimeError
        The function has raised.
    """
    _share(work_queue, _address_of_task(function, arrays), _address_of_arrays(arrays), n)


@njit(cache=True, nogil=True)
def serve(work_queue: Ints, patience: int) -> int:
    """Help with every phase until asked to leave, or until nothing was left to do ``patience`` times in a row.

    Returns how many pieces were done.
    """
    _add(work_queue, SERVING, 1)
    done, idle = 0, 0
    while idle < patience and _read(work_queue, LEAVE) == 0:
        more = _work(work_queue, False)
        done += more
        idle = 0 if more else idle + 1
        if idle % SPINS == SPINS - 1:
            _yield()
    _add(work_queue, SERVING, -1)
    return done
