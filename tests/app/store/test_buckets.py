"""Files in object storage: written once, read on any machine, and removed everywhere."""

import contextlib
import os
import socket
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.config import settings
from app.errors import SettingsError
from app.store import bucket_files, buckets, partial_uploads
from app.store.bucket_files import BucketFiles
from app.store.buckets import Bucket, StorageAway
from app.store.files import MANIFEST, Files, files
from app.store.partial_uploads import OffsetError

ARRAYS = {"a": np.arange(5), "b": np.ones((2, 3), np.float32)}


@pytest.fixture
def store(bucket: Any) -> BucketFiles:
    """The files of this machine."""
    found = files()
    assert isinstance(found, BucketFiles)
    return found


@pytest.fixture
def elsewhere(store: BucketFiles, tmp_path: Path) -> BucketFiles:
    """The same files as another machine has them."""
    return BucketFiles(tmp_path / "elsewhere", store.bucket, 1 << 30)


def test_the_settings_decide_where_files_are(home: Path) -> None:
    assert type(files()) is Files
    assert files().working is not None


@pytest.mark.parametrize("address", ["s3:bucket", "https://host/bucket", "s3:///prefix", "s3://bucket/x?y"])
def test_an_address_that_is_none_is_refused(address: str, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("POLYMARGIN_FILES", address)
    settings.cache_clear()
    with pytest.raises(SettingsError):
        settings()
    with pytest.raises(SettingsError, match="expected s3://bucket/prefix"):
        Bucket(address)


@pytest.mark.parametrize("setting", ["FILES", "SOURCES"])
def test_a_bucket_without_its_client_is_refused_at_the_start(
    setting: str, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setattr("app.config.find_spec", lambda _name: None)
    monkeypatch.setenv(f"POLYMARGIN_{setting}", "s3://bucket/prefix")
    settings.cache_clear()
    with pytest.raises(SettingsError, match=r"polymargin\[s3\]"):
        settings()


def test_arrays_are_read_on_another_machine(store: BucketFiles, elsewhere: BucketFiles) -> None:
    sha256 = store.save_arrays("datasets/d/arrays-1", ARRAYS, {"kind": "x"})
    arrays, manifest = elsewhere.load_arrays("datasets/d/arrays-1", sha256=sha256)
    assert manifest["kind"] == "x"
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
    assert elsewhere.manifest("datasets/d/arrays-1") == manifest
    assert elsewhere.exists("datasets/d/arrays-1")
    assert not elsewhere.exists("datasets/d/arrays-2")


def test_a_copy_is_fetched_once(store: BucketFiles, elsewhere: BucketFiles, bucket: Any) -> None:
    store.save_arrays("models/m/model", ARRAYS, {})
    elsewhere.load_arrays("models/m/model")
    n = len(bucket.requests)
    elsewhere.load_arrays("models/m/model")
    assert len(bucket.requests) == n


def test_what_was_written_here_is_not_fetched(store: BucketFiles, bucket: Any) -> None:
    store.save_arrays("models/m/model", ARRAYS, {})
    n = len(bucket.requests)
    store.load_arrays("models/m/model")
    assert len(bucket.requests) == n


def test_shared_arrays_are_copied_within_the_storage(store: BucketFiles, elsewhere: BucketFiles, bucket: Any) -> None:
    store.save_arrays("datasets/d/arrays-1", ARRAYS, {})
    elsewhere.save_arrays("datasets/d/arrays-2", {"c": np.zeros(2)}, {}, {"a": "datasets/d/arrays-1"})
    store.delete("datasets/d/arrays-1")
    arrays, _ = store.load_arrays("datasets/d/arrays-2")
    np.testing.assert_array_equal(arrays["a"], ARRAYS["a"])
    store.check("datasets/d/arrays-2")


def test_a_folder_is_there_when_its_manifest_is(
    store: BucketFiles, elsewhere: BucketFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Bucket.put

    def fails(self: Bucket, path: str, source: Path, sha256: str) -> None:
        if path.endswith(MANIFEST):
            raise StorageAway("gone")
        put(self, path, source, sha256)

    monkeypatch.setattr(Bucket, "put", fails)
    with pytest.raises(StorageAway):
        store.save_arrays("models/m/model", ARRAYS, {})
    assert store.names("models") == ["m"]
    for machine in (store, elsewhere):
        assert not machine.exists("models/m/model")
        with pytest.raises(FileNotFoundError):
            machine.load_arrays("models/m/model")


def test_damage_in_the_storage_is_found(store: BucketFiles, elsewhere: BucketFiles, tmp_path: Path) -> None:
    store.save_arrays("models/m/model", ARRAYS, {})
    store.bucket.put_bytes("models/m/model/a.npy", b"something else")
    with pytest.raises(ValueError, match="damaged"):
        elsewhere.load_arrays("models/m/model")
    with pytest.raises(ValueError, match="damaged"):
        store.check("models/m/model")
    assert [path for path in (tmp_path / "elsewhere").rglob("*") if path.is_file() and path.suffix == ".npy"] == []


def test_uploads_and_single_files(store: BucketFiles, elsewhere: BucketFiles) -> None:
    upload = store.upload("w")
    upload.write(b"abc")
    store.keep(upload, "datasets/d/source")
    assert elsewhere.local("datasets/d/source").read_bytes() == b"abc"
    assert elsewhere.read_bytes("datasets/d/source") == b"abc"
    store.save_bytes("datasets/d/report.csv", b"1")
    store.save_bytes("datasets/d/report.csv", b"2")
    assert elsewhere.read_bytes("datasets/d/report.csv") == b"2"
    assert elsewhere.names("datasets/d") == ["report.csv", "source"]
    assert elsewhere.names("datasets", depth=2) == ["d/report.csv", "d/source"]
    assert elsewhere.sizes("datasets/d") == {"datasets/d/report.csv": 1, "datasets/d/source": 3}
    assert elsewhere.sizes("datasets/d/source") == {"datasets/d/source": 3}
    assert elsewhere.sizes("datasets/none") == {}
    assert abs(elsewhere.modified("datasets/d") - elsewhere.now()) < 60
    with elsewhere.opened("datasets/d/source") as path:
        assert path.read_bytes() == b"abc"
    assert not path.exists()
    with pytest.raises(FileNotFoundError):
        elsewhere.local("datasets/d/none")


def test_what_was_deleted_is_gone_everywhere(store: BucketFiles, elsewhere: BucketFiles) -> None:
    store.save_arrays("models/m/model", ARRAYS, {})
    store.save_arrays("models/mm/model", ARRAYS, {})
    elsewhere.delete("models/m")
    assert store.names("models") == ["mm"]
    assert not store.exists("models/m/model")
    assert not elsewhere.path("models/m").exists()


def test_copies_used_least_recently_make_room(
    store: BucketFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        store.save_arrays(f"models/{name}/model", {"x": np.zeros(1000)}, {})
    small = BucketFiles(tmp_path / "small", store.bucket, 20_000)
    for at, name in enumerate("ab"):
        small.load_arrays(f"models/{name}/model")
        os.utime(small._mark(f"models/{name}/model"), (at, at))
    # in use a moment ago, whatever the limit says
    os.utime(small._mark("models/a/model"))
    small.load_arrays("models/c/model")
    assert [small.path(f"models/{name}/model").exists() for name in "abc"] == [True, False, True]
    monkeypatch.setattr(bucket_files, "_IN_USE_SECONDS", -1.0)
    os.utime(small._mark("models/c/model"), (1, 1))
    arrays, _ = small.load_arrays("models/b/model")
    assert not small.path("models/c/model").exists()
    assert arrays["x"].sum() == 0.0
    assert small.load_arrays("models/c/model")[0]["x"].shape == (1000,)


def test_threads_that_want_a_folder_fetch_it_once(store: BucketFiles, elsewhere: BucketFiles, bucket: Any) -> None:
    store.save_arrays("models/m/model", ARRAYS, {})
    bucket.requests.clear()
    found: list[float] = []
    threads = [
        threading.Thread(target=lambda: found.append(float(elsewhere.load_arrays("models/m/model")[0]["b"].sum())))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [6.0] * 8
    fetched = [path for method, path in bucket.requests if method == "GET"]
    assert len(fetched) == len(set(fetched)) == 3


def test_a_storage_that_is_busy_for_a_moment_is_asked_again(
    store: BucketFiles, elsewhere: BucketFiles, bucket: Any
) -> None:
    at = iter(range(10_000))
    bucket.spoil = lambda _method, _path: "busy" if next(at) % 3 == 0 else None
    store.save_arrays("models/m/model", ARRAYS, {})
    arrays, _ = elsewhere.load_arrays("models/m/model")
    np.testing.assert_array_equal(arrays["a"], ARRAYS["a"])


def test_half_of_a_content_is_asked_for_again(store: BucketFiles, elsewhere: BucketFiles, bucket: Any) -> None:
    store.save_arrays("models/m/model", ARRAYS, {})
    spoilt: list[str] = []

    def spoil(method: str, path: str) -> str | None:
        if method == "GET" and path.endswith(".npy") and path not in spoilt:
            spoilt.append(path)
            return "truncated"
        return None

    bucket.spoil = spoil
    arrays, _ = elsewhere.load_arrays("models/m/model")
    assert len(spoilt) == 2
    np.testing.assert_array_equal(arrays["b"], ARRAYS["b"])


def test_credentials_that_have_expired_are_said(store: BucketFiles, bucket: Any) -> None:
    bucket.spoil = lambda _method, _path: "expired"
    with pytest.raises(StorageAway, match="ExpiredToken"):
        store.save_arrays("models/m/model", ARRAYS, {})
    assert not store.path("models/m/model").exists()


def test_requests_know_soon_that_the_storage_is_frozen(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_limits", buckets._limits)
    buckets.answer_soon()
    connect_seconds, read_seconds, retries = buckets._limits["reads"]
    assert (connect_seconds + read_seconds) * (retries + 1) < 20
    monkeypatch.setattr(buckets, "_limits", {"reads": (1.0, 0.1, retries)})
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        away = Bucket("s3://bucket", f"http://127.0.0.1:{frozen.getsockname()[1]}")
        for read in (away.get_bytes, away.exists, away.names):
            with pytest.raises(StorageAway, match="ReadTimeoutError"):
                read("a")
        frozen.setblocking(False)
        n = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                frozen.accept()[0].close()
                n += 1
    assert n == 3 * (retries + 1)


def test_pieces_of_an_upload_come_to_any_machine(store: BucketFiles, elsewhere: BucketFiles) -> None:
    begun = partial_uploads.begin(store, "w", 6)
    with begun.piece(0) as piece:
        piece.write(b"abc")
        assert piece.end == 3
        piece.flush()
    other = partial_uploads.find(elsewhere, "w", begun.id)
    assert other is not None
    assert (other.offset, other.size_bytes, other.sha256) == (3, 6, None)
    with pytest.raises(OffsetError), other.piece(2):
        pass
    with other.piece(3) as piece:
        piece.write(b"xx")
        piece.discard()
    assert other.offset == 3
    with other.piece(3) as piece:
        piece.write(b"def")
    # the same piece, which another machine has received meanwhile
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(begun), "offset", 3)
        late = begun.piece(3)
        late.__enter__().write(b"dif")
    with pytest.raises(OffsetError):
        late.__exit__(None, None, None)
    assert partial_uploads.number(store, "w") == 1
    assert partial_uploads.number(store, "v") == 0
    with begun.alone():
        upload = begun.whole(store)
        assert upload.path.read_bytes() == b"abcdef"
        with begun.used(upload.sha256):
            store.keep(upload, "datasets/d/source")
    used = partial_uploads.find(elsewhere, "w", begun.id)
    assert used is not None
    assert (used.offset, used.sha256) == (6, upload.sha256)
    assert partial_uploads.unused_since(store, 0.0) == []
    assert partial_uploads.unused_since(store, 1e12) == [f"uploads/{begun.id}@w"]
    assert partial_uploads.find(store, "w", "none") is None
