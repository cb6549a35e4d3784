"""Tables of commands, as pipes and files get them."""

import pytest

from app.command_line.output import print_result, table


def test_no_line_of_a_table_ends_with_blanks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_result({}, table(["name", "notes"], [("a", "long " * 80 + "end"), ("bc", None), ("d", "")]), json=False)
    assert capsys.readouterr().out.splitlines() == ["name  notes", "a     " + "long " * 80 + "end", "bc    -", "d"]
