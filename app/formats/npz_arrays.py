"""The arrays of an NPZ file, read without pickles and within bounds."""

import errno
import sys
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from app.formats.plain_file import MostUnpacked
from app.formats.table import row_error, shorten

_RATIO_FROM = 64 << 20
_KINDS = "biufSU"


def read_arrays(path: Path, most: MostUnpacked, wanted: frozenset[str]) -> Mapping[str, npt.NDArray[Any]]:
    """Arrays by name; those not among `wanted` are not read, and are empty.

    Raises
    ------
    FormatError
        The file is no NPZ file or damaged, comes to too much, or an array is neither numbers nor strings.
    """
    arrays: dict[str, npt.NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_sizes(members, path.stat().st_size, most)
            for member in members:
                if not member.filename.endswith(".npy"):
                    raise row_error(1, f"'{shorten(member.filename)}' in the archive is not an array (.npy)")
                name = member.filename.removesuffix(".npy")
                if name in arrays:
                    raise row_error(1, f"two arrays are named '{shorten(name)}'")
                arrays[name] = np.empty(0)
                if name in wanted:
                    with archive.open(member) as file:
                        arrays[name] = _read_array(cast(BinaryIO, file), name, member.file_size)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise row_error(1, f"not a valid NPZ file: {shorten(str(error))}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise  # of the disk, not of the data
        raise row_error(1, "not a valid NPZ file: an offset lies before the beginning of the file") from error
    return arrays


def _check_sizes(members: list[zipfile.ZipInfo], size: int, most: MostUnpacked) -> None:
    total = sum(member.file_size for member in members)
    if total > most.n_bytes:
        raise row_error(1, f"the arrays decompress to {total:,} bytes; at most {most.n_bytes:,} are allowed")
    if total > _RATIO_FROM and total > most.ratio * size:
        raise row_error(1, f"the arrays decompress to more than {most.ratio:g} times the file's size")


def _read_array(file: BinaryIO, name: str, size: int) -> npt.NDArray[Any]:
    """One array; its header is believed only as far as there are bytes for what it promises."""
    version = np.lib.format.read_magic(file)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read_header is None:
        raise row_error(1, f"version {version[0]}.{version[1]} of the array format is not supported", name)
    shape, fortran, dtype = read_header(file)
    if dtype.hasobject:
        raise row_error(1, "the array holds Python objects, which are pickled: save strings or numbers", name)
    if dtype.kind not in _KINDS:
        raise row_error(1, f"the array is of type {shorten(str(dtype))}, expected numbers or strings", name)
    count = 1
    for length in shape:
        if length < 0:
            raise row_error(1, "the array has a negative length", name)
        count *= length
    if count * dtype.itemsize > size:
        raise row_error(
            1, f"the array's header promises {count * dtype.itemsize:,} bytes, but the file has fewer", name
        )
    data = file.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise row_error(1, "the array ends too early", name)
    flat = np.frombuffer(data, dtype=dtype)
    if dtype.kind == "U" and flat.view(dtype.str.replace("U", "u")[:2] + "4").max(initial=0) > sys.maxunicode:
        # numpy would make strings of them with which Python itself fails
        raise row_error(1, "the array's strings contain invalid Unicode", name)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)
