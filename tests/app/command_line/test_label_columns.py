"""A table without a column `label` is not sent before the user says which column has the labels."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from app.datasets.label_columns import chosen_label_column


@pytest.mark.parametrize(
    ("name", "header", "proposed"),
    [
        ("a.csv", "text,code,date", "code"),
        ("a.csv", "text;Class", "Class"),
        ("a.tsv", "text\tkind", "kind"),
        ("a.csv", "\ufefftext,Label", "Label"),
    ],
)
def test_a_column_is_proposed_where_nobody_can_be_asked(tmp_path: Path, name: str, header: str, proposed: str) -> None:
    path = tmp_path / name
    path.write_text(f"{header}\na,b,c\n", "utf-8")
    with pytest.raises(typer.BadParameter, match=f"Did you mean --label-column {proposed}\\?"):
        chosen_label_column(path, None, {})


def test_a_vocabulary_is_sent_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.tsv"
    path.write_text("<https://example.org/1>\thorses\n<https://example.org/2>\tcows\n")
    with pytest.raises(typer.BadParameter, match=r"begins with <https://example\.org/1> .* hierarchies upload"):
        chosen_label_column(path, None, {})


@pytest.mark.parametrize(
    ("header", "options"),
    [
        ("text,label", {}),
        ("text,code", {"label_column": "code"}),
        ("text,code", {"unlabelled": True}),
        ("document_id,text,subject_uris", {}),
        ("x", {}),
    ],
)
def test_nothing_is_asked_where_the_labels_are_known(
    tmp_path: Path, header: str, options: dict[str, str | bool | list[str] | None]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\na,b\n")
    assert chosen_label_column(path, None, options) is None


def test_a_corpus_of_annif_in_a_tsv_file_has_no_columns_to_ask_for(tmp_path: Path) -> None:
    path = tmp_path / "corpus.tsv"
    path.write_text("a title ¤ and a text\t<http://a/1> <http://a/2>\n")
    assert chosen_label_column(path, None, {}) is None


def test_a_person_is_asked_until_the_answer_is_a_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,code,kind\n")
    given = iter(["none", "kind"])
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: next(given))
    assert chosen_label_column(path, None, {}) == "kind"


def test_the_command_of_next_time_is_said_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,main topic\n")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("sys.argv", ["polymargin", "datasets", "upload", "a.csv", "--name", "n"])
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: "main topic")
    chosen_label_column(path, None, {})
    command = "polymargin datasets upload a.csv --name n --label-column 'main topic'"
    assert capsys.readouterr().err.endswith(f"Next time: {command}\n")
