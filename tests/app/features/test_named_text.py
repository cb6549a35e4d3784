import numpy as np
import pytest

from app.datasets.recipe_schemas import TextRecipe
from app.features.load import load_features
from app.features.named_text import ConceptName, NamedTextFeatures
from solvers.labels.name_block import N_COLUMNS

TEXTS = ["Cat food and dogs. A history of art.", "dogs and cats; cat", "art, ART and catfoodx history"]
NAMES = [
    ConceptName(0, "cats"), ConceptName(1, "cat food"), ConceptName(2, "art (history)"),
    ConceptName(3, "history of art"), ConceptName(0, "Katze"), ConceptName(4, "horse"),
]  # fmt: skip
SHOWN = ["cats", "cat food", "art", "art history", "horse"]


@pytest.fixture
def features() -> NamedTextFeatures:
    return NamedTextFeatures.fit(TEXTS, TextRecipe(min_df=1, lemmas=("en",)), NAMES, SHOWN)[0]


def named(features: NamedTextFeatures, text: str) -> set[str]:
    indices, _ = features.row({"text": text})
    block = features.block()
    return {SHOWN[(at - block.first) // N_COLUMNS] for at in indices if block.first <= at < features.n_features - 1}


def test_names_are_columns_beside_the_terms(features: NamedTextFeatures) -> None:
    assert named(features, TEXTS[0]) == {"cat food", "art history"}
    assert named(features, "The cat and art") == {"cats", "art"}
    assert named(features, "nothing") == set()
    assert features.named(features.n_features - 1) == "number of words"
    assert features.named(features.block().first) == "name of cats: hits"
    assert features.names()[features.block().first] == "name of cats: hits"


def test_a_row_alone_and_among_others_is_the_same_and_stays_so_when_stored(features: NamedTextFeatures) -> None:
    again = load_features(features.kind, features.params_json(), features.arrays())
    for some in (features, again):
        X = some.transform(TEXTS)  # type: ignore[attr-defined]
        for at, text in enumerate(TEXTS):
            indices, values = some.row({"text": text})
            np.testing.assert_array_equal(X[at].indices, indices)
            np.testing.assert_array_equal(X[at].data, values)


def test_the_places_of_names_are_those_in_the_text(features: NamedTextFeatures) -> None:
    first = features.block().first
    text = "A ﬁne\u0301 CAT. Then food for cats, and the history\u00ad of art"
    spans = features.spans({"text": text}, [first + N_COLUMNS * concept for concept in range(5)])
    assert {SHOWN[(at - first) // N_COLUMNS]: [text[i:j] for i, j in here] for at, here in spans.items()} == {
        "cats": ["CAT"],
        "cat food": ["food for cats"],
        "art history": ["history\u00ad of art"],
    }


def test_names_alike_share_rare_words(features: NamedTextFeatures) -> None:
    alike = features.block().alike.toarray()
    assert alike[0, 1] > 0.25
    assert alike[0, 4] == 0
    assert not alike.diagonal().any()
