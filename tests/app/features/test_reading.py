"""What words of texts are: by script, Unicode form, case, language, and characters that nobody sees."""

import re
import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.datasets.recipe_schemas import TextRecipe
from app.features.reading import Reader, reader
from app.features.text import TextFeatures


def reading(**recipe: Any) -> Reader:
    given = TextRecipe(**recipe)
    return reader(given.model_dump(mode="json") | {"language": given.text_language})


def words(text: str, **recipe: Any) -> list[str]:
    return reading(**recipe).read(text)[0]


@pytest.mark.parametrize(
    "text",
    [
        "किताब पढ़ना", "বাংলা ভাষায় খাদ্য", "ਪੰਜਾਬੀ ਬੋਲੀ", "ગુજરાતી ભાષા", "ଓଡ଼ିଆ ଭାଷା", "தமிழ் மொழி", "తెలుగు భాష",
        "ಕನ್ನಡ ಭಾಷೆ", "മലയാളം ഭാഷ", "සිංහල භාෂාව", "नेपाली कविता", "شَمْسٌ قَمَرٌ", "שָׁלוֹם עוֹלָם", "བོད་ཡིག", "ދިވެހި ބަސް",
        "አማርኛ ቋንቋ", "việt nam", "đường phố", "čeština škola", "ελληνικά γλώσσα", "հայերեն լեզու", "ქართული ენა",
    ],
)  # fmt: skip
def test_words_hold_their_marks_in_every_form(text: str) -> None:
    whole = unicodedata.normalize("NFKC", text)
    expected = re.findall(r"[^\s\u0f0b]+", whole)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert words(unicodedata.normalize(form, text)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("recipe", "text", "expected"),
    [
        ({}, "İSTANBUL istanbul ISTANBUL", ["istanbul", "istanbul", "istanbul"]),
        ({"language": "tr"}, "İSTANBUL istanbul ISTANBUL", ["istanbul", "istanbul", "ıstanbul"]),
        ({"language": "az-Latn"}, "KIRMIZI I\u0307zmir", ["kırmızı", "izmir"]),
        ({}, "KIRMIZI kırmızı IŞIK ışık", ["kirmizi", "kirmizi", "işik", "işik"]),
        ({"stem": "turkish"}, "KIRMIZI", ["kırmızı"]),
        ({"lowercase": False}, "İSTANBUL Straße", ["İSTANBUL", "Straße"]),
        ({"language": "lt"}, "JĮ i\u0307\u0300r \u00ccR", ["jį", "ìr", "ìr"]),
        ({}, "Straße STRASSE ΟΔΌΣ οδός", ["strasse", "strasse", "οδόσ", "οδόσ"]),
        ({}, "ﬁne ｆｕｌｌ Ⅷ x² Foo™", ["fine", "full", "viii", "x2", "foo"]),
        ({"normalization": "NFC", "lowercase": False}, "ﬁne ｆｕｌｌ", ["ﬁne", "ｆｕｌｌ"]),
        ({}, "soft\xadhyphen w\u2060o\ufeffrd e\u034f\u0301a a\u200db\u200cc zero\u200bwidth",
         ["softhyphen", "word", "éa", "abc", "zerowidth"]),
        ({}, "می\u200cخواهم", ["می\u200cخواهم"]),
        ({}, "र\u094d\u200dक", ["र\u094d\u200dक"]),
        ({}, "\u09b0\u200d\u09cd\u09af\u09be\u09ac", ["\u09b0\u200d\u09cd\u09af\u09be\u09ac"]),
        ({}, "അവന\u0d4d\u200d അവൻ അവന\u0d4d\u200d", ["അവൻ"] * 3),
        ({}, "উত\u09cd\u200dসব উৎসব হঠাত\u09cd\u200d", ["উৎসব", "উৎসব", "হঠাৎ"]),
        ({}, "👩\u200d👩\u200d👧 cat👍🏽dog 🇩🇪 ❤\ufe0f", ["👩\u200d👩\u200d👧", "cat", "👍🏽", "dog", "🇩🇪", "❤"]),
        ({}, "м'ята м’ята צה\"ל col·lecció don't", ["мʼята", "мʼята", "צה״ל", "col·lecció", "don"]),
        ({}, "책 물 가", ["책", "물", "가"]),
        ({}, "\u0301x \u0301", []),
        ({"min_word_length": 3}, "ab कि abc", ["abc"]),
        ({"unspaced": "words"}, "我 喜欢 机器学习", ["我", "喜欢", "机器学习"]),
    ],
)  # fmt: skip
def test_words_are_those_of_the_recipe(recipe: dict[str, Any], text: str, expected: list[str]) -> None:
    assert words(text, **recipe) == expected
    assert [word for word, _, _ in reading(**recipe).placed(text)[0]] == expected


@pytest.mark.parametrize(
    ("text", "found", "grams"),
    [
        ("第3章GPU買う", ["gpu"], ["第", "章", "買", "う", "買う"]),
        ("机器学习 ml", ["ml"], ["机", "器", "学", "习", "机器", "器学", "学习"]),
        ("ｶﾞｷﾞ", [], ["ガ", "ギ", "ガギ"]),
        ("กินข้าว ok", ["ok"], ["กิ", "น", "ข้", "า", "ว", "กิน", "นข้", "ข้า", "าว", "กินข้", "นข้า", "ข้าว"]),
        ("\u1780\u17d2\u179a\u17bb\u200b\u1798", [], ["\u1780\u17d2\u179a\u17bb", "\u1798"]),
        ("ລາວ", [], ["ລ", "າ", "ວ", "ລາ", "າວ", "ລາວ"]),
        ("မြန်မာ", [], ["မြ", "န်", "မာ", "မြန်", "န်မာ", "မြန်မာ"]),
    ],
)
def test_scripts_without_blanks_have_runs_of_characters(text: str, found: list[str], grams: list[str]) -> None:
    assert reading().read(text) == (found, grams)
    assert [gram for gram, _, _ in reading().placed(text)[1]] == grams


@given(word=st.text("കനരലളണത\u0d4dতক\u09cd\u200d\u200cشمی\u094dका", min_size=1, max_size=6))
def test_a_word_is_the_same_at_the_end_of_a_text_and_within(word: str) -> None:
    assert words(f"{word} x", min_word_length=1)[:-1] == words(f"x {word}", min_word_length=1)[1:]


def test_longer_runs_of_characters_follow_the_recipe() -> None:
    assert "机器学习" in reading(char_ngrams=(4, 4)).read("机器学习")[1]


def test_no_sentence_is_a_term() -> None:
    text = "私は東京でラーメンを食べました。ภาษาไทยเป็นภาษาที่สวยงามมาก"
    found, grams = reading().read(text)
    assert found == []
    assert max(map(len, grams)) <= 6


ALPHABET = "aBcIİıßΣé \u0301\u00ad\u200b\u200c\u200dﬁ日本ก็ม\u0e33कि\u094d각ᅡ\u11a8👩🏽🇩·'\"яא-"


@given(st.text(st.sampled_from(ALPHABET)), st.sampled_from(["en", "tr"]), st.sampled_from(["NFC", "NFKC"]))
def test_every_form_of_a_text_has_the_same_words(text: str, language: str, normalization: Any) -> None:
    found = reading(language=language, normalization=normalization)
    for form in ("NFC", "NFD"):
        assert found.read(unicodedata.normalize(form, text)) == found.read(text)  # type: ignore[arg-type]
    words, grams = found.placed(text)
    assert ([word for word, _, _ in words], [gram for gram, _, _ in grams]) == found.read(text)


@given(st.lists(st.text(st.sampled_from(ALPHABET), max_size=20), min_size=1, max_size=4), st.sampled_from(["en", "tr"]))
def test_many_texts_are_counted_as_each_is_read(texts: list[str], language: str) -> None:
    recipe = TextRecipe(min_df=1, min_word_length=1, ngram_max=2, char_ngrams=(2, 3), language=language)
    features, X = TextFeatures.fit([*texts, "word"], recipe)
    for text, row in zip(texts, X, strict=False):
        indices, values = features.text_row(text)
        np.testing.assert_array_equal(indices, row.indices)
        np.testing.assert_allclose(values, row.data)


def test_a_recipe_without_a_version_reads_as_earlier_releases_did() -> None:
    features, _ = TextFeatures.fit(["किताब İSTANBUL"], TextRecipe(min_df=1, reader=1))
    params = features.params_json()
    assert params.pop("reader") == 1
    again = TextFeatures.from_arrays(params, features.arrays())
    assert again.params.reader == 1
    assert len(again.text_row("İSTANBUL")[0]) == 1
    assert again.names() == features.names()
    assert "istanbul" not in (again.names() or [])
