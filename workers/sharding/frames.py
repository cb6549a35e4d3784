"""Arrays as bytes and back: a header of dtypes and shapes before the plain bytes; nothing in it is ever executed."""

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"PMF1"
_HEAD = struct.Struct("<4sI")
_ARRAY = struct.Struct("<4sI")
_ALIGNMENT = 8
# dtypes that a frame may contain, by the name in its header; always little-endian
_DTYPES = {
    dtype.str.encode(): dtype
    for dtype in map(np.dtype, ("?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"))
}
_MOST_DIMENSIONS = 8


class FrameError(ValueError):
    """The bytes are not a frame."""


def pack(arrays: Sequence[NDArray[Any]]) -> bytes:
    """One frame of contiguous arrays of booleans, integers or floats.

    Raises
    ------
    TypeError
        An array has another kind of entries.
    """
    parts, at = [_HEAD.pack(_MAGIC, len(arrays))], _HEAD.size
    for array in arrays:
        dtype = array.dtype.newbyteorder("<")
        if dtype.str.encode() not in _DTYPES:
            raise TypeError(f"arrays of {array.dtype} cannot be sent; booleans, integers and floats can")
        header = _ARRAY.pack(dtype.str.encode(), array.ndim) + struct.pack(f"<{array.ndim}q", *array.shape)
        data = np.ascontiguousarray(array, dtype).tobytes()
        at += len(header)
        before = bytes(-at % _ALIGNMENT)
        after = bytes(-len(data) % _ALIGNMENT)
        parts += [header, before, data, after]
        at += len(before) + len(data) + len(after)
    return b"".join(parts)


def unpack(frame: bytes | memoryview) -> list[NDArray[Any]]:
    """Copies of a frame's arrays: loops are compiled for writable arrays.

    Raises
    ------
    FrameError
        The bytes are not what :func:`pack` makes.
    """
    content, arrays, at = bytearray(frame), [], _HEAD.size
    try:
        magic, count = _HEAD.unpack_from(frame, 0)
        if magic != _MAGIC:
            raise FrameError(f"a frame must begin with {_MAGIC!r}; this one begins with {magic!r}")
        for _ in range(count):
            array, at = _array(content, at)
            arrays.append(array)
    except struct.error as error:
        raise FrameError(str(error)) from error
    if at != len(frame):
        raise FrameError(f"the frame has {len(frame)} bytes; {at} were expected")
    return arrays


def _array(content: bytearray, at: int) -> tuple[NDArray[Any], int]:
    """The array whose header begins at that byte, over the same memory, and where the next one begins."""
    name, n_dimensions = _ARRAY.unpack_from(content, at)
    if n_dimensions > _MOST_DIMENSIONS:
        raise FrameError(f"an array has {n_dimensions} dimensions; at most {_MOST_DIMENSIONS} are allowed")
    shape = struct.unpack_from(f"<{n_dimensions}q", content, at + _ARRAY.size)
    at += _ARRAY.size + 8 * n_dimensions
    at += -at % _ALIGNMENT
    dtype = _DTYPES.get(name.rstrip(b"\0"))
    if dtype is None or min(shape, default=0) < 0:
        raise FrameError(f"an array has the type {name!r} and the shape {shape}, which are not allowed")
    size = math.prod(shape)
    if size * dtype.itemsize > len(content) - at:
        raise FrameError(f"an array of {dtype} has the shape {shape}, but {max(0, len(content) - at)} bytes are left")
    flat = np.frombuffer(content, dtype, size, at) if size else np.empty(0, dtype)
    try:
        array = flat.reshape(shape)
    except ValueError as error:  # beside a zero, the other dimensions can be larger than numpy can count to
        raise FrameError(str(error)) from error
    return array, at + array.nbytes + -array.nbytes % _ALIGNMENT
