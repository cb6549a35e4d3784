"""The word list of the style page: what it finds and what it leaves."""

import pytest

from docs_site.style import LEFT_OUT, RETIRED, WORDS


def test_every_word_of_the_list_is_found_in_any_case_within_a_line() -> None:
    for word in WORDS:
        plain = word.replace("s?", "")
        assert RETIRED.search(f"what is {plain} here")
        assert RETIRED.search(f"def f({plain.upper()}):")


@pytest.mark.parametrize("line", ["understand", "a standard", "untold_count", "shallow", "the way in", "by means of"])
def test_other_words_are_left(line: str) -> None:
    assert not RETIRED.search(line)


def test_few_places_are_left_out() -> None:
    assert LEFT_OUT.match("docs/adr/0001.md")
    assert not any(
        LEFT_OUT.match(name) for name in ("docs/tutorial.md", "app/main.py", "README.md", "tests/test_style.py")
    )
