import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.subjects.lexicon import EXACT, PARTS, REORDERED, Lexicon, Name

WORDS = st.sampled_from("abcdef")


def found(lexicon: Lexicon, *sentences: str, part: str = "") -> list[tuple[int, int, int, int]]:
    words = [(word, number) for number, sentence in enumerate(sentences) for word in sentence.split()]
    matches = lexicon.match(
        lexicon.number(word for word, _ in words),
        np.array([number for _, number in words], np.int32),
        np.array([word == part for word, _ in words], bool),
        np.arange(len(words), dtype=np.int32),
    )
    concepts = lexicon.concept[matches.name].tolist()
    return sorted(zip(concepts, matches.how.tolist(), matches.first.tolist(), matches.last.tolist(), strict=True))


def test_longer_names_take_their_words_and_order_is_told() -> None:
    lexicon = Lexicon.build([Name(0, ["history"]), Name(1, ["history", "of", "art"]), Name(2, ["art"])])
    assert found(lexicon, "the history of art") == [(1, EXACT, 1, 3)]
    assert found(lexicon, "of art and history") == [(1, REORDERED, 0, 3)]
    assert found(lexicon, "history", "of art") == [(0, EXACT, 0, 0), (2, EXACT, 2, 2)]
    assert found(lexicon, "history of art and history") == [(0, EXACT, 4, 4), (1, EXACT, 0, 2)]


def test_a_name_that_needs_a_part_of_a_compound_says_so() -> None:
    lexicon = Lexicon.build([Name(7, ["food"])])
    assert found(lexicon, "cat food", part="food") == [(7, PARTS, 1, 1)]


@settings(deadline=None, max_examples=200)
@given(
    names=st.lists(st.lists(WORDS, min_size=1, max_size=3, unique=True), min_size=1, max_size=6),
    sentences=st.lists(st.lists(WORDS, max_size=6), min_size=1, max_size=3),
)
def test_what_is_found_is_there_and_what_is_there_is_found_or_within_a_longer_name(
    names: list[list[str]], sentences: list[list[str]]
) -> None:
    lexicon = Lexicon.build(Name(at, name) for at, name in enumerate(names))
    hits = {concept for concept, *_ in found(lexicon, *map(" ".join, sentences))}
    for at, name in enumerate(names):
        there = [sentence for sentence in sentences if set(name) <= set(sentence)]
        assert (at in hits) <= bool(there)
        longer = [other for other in names if len(other) > len(name) and set(other) & set(name)]
        if there and not any(set(other) <= set(sentence) for other in longer for sentence in there):
            assert at in hits


@settings(deadline=None, max_examples=50)
@given(names=st.lists(st.lists(WORDS, min_size=1, max_size=4), max_size=8), text=st.lists(WORDS, max_size=10))
def test_a_stored_lexicon_finds_the_same(names: list[list[str]], text: list[str]) -> None:
    lexicon = Lexicon.build(Name(at % 3, name) for at, name in enumerate(names))
    again = Lexicon.from_arrays(lexicon.tokens, lexicon.arrays())
    assert found(lexicon, " ".join(text)) == found(again, " ".join(text))


def test_an_empty_lexicon_and_an_empty_text_have_nothing() -> None:
    assert found(Lexicon.build([]), "a b") == []
    assert found(Lexicon.build([Name(0, ["a"])]), "") == []
    assert list(itertools.chain(Lexicon.build([Name(0, ["a"] * 13), Name(1, [])]).concept)) == []
