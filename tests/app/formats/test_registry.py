import gzip
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.formats.detection import declared_format
from app.formats.registry import FORMATS, parse
from app.formats.table import FormatError
from app.schemas.datasets.datasets import ImportOptions


def arrow(write: Callable[[pa.BufferOutputStream, pa.Table], None]) -> bytes:
    table = pa.table({"kind": ["a"], "x": [2]})
    stream = pa.BufferOutputStream()
    write(stream, table)
    return bytes(stream.getvalue())


def ipc(stream: pa.BufferOutputStream, table: pa.Table) -> None:
    with pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)


def npz() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, kind=["a"], X=[[2.0]])
    return stream.getvalue()


CONTENTS = {
    "svmlight": b"a 1:2",
    "csv": b"kind,x\na,2",
    "tsv": b"kind\tx\na\t2",
    "jsonl": b'{"kind": "a", "features": {"x": 2}}',
    "parquet": arrow(lambda stream, table: pq.write_table(table, stream)),
    "arrow": arrow(ipc),
    "npz": npz(),
}


@pytest.mark.parametrize("format", sorted(set(FORMATS) - {"annif"}))
def test_every_format_reads_the_same_row_and_its_content_tells_it(tmp_path: Path, format: str) -> None:
    path, options = tmp_path / "data", ImportOptions(label_column="kind")
    path.write_bytes(CONTENTS[format])
    parsed = parse(path, format, options)
    assert (parsed.kind, parsed.labels, parsed.y.tolist()) == ("sparse", ["a"], [0])
    assert parsed.X is not None
    assert parsed.X.toarray().tolist() == [[2.0]]
    assert declared_format(path, options) == format
    path.write_bytes(gzip.compress(CONTENTS[format]))
    assert declared_format(path, options) == format


def test_annifs_content_tells_itself(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"a text\t<http://example.org/1>\n")
    assert declared_format(path, ImportOptions()) == "annif"
    assert parse(path, "annif").labels == ["http://example.org/1"]


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b"just some words\nand others", "the content tells no format"),
        (b"label\t1:x\na\t2\n", "svmlight or tsv"),
        (b"%PDF-1.7 ...", "a PDF document"),
        (b"PK\x03\x04" + b"\0" * 26 + b"[Content_Types].xml", "save it as CSV"),
        (b"PK\x03\x04" + b"\0" * 26 + b"papers/1.txt", "a zip archive"),
        (b"papers/1.txt".ljust(257, b"\0") + b"ustar", "a tar of a folder is not read"),
        (b"\x80\x04\x95" + b"\0" * 20, "a pickle, which is never read"),
        ("label\ttext\n".encode("utf-16"), "encoding=utf-16"),
        ("label\ttext\n".encode("utf-16-le"), "no byte order mark"),
        (b'[{"label": "a", "text": "b"}]', "one JSON array"),
        (b'[\n  {"label": "a", "text": "b"}\n]', "one JSON array"),
        (b"  \n\n", "blank lines"),
    ],
)
def test_content_that_tells_no_format_is_refused_with_what_to_do(tmp_path: Path, content: bytes, detail: str) -> None:
    path = tmp_path / "data"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=re.escape(detail)):
        declared_format(path, ImportOptions())


def test_a_file_of_another_format_than_the_named_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(CONTENTS["parquet"])
    with pytest.raises(FormatError, match="begins as parquet does, and not as csv"):
        parse(path, "csv")
    path.write_bytes(CONTENTS["csv"])
    with pytest.raises(FormatError, match="does not begin as npz does"):
        parse(path, "npz")
