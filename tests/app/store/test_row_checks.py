"""What is told of a dataset's rows: repetitions, overlaps, and warnings where a colleague would speak up."""

from pathlib import Path

import pytest

from app.formats.registry import parse
from app.schemas.datasets import DatasetStatistics, ImportOptions
from app.store.corpus import statistics_of


def told(tmp_path: Path, content: str, format: str = "csv", separator: str | None = None) -> DatasetStatistics:
    path = tmp_path / "data"
    path.write_text(content)
    return statistics_of(parse(path, format, ImportOptions(label_separator=separator)))


def codes(statistics: DatasetStatistics) -> set[str]:
    return {warning.code for warning in statistics.warnings}


def texts(rows: list[str]) -> str:
    return "label,text,split\n" + "".join(f"{row}\n" for row in rows)


GOOD = [f"{label},{label}{k} words,{split}" for k in range(20) for label in "ab" for split in ["train"]]


def test_a_dataset_without_faults_is_not_warned_of(tmp_path: Path) -> None:
    found = told(tmp_path, texts(GOOD))
    assert found.warnings == []
    assert found.repetitions is not None
    assert set(found.repetitions.model_dump().values()) == {0}
    assert found.lengths is not None
    assert found.lengths.model_dump() == {"least": 8, "median": 8.5, "most": 9}


def test_repeated_texts_overlaps_and_conflicting_labels_are_counted(tmp_path: Path) -> None:
    rows = [*GOOD, "a,a1 words,train", "b,a2 words,train", "a,a3 words,test", "b,a4 words,validation", "a,new,test"]
    found = told(tmp_path, texts(rows))
    assert found.repetitions is not None
    assert found.repetitions.model_dump() == {
        "duplicates": 4, "conflicting": 2, "test_in_train": 1, "validation_in_train": 1,
    }  # fmt: skip
    assert codes(found) >= {"test_rows_in_training", "validation_rows_in_training", "duplicates", "conflicting_labels"}
    assert "1 test rows (50%)" in found.warnings[0].detail


def test_repeated_rows_of_numbers_are_counted_whatever_the_order_of_labels_in_sets(tmp_path: Path) -> None:
    rows = "b,a 1:1 3:2\na,b 1:1 3:2\na 1:1 3:2\nc 1:2 3:1\nc 2:1 3:2\nc \nc \n"
    found = told(tmp_path, rows, "svmlight", ",")
    assert found.repetitions is not None
    assert (found.repetitions.duplicates, found.repetitions.conflicting) == (2, 1)
    assert "empty_rows" in codes(found)


@pytest.mark.parametrize(
    ("rows", "code", "part"),
    [
        ([*GOOD, "c,some,train"], "labels_with_one_row", "'c'"),
        ([*GOOD, "c,some,test", "c,same,test"], "labels_in_test_alone", "'c'"),
        (["a,one,train", "a,two,train"], "one_label", "nothing to tell apart"),
        ([*(f"a,{k},train" for k in range(99)), "b,x,train", "b,y,train"], "one_label_dominates", "98.0%"),
        ([*GOOD, "A,one,train", "A,two,train"], "labels_alike", "'A' and 'a'"),
        (
            [f"{name},{k} {name.upper()}!,train" for k in range(9) for name in ("apple", "pear")],
            "label_in_text",
            "100%",
        ),
        ([*GOOD, "a,,train"], "empty_rows", "1 rows have no content"),
    ],
)
def test_what_a_colleague_would_say_is_said(tmp_path: Path, rows: list[str], code: str, part: str) -> None:
    found = told(tmp_path, texts(rows))
    assert code in codes(found)
    assert part in next(warning.detail for warning in found.warnings if warning.code == code)


def test_a_label_within_another_word_is_no_leak(tmp_path: Path) -> None:
    rows = [f"{name},{k} {name}s,train" for k in range(9) for name in ("apple", "pear")]
    assert "label_in_text" not in codes(told(tmp_path, texts(rows)))
