import pytest

from app.plurals import counted, gap_text


def test_one_thing_is_not_told_in_the_plural() -> None:
    assert [counted(n, "error") for n in (0, 1, 2, 1000)] == ["0 errors", "1 error", "2 errors", "1,000 errors"]
    assert [counted(n, "label", "has/have") for n in (1, 2)] == ["1 label has", "2 labels have"]
    assert [counted(n, "row", "of the file", "was/were") for n in (1, 2)] == [
        "1 row of the file was",
        "2 rows of the file were",
    ]


@pytest.mark.parametrize(
    ("gap", "shown"), [(8.46e-5, "8.5e-05"), (1e-4, "1.0e-04"), (0.002, "2.0e-03"), (0.0, "0"), (None, None)]
)
def test_gaps_have_one_form(gap: float | None, shown: str | None) -> None:
    assert gap_text(gap) == shown
