"""Inputs that are kept in tests/corpus: each is read or refused, and so is what becomes of them by chance."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, target
from hypothesis import strategies as st

from app.datasets.formats import FORMATS
from app.datasets.schemas import ImportOptions
from app.formats.detection import declared_format
from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.hierarchies.source import Bounds
from app.formats.parsing import parse
from app.formats.table import FormatError
from app.hierarchies.formats import FORMATS as HIERARCHY_FORMATS
from app.hierarchies.schemas import HierarchyOptions

CORPUS = Path(__file__).parents[2] / "corpus"
DATASETS, HIERARCHIES = (sorted((CORPUS / kind).iterdir()) for kind in ("datasets", "hierarchies"))
BOUNDS = Bounds(nodes=2000, depth=100, characters=1 << 20)
PIECES = [
    b"\n", b"\r\n", b"\t", b" ", b'"', b",", b":", b"\x00", b"\xff", b"\xef\xbb\xbf", b"-", b"1e999", b"nan", b"9" * 30,
    b"2147483648", b"<", b">", b"&", b"{", b"}", b"[", b"]", b"@", b"\\u", b"\\ud800", b"PK\x03\x04", b"\x1f\x8b",
]  # fmt: skip


def _read(path: Path, format: str) -> int:
    """How much was found, or how many faults; anything but a reading or a refusal is raised."""
    try:
        if path.parent.name == "hierarchies":
            return len(parse_hierarchy(path, format, HierarchyOptions(), BOUNDS).tree.names)
        return parse(path, format, ImportOptions()).n_rows
    except FormatError as error:
        return error.n_errors


@pytest.mark.parametrize("path", [*DATASETS, *HIERARCHIES], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_kept_input_is_read_or_refused(path: Path) -> None:
    _read(path, path.suffix[1:])


def test_every_format_has_an_input_that_is_read() -> None:
    for paths, formats in ((DATASETS, FORMATS), (HIERARCHIES, HIERARCHY_FORMATS)):
        read = {path.suffix[1:] for path in paths if path.stem == "good"}
        assert read == set(formats), "each format has a file tests/corpus/KIND/good.FORMAT, of two rows or labels"
    for path in (*DATASETS, *HIERARCHIES):
        if path.stem == "good":
            assert _read(path, path.suffix[1:]) >= 2


@pytest.mark.parametrize("path", [path for path in DATASETS if path.stem == "good"], ids=lambda path: path.suffix[1:])
def test_every_format_is_recognised_by_its_content(path: Path) -> None:
    assert declared_format(path, ImportOptions()) == path.suffix[1:]


def _changed(content: bytes, others: list[bytes], data: st.DataObject) -> bytes:
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        length = data.draw(st.integers(0, 16))
        other = data.draw(st.sampled_from(others))
        new = data.draw(
            st.sampled_from(
                [b"", content[at : at + length] * 3, other[at : at + 40], *PIECES, *(bytes([i]) for i in range(256))]
            )
        )
        content = content[:at] + new + content[at + length :]
    return content


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["datasets", "hierarchies"])
@settings(max_examples=800, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_becomes_of_kept_inputs_by_chance_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    paths = DATASETS if kind == "datasets" else HIERARCHIES
    path = data.draw(st.sampled_from(paths))
    format = path.suffix[1:]
    others = [other.read_bytes() for other in paths if other.suffix == path.suffix]
    changed = tmp_path_factory.getbasetemp() / kind / f"changed{path.suffix}"
    changed.parent.mkdir(exist_ok=True)
    changed.write_bytes(_changed(path.read_bytes(), others, data))
    # inputs of which more is read come further
    target(float(_read(changed, format)), label=format)
