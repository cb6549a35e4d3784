"""Texts of several languages with terms of their own: parts, terms, places, names of concepts, and the machines."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError
from scipy.sparse import csr_matrix

from app.datasets.import_options import with_language
from app.datasets.recipe_schemas import DETECTED_LANGUAGES, FieldRecipe, LanguageRecipe, TextRecipe
from app.datasets.statistics_schemas import DatasetStatistics, Languages, LanguageShare
from app.errors import InvalidInput
from app.features.by_language import language_parts, main_language
from app.features.concept_names import ConceptName
from app.features.language_detection import detector
from app.features.load import load_features
from app.features.named_text import NamedTextFeatures
from app.features.term_counts import count_terms
from app.features.terms import TermColumns
from app.features.text import TextFeatures
from solvers import registry
from solvers.core.model import Model
from solvers.core.problem import Problem

FINNISH = [
    "Kirjastojen asiakkaat lainaavat paljon lastenkirjoja ja sarjakuvia koulujen loma-aikoina.",
    "Suomen metsissä kasvaa mäntyjä, kuusia ja koivuja, joita metsänomistajat hoitavat.",
    "Historiallinen romaani kertoo sodan ajasta ja sen jälkeisestä jälleenrakennuksesta.",
    "Tutkimus käsittelee nuorten mielenterveyttä ja koulukiusaamisen ehkäisemistä.",
    "Kirja esittelee metsien eläimiä ja kasveja lapsille, joita luonto kiinnostaa.",
    "Opas neuvoo, miten vanhoja taloja korjataan ja miten puutarhoja hoidetaan.",
]
SWEDISH = [
    "Bibliotekets låntagare läser många barnböcker och serier under skolornas lov.",
    "I de svenska skogarna växer tallar, granar och björkar som skogsägarna sköter.",
    "Den historiska romanen berättar om krigstiden och återuppbyggnaden efter kriget.",
    "Undersökningen handlar om ungdomars psykiska hälsa och om mobbning i skolan.",
    "Boken presenterar skogens djur och växter för barn som är intresserade av naturen.",
    "Handboken ger råd om hur gamla hus repareras och hur trädgårdar sköts.",
]
FRENCH = "Les lecteurs de la bibliothèque empruntent beaucoup de livres pour les enfants pendant les vacances."
LANGUAGES = ("fi", "sv")
RECIPE = TextRecipe.model_validate({"min_df": 1, "ngram_max": 2, "by_language": LANGUAGES})


def test_the_languages_of_recipes_are_those_of_the_detector() -> None:
    assert {str(name) for name in detector().nb_classes} - {"zxx"} == DETECTED_LANGUAGES


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by_language": ["fi", "xx"]}, "unknown languages: xx; give codes"),
        ({"by_language": ["fi"], "stem": "fi"}, "leave out stem, lemmas and language"),
        ({"by_language": {"fi": {"stem": "fi", "lemmas": ["fi"]}}}, "give stem or lemmas, not both"),
        ({"by_language": [3]}, "by_language"),
    ],
)
def test_wrong_languages_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TextRecipe.model_validate(given)


def test_a_list_of_languages_takes_lemmas_or_stems_of_each() -> None:
    recipe = TextRecipe.model_validate({"by_language": ["fi", "eu", "ja", "no"]})
    assert recipe.by_language == {
        "fi": LanguageRecipe(lemmas=("fi",)),
        "eu": LanguageRecipe(stem="basque"),
        "ja": LanguageRecipe(),
        "no": LanguageRecipe(lemmas=("nb",)),
    }
    own = TextRecipe.model_validate({"by_language": {"fi": None, "sv": {"stem": "sv", "stop_words": "sv"}}})
    assert own.by_language == {"fi": recipe.by_language["fi"], "sv": LanguageRecipe(stem="swedish", stop_words="sv")}
    assert TextRecipe.model_validate(own.model_dump(mode="json")) == own


def test_each_paragraph_is_in_its_own_language_and_a_short_one_in_that_of_the_whole() -> None:
    text = f"{SWEDISH[0]}\n{SWEDISH[1]}\n\n{FINNISH[0]}\nok\n{FRENCH}"
    parts = language_parts(text, LANGUAGES)
    assert "".join(part.of(text) for part in parts) == text
    named = [(part.language, part.of(text).strip()) for part in parts]
    whole = main_language([text[:500]], LANGUAGES)
    assert named[0] == ("sv", f"{SWEDISH[0]}\n{SWEDISH[1]}")
    assert named[-1] == ("other", FRENCH)
    assert [language for language, part in named if FINNISH[0] in part] == ["fi"]
    assert whole in LANGUAGES
    assert [part.language for part in language_parts("ok", LANGUAGES)] == [main_language(["ok"], LANGUAGES)]
    assert language_parts("", LANGUAGES)[0].of("") == ""
    assert main_language(["x"], ()) is None


@pytest.mark.parametrize(
    ("text", "language"),
    [("traktori", "fi"), ("mjölk", "sv"), ("milk", "en"), ("novel", "en"), ("lehmä ja maito", "fi"), ("skog", "sv")],
)
def test_the_language_of_a_few_words_is_that_of_the_dictionary_that_has_them(text: str, language: str) -> None:
    assert main_language([text], ("sv", "fi", "en", "ja")) == language
    assert main_language(["東京"], ("sv", "ja")) == "ja"


def test_languages_may_have_english_names_and_subtags() -> None:
    recipe = TextRecipe.model_validate({"by_language": ["FI", "Swedish", "pt-BR", "nb"]})
    assert list(recipe.by_language) == ["fi", "sv", "pt", "no"]


def test_stop_words_are_those_of_each_language() -> None:
    recipe = with_language(RECIPE.model_copy(update={"stop_words": "auto"}), _statistics(fi=0.6, sv=0.4))
    assert {name: own.stop_words for name, own in recipe.by_language.items()} == {"fi": "fi", "sv": "sv"}
    features, _ = TextFeatures.fit([*FINNISH, *SWEDISH], recipe)
    names = set(features.names() or ())
    assert "fi:ja" not in names
    assert "sv:och" not in names
    assert {"fi:metsä", "sv:skog"} <= names


def test_the_terms_of_a_language_are_those_of_its_own_texts_to_the_bit() -> None:
    texts = [*FINNISH, *SWEDISH]
    features, X = TextFeatures.fit(texts, RECIPE)
    for language, own in (("fi", FINNISH), ("sv", SWEDISH)):
        alone, X_own = TextFeatures.fit(own, RECIPE.of_language(language))
        names = features.names() or []
        at = [names.index(f"{language}:{term}") for term in alone.names() or []]
        rows = [texts.index(text) for text in own]
        np.testing.assert_array_equal(X[rows][:, at].toarray(), X_own.toarray())
        assert X[rows].nnz == X_own.nnz
    assert features.row({"text": SWEDISH[0]})[0].tolist() == X[6].indices.tolist()
    assert features.text_language({"text": SWEDISH[0]}) == "sv"
    assert features.text_language({"text": FRENCH}) == "other"


@pytest.mark.parametrize("method", ["weston_watkins", "crammer_singer", "one_vs_rest"])
def test_a_machine_without_intercept_is_the_machine_of_each_language_alone(method: str) -> None:
    _, X = TextFeatures.fit([*FINNISH, *SWEDISH], RECIPE)
    y = np.array([0, 1, 2] * 4, np.int32)
    params = {"tol": 1e-9, "C": 1.0, "dtype": "float64"}
    whole = _trained(method, params, X, y)
    for rows in (slice(0, 6), slice(6, 12)):
        alone = _trained(method, params, X[rows], y[rows])
        np.testing.assert_allclose(whole.scores(X[rows]), alone.scores(X[rows]), atol=1e-4)


def _trained(method: str, params: dict[str, Any], X: csr_matrix, y: NDArray[np.int32]) -> Model:
    made = registry.make(method, params)
    problem = Problem.check(X, y)
    *_, last = made.steps(problem)
    return made.model(problem, last.state)


@given(st.lists(st.sampled_from([*FINNISH, *SWEDISH, FRENCH, "ok", ""]), max_size=4), st.booleans())
def test_many_texts_at_once_have_the_terms_that_each_has(paragraphs: list[str], hashed: bool) -> None:
    recipe = RECIPE.model_copy(update={"char_ngrams": (3, 3), "hash_features": 64 if hashed else None})
    features, _ = TextFeatures.fit([*FINNISH, *SWEDISH], recipe)
    text = "\n".join(paragraphs)
    columns = TermColumns(recipe, features._find)
    (counted,) = count_terms([text], columns).toarray()
    assert Counter(columns.find_all(text)) == {at: int(n) for at, n in enumerate(counted) if n}
    placed = list(columns.places(text))
    assert Counter(at for at, _, _ in placed) == Counter(columns.find_all(text))
    assert all(0 <= begin < end <= len(text) for _, begin, end in placed)


def test_places_are_in_the_text_as_it_came() -> None:
    features, _ = TextFeatures.fit([*FINNISH, *SWEDISH], RECIPE)
    text = f"{SWEDISH[1]}\n{FINNISH[1]}"
    names = features.names() or []
    wanted = {names.index("fi:metsä"): "metsissä", names.index("sv:skog"): "skogarna"}
    found = features.spans({"text": text}, wanted)
    assert {index: {text[a:b] for a, b in spans} for index, spans in found.items()} == {
        index: {word} for index, word in wanted.items()
    }


def test_fields_are_read_by_their_own_languages() -> None:
    recipe = RECIPE.model_copy(update={"fields": {"title": FieldRecipe(weight=2.0)}})
    rows = [(SWEDISH[at], FINNISH[at]) for at in range(6)]
    features, X = TextFeatures.fit(rows, recipe, ["title", "abstract"])
    np.testing.assert_array_equal(features.transform(rows).toarray(), X.toarray())
    assert features.language(*rows[0]) in LANGUAGES
    assert features.language("", FINNISH[0]) == "fi"


def test_names_are_found_in_texts_of_their_language_alone() -> None:
    names = [ConceptName(0, "metsät", "fi"), ConceptName(0, "skogar", "sv"), ConceptName(1, "lov", "sv")]
    features, X = NamedTextFeatures.fit([*FINNISH, *SWEDISH], RECIPE, names, ["forests", "holidays"])
    again = load_features(features.kind, features.params_json(), features.arrays())
    text = f"{SWEDISH[0]}\n{FINNISH[1]}"
    (forests, holidays) = (names_of(features, X, at) for at in ("forests", "holidays"))
    assert forests == [FINNISH[1], FINNISH[4], SWEDISH[1], SWEDISH[4]]
    assert holidays == [SWEDISH[0]]
    row = again.row({"text": text})
    np.testing.assert_array_equal(row[0], features.row({"text": text})[0])
    hits = [index for index in row[0].tolist() if str(again.named(index)).endswith(": hits")]
    spans = again.spans({"text": text}, hits)
    assert sorted(text[a:b] for places in spans.values() for a, b in places) == ["lov", "metsissä", "metsänomistajat"]


def names_of(features: NamedTextFeatures, X: Any, concept: str) -> list[str]:
    at = features.names().index(f"name of {concept}: hits")
    texts = [*FINNISH, *SWEDISH]
    return [texts[row] for row in np.flatnonzero(X[:, [at]].toarray()[:, 0])]


def test_what_is_saved_reads_texts_as_before() -> None:
    features, X = TextFeatures.fit([*FINNISH, *SWEDISH], RECIPE)
    assert set(features.params_json()["libraries"]) == {"py3langid", "simplemma"}
    again = load_features(features.kind, features.params_json(), features.arrays())
    for row, text in enumerate([*FINNISH, *SWEDISH]):
        indices, values = again.row({"text": text})
        np.testing.assert_array_equal(indices, X[row].indices)
        np.testing.assert_array_equal(values, X[row].data)
    assert "by_language" not in TextFeatures.fit(FINNISH, TextRecipe(min_df=1))[0].params_json()


def test_languages_that_no_text_is_in_are_refused() -> None:
    with pytest.raises(InvalidInput) as raised:
        with_language(TextRecipe.model_validate({"by_language": ["de", "fr"]}), _statistics(fi=1.0))
    (item,) = raised.value.errors
    assert item.pointer == "/text/by_language"
    assert item.detail.startswith("by_language is for de, fr, but 100% of the texts are in the language fi: choose")


def _statistics(**shares: float) -> DatasetStatistics:
    found = [LanguageShare(language=language, share=share) for language, share in shares.items()]
    return DatasetStatistics.model_construct(languages=Languages(n_rows=99, shares=found))
