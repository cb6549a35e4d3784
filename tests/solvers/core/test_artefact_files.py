"""Arrays are read as they were written, by any number of threads at a time."""

import errno
import resource
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvers.core import artefact_files
from solvers.core.artefact_files import read_array, write_array


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(2, 3), np.float32(2.5), np.empty((0, 4), np.int32), np.array(["a", "später"])],
    ids=["matrix", "number", "empty", "strings"],
)
def test_an_array_is_read_as_it_was_written(array: Any, mmap: bool, tmp_path: Path) -> None:
    path = tmp_path / "array.npy"
    write_array(path, np.asarray(array))
    found = read_array(path, mmap=mmap)
    assert isinstance(found, np.memmap) == mmap
    assert found.dtype == np.asarray(array).dtype
    np.testing.assert_array_equal(found.reshape(np.shape(array)), array)


@pytest.mark.parametrize("n_numbers", [1000, 3_000_000])
def test_what_the_system_refuses_to_write_has_its_errno(n_numbers: int, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            write_array(tmp_path / "array.npy", np.arange(float(n_numbers)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert raised.value.errno == errno.EFBIG


@pytest.mark.parametrize("mmap", [True, False])
def test_a_file_that_was_cut_off_is_refused(mmap: bool, tmp_path: Path) -> None:
    path = tmp_path / "array.npy"
    write_array(path, np.arange(1000.0))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="size"):
        read_array(path, mmap=mmap)


def test_headers_are_parsed_by_one_thread_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_array(tmp_path / "array.npy", np.arange(10))
    load: Callable[..., Any] = np.load
    within = threading.Lock()
    together = []

    def slow(*arguments: Any, **options: Any) -> Any:
        if not within.acquire(blocking=False):
            together.append(1)
            return load(*arguments, **options)
        try:
            time.sleep(0.01)
            return load(*arguments, **options)
        finally:
            within.release()

    monkeypatch.setattr(artefact_files.np, "load", slow)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: read_array(tmp_path / "array.npy", mmap=False), range(8)))
    assert len(found) == 8
    assert not together
