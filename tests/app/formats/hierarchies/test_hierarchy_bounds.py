"""Files of label trees that are made to be large: they are refused while they are read."""

import threading
from pathlib import Path

import pytest

from app.formats.hierarchies import apart
from app.formats.hierarchies.apart import INLINE_BYTES, read_hierarchy
from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.hierarchies.source import Bounds
from app.formats.table import FormatError
from app.hierarchies.schemas import HierarchyOptions

OPTIONS = HierarchyOptions()


class Gone(Exception):
    """Nobody waits any more."""


def _refusal(path: Path, format: str, content: bytes, bounds: Bounds | None = None) -> str:
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        parse_hierarchy(path, format, OPTIONS, bounds)
    return caught.value.errors[0].detail


def test_brackets_in_one_another_are_bounded(tmp_path: Path) -> None:
    assert "2,002 brackets" in _refusal(tmp_path / "f", "json", b"[" * 16_000_000)


def test_values_are_bounded_whatever_they_are(tmp_path: Path) -> None:
    assert "40 values" in _refusal(tmp_path / "f", "json", b"[" + b"[]," * 1000 + b"[]]", Bounds(nodes=10))


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("json", b'{"a":0,"b":0,"c":0}'),
        ("csv", b"parent,child\n,a\n,b\n,c\n"),
        ("paths", b"a.b.c\n"),
        ("lshtc", b"1 2\n2 3\n3 4\n"),
        ("rcv1", b"parent: None child: r\n" + b"".join(b"parent: r child: %d\n" % i for i in range(3))),
    ],
)
def test_nodes_and_levels_are_bounded_in_every_format(tmp_path: Path, format: str, content: bytes) -> None:
    assert "2 nodes" in _refusal(tmp_path / "f", format, content, Bounds(nodes=2))
    if format in ("paths", "lshtc"):
        assert "levels" in _refusal(tmp_path / "f", format, content, Bounds(depth=2))


def test_a_path_of_many_parts_is_refused_by_its_length(tmp_path: Path) -> None:
    for n_parts in (20_000, 5_000_000):
        assert "at most 1000" in _refusal(tmp_path / "f", "paths", b".".join([b"a"] * n_parts))


def test_the_names_of_paths_are_bounded_together(tmp_path: Path) -> None:
    line = ".".join("a" * 500).encode()
    assert "1,000 characters" in _refusal(tmp_path / "f", "paths", line, Bounds(characters=1000))


def test_a_line_that_repeats_what_is_there_costs_its_new_nodes_alone(tmp_path: Path) -> None:
    stem = ".".join("a" * 400)
    (tmp_path / "f").write_text("\n".join(f"{stem}.{i}" for i in range(300)))
    assert parse_hierarchy(tmp_path / "f", "paths").tree.n_nodes == 700


def test_no_more_faults_are_read_than_anybody_needs(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b".\n" * 30_000)
    with pytest.raises(FormatError) as caught:
        parse_hierarchy(tmp_path / "f", "paths")
    assert caught.value.n_errors == 10_000


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file that is read in another process."""
    path = tmp_path / "large"
    path.write_text("\n".join(f"groß.{i}" for i in range(8000)))
    assert path.stat().st_size > INLINE_BYTES
    return path


def test_a_large_file_is_read_in_another_process_and_gives_the_same_tree(large: Path) -> None:
    found = read_hierarchy(large, "paths", OPTIONS, Bounds(), lambda: None)
    assert found.tree == parse_hierarchy(large, "paths").tree


def test_the_faults_of_a_large_file_are_those_of_a_small_one(large: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read_hierarchy(large, "csv", OPTIONS, Bounds(), lambda: None)
    with pytest.raises(FormatError) as expected:
        parse_hierarchy(large, "csv")
    assert caught.value.errors == expected.value.errors


def test_reading_ends_with_whoever_waited_for_it(large: Path) -> None:
    def check() -> None:
        raise Gone

    with pytest.raises(Gone):
        read_hierarchy(large, "paths", OPTIONS, Bounds(), check)
    assert apart._turns.acquire(blocking=False)
    apart._turns.release()


def test_reading_takes_no_longer_than_it_may(large: Path) -> None:
    with pytest.raises(FormatError, match="longer than 0 s"):
        read_hierarchy(large, "paths", OPTIONS, Bounds(seconds=0.0), lambda: None)


def test_reading_takes_no_more_memory_than_it_may(large: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("app.formats.hierarchies.apart.parse_hierarchy", _hungry)
    monkeypatch.setattr("resource.setrlimit", lambda *_: None)
    ended = threading.Event()
    monkeypatch.setattr("app.formats.hierarchies.apart._end_with_the_caller", ended.set)
    apart.main(str(large), "paths", "{}", "{}", str(tmp_path))
    assert "exceeds its memory limit" in (tmp_path / "found.json").read_text()


def _hungry(*_: object) -> None:
    raise MemoryError
