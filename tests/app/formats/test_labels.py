import numpy as np
import pytest

from app.formats.label_names import label_problem
from app.formats.labels import Labels, Splits
from app.formats.table import FormatError, Problems


def test_blocks_of_labels_share_their_names() -> None:
    labels, problems = Labels(), Problems()
    labels.add(np.array([0, 1, 0]), [b"b", b" c "], np.array([1, 2, 3]), problems)
    labels.add(np.array([1, 0]), ["c", "a"], np.array([4, 5]), problems)
    names, y = labels.build()
    assert names == ["a", "b", "c"]
    assert y.dtype == np.int32
    assert y.tolist() == [1, 2, 1, 0, 2]
    assert not problems


def test_labels_that_are_the_same_number_are_the_same_label() -> None:
    labels = Labels()
    labels.add(np.arange(6), ["1", "01", "+1.0", "-1", "0", "-0.0"], np.arange(6), Problems())
    names, y = labels.build(numbers=True)
    assert names == ["-1", "0", "1"]
    assert y.tolist() == [2, 2, 2, 0, 1, 1]


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("", "the label is empty"),
        ("a\x00", "the label 'a\N{REPLACEMENT CHARACTER}' has control characters"),
        ("a" * 1001, "the label has 1001 characters, at most 1000 are allowed"),
        ("a" * 1000, None),
        ("日本 語", None),
    ],
)
def test_what_can_be_a_label(name: str, detail: str | None) -> None:
    assert label_problem(name) == detail


def test_each_row_with_an_unknown_split_is_named() -> None:
    splits, problems = Splits(), Problems()
    splits.add(np.array([0, 1, 1]), [b"train", b"dev"], np.array([2, 3, 5]), problems)
    with pytest.raises(FormatError) as caught:
        problems.raise_if_any()
    assert [error.row for error in caught.value.errors] == [3, 5]
