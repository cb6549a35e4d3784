"""Frames: arrays come back as they were, and whatever else is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from workers.frames import FrameError, pack, unpack

arrays = st.lists(
    npst.arrays(
        st.sampled_from([np.dtype(name) for name in ("b1", "u1", "i4", "i8", "f4", "f8", ">f8")]),
        npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
    ),
    max_size=4,
)


@given(arrays)
def test_arrays_come_back_with_their_shapes_types_and_bits(given):
    found = unpack(pack(given))
    assert len(found) == len(given)
    for array, other in zip(given, found, strict=True):
        assert other.dtype == array.dtype.newbyteorder("<")
        assert other.shape == array.shape
        assert other.tobytes() == array.astype(other.dtype).tobytes()
        assert other.flags.writeable


@given(st.binary(max_size=60))
def test_other_bytes_are_refused(content):
    with pytest.raises(FrameError):
        unpack(content)


@given(arrays.filter(bool), st.data())
def test_a_frame_with_changed_or_missing_bytes_is_refused_or_read_as_numbers(given, data):
    frame = bytearray(pack(given))
    with pytest.raises(FrameError):
        unpack(bytes(frame[:-1]))
    at = data.draw(st.integers(0, len(frame) - 1))
    frame[at] ^= data.draw(st.integers(1, 255))
    try:
        found = unpack(bytes(frame))
    except FrameError:
        return
    assert all(array.dtype.kind in "biuf" for array in found)


def test_objects_are_never_sent():
    with pytest.raises(TypeError, match="arrays of object cannot be sent"):
        pack([np.array([{}], object)])
