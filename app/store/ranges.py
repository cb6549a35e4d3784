"""Rows of a large array in a bucket, read by ranges before the whole array has arrived.

Beside an array of ``RANGED_BYTES`` or more is an object with the SHA-256 of each of its blocks and of the whole. Rows
come from blocks that match; the manifest's SHA-256 is compared when the whole is there.
"""

import hashlib
import io
import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

RANGED_BYTES = 64 << 20
BLOCK_BYTES = 256 << 10
# of one request: more arrive hardly sooner than the whole
MOST_BYTES = 256 << 20
# several blocks that follow one another come with one request
_MOST_AT_ONCE = 4 << 20
_REQUESTS = 16
SUFFIX = ".blocks"


class TooManyRows(Exception):
    """The rows take more than ``MOST_BYTES``."""


class Ranged(Protocol):
    """What is read of a bucket."""

    def get_bytes(self, path: str) -> bytes: ...

    def get_range(self, path: str, begin: int, end: int) -> bytes: ...


def digests(file: Path, sha256: str) -> bytes:
    """What is kept beside a large array: the SHA-256 of each block of its file."""
    blocks = []
    with file.open("rb") as source:
        while block := source.read(BLOCK_BYTES):
            blocks.append(hashlib.sha256(block).hexdigest())
    return json.dumps({"sha256": sha256, "block_bytes": BLOCK_BYTES, "blocks": blocks}).encode()


class RangedRows:
    """The rows of an array with two axes, in C order.

    Parameters
    ----------
    path : str
        Of the array's file.
    sha256 : str
        Of the whole file, as the manifest has it.

    Raises
    ------
    FileNotFoundError
        Nobody has kept digests of its blocks.
    ValueError
        They are of another file, or damaged, or the array has another form.
    """

    def __init__(self, bucket: Ranged, path: str, sha256: str) -> None:
        kept = json.loads(bucket.get_bytes(path + SUFFIX))
        if kept["sha256"] != sha256:
            raise ValueError(f"{path}{SUFFIX} is about another file")
        self._bucket, self._path = bucket, path
        self._digests: list[str] = kept["blocks"]
        self._block_bytes: int = kept["block_bytes"]
        self._lock = threading.Lock()
        self._blocks: dict[int, bytes] = {}
        self._fetch([0])
        beginning = io.BytesIO(self._blocks[0])
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, is_fortran, self.dtype = read[np.lib.format.read_magic(beginning)](beginning)
        if len(shape) != 2 or is_fortran or self.dtype.hasobject:
            raise ValueError(f"{path} has no rows that lie together")
        self.shape: tuple[int, int] = shape
        self._begin = len(self._blocks[0]) - len(beginning.read())

    def rows(self, at: NDArray[np.int64]) -> NDArray[Any]:
        """Some rows, each checked; shape (len(at), n_columns).

        Raises
        ------
        TooManyRows
        StorageAway
            The bucket does not answer.
        ValueError
            A block is damaged.
        """
        size = self.shape[1] * self.dtype.itemsize
        begins = self._begin + at.astype(np.int64) * size
        first, last = begins // self._block_bytes, (begins + size - 1) // self._block_bytes
        needed = np.unique(np.concatenate([np.arange(a, b + 1) for a, b in zip(first, last, strict=True)] or [first]))
        if len(needed) * self._block_bytes > MOST_BYTES:
            raise TooManyRows
        blocks = self._have(needed.tolist())
        found = np.empty((len(at), size), np.uint8)
        for row, begin, a, b in zip(found, begins.tolist(), first.tolist(), last.tolist(), strict=True):
            content = b"".join(blocks[block] for block in range(a, b + 1))
            row[:] = np.frombuffer(content, np.uint8, size, begin - a * self._block_bytes)
        found.flags.writeable = False  # as of a mapped array, for which loops are compiled
        return found.view(self.dtype).reshape(len(at), self.shape[1])

    def _have(self, needed: list[int]) -> dict[int, bytes]:
        """These blocks; kept ones are not read again."""
        with self._lock:
            blocks = {block: self._blocks[block] for block in needed if block in self._blocks}
            if (len(self._blocks) + len(needed)) * self._block_bytes > MOST_BYTES:
                self._blocks.clear()
        blocks.update(self._fetch([block for block in needed if block not in blocks]))
        return blocks

    def _fetch(self, needed: list[int]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        runs = list(_runs(needed, max(1, _MOST_AT_ONCE // self._block_bytes)))
        with ThreadPoolExecutor(_REQUESTS) as pool:
            for each in pool.map(self._read, runs):
                found.update(each)
        with self._lock:
            self._blocks.update(found)
        return found

    def _read(self, run: range) -> dict[int, bytes]:
        size = self._block_bytes
        content = self._bucket.get_range(self._path, run.start * size, run.stop * size)
        found = {block: content[at * size : (at + 1) * size] for at, block in enumerate(run)}
        for block, part in found.items():
            if hashlib.sha256(part).hexdigest() != self._digests[block]:
                raise ValueError(f"block {block} of {self._path} is damaged")
        return found


@dataclass(frozen=True)
class RangedFolder:
    """A folder of arrays of which the large ones are read by rows.

    Attributes
    ----------
    small : mapping of str to array
        Whole and checked.
    large : mapping of str to RangedRows
    """

    manifest: Mapping[str, Any]
    small: Mapping[str, NDArray[Any]]
    large: Mapping[str, RangedRows]


def _runs(blocks: list[int], most: int) -> Iterator[range]:
    """Blocks in ascending order as ranges of neighbours."""
    begin = 0
    for at in range(1, len(blocks) + 1):
        if at == len(blocks) or blocks[at] != blocks[at - 1] + 1 or at - begin == most:
            yield range(blocks[begin], blocks[at - 1] + 1)
            begin = at
