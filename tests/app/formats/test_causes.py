"""What of the faults of a table an option of its import keeps away."""

from pathlib import Path

import pytest

from app.datasets.schemas import ImportOptions
from app.formats.parsing import parse
from app.formats.table import FormatError


def test_keys_that_nothing_was_said_of_tell_why(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text('{"label": "a", "text": "x", "title": "t"}\n{"label": "a", "text": "x", "y": 1}\n')
    for options in (ImportOptions(), ImportOptions(text_columns=("text",), category_columns=("y",), missing="keep")):
        with pytest.raises(FormatError) as caught:
            parse(file, "jsonl", options)
        assert {fault.cause for fault in caught.value.errors} == {"unknown_key"}


@pytest.mark.parametrize("missing", ["refuse", "keep"])
def test_cells_that_are_no_numbers_tell_why(tmp_path: Path, missing: str) -> None:
    file = tmp_path / "f.csv"
    file.write_text('label;x\na;1\nb;"1,5"\na;red\nb;\na;inf\nb;is not a number\n')
    options = ImportOptions.model_validate({"delimiter": "semicolon", "missing": missing, "number_columns": ("x",)})
    with pytest.raises(FormatError) as caught:
        parse(file, "csv", options)
    causes = {fault.row: fault.cause for fault in caught.value.errors}
    assert causes == {3: "decimal_comma", 4: "text", 6: None, 7: "text"} | ({5: "empty"} if missing == "refuse" else {})
