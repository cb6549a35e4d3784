"""Frames: arrays come back as they were, and whatever else is refused."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from workers.sharding.frames import FrameError, pack, unpack

arrays = st.lists(
    npst.arrays(
        st.sampled_from([np.dtype(name) for name in ("b1", "u1", "i4", "i8", "f4", "f8", ">f8")]),
        npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
    ),
    max_size=4,
)


@settings(deadline=None)
@given(arrays)
def test_arrays_come_back_with_their_shapes_types_and_bits(given):
    found = unpack(pack(given))
    assert len(found) == len(given)
    for array, other in zip(given, found, strict=True):
        assert other.dtype == array.dtype.newbyteorder("<")
        assert other.shape == array.shape
        assert other.tobytes() == array.astype(other.dtype).tobytes()
        assert other.flags.writeable


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_other_bytes_are_refused(content):
    with pytest.raises(FrameError):
        unpack(content)


@settings(deadline=None)
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


@pytest.mark.parametrize("shape", [(3,), (0, 2), ()])
def test_every_change_of_a_byte_is_refused_or_read_as_numbers(shape):
    frame = pack([np.zeros(shape)])
    for at in range(len(frame)):
        for change in range(1, 256):
            changed = frame[:at] + bytes([frame[at] ^ change]) + frame[at + 1 :]
            try:
                found = unpack(changed)
            except FrameError:
                continue
            assert all(array.dtype.kind in "biuf" for array in found), (at, change)


@pytest.mark.parametrize("shape", [(2**61,), (2**63 - 1,), (2**40, 2**40), (0, 2**62, 2**62)])
def test_a_shape_of_more_entries_than_any_memory_holds_is_refused(shape):
    frame = bytearray(pack([np.zeros((0,) * len(shape))]))
    struct.pack_into(f"<{len(shape)}q", frame, 16, *shape)
    with pytest.raises(FrameError, match=r"shape|too big|dimension"):
        unpack(bytes(frame))


def test_a_frame_of_another_form_or_with_more_behind_it_is_refused():
    frame = pack([np.zeros(2)])
    with pytest.raises(FrameError, match="a frame must begin with b'PMF1'; this one begins with b'PMF2'"):
        unpack(b"PMF2" + frame[4:])
    with pytest.raises(FrameError, match=f"the frame has {len(frame) + 8} bytes; {len(frame)} were expected"):
        unpack(frame + bytes(8))


@pytest.mark.parametrize("name", [b"O", b"i4,i", b"2i4", b"(,", b"M8", b"c8", b">f8"])
def test_a_dtype_that_is_never_sent_is_refused(name):
    frame = bytearray(pack([np.zeros(2)]))
    frame[8:12] = name.ljust(4, b"\0")
    with pytest.raises(FrameError, match="an array has the type"):
        unpack(bytes(frame))


def test_objects_are_never_sent():
    with pytest.raises(TypeError, match="arrays of object cannot be sent"):
        pack([np.array([{}], object)])
