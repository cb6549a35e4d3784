"""The name of a label in the language that was asked for."""

import pytest

from app.hierarchies.label_facts import display_name, name_in

NAMES = {
    "pt-br": "trem",
    "de": "Zug",
    "de-ch": "Zug, schweizerisch",
    "zh-hans": "\u706b\u8f66",
    "zh-hant": "\u706b\u8eca",
}


@pytest.mark.parametrize(
    ("language", "tag"),
    [
        ("pt-BR", "pt-br"),
        ("pt", "pt-br"),
        ("pt-PT", None),
        ("de-AT", "de"),
        ("de", "de"),
        ("zh", "zh-hans"),
        ("zh-Hant-TW", "zh-hant"),
        ("z", None),
        ("en", None),
    ],
)
def test_a_tag_is_shortened_until_there_is_a_name_and_a_variety_stands_in_for_its_language(
    language: str, tag: str | None
) -> None:
    assert name_in(NAMES, language) == (None if tag is None else NAMES[tag])


def test_a_name_is_shown_in_the_first_language_that_has_one_else_in_english_else_in_any() -> None:
    names = {"sv": "bok", "en": "book", "fi": "kirja"}
    assert display_name(names, "et", "fi-FI", "sv") == "kirja"
    assert display_name(names, "et", None) == "book"
    assert display_name({"sv": "bok"}, "fi") == "bok"
    assert display_name({}, "fi") is None
