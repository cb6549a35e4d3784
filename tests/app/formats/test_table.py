import numpy as np
import pytest

from app.formats.table import FormatError, Problems, Texts, shorten


def test_texts_decode_one_at_a_time() -> None:
    texts = Texts(np.frombuffer("aéb".encode(), dtype=np.uint8), np.array([0, 3, 3, 4]))
    assert list(texts) == ["aé", "", "b"]
    assert texts[-1] == "b"
    with pytest.raises(IndexError, match="text 3 of 3"):
        texts[3]


def test_what_is_shown_of_a_file_is_short_and_printable() -> None:
    assert shorten("é" * 40) == "é" * 40
    assert shorten(("é" * 41).encode()) == "é" * 37 + "..."
    assert shorten(b"a\x00\xffb") == "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b"


def test_problems_keep_the_first_by_line_however_many_come() -> None:
    problems = Problems()
    for row in range(3000, 0, -1):
        problems.add(row, "wrong")
    with pytest.raises(FormatError, match=r"3,000 errors; line 1: wrong") as caught:
        problems.raise_if_any()
    assert [error.row for error in caught.value.errors] == list(range(1, 21))
