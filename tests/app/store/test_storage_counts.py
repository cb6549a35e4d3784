"""Requests to object storage are counted as they are sent, with their failures, retries and times."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.operation.metrics import Metrics
from app.operation.readiness import Load
from app.store import bucket_files, buckets, storage_counts
from app.store.bucket_files import BucketFiles
from app.store.buckets import StorageAway
from app.store.files import files
from app.store.storage_counts import StorageCounts


@pytest.fixture
def counts(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> StorageCounts:
    """What the next client of this process is counted by."""
    counts = StorageCounts()
    for module in (buckets, bucket_files):
        monkeypatch.setattr(module, "COUNTS", counts)
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.0)
    buckets._client.cache_clear()
    return counts


def _store() -> BucketFiles:
    store = files()
    assert isinstance(store, BucketFiles)
    return store


def test_an_answer_is_counted_with_its_time_also_where_there_is_no_object(counts: StorageCounts) -> None:
    bucket = _store().bucket
    bucket.put_bytes("a", b"x")
    bucket.get_bytes("a")
    with pytest.raises(FileNotFoundError):
        bucket.get_bytes("b")
    assert counts.requests == {("PutObject", "answered"): 1, ("GetObject", "answered"): 2}
    assert {name: sum(each.counts) for name, each in counts.seconds.items()} == {"PutObject": 1, "GetObject": 2}
    assert counts.seconds["GetObject"].seconds > 0
    assert counts.retries == 0


def test_failures_and_retries_are_counted_by_attempt(counts: StorageCounts, bucket: Any) -> None:
    answers = iter(["busy", "busy"])
    bucket.spoil = lambda _method, _path: next(answers, None)
    _store().bucket.put_bytes("a", b"x")
    assert counts.requests == {("PutObject", "failed"): 2, ("PutObject", "answered"): 1}
    assert counts.retries == 2
    bucket.spoil = lambda _method, _path: "busy"
    with pytest.raises(StorageAway):
        _store().bucket.get_bytes("a")
    assert counts.requests["GetObject", "failed"] == 7
    assert counts.retries == 8


def test_a_storage_that_is_not_there_is_a_failure(counts: StorageCounts, configure: Any) -> None:
    configure(files_endpoint="http://127.0.0.1:9")
    with pytest.raises(StorageAway):
        _store().bucket.get_bytes("a")
    assert counts.requests == {("GetObject", "failed"): 7}


def test_removed_copies_and_their_bytes_are_counted(
    counts: StorageCounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_files, "_IN_USE_SECONDS", -1.0)
    store = BucketFiles(tmp_path / "copies", _store().bucket, 5_000)
    for name in ("a", "b", "c"):
        store.save_arrays(f"datasets/{name}", {"x": np.zeros(300)}, {})
    assert counts.evictions == 2
    assert 2_400 < store.copies_bytes() < 5_000
    assert files().working.copies_bytes() == 0


def test_the_metrics_have_them(counts: StorageCounts) -> None:
    _store().bucket.put_bytes("a", b"x")
    counts.evicted()
    text = Metrics(lambda: Load({}, 0.0, {}, 0), lambda: 0, lambda: 7, counts).text().decode()
    assert 'polymargin_storage_requests_total{operation="PutObject",outcome="answered"} 1.0' in text
    assert 'polymargin_storage_seconds_count{operation="PutObject"} 1.0' in text
    assert "polymargin_storage_retries_total 0.0" in text
    assert "polymargin_file_cache_evictions_total 1.0" in text
    assert "polymargin_file_cache_bytes 7.0" in text
    assert len(set(re.findall(r"^# HELP (polymargin_(?:storage|file)\w+)", text, re.MULTILINE))) >= 5
    assert storage_counts.COUNTS is not counts
