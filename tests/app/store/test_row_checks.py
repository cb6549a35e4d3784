"""Checks of a dataset's rows: repetitions, overlaps, and the warnings about them."""

import math
import random
from pathlib import Path

import numpy as np
import pytest

from app.datasets.schemas import ImportOptions
from app.datasets.statistics_schemas import DatasetStatistics
from app.formats.parsing import parse
from app.store import row_keys
from app.store.row_statistics import by_part, statistics_of


def reported(tmp_path: Path, content: str, format: str = "csv", separator: str | None = None) -> DatasetStatistics:
    path = tmp_path / "data"
    path.write_text(content)
    return statistics_of(parse(path, format, ImportOptions(label_separator=separator)))


def codes(statistics: DatasetStatistics) -> set[str]:
    return {warning.code for warning in statistics.warnings}


def texts(rows: list[str]) -> str:
    return "label,text,split\n" + "".join(f"{row}\n" for row in rows)


GOOD = [f"{label},{label}{k} words,{split}" for k in range(20) for label in "ab" for split in ["train"]]


def test_a_dataset_without_faults_is_not_warned_of(tmp_path: Path) -> None:
    found = reported(tmp_path, texts(GOOD))
    assert found.warnings == []
    assert found.repetitions is not None
    assert set(found.repetitions.model_dump().values()) == {0}
    assert found.lengths is not None
    assert found.lengths.model_dump() == {"least": 8, "median": 8.5, "most": 9}


def test_repeated_texts_overlaps_and_conflicting_labels_are_counted(tmp_path: Path) -> None:
    rows = [*GOOD, "a,a1 words,train", "b,a2 words,train", "a,a3 words,test", "b,a4 words,validation", "a,new,test"]
    found = reported(tmp_path, texts(rows))
    assert found.repetitions is not None
    assert found.repetitions.model_dump() == {
        "duplicates": 4, "conflicting": 2, "test_in_train": 1, "validation_in_train": 1,
    }  # fmt: skip
    assert codes(found) >= {"test_rows_in_training", "validation_rows_in_training", "duplicates", "conflicting_labels"}
    assert "1 test rows (50.0%)" in found.warnings[0].detail


@pytest.mark.parametrize(
    ("ids", "fault"),
    [
        (["1", "2", "", ""], None),
        (["1", "2", "1", "1"], "2 rows have the id of an earlier row, such as '1': a correction by id"),
        (["a", "7", "7", ""], "1 row has the id of an earlier row, such as '7': a correction by id"),
    ],
)
def test_ids_that_several_rows_have_are_warned_of(tmp_path: Path, ids: list[str], fault: str | None) -> None:
    (path := tmp_path / "data").write_text(
        "id,label,text\n" + "".join(f"{id},{'ab'[at % 2]},{at} words\n" for at, id in enumerate(ids))
    )
    found = statistics_of(parse(path, "csv", ImportOptions(id_column="id")))
    details = {warning.code: warning.detail for warning in found.warnings}
    assert details.get("ids_repeated", "").startswith(fault or "")
    assert ("ids_repeated" in details) == (fault is not None)


def test_repeated_rows_of_numbers_are_counted_whatever_the_order_of_labels_in_sets(tmp_path: Path) -> None:
    rows = "b,a 1:1 3:2\na,b 1:1 3:2\na 1:1 3:2\nc 1:2 3:1\nc 2:1 3:2\nc \nc \n"
    found = reported(tmp_path, rows, "svmlight", ",")
    assert found.repetitions is not None
    assert (found.repetitions.duplicates, found.repetitions.conflicting) == (2, 1)
    assert "empty_rows" in codes(found)


@pytest.mark.parametrize(
    ("rows", "code", "part"),
    [
        ([*GOOD, "c,some,train"], "labels_with_one_row", "'c'"),
        ([*GOOD, "c,some,test", "c,same,test"], "labels_in_test_alone", "'c'"),
        (["a,one,train", "a,two,train"], "one_label", "nothing to distinguish"),
        ([*(f"a,{k},train" for k in range(99)), "b,x,train", "b,y,train"], "one_label_dominates", "98.0%"),
        ([*GOOD, "A,one,train", "A,two,train"], "labels_alike", "1 group of labels looks alike, such as 'A' and 'a':"),
        (
            [*GOOD, "A,one,train", "\ufb01le,two,train", "file,x,train"],
            "labels_alike",
            "2 groups of labels look alike, such as 'A' and 'a', 'file' and '\\ufb01le':",
        ),
        (
            [f"{name},{k} {name.upper()}!,train" for k in range(9) for name in ("apple", "pear")],
            "label_in_text",
            "100%",
        ),
        ([*GOOD, "a,,train"], "empty_rows", "1 row has no content"),
    ],
)
def test_what_a_colleague_would_say_is_said(tmp_path: Path, rows: list[str], code: str, part: str) -> None:
    found = reported(tmp_path, texts(rows))
    assert code in codes(found)
    assert part in next(warning.detail for warning in found.warnings if warning.code == code)


def test_a_label_within_another_word_is_no_leak(tmp_path: Path) -> None:
    rows = [f"{name},{k} {name}s,train" for k in range(9) for name in ("apple", "pear")]
    assert "label_in_text" not in codes(reported(tmp_path, texts(rows)))


def words_of(vocabulary: str, n: int, part: str) -> list[str]:
    """Rows of words that are drawn from a vocabulary of letters."""
    draw = random.Random(n)
    labels = ("a", "b")
    return [
        f"{labels[k % 2]},{' '.join(draw.choices(vocabulary, k=8)).replace(' ', '1 ')}1 {k},{part}" for k in range(n)
    ]


@pytest.mark.slow
def test_test_rows_of_another_source_are_told_and_those_of_the_same_are_not(tmp_path: Path) -> None:
    alike = reported(tmp_path, texts([*words_of("cdefghij", 301, "train"), *words_of("cdefghij", 202, "test")]))
    other = reported(tmp_path, texts([*words_of("cdefghij", 301, "train"), *words_of("hijklmno", 202, "test")]))
    assert alike.shift is not None
    assert other.shift is not None
    assert alike.shift.auc is not None
    assert alike.shift.auc_by_chance is not None
    assert alike.shift.auc < alike.shift.auc_by_chance
    assert "test_rows_drawn_otherwise" not in codes(alike)
    assert other.shift.auc is not None
    assert other.shift.auc > 0.9
    assert "test_rows_drawn_otherwise" in codes(other)


def test_test_labels_with_other_shares_are_told(tmp_path: Path) -> None:
    rows = [f"{'aab'[k % 3]},t{k},train" for k in range(90)] + [f"{'abb'[k % 3]},s{k},test" for k in range(45)]
    found = reported(tmp_path, texts(rows))
    assert found.shift is not None
    assert found.shift.label_variation == pytest.approx(1 / 3)
    # sqrt(2 / pi) sqrt(variance) of a share: 5 / 9 4 / 9 (1 / 90 + 1 / 45), of each of both labels
    assert found.shift.label_variation_by_chance == pytest.approx(math.sqrt(2 / math.pi * 20 / 81 / 30))
    assert found.shift.auc is None
    assert "test_labels_drawn_otherwise" in codes(found)


def test_rows_are_counted_by_length_by_labels_and_features_by_rows(tmp_path: Path) -> None:
    found = reported(tmp_path, "b,a 1:1 3:2\na,b 1:1 3:2\na 1:1 3:2\nc 1:2 3:1\nc 2:1\nc \n 4:1\n", "svmlight", ",")
    assert found.length_counts is not None
    assert found.length_counts.model_dump() == {"edges": [0, 1, 2, 3], "counts": {"train": [1, 2, 4]}}
    assert found.label_counts is not None
    assert found.label_counts.model_dump() == {"edges": [0, 1, 2, 3], "counts": {"train": [1, 4, 2]}}
    assert found.feature_counts is not None
    assert found.feature_counts.model_dump() == {"edges": [1, 2, 3, 4, 5], "counts": {"features": [2, 0, 0, 2]}}


def test_many_lengths_are_counted_by_ever_wider_intervals_which_leave_none_out() -> None:
    lengths = np.arange(0, 100_000, 7)
    found = by_part(lengths, np.resize(np.array([0, 1], np.int8), len(lengths)))
    widths = np.diff(found.edges)
    assert len(widths) <= 30
    assert found.edges[0] == 0
    assert found.edges[-1] == lengths.max() + 1
    assert (np.diff(widths[4:]) >= 0).all()
    assert sum(map(sum, found.counts.values())) == len(lengths)


def test_rows_are_compared_block_by_block(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = "a 1:1 3:2\nb 2:1\na \nb 1:1 3:2\nb 2:1\n"
    whole = reported(tmp_path, rows, "svmlight").repetitions
    monkeypatch.setattr(row_keys, "_BLOCK", 1)
    assert reported(tmp_path, rows, "svmlight").repetitions == whole
    assert whole is not None
    assert whole.duplicates == 2


GERMAN = "Die Wirtschaft wuchs im letzten Jahr kaum, weil viele Betriebe keine Leute fanden"
ENGLISH = "The economy hardly grew last year because many companies could not find any people"


@pytest.mark.slow
def test_languages_of_texts_are_told_and_a_second_one_is_warned_of(tmp_path: Path) -> None:
    rows = [f"{'ab'[k % 2]},{GERMAN.replace(',', '') if k % 4 == 0 else ENGLISH} {k},train" for k in range(80)]
    found = reported(tmp_path, texts(rows))
    assert found.languages is not None
    assert [(each.language, each.share) for each in found.languages.shares] == [("en", 0.75), ("de", 0.25)]
    assert "several_languages" in codes(found)
    one = reported(tmp_path, texts([row for row in rows if "economy" in row]))
    assert one.languages is not None
    assert [each.language for each in one.languages.shares] == ["en"]
    assert "several_languages" not in codes(one)


def test_short_texts_have_a_language_together(tmp_path: Path) -> None:
    words = ["लेखक", "पढ़ना", "किताब", "कहानी", "रोटी", "सब्जी", "पानी", "गेंद", "मैदान", "क्रिकेट", "चावल"]
    rows = [f"a,{words[k % 11]} {words[k * 3 % 11]} {words[k * 7 % 5]},train" for k in range(60)]
    hindi = reported(tmp_path, texts(rows)).languages
    assert hindi is not None
    assert [each.language for each in hindi.shares] == ["hi"]
    things = ["shoes", "shirt", "jacket", "gloves", "scarf", "blanket"]
    rows = [f"a,the {thing} was {how},train" for how in ("too big", "broken", "very good", "late") for thing in things]
    english = reported(tmp_path, texts(rows)).languages
    assert english is not None
    assert english.shares[0].language == "en"
    codes = [f"a,SKU{k:04d} XK{k},train" for k in range(200)]
    unclear = reported(tmp_path, texts(codes)).languages
    assert unclear is not None
    assert unclear.shares == []


def test_no_language_is_told_of_short_texts(tmp_path: Path) -> None:
    assert reported(tmp_path, texts([f"a,word {k},train" for k in range(50)])).languages is None


@pytest.mark.parametrize("mark", [";", "|", "&&", ",", "/"])
def test_labels_that_are_joined_by_a_separator_are_told_with_the_option(tmp_path: Path, mark: str) -> None:
    labels = [f"a{mark}b", "a", "b", f"b{mark} c", "c"]
    rows = "label\ttext\n" + "".join(f"{label}\t{label[0]}{k} words\n" for k in range(9) for label in labels)
    found = {warning.code: warning.detail for warning in reported(tmp_path, rows, "tsv").warnings}
    assert f"2 labels, such as 'a{mark}b'" in found["labels_joined"]
    assert f"label_separator={mark}" in found["labels_joined"]


def test_names_with_commas_and_slashes_are_no_sets(tmp_path: Path) -> None:
    labels = ["Congo, Republic of the", "Korea, Republic of", "TCP/IP", "I/O", "Kenya", "a;b"]
    rows = "label\ttext\n" + "".join(f"{label}\t{label[0]}{k} words\n" for k in range(9) for label in labels)
    assert "labels_joined" not in codes(reported(tmp_path, rows, "tsv"))


def test_short_texts_in_two_languages_are_told_to_have_no_clear_language(tmp_path: Path) -> None:
    english = "the deep blue sea,an old stone house,fresh bread from the oven,cold winter rain,green leaves on a tree"
    german = "das tiefe blaue Meer,ein altes Steinhaus,frisches Brot vom Ofen,kalter Winterregen,grüne Blätter am Baum"
    english += (
        ",a long river boat,warm summer wind,the wooden door,bright morning sun,white garden flowers,yellow mountain"
    )
    german += ",ein langes Flussboot,warmer Sommerwind,die Holztür,helle Morgensonne,weiße Gartenblumen,gelber Berg"
    pairs = zip(english.split(","), german.split(","), strict=True)
    rows = [f"{'ab'[k % 2]},{text},train" for k, text in enumerate(each for pair in pairs for each in pair)]
    found = reported(tmp_path, texts(rows * 2))
    assert found.languages is not None
    assert (found.languages.n_rows, found.languages.shares) == (0, [])
    assert "language_unclear" in codes(found)
