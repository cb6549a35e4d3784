import tracemalloc
from collections import Counter, defaultdict
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from app.datasets.recipe_schemas import TextRecipe
from app.features import text as text_features
from app.features.base import FitError, InstanceError, stack
from app.features.load import load_features
from app.features.term_counts import count_terms
from app.features.terms import TermColumns
from app.features.text import TextFeatures

TEXTS = [
    "The quick brown fox jumps over the lazy dog; the dog sleeps.",
    "A quick-witted FOX, a Äpfel straße İstanbul naïve café",
    "straße ÄPFEL und die Füchse; die Füchse springen über die Straße",
    "日本語 の テスト 日本語 テスト, quick テスト",
    "x y z 1 22 333 a_b __ 22",
    "",
    "dog dog dog dog fox fox quick",
]

params = st.builds(
    TextRecipe,
    min_df=st.integers(1, 2),
    max_df=st.sampled_from([0.5, 1.0]),
    ngram_max=st.integers(1, 3),
    sublinear_tf=st.booleans(),
    lowercase=st.booleans(),
    reader=st.just(1),
)


def vectorizer(given: TextRecipe) -> TfidfVectorizer:
    return TfidfVectorizer(
        min_df=given.min_df,
        max_df=given.max_df,
        ngram_range=(1, given.ngram_max),
        max_features=given.max_features,
        sublinear_tf=given.sublinear_tf,
        lowercase=given.lowercase,
    )


def assert_same(X: csr_matrix[np.float64], expected: csr_matrix[np.float64]) -> None:
    assert X.shape == expected.shape
    assert X.has_sorted_indices
    assert X.nnz == expected.nnz
    np.testing.assert_allclose(X.toarray(), expected.toarray(), rtol=0, atol=1e-12)


@settings(deadline=None)
@given(params, st.lists(st.text("abAB é ñß٣語_", max_size=12), max_size=6), st.lists(st.text(max_size=20), max_size=4))
def test_features_are_those_of_scikit_learn(given: TextRecipe, more: list[str], unseen: list[str]) -> None:
    oracle = vectorizer(given)
    expected = oracle.fit_transform(TEXTS + more)
    features, X = TextFeatures.fit(iter(TEXTS + more), given)
    assert features.names() == oracle.get_feature_names_out().tolist()
    assert_same(X, expected)
    new = [*unseen, "quick quick fox", *TEXTS]
    assert_same(features.transform(iter(new)), oracle.transform(new))
    alone = stack([features.row({"text": text}) for text in new], features.n_features)
    assert_same(alone, oracle.transform(new))
    assert (alone != features.transform(new)).nnz == 0  # to the bit


def test_the_most_frequent_terms_are_kept() -> None:
    given = TextRecipe(min_df=1, max_features=3)
    texts = ["aa aa aa bb bb cc", "dd dd dd dd cc", "bb ee"]
    oracle = vectorizer(given).fit(texts)
    features, X = TextFeatures.fit(texts, given)
    assert features.names() == oracle.get_feature_names_out().tolist() == ["aa", "bb", "dd"]
    assert_same(X, oracle.transform(texts))


def test_terms_as_frequent_as_one_another_are_kept_in_alphabetical_order() -> None:
    features, _ = TextFeatures.fit(["zz yy xx ww", "zz ww"], TextRecipe(min_df=1, max_features=3))
    assert features.names() == ["ww", "xx", "zz"]


def test_saved_features_are_the_same_to_the_last_bit() -> None:
    features, X = TextFeatures.fit(TEXTS, TextRecipe(min_df=1, ngram_max=2))
    arrays = features.arrays()
    loaded = load_features(features.kind, features.params_json(), arrays)
    assert isinstance(loaded, TextFeatures)
    assert loaded.params == features.params
    assert loaded.names() == features.names()
    assert {name: array.dtype.str for name, array in arrays.items()} == {
        "names_blob": "|u1",
        "names_offsets": "<i8",
        "idf": "<f8",
    }
    for name, array in loaded.arrays().items():
        np.testing.assert_array_equal(array, arrays[name], strict=True)
    again = loaded.transform(TEXTS)
    np.testing.assert_array_equal(again.data, X.data)
    np.testing.assert_array_equal(again.indices, X.indices)


def test_plain_texts_are_read_as_scikit_learn_reads_them() -> None:
    texts = ["The quick-witted FOX, don't: a_b 22 naïve café", "example.com ÄPFEL Füchse", "über die Füchse"]
    features, X = TextFeatures.fit(texts, TextRecipe(min_df=1, ngram_max=2))
    others = vectorizer(features.params)
    assert_same(X, csr_matrix(others.fit_transform(texts)))
    assert features.names() == others.get_feature_names_out().tolist()


@pytest.mark.parametrize("hash_features", [None, 64])
def test_texts_of_single_letters_are_refused_with_the_option_that_takes_them(hash_features: int | None) -> None:
    recipe = TextRecipe(hash_features=hash_features, min_df=1)
    with pytest.raises(FitError, match="min_word_length=1"):
        TextFeatures.fit(["a b", "c"], recipe)
    features, _ = TextFeatures.fit(["a b", "c"], recipe.model_copy(update={"min_word_length": 1}))
    assert len(features.row({"text": "b"})[0]) == 1


def test_a_text_without_known_terms_is_a_row_of_zeros() -> None:
    features, _ = TextFeatures.fit(TEXTS, TextRecipe())
    indices, values = features.row({"text": "nothing here"})
    assert len(indices) == len(values) == 0
    assert features.transform(["nothing here", ""]).nnz == 0
    assert features.transform([]).shape == (0, features.n_features)


@pytest.mark.parametrize("texts", [[], [""], ["aa", "bb"]])
def test_texts_without_a_term_to_keep_are_refused(texts: list[str]) -> None:
    with pytest.raises(FitError, match=r"none of .* terms|contain no terms"):
        TextFeatures.fit(texts, TextRecipe())


@pytest.mark.parametrize("instance", [{"features": {"a": 1}}, [1.0, 2.0], {"indices": [0], "values": [1]}])
def test_numbers_are_refused(instance: dict[str, object] | list[float]) -> None:
    features, _ = TextFeatures.fit(TEXTS, TextRecipe())
    with pytest.raises(InstanceError, match="this model takes texts"):
        features.row(instance)


@pytest.mark.parametrize(
    "wrong", [{"min_df": 0}, {"max_df": 0}, {"max_df": 1.5}, {"ngram_max": 4}, {"stop": "english"}]
)
def test_params_out_of_bounds_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TextRecipe.model_validate(wrong)


def test_beginnings_and_runs_of_characters_are_terms_of_their_own():
    recipe = TextRecipe(min_df=1, prefix=3, char_ngrams=(4, 5))
    features, _ = TextFeatures.fit(["Library a lib bee"], recipe)
    runs = ["~ lib", "~libr", "~ibra", "~brar", "~rary", "~ary ", "~lib ", "~ bee", "~bee "]
    longer = ["~ libr", "~libra", "~ibrar", "~brary", "~rary ", "~ lib ", "~ bee "]
    assert set(features.names()) == {"library", "lib", "bee", "lib*", *runs, *longer}
    again, X = TextFeatures.fit(["Library a lib bee", "other words"], recipe)
    read = TextFeatures.from_arrays(again.params_json(), again.arrays())
    indices, values = read.text_row("Library a lib bee")
    np.testing.assert_array_equal(indices, X[0].indices)
    np.testing.assert_allclose(values, X[0].data)


def test_lengths_of_runs_ascend():
    with pytest.raises(ValidationError, match="the first length must not exceed the second"):
        TextRecipe(char_ngrams=(5, 3))


def test_what_is_remembered_and_what_is_summed_at_a_time_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = TextRecipe(min_df=1, ngram_max=2, char_ngrams=(2, 3))
    texts = [*TEXTS, "one two one", "", "two"]
    features, X = TextFeatures.fit(texts, recipe)
    monkeypatch.setattr("app.features.terms._MOST_WORDS", 2)
    monkeypatch.setattr("app.features.term_counts._BLOCK", 3)
    others, Z = TextFeatures.fit(texts, recipe)
    assert X.shape == Z.shape
    assert (X != Z).nnz == 0
    assert (others.transform(texts) != X).nnz == 0
    for text, row in zip(texts, X, strict=True):
        indices, values = features.row({"text": text})
        np.testing.assert_array_equal(indices, row.indices)
        np.testing.assert_allclose(values, row.data)


@pytest.mark.parametrize(
    ("recipe", "text", "terms"),
    [
        ({}, "C and the UK", ["and", "the", "uk"]),
        ({"min_word_length": 1}, "C and the UK", ["and", "c", "the", "uk"]),
        ({"stop_words": ("The", "and")}, "C and the UK", ["uk"]),
        ({"stem": "english", "ngram_max": 2}, "running horses", ["hors", "run", "run hors"]),
        ({"stem": "german"}, "Häuser häuslich", ["haus", "hauslich"]),
        # a table of 150 MB
        pytest.param({"lemmas": ("de",)}, "Die Häuser", ["der", "haus"], marks=pytest.mark.slow),
        ({"lemmas": ("en",), "lowercase": False, "prefix": 4}, "two mice running", ["mouse", "mous*", "run", "two"]),
    ],
)
def test_what_words_are_is_said_by_the_recipe(recipe: dict[str, Any], text: str, terms: list[str]) -> None:
    features, X = TextFeatures.fit([text, text], TextRecipe(**recipe))
    assert features.names() == sorted(terms)
    again = load_features("text", features.params_json(), features.arrays())
    indices, values = again.row({"text": text})
    np.testing.assert_allclose(X.toarray()[0, indices], values)
    spans = features.spans({"text": text}, indices.tolist())
    assert all(0 <= begin < end <= len(text) for found in spans.values() for begin, end in found)


def test_a_recipe_of_an_earlier_version_gives_the_same_rows() -> None:
    features, X = TextFeatures.fit(TEXTS, TextRecipe(min_df=1, reader=1))
    params = {name: features.params_json()[name] for name in ("min_df", "max_df", "ngram_max", "sublinear_tf")}
    again = load_features("text", params, features.arrays())
    assert_same(stack([again.row({"text": text}) for text in TEXTS], again.n_features), X)


def test_stems_and_lemmas_exclude_one_another() -> None:
    with pytest.raises(ValidationError, match="stem or lemmas, not both"):
        TextRecipe(stem="english", lemmas=("en",))


def test_long_words_are_counted_and_not_remembered() -> None:
    long = "x" * 50
    columns = TermColumns(TextRecipe(min_df=1, prefix=4), {"short": 0, long: 1, "shor*": 2}.get)
    for _ in range(2):
        assert columns.find_all(f"short {long} {long}") == [0, 2, 1, 1]
    assert list(columns.of_language[""]._of_word) == ["short"]


def test_words_that_bring_nothing_else_are_looked_up_where_they_are() -> None:
    columns = TermColumns(TextRecipe(min_df=1), {"short": 0, "way": 1}.get)
    assert columns.find_all("a short way, and a short one") == [0, 1, 0]
    assert not columns.of_language[""]._of_word


@pytest.mark.parametrize(
    ("recipe", "library"),
    [(TextRecipe(min_df=1, stem="english"), "snowballstemmer"), (TextRecipe(min_df=1, lemmas=("en",)), "simplemma")],
)
def test_features_know_what_made_their_stems_and_the_log_tells_where_that_differs(
    recipe: TextRecipe, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[tuple[str, dict[str, Any]]] = []
    # a logger that other tests have used keeps their settings
    monkeypatch.setattr(
        text_features, "log", SimpleNamespace(warning=lambda event, **values: reported.append((event, values)))
    )
    features, _ = TextFeatures.fit(["running horses run"], recipe)
    params = features.params_json()
    assert params["libraries"].keys() == {library}
    again = load_features("text", params, features.arrays())
    assert (again.params_json(), reported) == (params, [])
    load_features("text", params | {"libraries": {library: "0.1"}}, features.arrays())
    ((event, values),) = reported
    assert (event, values["made_with"]) == ("features.other_libraries", {library: "0.1"})


def test_features_without_stems_name_no_library() -> None:
    features, _ = TextFeatures.fit(["running horses run"], TextRecipe(min_df=1))
    assert "libraries" not in features.params_json()


def test_bm25_weighs_as_its_formula_says() -> None:
    recipe = TextRecipe(min_df=1, weighting="bm25", bm25_k1=1.5, bm25_b=0.6, reader=1)
    features, X = TextFeatures.fit(TEXTS, recipe)
    counts = CountVectorizer().fit_transform(TEXTS).toarray().astype(float)
    n, in_texts, lengths = len(TEXTS), (counts > 0).sum(axis=0), counts.sum(axis=1, keepdims=True)
    idf = np.log(1 + (n - in_texts + 0.5) / (in_texts + 0.5))
    expected = idf * counts * 2.5 / (counts + 1.5 * (1 - 0.6 + 0.6 * lengths / lengths.mean()))
    norms = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(X.toarray(), expected / np.where(norms > 0, norms, 1))
    again = load_features("text", features.params_json(), features.arrays())
    assert_same(stack([again.row({"text": text}) for text in TEXTS], again.n_features), X)


@pytest.mark.parametrize("hash_features", [None, 1 << 20])
def test_known_terms_are_those_of_training_texts(hash_features: int | None) -> None:
    features, _ = TextFeatures.fit(["red apple", "red sea"], TextRecipe(min_df=1, hash_features=hash_features))
    for text, n in (("red red apple", 2), ("sea qwertz", 1), ("qwertz", 0), ("", 0)):
        assert features.known_terms(features.text_row(text)[0]).sum() == n


@pytest.mark.parametrize("weighting", ["tfidf", "bm25"])
def test_hashed_terms_need_no_vocabulary(weighting: Literal["tfidf", "bm25"]) -> None:
    recipe = TextRecipe(hash_features=16, ngram_max=2, weighting=weighting)
    features, X = TextFeatures.fit(TEXTS, recipe)
    assert X.shape == (len(TEXTS), 16)
    assert features.names() is None
    assert "names_blob" not in features.arrays()
    again = load_features("text", features.params_json(), features.arrays())
    assert_same(stack([again.row({"text": text}) for text in TEXTS], again.n_features), X)
    assert (features.transform(TEXTS) != X).nnz == 0
    text = "Quick, quick"
    indices, _ = features.row({"text": text})
    spans = features.spans({"text": text}, indices.tolist())
    assert sorted(spans) == indices.tolist()
    assert {features.named(index) for index in spans} == set(indices.tolist())


def test_rows_of_many_hashed_features_cost_what_is_in_them() -> None:
    features, _ = TextFeatures.fit(TEXTS, TextRecipe(hash_features=1 << 20))
    tracemalloc.start()
    try:
        X = features.transform(TEXTS[:1])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert X.shape == (1, 1 << 20)
    assert X.has_sorted_indices
    assert most < 1 << 20  # less than a byte a feature


def test_texts_without_a_term_to_hash_are_refused() -> None:
    with pytest.raises(FitError, match="the 2 texts contain no terms"):
        TextFeatures.fit(["", "!"], TextRecipe(hash_features=16))


def test_one_number_of_features_is_given() -> None:
    with pytest.raises(ValidationError, match="max_features or hash_features, not both"):
        TextRecipe(max_features=10, hash_features=16)


@given(
    params,
    st.lists(st.text(st.sampled_from("aB1_ \n\t-.\x1f\x7fäß"), max_size=25), max_size=8),
)
def test_many_texts_at_once_have_the_terms_that_each_has(recipe: TextRecipe, texts: list[str]) -> None:
    ids: defaultdict[str, int] = defaultdict()
    ids.default_factory = ids.__len__
    columns = TermColumns(recipe, ids.__getitem__)
    counts = count_terms(texts, columns).toarray()
    assert counts.shape[0] == len(texts)
    for text, row in zip(texts, counts, strict=True):
        assert Counter(columns.find_all(text)) == {at: n for at, n in enumerate(row.tolist()) if n}


def test_wide_hashing_takes_no_array_of_that_width() -> None:
    width = 1 << 22
    texts = ["red apple", "green leek", "apple and leek"] * 2
    TextFeatures.fit(texts, TextRecipe(hash_features=16))
    tracemalloc.start()
    try:
        features, _ = TextFeatures.fit(texts, TextRecipe(hash_features=width))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert features.n_features == width
    assert len(features.arrays()["idf"]) == 6  # of five words, and of what no text has
    assert peak < width  # less than a byte a feature


@pytest.mark.parametrize("weighting", ["tfidf", "bm25"])
def test_hashed_terms_of_earlier_versions_have_a_weight_for_every_column(
    weighting: Literal["tfidf", "bm25"],
) -> None:
    features, X = TextFeatures.fit(TEXTS, TextRecipe(hash_features=64, weighting=weighting))
    arrays = features.arrays()
    columns, idf = arrays.pop("idf_columns"), arrays["idf"]
    arrays["idf"] = np.full(64, idf[-1])
    arrays["idf"][columns] = idf[:-1]
    earlier = load_features("text", features.params_json(), arrays)
    assert earlier.n_features == 64
    for text in (*TEXTS, "words that no text has had"):
        for found, expected in zip(earlier.row({"text": text}), features.row({"text": text}), strict=True):
            np.testing.assert_array_equal(found, expected)
    assert_same(stack([earlier.row({"text": text}) for text in TEXTS], 64), X)


def test_weights_and_columns_of_hashed_terms_belong_together() -> None:
    features, _ = TextFeatures.fit(TEXTS, TextRecipe(hash_features=64))
    arrays = features.arrays()
    for idf in (arrays["idf"][:-1], arrays["idf"][:1]):
        with pytest.raises(ValueError, match="columns and the others"):
            load_features("text", features.params_json(), arrays | {"idf": idf})
