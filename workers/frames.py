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
_KINDS = "biuf"
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
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"arrays of {array.dtype} cannot be sent; booleans, integers and floats can")
        kind = array.dtype.newbyteorder("<")
        header = _ARRAY.pack(kind.str.encode(), array.ndim) + struct.pack(f"<{array.ndim}q", *array.shape)
        data = np.ascontiguousarray(array, kind).tobytes()
        at += len(header)
        before = bytes(-at % _ALIGNMENT)
        after = bytes(-len(data) % _ALIGNMENT)
        parts += [header, before, data, after]
        at += len(before) + len(data) + len(after)
    return b"".join(parts)


def unpack(frame: bytes | memoryview) -> list[NDArray[Any]]:
    """The arrays of a frame, in memory of their own: kernels are compiled for arrays that can be written to.

    Raises
    ------
    FrameError
        The bytes are not what :func:`pack` makes.
    """
    try:
        magic, count = _HEAD.unpack_from(frame, 0)
        if magic != _MAGIC:
            raise FrameError(f"a frame begins with {_MAGIC!r}, this with {magic!r}")
        content, arrays, at = bytearray(frame), [], _HEAD.size
        for _ in range(count):
            name, n_dimensions = _ARRAY.unpack_from(frame, at)
            if n_dimensions > _MOST_DIMENSIONS:
                raise FrameError(f"an array of {n_dimensions} dimensions; {_MOST_DIMENSIONS} are the most")
            shape = struct.unpack_from(f"<{n_dimensions}q", frame, at + _ARRAY.size)
            at += _ARRAY.size + 8 * n_dimensions
            at += -at % _ALIGNMENT
            kind = np.dtype(name.rstrip(b"\0").decode("ascii"))
            if kind.kind not in _KINDS or min(shape, default=0) < 0:
                raise FrameError(f"an array of {kind} and shape {shape}")
            size = math.prod(shape)
            array = np.frombuffer(content, kind, size, at) if size else np.empty(0, kind)
            arrays.append(array.reshape(shape))
            at += array.nbytes + -array.nbytes % _ALIGNMENT
    except (struct.error, TypeError, ValueError) as error:
        raise error if isinstance(error, FrameError) else FrameError(str(error)) from error
    if at != len(frame):
        raise FrameError(f"a frame of {at} bytes has {len(frame)}")
    return arrays
