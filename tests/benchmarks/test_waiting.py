"""What the benchmark of waiting says of phases and programs."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.bench_waiting import WARM_ROWS, few_rows, summed, table_rows, write_rows
from benchmarks.waiting_peers import linear_svc, read, words, words_and_characters


def test_a_phase_that_comes_up_twice_has_one_row_with_both_times() -> None:
    watched = [["training", "1.5", "1.0", "0.1", ""], ["saving", "0.5", "0.2", "0.1", ""]]
    found = summed([*watched, ["training", "2.0", "1.0", "0.1", ""]])
    assert list(found) == ["training", "saving"]
    assert found["training"] == pytest.approx((3.5, 2.0))


def test_the_last_row_is_the_sum_of_the_phases_and_has_the_share_that_is_right() -> None:
    rows = table_rows("service", "best: auto", {"training": (3.0, 1.5), "saving": (1.0, 0.5)}, 81.25)
    assert [row[2:] for row in rows] == [
        ["training", "3.0", "1.5", "75", ""],
        ["saving", "1.0", "0.5", "25", ""],
        ["sum", "4.0", "2.0", "100", "81.2"],
    ]


def test_phases_too_short_to_measure_have_no_share() -> None:
    rows = table_rows("service", "first", {"queued": (0.0, 0.0)}, 50.0)
    assert [row[5] for row in rows] == ["-", "100"]


def test_the_rows_that_compile_have_all_labels_of_a_sorted_file(tmp_path: Path) -> None:
    n_rows = 4 * WARM_ROWS
    write_rows(tmp_path / "train.jsonl", ["a text"] * n_rows, [i * 2 // n_rows for i in range(n_rows)])
    few_rows(tmp_path / "train.jsonl", tmp_path / "few.jsonl")
    labels = read(tmp_path / "few.jsonl")[1]
    assert len(labels) == WARM_ROWS
    assert set(labels) == {"class-0", "class-1"}


def test_a_pipeline_is_timed_from_the_file_to_its_first_answer(tmp_path: Path) -> None:
    texts = ["red apple", "green pear", "red cherry", "green lime"] * 5
    train, test = tmp_path / "train.jsonl", tmp_path / "test.jsonl"
    write_rows(train, texts, [0, 1] * 10)
    write_rows(test, texts[:4], [0, 1, 0, 1])
    assert read(test) == (texts[:4], ["class-0", "class-1", "class-0", "class-1"])
    for features in (lambda _: words(), words_and_characters):
        waited = linear_svc(features, train, test)
        assert list(waited.phases) == ["read", "features", "training", "first answer"]
        assert waited.right == 100


def test_features_of_words_and_characters_have_one_length_and_the_terms_of_the_recipe() -> None:
    texts = ["red apple tree", "red apple", "green apple tree"]
    made = words_and_characters(2)
    rows = made.fit_transform(texts)
    assert np.asarray(rows.multiply(rows).sum(axis=1)).ravel() == pytest.approx(1)
    names = {name.partition("__")[2] for name in made[0].get_feature_names_out()}
    assert {"red", "red apple", "apple tree", " re", "ee "} <= names
    # in one text only
    assert not {"green", "een"} & names
