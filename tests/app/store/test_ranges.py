"""Rows of large arrays are read from object storage by ranges, and checked, before the whole array is there."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.store import ranges
from app.store.bucket_files import BucketFiles
from app.store.buckets import StorageAway
from app.store.files import Files, files
from app.store.ranges import RangedRows, TooManyRows

W = np.random.default_rng(0).standard_normal((300, 7)).astype(np.float32)
FOLDER = "models/m/model"
ARRAY = f"{FOLDER}/W.npy"


@pytest.fixture
def store(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> BucketFiles:
    """Files with digests of all arrays of a kilobyte or more."""
    monkeypatch.setattr(ranges, "RANGED_BYTES", 1 << 10)
    monkeypatch.setattr(ranges, "BLOCK_BYTES", 512)
    found = files()
    assert isinstance(found, BucketFiles)
    found.save_arrays(FOLDER, {"W": W, "features": np.arange(100)}, {"kind": "linear"})
    return found


@pytest.fixture
def elsewhere(store: BucketFiles, tmp_path: Path) -> BucketFiles:
    """The same files as another machine has them."""
    return BucketFiles(tmp_path / "elsewhere", store.bucket, 1 << 30)


def _rows(store: BucketFiles) -> RangedRows:
    found = store.ranged(FOLDER)
    assert found is not None
    assert found.large.keys() == {"W"}
    np.testing.assert_array_equal(found.small["features"], np.arange(100))
    return found.large["W"]


def _reads(bucket: Any) -> int:
    return sum(path.endswith("W.npy") for method, path in bucket.requests if method == "GET")


@pytest.mark.parametrize("at", [[0], [299], [3, 4, 5, 200], [17, 18, 36], list(range(300)), []])
def test_rows_are_those_of_the_array(at: list[int], elsewhere: BucketFiles) -> None:
    found = _rows(elsewhere).rows(np.array(at, np.int64))
    assert found.dtype == W.dtype
    np.testing.assert_array_equal(found, W[at])
    assert not elsewhere.path(FOLDER).exists()


def test_few_requests_read_neighbours_and_none_what_was_read(elsewhere: BucketFiles, bucket: Any) -> None:
    rows = _rows(elsewhere)
    bucket.requests.clear()
    rows.rows(np.arange(250, 300))
    assert _reads(bucket) == 1
    rows.rows(np.arange(260, 270))
    assert _reads(bucket) == 1
    rows.rows(np.array([100, 200, 299]))
    assert _reads(bucket) == 3


def test_a_run_of_blocks_has_a_bound(elsewhere: BucketFiles, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_MOST_AT_ONCE", 2048)
    rows = _rows(elsewhere)
    bucket.requests.clear()
    np.testing.assert_array_equal(rows.rows(np.arange(300)), W)
    assert _reads(bucket) == 4  # of 17 blocks all but the first, which has the header


def test_blocks_are_forgotten_at_a_bound_and_too_many_rows_are_refused(
    elsewhere: BucketFiles, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = _rows(elsewhere)
    monkeypatch.setattr(ranges, "MOST_BYTES", 4 * 512)
    bucket.requests.clear()
    for _ in range(2):
        for begin in (50, 150, 250):
            np.testing.assert_array_equal(rows.rows(np.arange(begin, begin + 10)), W[begin : begin + 10])
    assert _reads(bucket) > 3
    with pytest.raises(TooManyRows):
        rows.rows(np.arange(300))


def test_a_damaged_block_is_refused(store: BucketFiles, elsewhere: BucketFiles, tmp_path: Path) -> None:
    rows = _rows(elsewhere)
    content = bytearray(store.path(ARRAY).read_bytes())
    content[5000] ^= 1
    damaged = tmp_path / "damaged"
    damaged.write_bytes(content)
    store.bucket.put(ARRAY, damaged, "0" * 64)
    with pytest.raises(ValueError, match=r"block 9 of .*W.npy is damaged"):
        rows.rows(np.arange(150, 200))
    np.testing.assert_array_equal(rows.rows(np.arange(10)), W[:10])


def test_a_block_that_is_cut_short_is_refused(elsewhere: BucketFiles, bucket: Any) -> None:
    rows = _rows(elsewhere)
    bucket.spoil = lambda _method, path: "truncated" if path.endswith("W.npy") else None
    with pytest.raises((ValueError, StorageAway)):
        rows.rows(np.arange(100, 200))


def test_digests_of_another_file_are_refused(store: BucketFiles, elsewhere: BucketFiles) -> None:
    other = hashlib.sha256(b"another").hexdigest()
    store.bucket.put_bytes(ARRAY + ranges.SUFFIX, ranges.digests(store.path(ARRAY), other))
    with pytest.raises(ValueError, match="is about another file"):
        elsewhere.ranged(FOLDER)


def test_a_small_array_that_is_damaged_is_refused(store: BucketFiles, elsewhere: BucketFiles) -> None:
    store.bucket.put_bytes(f"{FOLDER}/features.npy", b"damaged")
    with pytest.raises(ValueError, match="array features of models/m/model is damaged"):
        elsewhere.ranged(FOLDER)


def test_nothing_is_read_by_ranges_that_is_at_hand_or_has_no_digests(
    store: BucketFiles, elsewhere: BucketFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.ranged(FOLDER) is None
    assert Files(store.root).ranged(FOLDER) is None
    monkeypatch.setattr(ranges, "RANGED_BYTES", 1 << 20)
    store.save_arrays("models/s/model", {"W": W}, {})
    assert elsewhere.ranged("models/s/model") is None
    with pytest.raises(FileNotFoundError):
        elsewhere.ranged("models/no/model")


@pytest.mark.parametrize("array", [np.asfortranarray(W), np.arange(1000.0)], ids=["columns", "one axis"])
def test_arrays_whose_rows_do_not_lie_together_are_not_read(array: Any, store: BucketFiles, tmp_path: Path) -> None:
    store.save_arrays("models/f/model", {"W": array}, {})
    with pytest.raises(ValueError, match="no rows that lie together"):
        BucketFiles(tmp_path / "elsewhere", store.bucket, 1 << 30).ranged("models/f/model")


def test_digests_go_with_their_folder(store: BucketFiles, elsewhere: BucketFiles) -> None:
    assert store.bucket.exists(ARRAY + ranges.SUFFIX)
    assert sorted(path.name for path in elsewhere.local(FOLDER).iterdir()) == [
        "W.npy", "features.npy", "manifest.json",
    ]  # fmt: skip
    store.delete(FOLDER)
    assert [path for path, _, _ in store.bucket.listed(FOLDER)] == []


def test_a_file_that_is_moved_to_a_bucket_gets_digests(store: BucketFiles, elsewhere: BucketFiles) -> None:
    source = store.path(ARRAY)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    store.put("models/moved/model/W.npy", source, digest)
    found = RangedRows(elsewhere.bucket, "models/moved/model/W.npy", digest)
    np.testing.assert_array_equal(found.rows(np.array([7])), W[[7]])
