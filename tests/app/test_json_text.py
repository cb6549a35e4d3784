"""Places in JSON, as pointers for programs and in words for people."""

import pytest

from app.json_text import place_of, pointer


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ("/dataset", "dataset"),
        ("/params/C", "params.C"),
        ("/texts/0/note", "texts[0].note"),
        ("/query/page_size", "page_size"),
        ("/tags/a~1b~0", "tags.a/b~"),
        ("--dataset", "--dataset"),
        ("", ""),
    ],
)
def test_people_read_places_without_slashes(given: str, place: str) -> None:
    assert place_of(given) == place


def test_pointers_escape_what_separates_them() -> None:
    assert pointer(("a/b", "c~", 3, "x" * 100)) == "/a~1b/c~0/3/…"
