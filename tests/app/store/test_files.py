"""Files: whole or not at all, and what was written is what is read."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from app.store.files import Files, is_abandoned


def test_arrays_and_manifest_come_back_as_they_were(tmp_path: Path) -> None:
    files = Files(tmp_path)
    arrays = {"X": np.asfortranarray(np.arange(12.0).reshape(3, 4)), "empty": np.zeros((0, 3)), "flag": np.array(True)}
    sha256 = files.save_arrays("a/b", arrays, {"labels": ["ä"]})
    for mmap in (True, False):
        loaded, manifest = files.load_arrays("a/b", mmap=mmap, sha256=sha256)
        assert manifest["labels"] == ["ä"]
        for name, array in arrays.items():
            np.testing.assert_array_equal(loaded[name], array)
            assert loaded[name].dtype == array.dtype


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    files = Files(tmp_path)
    sha256 = files.save_arrays("a", {"x": np.arange(5.0)}, {})
    path = tmp_path / "a" / "x.npy"
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match="array x of a is damaged"):
        files.load_arrays("a", sha256=sha256)
    with pytest.raises(ValueError, match="manifest"):
        files.load_arrays("a", sha256="0" * 64)


def test_a_folder_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    files = Files(tmp_path)
    with pytest.raises(ValueError, match="allow_pickle"):
        files.save_arrays("a", {"x": np.arange(3), "y": np.array([object()])}, {})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_gets_its_name_when_all_in_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    fsync, rename = os.fsync, os.rename

    def noted_fsync(descriptor: int) -> None:
        done.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    def noted_rename(source: Path, target: Path) -> None:
        done.append(f"{source.name} is {target.name}")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "rename", noted_rename)
    Files(tmp_path).save_arrays("a", {"x": np.arange(3), "y": np.arange(4)}, {})
    temporary, _, _ = done[4].partition(" ")
    assert done == ["x.npy", "y.npy", "manifest.json", temporary, f"{temporary} is a", tmp_path.name]


def test_a_folder_is_never_written_twice(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.save_arrays("a", {"x": np.arange(3)}, {})
    with pytest.raises(FileExistsError):
        files.save_arrays("a", {"x": np.arange(4)}, {})
    assert len(files.load_arrays("a")[0]["x"]) == 3


def test_an_upload_is_hashed_while_it_comes(tmp_path: Path) -> None:
    files = Files(tmp_path)
    upload = files.upload()
    upload.write(b"ab")
    upload.write(b"c")
    files.keep(upload, "kept/source")
    assert (upload.sha256, upload.size_bytes) == (hashlib.sha256(b"abc").hexdigest(), 3)
    assert (tmp_path / "kept" / "source").read_bytes() == b"abc"
    assert list((tmp_path / "incoming").iterdir()) == []


def test_an_aborted_upload_leaves_nothing(tmp_path: Path) -> None:
    upload = Files(tmp_path).upload()
    upload.write(b"abc")
    upload.abort()
    upload.abort()
    assert list((tmp_path / "incoming").iterdir()) == []


def test_an_upload_of_a_process_that_was_killed_counts_for_nobody(tmp_path: Path) -> None:
    files = Files(tmp_path)
    program = (
        "import sys, pathlib; from app.store.files import Files; "
        "upload = Files(pathlib.Path(sys.argv[1])).upload('w'); "
        "upload.write(b'x' * 100_000); upload.finish(); print('written', flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdin=pipe, stdout=pipe) as receiving:
        assert receiving.stdout is not None
        assert receiving.stdout.readline() == b"written\n"
        assert files.incoming_bytes("w") == 100_000
        (path,) = (tmp_path / "incoming").iterdir()
        assert not is_abandoned(path)
        receiving.kill()
        receiving.wait()
    assert files.incoming_bytes("w") == 0
    assert is_abandoned(path)
