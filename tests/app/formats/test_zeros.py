"""No text, id or name of an imported file has U+0000, whatever the format."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from app.datasets.schemas import ImportOptions
from app.formats.parsing import parse
from app.formats.table import FormatError

INFER = ImportOptions(infer_columns=True)


@pytest.mark.parametrize(
    ("format", "content", "options", "rows"),
    [
        ("jsonl", b'{"label": "a", "text": "x"}\n\n{"label": "b", "text": "\\u0000"}\n', ImportOptions(), [3]),
        ("jsonl", b'{"label": "a", "text": "x", "id": "i\\u0000"}\n', ImportOptions(), [1]),
        ("jsonl", b'{"label": "a", "features": {"n\\u0000": 1}}\n', ImportOptions(), [1]),
        ("csv", b"label,text\na,x\nb,\0y\nb,z\0\n", ImportOptions(), [3, 4]),
        ("csv", b"label,co\0l\na,1\nb,2\n", ImportOptions(), [1]),
        ("csv", b"label,text,c\n" + b"a,hi,x\0y\nb,ho,z\n" * 20, INFER, list(range(2, 42, 2))[:20]),
        ("tsv", b"label\ttext\na\tx\0\n", ImportOptions(), [2]),
    ],
)
def test_a_zero_is_refused_with_its_lines(
    format: str, content: bytes, options: ImportOptions, rows: list[int], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(FormatError, match="U\\+0000") as caught:
        parse(file, format, options)
    assert [fault.row for fault in caught.value.errors] == rows


def test_a_zero_in_parquet_is_refused_with_its_row(tmp_path: Path) -> None:
    table = pa.table({"label": ["a", "b"], "text": ["x", "y\0"]})
    pyarrow.parquet.write_table(table, tmp_path / "file.parquet")
    with pytest.raises(FormatError, match="U\\+0000") as caught:
        parse(tmp_path / "file.parquet", "parquet")
    assert [fault.row for fault in caught.value.errors] == [2]


def test_zeros_in_comments_are_nobodys_text(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a 1:1 # \0\nb 2:1\n")
    assert parse(tmp_path / "file", "svmlight").labels == ["a", "b"]
