import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.formats.json_array import array_records, begins_array
from app.formats.parsing import parse
from app.formats.window import Window

SHAPED = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@SHAPED
@given(
    rows=st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), min_size=1, max_size=5),
    indent=st.sampled_from([None, 1]),
    ascii=st.booleans(),
    block=st.integers(4, 64),
)
def test_objects_are_read_one_at_a_time_with_the_lines_where_they_begin(
    tmp_path: Path, rows: list[dict[str, object]], indent: int | None, ascii: bool, block: int
) -> None:
    path = tmp_path / "data.json"
    text = json.dumps(rows, indent=indent, ensure_ascii=ascii)
    path.write_bytes(text.encode())
    assert begins_array(path.read_bytes())
    with Window(path, block) as window:
        found = list(array_records(window))
    assert [json.loads(record) for record, _ in found] == rows
    lines = text.encode().split(b"\n")
    for record, line in found:
        assert record.split(b"\n")[0] in lines[line - 1]


@pytest.mark.parametrize("newlines", [False, True])
def test_an_array_is_read_like_json_lines(tmp_path: Path, newlines: bool) -> None:
    rows = [{"label": ["a", "b"][k % 2], "text": f"text {k}\né", "id": k} for k in range(40_000)]
    lines, array = tmp_path / "a.jsonl", tmp_path / "a.json"
    lines.write_text("\n".join(map(json.dumps, rows)))
    array.write_text(json.dumps(rows, indent=1 if newlines else None))
    one, other = parse(lines, "jsonl"), parse(array, "jsonl")
    assert one.labels == other.labels
    assert one.y.tolist() == other.y.tolist()
    assert one.texts is not None
    assert other.texts is not None
    assert one.texts.blob.tobytes() == other.texts.blob.tobytes()
    assert one.ids is not None
    assert other.ids is not None
    assert list(one.ids) == list(other.ids)
