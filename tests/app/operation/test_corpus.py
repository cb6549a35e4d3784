import hashlib
import inspect
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from scipy.linalg.lapack import dgesv
from scipy.stats import hmean
from sklearn.svm import LinearSVC

from app.datasets.schemas import ImportOptions
from app.formats.json_lines import parse_jsonl
from app.operation import corpus
from app.operation.corpus import docstrings, write_docstrings

DIGEST = """
import hashlib
from app.operation.corpus import docstrings
print(hashlib.sha256(repr(list(docstrings())).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def rows() -> list[tuple[str, str]]:
    return list(docstrings())


def test_there_are_thousands_of_texts_with_about_a_hundred_labels(rows: list[tuple[str, str]]) -> None:
    assert len(rows) > 4000
    assert len({label for _, label in rows}) > 90
    assert {label.partition(".")[0] for _, label in rows} == {"numpy", "scipy", "sklearn"}


def test_each_text_is_there_once_and_long_enough(rows: list[tuple[str, str]]) -> None:
    assert len({text for text, _ in rows}) == len(rows)
    assert min(len(text) for text, _ in rows) >= 80


def test_each_label_is_a_public_module_with_enough_texts(rows: list[tuple[str, str]]) -> None:
    n_texts = Counter(label for _, label in rows)
    assert min(n_texts.values()) >= 5
    for label in n_texts:
        assert label in sys.modules
        assert not any(part.startswith("_") or part in ("tests", "conftest") for part in label.split("."))


def test_a_text_is_labelled_with_the_shortest_module_that_shows_it(rows: list[tuple[str, str]]) -> None:
    label_of = dict(rows)
    assert label_of[inspect.cleandoc(str(LinearSVC.__doc__))] == "sklearn.svm"
    assert label_of[inspect.cleandoc(str(dgesv.__doc__))] == "scipy.linalg.lapack"
    assert label_of[inspect.cleandoc(str(hmean.__doc__))] == "scipy.stats"


@pytest.mark.slow
def test_another_process_finds_the_same_texts_in_the_same_order(rows: list[tuple[str, str]]) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "1234", "PYTHONPATH": str(Path(__file__).parents[3])}
    output = subprocess.run([sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True)
    assert output.stdout.strip() == hashlib.sha256(repr(rows).encode()).hexdigest()


def test_the_file_holds_the_texts_with_a_fifth_of_each_label_for_testing(
    tmp_path: Path, rows: list[tuple[str, str]]
) -> None:
    path = tmp_path / "docstrings.jsonl"
    summary = write_docstrings(path)
    assert list(tmp_path.iterdir()) == [path]
    parsed = parse_jsonl(path, ImportOptions())
    assert parsed.texts is not None
    assert parsed.split is not None
    assert list(zip(parsed.texts, (parsed.labels[c] for c in parsed.y), strict=True)) == rows
    n_test = int(parsed.split.sum())
    assert summary == {
        "n_texts": len(rows),
        "n_labels": len(parsed.labels),
        "n_train": len(rows) - n_test,
        "n_test": n_test,
    }
    for c in range(len(parsed.labels)):
        split = parsed.split[parsed.y == c]
        assert (split == 0).sum() >= 4
        assert abs(split.mean() - 0.2) <= 0.1


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int) -> None:
        raise OSError("disk full")

    path = tmp_path / "docstrings.jsonl"
    path.write_text("before")
    monkeypatch.setattr(corpus, "docstrings", lambda *_: iter([("text", "label")]))
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="disk full"):
        write_docstrings(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
