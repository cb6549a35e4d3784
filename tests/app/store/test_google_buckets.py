"""Objects of buckets of Google Cloud Storage, through Google's client and an emulator of the service."""

import hashlib
import os
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from app.config import Settings
from app.store import google_buckets
from app.store.buckets import SHA256, StorageAway
from app.store.google_buckets import GoogleBucket


def test_a_file_is_written_with_its_digest_and_read_in_blocks(
    lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # more than one range of the reader, and an upload in parts
    monkeypatch.setattr(google_buckets, "_READ_BYTES", 1 << 18)
    source = tmp_path / "rows.csv"
    content = os.urandom(9 << 20)
    source.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    GoogleBucket("lake").put("a folder/rows.csv", source, digest)
    blocks = list(GoogleBucket("lake").blocks("a folder/rows.csv", 100_000))
    assert b"".join(blocks) == content
    assert max(map(len, blocks)) == 100_000
    assert lake.get_blob("a folder/rows.csv").metadata == {SHA256: digest}
    source.write_bytes(b"")
    GoogleBucket("lake").put("a folder/rows.csv", source, digest)
    assert list(GoogleBucket("lake").blocks("a folder/rows.csv", 100_000)) == []


def test_an_object_that_is_replaced_while_it_is_read_is_not_cut(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(google_buckets, "_READ_BYTES", 1 << 18)
    lake.blob("rows.csv").upload_from_string(b"a" * (1 << 20))
    blocks = GoogleBucket("lake").blocks("rows.csv", 1 << 18)
    next(blocks)
    lake.blob("rows.csv").upload_from_string(b"b")
    with pytest.raises(StorageAway, match="retry later"):
        list(blocks)


def test_what_is_not_there_and_a_storage_that_is_away(
    lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_bytes(b"x")
    with pytest.raises(FileNotFoundError):
        list(GoogleBucket("lake").blocks("none", 10))
    with pytest.raises(StorageAway, match="answered 404"):
        GoogleBucket("another").put("x", tmp_path / "x", "")
    monkeypatch.setattr(google_buckets, "_RETRY_SECONDS", 0.1)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    google_buckets._client.cache_clear()
    with pytest.raises(StorageAway, match="does not answer"):
        GoogleBucket("lake").put("x", tmp_path / "x", "")
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    google_buckets._client.cache_clear()
    with pytest.raises(StorageAway, match="needs valid credentials"):
        list(GoogleBucket("lake").blocks("x", 10))


def test_a_forked_process_makes_a_client_of_its_own(lake: Any) -> None:
    lake.blob("rows.csv").upload_from_string(b"rows")
    list(GoogleBucket("lake").blocks("rows.csv", 10))
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(sender,))
    child.start()
    assert receiver.recv() == b"rows"
    child.join()


def _send(sender: Any) -> None:
    sender.send(b"".join(GoogleBucket("lake").blocks("rows.csv", 10)))


@pytest.mark.parametrize("field", ["sources", "targets"])
def test_without_the_package_the_start_names_the_command_that_installs_it(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.config._has_google_client", lambda: False)
    with pytest.raises(ValueError, match=r"pip install 'polymargin\[gs\]'"):
        Settings(**{field: "gs://lake/"})  # type: ignore[arg-type]
