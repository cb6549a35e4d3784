"""Limits of what is read of a text: its first characters or words, and sentences spread over the whole of it."""

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.datasets.recipe_schemas import TextRecipe
from app.features.excerpts import excerpt
from app.features.text import TextFeatures

DOCUMENT = "One begins. Two follows! (Three?) Four is here.\nFive; five. Six ends"


@pytest.mark.parametrize(
    ("limits", "read"),
    [
        ({}, DOCUMENT),
        ({"max_characters": 9}, "One begin"),
        ({"max_words": 3}, "One begins. Two"),
        ({"max_words": 100}, DOCUMENT),
        ({"max_sentences": 1}, "One begins."),
        ({"max_sentences": 3}, "One begins.\n(Three?\nFive; five."),
        ({"max_sentences": 100}, DOCUMENT),
        ({"max_words": 6, "max_sentences": 2}, "One begins.\n(Three?"),
    ],
)
def test_what_a_limit_reads(limits: dict[str, int], read: str) -> None:
    assert excerpt(DOCUMENT, limits).text == read


@pytest.mark.parametrize(
    ("text", "limits", "read"),
    [
        ("किताब पढ़ो अभी", {"max_words": 2}, "किताब पढ़ो"),  # vowel signs are part of the word
        ("猫が好き。犬も好き。", {"max_words": 3}, "猫が好"),
        ("猫が好き。犬も好き。鳥も。", {"max_sentences": 2}, "猫が好き。\n犬も好き。"),
        ("هل تقرأ؟ نعم. لا.", {"max_sentences": 1}, "هل تقرأ؟"),
        ("वह पढ़ता है। मैं लिखता हूँ।", {"max_sentences": 1}, "वह पढ़ता है।"),
    ],
)
def test_limits_follow_the_script(text: str, limits: dict[str, int], read: str) -> None:
    assert excerpt(text, limits).text == read


@given(
    st.text("ab .!\n。", max_size=60),
    st.fixed_dictionaries(
        {}, optional={f"max_{unit}": st.integers(1, 9) for unit in ("characters", "words", "sentences")}
    ),
)
def test_places_in_an_excerpt_are_those_of_the_same_characters_in_the_text(text: str, limits: dict[str, int]) -> None:
    found = excerpt(text, limits)
    assert all(0 <= begin <= end <= len(text) for begin, end in found.parts)
    assert all(before[1] <= after[0] for before, after in pairwise(found.parts))
    for word in re.finditer(r"\w+", found.text):
        begin, end = found.place(*word.span())
        assert text[begin:end] == word.group()


@pytest.mark.parametrize("limits", [{"max_words": 4}, {"max_sentences": 2}, {"max_characters": 20}])
@pytest.mark.parametrize("other", [{}, {"weighting": "bm25"}, {"ngram_max": 2, "char_ngrams": (2, 3)}])
def test_features_of_a_limited_text_are_those_of_its_excerpt(limits: dict[str, int], other: dict[str, Any]) -> None:
    texts = [DOCUMENT, "Two ends here. Five is one? Four.", "Ärger. Six one two three four five six"]
    recipe = TextRecipe(min_df=1, **other)
    limited = recipe.model_copy(update=limits)
    features, X = TextFeatures.fit(texts, limited)
    cut, expected = TextFeatures.fit([excerpt(text, limits).text for text in texts], recipe)
    assert features.names() == cut.names()
    assert (expected != X).nnz == 0
    for at, text in enumerate(texts):
        indices, values = features.text_row(text)
        assert indices.tolist() == X[at].indices.tolist()
        assert values.tolist() == X[at].data.tolist()
        for index, spans in features.spans({"text": text}, indices.tolist()).items():
            assert spans
            if " " not in (term := str(features.named(index))) and term[0] != "~":
                assert {text[begin:end].lower() for begin, end in spans} == {term}
