"""Where terms occur in a text."""

from hypothesis import given
from hypothesis import strategies as st

from app.datasets.recipe_schemas import TextRecipe
from app.features.reading import reader
from app.features.terms import TermColumns, placed_terms
from app.features.text import TextFeatures
from app.features.words import Words

RECIPES = [
    TextRecipe(),
    TextRecipe(lowercase=False, ngram_max=3),
    TextRecipe(prefix=3, char_ngrams=(2, 4), ngram_max=2),
    TextRecipe(reader=1, char_ngrams=(2, 4)),
    TextRecipe(language="tr"),
]
TEXTS = st.text(st.sampled_from("aBcIİßΣ ,-_9é\u0301\u00ad\u200dﬁ日本ก็कि각ᅡ👩"), max_size=30)


@given(TEXTS, st.sampled_from(RECIPES))
def test_the_terms_that_are_placed_are_those_that_are_counted(text: str, recipe: TextRecipe) -> None:
    placed = list(placed_terms(text, recipe, Words(recipe)))
    counted: list[str] = []
    TermColumns(recipe, lambda term: counted.append(term) or len(counted)).find_all(text)  # type: ignore[func-returns-value]
    # a word that is there again is not asked for again
    assert set(counted) == {term for term, _, _ in placed}
    numbers = {term: number for number, term in enumerate(sorted(set(counted)))}
    columns = TermColumns(recipe, numbers.get)
    for _ in range(2):
        assert sorted(columns.find_all(text)) == sorted(numbers[term] for term, _, _ in placed)
    n = len(reader(recipe.model_dump()).fold(text))
    assert all(0 <= begin < end <= n for _, begin, end in placed)


@given(TEXTS, st.sampled_from(RECIPES))
def test_every_folded_character_comes_from_the_text_in_its_order(text: str, recipe: TextRecipe) -> None:
    found = reader(recipe.model_dump())
    origins = found.origins(text)
    folded = found.fold(text)
    if origins is None:
        assert len(folded) == len(text)
    else:
        assert len(origins) == len(folded)
        assert origins == sorted(origins)
        assert all(0 <= begin < end <= len(text) for begin, end in origins)


def spans(text: str, recipe: TextRecipe) -> dict[str, list[str]]:
    features, _ = TextFeatures.fit([text, text], recipe)
    found = features.spans({"text": text}, range(features.n_features))
    return {str(features.named(index)): [text[begin:end] for begin, end in at] for index, at in found.items()}


def test_spans_are_cut_from_the_text_as_it_was_given() -> None:
    assert spans("İstanbul, BLUE sea; blue", TextRecipe())["blue"] == ["BLUE", "blue"]
    found = spans("A blue-green Sea", TextRecipe(ngram_max=2, prefix=2, char_ngrams=(3, 3)))
    assert found["blue green"] == ["blue-green"]
    assert found["gr*"] == ["gr"]
    assert found["~ se"] == ["Se"]
    assert found["~ea "] == ["ea"]
