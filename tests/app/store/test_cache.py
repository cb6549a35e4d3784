"""The cache: one checked copy a machine, the least recently used go first, and a broken one is never used."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from app.store.cache import local_copy
from app.store.files import Files, files


@pytest.fixture
def store(home: Path) -> Files:
    """A store of three folders of 8 kB."""
    for name in "abc":
        files().save_arrays(f"datasets/{name}/arrays-1", {"y": np.full(1000, ord(name))}, {})
    return files()


@pytest.fixture
def cache(store: Files, tmp_path: Path, configure: Callable[..., None]) -> Path:
    configure(cache=tmp_path / "cache", cache_bytes=20_000)
    return tmp_path / "cache"


def test_without_a_cache_the_store_is_at_hand(store: Files) -> None:
    assert local_copy(store, "datasets/a/arrays-1") is store


def test_a_copy_is_made_once_and_mapped_from_the_cache(store: Files, cache: Path) -> None:
    path = "datasets/a/arrays-1"
    for _ in range(2):
        arrays, _manifest = local_copy(store, path).load_arrays(path)
        store.delete(path)
        assert str(arrays["y"].filename).startswith(str(cache))  # type: ignore[attr-defined]
        assert (arrays["y"] == ord("a")).all()
    assert [folder.name for folder in (cache / "datasets" / "a").iterdir()] == ["arrays-1"]


def test_copies_used_least_recently_go_first(store: Files, cache: Path) -> None:
    for i, name in enumerate("abac"):
        local_copy(store, f"datasets/{name}/arrays-1")
        os.utime(cache / "datasets" / name / "arrays-1", (i, i))
    assert sorted(path.parts[-3] for path in cache.glob("*/*/*/manifest.json")) == ["a", "c"]


def test_a_copy_that_is_not_what_was_written_is_refused_and_removed(store: Files, cache: Path) -> None:
    np.save(store.path("datasets/a/arrays-1/y.npy"), np.zeros(1000))
    with pytest.raises(ValueError, match=r"array y of .* is damaged"):
        local_copy(store, "datasets/a/arrays-1")
    assert not list(cache.glob("datasets/a/*"))
