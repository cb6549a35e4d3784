"""The route that proposes a role for each column of a table, and the command that shows them at a terminal."""

import json
import os
import pty
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from asking import TestClient, bearer, problem
from canned import DATASET, Canned, status_of
from fastapi import FastAPI

from app.datasets import label_columns
from app.datasets.label_columns import shows_columns
from app.datasets.schemas import MOST_SAMPLE_BYTES

URL = "/api/v1/datasets/columns"
TABLE = b"code;description;town\n" + b"".join(b"c%d;the work %d;T%d\n" % (n % 3, n, n % 4) for n in range(30))
UNCLEAR = b"size,town,river\n" + b"".join(b"%d,T%d,R%d\n" % (n, n % 3, n % 4) for n in range(30))


def test_the_columns_of_a_table_are_proposed(client: TestClient) -> None:
    answer = client.post(URL, params={"file": "jobs.csv"}, content=TABLE)
    assert answer.status_code == 200
    found = answer.json()
    assert (found["format"], found["n_rows"], found["n_columns"], found["label_column"]) == ("csv", 30, 3, "code")
    assert found["columns"][1] == {
        "name": "description",
        "type": "text",
        "role": "text",
        "reason": "11 characters on average",
        "n_missing": 0,
        "values": [f"the work {n}" for n in range(5)],
    }
    assert found["options"] == {
        "label_column": "code",
        "text_columns": ["description"],
        "category_columns": ["town"],
    }
    assert client.get("/api/v1/datasets").json()["items"] == []
    given = client.post(URL, params={"label_column": "town", "ignore_columns": ["code"]}, content=TABLE).json()
    assert [column["role"] for column in given["columns"]] == ["ignored", "text", "label"]


@pytest.mark.parametrize(
    ("query", "content", "status", "said"),
    [
        ({}, b"", 422, "The file is empty"),
        ({}, b"\0" * 64, 422, "zero bytes"),
        ({}, b"one\ntwo\n", 422, "not a header with several columns"),
        ({"label_column": "none"}, TABLE, 422, "no column 'none'"),
        ({"format": "none"}, TABLE, 422, "format"),
        ({"format": "jsonl", "delimiter": "comma"}, b'{"a": 1}', 422, "it has no delimiters"),
        ({"file": "a\0.csv"}, TABLE, 422, ""),
        ({"nothing": "1"}, TABLE, 422, "nothing"),
        ({"file": "a" * 256}, TABLE, 422, "file"),
        ({}, TABLE + b"x" * MOST_SAMPLE_BYTES, 413, "larger than"),
    ],
    ids=[
        "empty", "zeros", "no table", "no such column", "no such format", "option", "zero in a name", "unknown",
        "long name", "large",
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused_with_the_reason(
    client: TestClient, query: dict[str, str], content: bytes, status: int, said: str
) -> None:
    code = "too_large" if status == 413 else "invalid_input"
    assert said in json.dumps(problem(client.post(URL, params=query, content=content), status, code))


def test_a_compressed_body_is_refused(client: TestClient) -> None:
    answer = client.post(URL, content=TABLE, headers={"Content-Encoding": "gzip"})
    problem(answer, 415, "unsupported_format")


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("clerk", 200), ("editor", 200), (None, 401)])
def test_each_role_that_may_upload_may_ask_for_columns(
    app: FastAPI, secrets: dict[str, str], role: str | None, status: int
) -> None:
    with TestClient(app, headers=bearer(secrets[role]) if role else {}) as client:
        assert client.post(URL, content=TABLE).status_code == status


def _proposal(label: str | None, doubt: str | None, options: dict[str, Any]) -> dict[str, Any]:
    column = {"type": "category", "reason": "3 different values in 30 rows", "n_missing": 0, "values": ["T0", "T1"]}
    columns = [column | {"name": name, "role": "label" if name == label else "category"} for name in ("town", "river")]
    return {
        "format": "csv", "n_rows": 30, "n_columns": 2, "columns": columns, "label_column": label, "doubt": doubt,
        "options": options,
    }  # fmt: skip


def _uploaded(monkeypatch: pytest.MonkeyPatch, canned: Canned, path: Path, *options: str) -> dict[str, list[str]]:
    """The query of the upload that the command makes."""
    canned.answer("POST /datasets", DATASET, 202)
    assert status_of(monkeypatch, "datasets", "upload", str(path), "--no-wait", *options) == 0
    return next(each for each in canned.asked if each.path == "/datasets").lists


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_columns, "at_terminal", lambda: True)


@pytest.mark.usefixtures("terminal")
def test_at_a_terminal_the_columns_are_shown_and_the_label_is_asked_for(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "places.csv"
    path.write_bytes(UNCLEAR)
    canned.answer("POST /datasets/columns", _proposal(None, "No column looks like the label.", {}))
    options = {"label_column": "river", "category_columns": ["town", "a, b"], "missing": "keep"}
    canned.answer("POST /datasets/columns", _proposal("river", None, options))
    given = iter(["none", "river"])
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: next(given))
    query = _uploaded(monkeypatch, canned, path)
    assert {name: query[name] for name in options} == {
        "label_column": ["river"],
        "category_columns": ["town", "a, b"],
        "missing": ["keep"],
    }
    first, second = (each for each in canned.asked if each.path == "/datasets/columns")
    assert (first.query, first.body) == ({"file": "places.csv"}, UNCLEAR)
    assert second.query == {"file": "places.csv", "label_column": "river"}
    out, err = capsys.readouterr()
    assert "3 different values in 30 rows" in out
    assert "No column looks like the label. (--unlabelled reads rows without labels)" in err
    command = f"polymargin datasets upload {path} --no-wait --label-column river "
    assert f"""Next time: {command}--category-columns 'town,"a, b"' --missing keep\n""" in err


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("options", [("--label-column", "town"), ("--json", "--label-column", "town")])
def test_who_names_a_column_is_not_asked(
    options: tuple[str, ...], canned: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "places.csv"
    path.write_bytes(UNCLEAR)
    assert _uploaded(monkeypatch, canned, path, *options)["label_column"] == ["town"]
    assert [each.path for each in canned.asked] == ["/datasets"]


@pytest.mark.usefixtures("terminal")
def test_options_that_are_given_win_over_the_proposal(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "places.csv"
    path.write_bytes(UNCLEAR)
    proposal = _proposal("river", None, {"label_column": "river", "missing": "keep"})
    canned.answer("POST /datasets/columns", proposal)
    query = _uploaded(monkeypatch, canned, path, "--missing", "refuse")
    assert (query["label_column"], query["missing"]) == (["river"], ["refuse"])


def test_away_from_a_terminal_nothing_is_proposed(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "texts.csv"
    path.write_bytes(b"label,text\na,b\n")
    query = _uploaded(monkeypatch, canned, path)
    assert query.keys() == {"name", "format"}
    assert [each.path for each in canned.asked] == ["/datasets"]


def test_a_real_terminal_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, large = tmp_path / "a.csv", tmp_path / "a.xlsx"
    path.write_bytes(TABLE)
    large.write_bytes(bytes(MOST_SAMPLE_BYTES + 1))
    master, slave = pty.openpty()
    try:
        with open(slave, closefd=False) as stdin, open(slave, "w", closefd=False) as stdout:
            monkeypatch.setattr("sys.stdin", stdin)
            monkeypatch.setattr("sys.stdout", stdout)
            assert shows_columns(path, None, {"delimiter": "semicolon", "text_columns": None})
            assert not shows_columns(path, None, {"text_columns": ["description"]})
            assert not shows_columns(path, "svmlight", {})
            assert not shows_columns(large, None, {})
    finally:
        monkeypatch.undo()
        os.close(master)
        os.close(slave)


def test_a_command_shows_the_columns_and_the_command_that_uploads_them(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "places.csv"
    path.write_bytes(UNCLEAR)
    canned.answer("POST /datasets/columns", _proposal("river", "Check it.", {"label_column": "river"}))
    for options in ((), ("--json",)):
        assert status_of(monkeypatch, "datasets", "columns", str(path), *options) == 0
    out = capsys.readouterr().out
    assert f"Upload it: polymargin datasets upload {path} --label-column river\n" in out
    assert "Check it. Name the label column with --label-column." in out
    assert json.loads(out.splitlines()[-1])["label_column"] == "river"


def test_the_command_that_uploads_a_table_reads_it_with_the_options_that_were_given(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "places.txt"
    path.write_bytes(UNCLEAR)
    found = {"text_columns": ["town", "river"], "decimal": "comma"}
    canned.answer("POST /datasets/columns", _proposal(None, None, found))
    given = ("--format", "csv", "--encoding", "windows-1252", "--no-quotes", "--missing-values", "NA,k. A.")
    columns = ("--decimal", "comma", "--text-columns", "town")
    assert status_of(monkeypatch, "datasets", "columns", str(path), *given, *columns) == 0
    line = next(each for each in capsys.readouterr().out.splitlines() if each.startswith("Upload it: "))
    words = shlex.split(line.removeprefix("Upload it: "))
    assert words[:4] == ["polymargin", "datasets", "upload", str(path)]
    # as the command line reads them, in whatever order
    canned.answer("POST /datasets", DATASET, 202)
    assert status_of(monkeypatch, *words[1:], "--label-column", "river", "--no-wait") == 0
    query = next(each for each in canned.asked if each.path == "/datasets").lists
    assert query == {
        "name": ["places"], "format": ["csv"], "encoding": ["windows-1252"], "quotes": ["false"],
        "missing_values": ["NA", "k. A."], "decimal": ["comma"], "text_columns": ["town", "river"],
        "label_column": ["river"],
    }  # fmt: skip


@pytest.mark.usefixtures("terminal")
def test_at_a_terminal_all_columns_of_0_and_1_can_be_labels(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "places.csv"
    path.write_bytes(b"wet,cold,text\n1,0,rain\n0,1,snow\n")
    proposal = _proposal(None, "No column is named like a label, and 2 columns contain only 0 and 1.", {})
    for column in proposal["columns"]:
        column["role"] = "indicator"
    canned.answer("POST /datasets/columns", proposal)
    canned.answer("POST /datasets/columns", proposal | {"doubt": None, "options": {"label_columns": ["town", "river"]}})
    monkeypatch.setattr(typer, "prompt", lambda *_, default, **__: default)
    assert _uploaded(monkeypatch, canned, path)["label_columns"] == ["town", "river"]
    second = [each for each in canned.asked if each.path == "/datasets/columns"][1]
    assert second.lists["label_columns"] == ["town", "river"]
