from pathlib import Path

import pytest

from app.formats.registry import FORMATS, parse
from app.schemas.datasets import ImportOptions

CONTENTS = {"svmlight": "a 1:2", "csv": "kind,x\na,2", "jsonl": '{"kind": "a", "features": {"x": 2}}'}


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_every_format_reads_the_same_row(tmp_path: Path, format: str) -> None:
    path = tmp_path / "data"
    path.write_text(CONTENTS[format])
    parsed = parse(path, format, ImportOptions(label_column="kind"))
    assert (parsed.kind, parsed.labels, parsed.y.tolist()) == ("sparse", ["a"], [0])
    assert parsed.X is not None
    assert parsed.X.toarray().tolist() == [[2.0]]
