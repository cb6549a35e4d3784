"""``polymargin datasets correct``, against canned answers."""

import json
from pathlib import Path

import pytest
from canned import DATASET, SUCCEEDED, Canned, problem, status_of

from app.client import Client

READY = DATASET | {"state": "ready", "kind": "text", "n_rows": 2, "n_classes": 2}


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    return status_of(monkeypatch, "datasets", "correct", "papers", *arguments)


def _accepted(canned: Canned) -> None:
    job = SUCCEEDED | {"result": {"dataset_version": 2, "warning": "1 new label: 'physcs'"}}
    canned.answer("POST /datasets/papers/corrections", job)
    canned.answer("GET /jobs/j1", job)
    canned.answer("GET /datasets/papers", READY)


def test_the_lines_of_a_file_are_sent_as_they_are(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _accepted(canned)
    given = [{"row": 7, "labels": ["a", "b"]}, {"row": 0, "labels": [], "before": ["c"]}]
    file = tmp_path / "right.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in given))
    assert _run(monkeypatch, "--file", str(file)) == 0
    assert json.loads(canned.asked[0].body) == {"corrections": given}
    assert "Warning: 1 new label: 'physcs'" in capsys.readouterr().out
    assert _run(monkeypatch, "1", "physics") == 0
    assert json.loads(canned.asked[-3].body) == {"corrections": [{"row": 1, "labels": ["physics"]}]}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            '{"row": 8, "labels": "physics"}',
            'line 2 of the file is not of the form {"row": 7, "labels": ["a"]}: labels: ',
        ),
        ('{"row": 8.5, "labels": ["a"]}', "row: Input should be a valid integer"),
        ('{"row": 8}', "labels: Value error, give the correct labels, or delete: true"),
        ("", "line 2 of the file"),
        ('{"row": 7, "labels": ["b"]}', "lines 1 and 2 of the file both correct row 7"),
    ],
)
def test_a_line_that_is_none_is_told_and_nothing_is_sent(
    canned: Canned,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    line: str,
    said: str,
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    file = tmp_path / "right.jsonl"
    file.write_text(f'{{"row": 7, "labels": ["a"]}}\n{line}\n')
    assert _run(monkeypatch, "--file", str(file)) == 2
    assert said in capsys.readouterr().err
    assert not canned.asked


def test_a_fault_is_told_by_what_was_given(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fault = {"pointer": "/corrections/0/row", "detail": "row 9: the dataset has the rows 0 to 3"}
    canned.answer("POST /datasets/papers/corrections", problem(422, "invalid_input", "no", [fault]), 422)
    file = tmp_path / "right.jsonl"
    file.write_text('{"row": 9, "labels": ["a"]}\n')
    assert _run(monkeypatch, "9", "a") == 1
    assert capsys.readouterr().err == "Error: no\n  ROW: row 9: the dataset has the rows 0 to 3\n"
    assert _run(monkeypatch, f"--file={file}") == 1
    assert "--file, line 1: row: row 9: the dataset" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "options", "sent"),
    [
        ("\ufeffid;label;text\n007;pome;x\n008; ;y\n", [], [{"id": "007", "labels": ["pome"]}]),
        (
            'text,label,before\n"a, b",x|y,z\n',
            ["--label-separator", "|"],
            [{"text": "a, b", "labels": ["x", "y"], "before": ["z"]}],
        ),
        (
            "id,delete,label\n007,yes,\n008,no,pome\n009,,\n010, X ,\n",
            [],
            [{"id": "007", "delete": True}, {"id": "008", "labels": ["pome"]}, {"id": "010", "delete": True}],
        ),
        ("row,delete\n3,1\n4,0\n", [], [{"row": 3, "delete": True}]),
        ("id\trow\tlabel\n007\t3\tpome\n", ["--by", "row"], [{"row": 3, "labels": ["pome"]}]),
    ],
)
def test_a_table_names_rows_by_id_text_or_number(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str, options: list[str], sent: object
) -> None:
    _accepted(canned)
    file = tmp_path / "corrections.csv"
    file.write_text(content)
    assert _run(monkeypatch, str(file), *options) == 0
    assert json.loads(canned.asked[0].body) == {"corrections": sent}


def test_a_table_is_read_in_its_encoding(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _accepted(canned)
    file = tmp_path / "corrections.csv"
    file.write_bytes("id,label\n7,Käse\n".encode("cp1252"))
    for options, said in (
        ([], "the file is not UTF-8; give its --encoding"),
        (["--encoding", "x"], "unknown encoding"),
    ):
        assert _run(monkeypatch, str(file), *options) == 2
        assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not canned.asked
    assert _run(monkeypatch, str(file), "--encoding", "windows-1252") == 0
    assert json.loads(canned.asked[0].body) == {"corrections": [{"id": "7", "labels": ["Käse"]}]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("name,label\na,b\n", "it needs label or delete, and one of id, text and row"),
        ("id,label\n1,a\n1,b\n", "lines 2 and 3 of the file both correct id 1"),
        ("row,label\nx,a\n", "line 2 of the file has no row number"),
        ("id,label\n1,\n", "the file has no corrections"),
        ("id,label,delete\n1,a,yes\n", "line 2 of the file has a label, and is to be deleted"),
        ("id,delete\n1,perhaps\n", "line 2 of the file has 'perhaps' in the column delete"),
    ],
)
def test_a_table_that_is_none_is_told_and_nothing_is_sent(
    canned: Canned,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    content: str,
    said: str,
) -> None:
    file = tmp_path / "corrections.csv"
    file.write_text(content)
    assert _run(monkeypatch, str(file)) == 2
    assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not canned.asked


def test_one_row_is_named_by_its_number_id_or_text_and_may_be_deleted(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _accepted(canned)
    for arguments, sent in (
        (["7", "--delete"], {"row": 7, "delete": True}),
        (["007", "--by", "id", "--delete"], {"id": "007", "delete": True}),
        (["red apple", "pome", "--by", "text"], {"text": "red apple", "labels": ["pome"]}),
    ):
        assert _run(monkeypatch, *arguments) == 0
        assert json.loads(canned.asked[-3].body) == {"corrections": [sent]}
    asked = len(canned.asked)
    assert _run(monkeypatch, "7", "pome", "--delete") == 2
    assert "one row and no labels" in capsys.readouterr().err
    assert len(canned.asked) == asked


def test_a_line_may_delete_a_row(canned: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _accepted(canned)
    file = tmp_path / "right.jsonl"
    file.write_text('{"id": "a", "delete": true}\n{"row": 3, "version": 2, "labels": ["b"]}\n')
    assert _run(monkeypatch, "--file", str(file)) == 0
    sent = [{"id": "a", "delete": True}, {"row": 3, "version": 2, "labels": ["b"]}]
    assert json.loads(canned.asked[0].body) == {"corrections": sent}
    with Client() as client:
        client.datasets.delete_rows("papers", ["a", "b"], by="id")
    deletions = [{"id": "a", "delete": True}, {"id": "b", "delete": True}]
    assert json.loads(canned.asked[-1].body) == {"corrections": deletions}
