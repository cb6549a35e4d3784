import json
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from app.datasets.recipe_schemas import ColumnRecipe, FieldRecipe, TableColumns, TextRecipe
from app.features.concept_names import ConceptName
from app.features.load import load_features
from app.features.named_text import NamedTableFeatures, NamedTextFeatures
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


TITLED = TableColumns(texts=("title", "abstract"), numbers=("year",))
RECORDS = [
    ("A history. Of art", "The cat has food. Then nothing."),
    ("", "Dogs and art"),
    ("Cat food and history", ""),
]


def tabled(**fields: dict[str, Any]) -> NamedTableFeatures:
    recipe = TextRecipe(min_df=1, lemmas=("en",), fields={name: FieldRecipe(**own) for name, own in fields.items()})
    years = csr_matrix([[1990.0], [2000.0], [2010.0]])
    texts: list[Any] = RECORDS if fields else ["\n".join(filter(None, row)) for row in RECORDS]
    features, X = NamedTableFeatures.fit(TITLED, ["year"], years, texts, ColumnRecipe(), recipe, NAMES, SHOWN)
    again = load_features(features.kind, json.loads(json.dumps(features.params_json())), features.arrays())
    assert isinstance(again, NamedTableFeatures)
    for some in (features, again):
        np.testing.assert_array_equal(some.transform(years, ["year"], texts).toarray(), X.toarray())
        for at in range(len(RECORDS)):
            indices, values = some.row(record(at))
            np.testing.assert_array_equal(X[at].indices, indices)
            np.testing.assert_array_equal(X[at].data, values)
    return features


def record(at: int) -> dict[str, Any]:
    title, abstract = RECORDS[at]
    return {"record": {"abstract": abstract, "title": title, "year": 1990 + 10 * at}}


def in_title(features: NamedTableFeatures, at: int) -> set[str]:
    names = (str(features.named(index)) for index in features.row(record(at))[0].tolist())
    return {name.removeprefix("name of ").removesuffix(": title") for name in names if name.endswith(": title")}


@pytest.mark.parametrize(
    ("fields", "of_first", "of_second"),
    [
        ({}, set(), {"art"}),  # the first sentence of the joined text
        ({"title": {"weight": 2}}, {"art"}, {"art"}),  # of a record without a title the first sentence
        ({"abstract": {"weight": 2}}, {"art"}, {"art"}),
        ({"title": {"max_words": 2}}, set(), {"art"}),
    ],
)
def test_names_in_the_first_field_count_as_in_the_title(
    fields: dict[str, Any], of_first: set[str], of_second: set[str]
) -> None:
    features = tabled(**fields)
    assert in_title(features, 0) == of_first
    assert in_title(features, 1) == of_second


def test_the_places_of_names_in_fields_are_those_in_the_texts_joined() -> None:
    features = tabled(title={"weight": 2}, abstract={"max_words": 3})
    first, joined = features.block().first, "\n".join(RECORDS[0])
    spans = features.spans(record(0), [first + N_COLUMNS * concept for concept in range(5)])
    assert {SHOWN[(at - first) // N_COLUMNS]: [joined[i:j] for i, j in here] for at, here in spans.items()} == {
        "cats": ["cat"],
        "art": ["art"],
    }


def test_names_alike_share_rare_words(features: NamedTextFeatures) -> None:
    alike = features.block().alike.toarray()
    assert alike[0, 1] > 0.25
    assert alike[0, 4] == 0
    assert not alike.diagonal().any()
