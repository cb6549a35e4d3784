import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.formats.hierarchies.nested_json import Entry, load_entries
from app.formats.table import FormatError

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def _plain(entry: Entry) -> Any:
    if entry.kind == "{":
        return {inner.key: _plain(inner) for inner in entry.inside}
    if entry.kind == "[":
        return [_plain(inner) for inner in entry.inside]
    return entry.text if entry.kind == '"' else json.loads(entry.text)


@given(DOCUMENTS, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_documents_are_those_of_the_standard_parser(document: Any, indent: Any, ascii: bool) -> None:
    assert _plain(load_entries(json.dumps(document, indent=indent, ensure_ascii=ascii))) == document


@given(DOCUMENTS, st.data())
def test_what_the_standard_parser_refuses_is_refused(document: Any, data: st.DataObject) -> None:
    text = json.dumps(document)
    at = data.draw(st.integers(0, len(text)))
    broken = text[:at] + data.draw(st.sampled_from(["", "{", "}", "[", "]", ",", ":", '"', "x"])) + text[at + 1 :]
    try:
        expected = json.loads(broken)
    except ValueError:
        with pytest.raises(FormatError, match="not JSON"):
            load_entries(broken)
    else:
        if len(json.dumps(expected)) == len(json.dumps(document)):
            load_entries(broken)


def test_values_know_their_lines() -> None:
    whole = load_entries('{\n"a": [1,\n2],\n\n"a"\n:\n3}')
    assert [(inner.key, inner.line) for inner in whole.inside] == [("a", 2), ("a", 5)]
    assert [inner.line for inner in whole.inside[0].inside] == [2, 3]
