"""Messages about full disks: the calls that write are replaced by ones that fail."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.errors import StorageFull
from app.store import files as stored_files
from app.store.cache import local_copy
from app.store.disk_space import NoRoomError, megabytes
from app.store.failures import explained
from app.store.files import files

pytestmark = pytest.mark.usefixtures("home")


def no_room(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def said(error: BaseException) -> str:
    found = explained(error)
    assert isinstance(found, StorageFull)
    return found.detail


@pytest.mark.parametrize(
    ("write", "where", "needed"),
    [
        (lambda: files().save_arrays("datasets/d", {"y": np.zeros(1_000_000)}, {}), "datasets/d", 8),
        (lambda: files().save_bytes("predictions/p.csv", b"x" * 2_000_000), "predictions/p.csv", 2),
    ],
)
def test_the_file_that_finds_no_room_is_named_with_what_it_needs(
    write: Callable[[], Any], where: str, needed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_files, "_sync", no_room)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 8, 1_400_000))
    with pytest.raises(NoRoomError) as raised:
        write()
    detail = said(raised.value)
    assert detail.startswith(f"The disk is full: {where} in the folder of files (1 MB free, {needed} MB needed).")
    assert not [path for path in files().root.rglob("*") if path.is_file()]


def test_an_upload_that_finds_no_room_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    upload = files().upload()
    upload.write(b"a,b\n")
    monkeypatch.setattr(stored_files, "_sync", no_room)
    with pytest.raises(NoRoomError) as raised:
        upload.finish()
    upload.abort()
    assert f"incoming/{upload.path.name} in the folder of files (" in said(raised.value)


def test_a_copy_that_finds_no_room_is_named(
    configure: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(cache=tmp_path / "cache")
    store = files()
    store.save_arrays("datasets/d", {"y": np.zeros(3)}, {})
    # a folder is copied file by file, and errors are collected
    monkeypatch.setattr(shutil, "copy2", no_room)
    monkeypatch.setattr(shutil.copytree, "__defaults__", (False, None, no_room, False, False))
    with pytest.raises(NoRoomError) as raised:
        local_copy(store, "datasets/d")
    assert "datasets/d in the cache (" in said(raised.value)


def test_without_a_name_the_fullest_folder_is_named(configure: Callable[..., None], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    configure(cache=tmp_path / "cache")

    def usage(folder: Path) -> Any:
        return shutil._ntuple_diskusage(9, 8, 0 if folder == tmp_path else 5_000_000_000)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    (tmp_path / "home").mkdir()
    error = OSError(errno.ENOSPC, "full")
    assert said(error).startswith("The disk is full: the cache (0 MB free).")
    assert explained(OSError(errno.EACCES, "denied")) is None


def test_little_room_is_not_said_to_be_none() -> None:
    assert [megabytes(size) for size in (0, 1, 214_300, 9_100_000, 3_400_000_000)] == [
        "0 MB", "1 kB", "215 kB", "9 MB", "3.4 GB"
    ]  # fmt: skip
