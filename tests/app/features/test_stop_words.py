"""The stop words of a language: which list, how its words are cut, and that features keep them."""

import builtins
import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError
from scipy.sparse import vstack
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
from stopwordsiso import langs, stopwords

from app.datasets.recipe_schemas import STOP_LANGUAGES, TextRecipe
from app.features import stop_words
from app.features.base import stack
from app.features.load import load_features
from app.features.stop_words import with_stop_words
from app.features.text import TextFeatures

TEXTS = ["The dogs are running over it", "She runs with a dog, and nobody sees it", "computer systems of the world"]


def words(recipe: TextRecipe) -> set[str]:
    found = with_stop_words(recipe).stop_words
    assert isinstance(found, tuple)
    assert list(found) == sorted(set(found))
    return set(found)


def test_all_languages_have_a_list_but_those_without_blanks_between_words() -> None:
    assert set(STOP_LANGUAGES) == langs() - {"ja", "th", "zh"}
    assert len(set(STOP_LANGUAGES.values())) == len(STOP_LANGUAGES)
    for code in STOP_LANGUAGES:
        assert words(TextRecipe(stop_words=code, min_word_length=1)), code


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("de", "de"),
        ("DE", "de"),
        ("german", "de"),
        ("German", "de"),
        ("nb", "no"),
        ("nn", "no"),
        ("pt-BR", "pt"),
        ("de-AT-1996", "de"),
        ("nb-NO", "no"),
    ],
)
def test_a_language_goes_by_its_code_or_its_name(given: str, code: str) -> None:
    assert TextRecipe(stop_words=given).stop_words == code


@pytest.mark.parametrize("given", ["klingon", "zh", "zh-Hant", "-", "", "de,en", "the"])
def test_other_names_are_refused_with_those_that_are_known(given: str) -> None:
    with pytest.raises(ValidationError, match=r"give a list of words .* auto, or one of af \(afrikaans\), .*zulu"):
        TextRecipe(stop_words=given)


def test_english_texts_have_the_terms_that_scikit_learn_leaves() -> None:
    features, X = TextFeatures.fit(TEXTS, TextRecipe(min_df=1, stop_words="english", ngram_max=2))
    theirs = TfidfVectorizer(stop_words="english", ngram_range=(1, 2), sublinear_tf=True)
    assert abs(theirs.fit_transform(TEXTS) - X).max() < 1e-12
    assert features.names() == theirs.get_feature_names_out().tolist()
    assert words(TextRecipe(stop_words="en")) == {word for word in ENGLISH_STOP_WORDS if len(word) > 1}


def test_listed_words_are_cut_as_texts_are_and_phrases_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_words, "_listed", lambda _: {"don't", "vis-à-vis", "bao giờ", "co.", "a"})
    assert words(TextRecipe(stop_words="en")) == {"don", "co"}
    assert words(TextRecipe(stop_words="en", min_word_length=1)) == {"don", "t", "co", "a"}


def test_no_listed_word_has_more_than_a_texts_words_have() -> None:
    assert "bao giờ" in stopwords("vi")
    assert "giờ" not in words(TextRecipe(stop_words="vi"))
    for code in STOP_LANGUAGES:
        assert all(
            " " not in word and "'" not in word for word in words(TextRecipe(stop_words=code, min_word_length=1))
        )


def test_words_are_left_out_before_stems_are_made() -> None:
    texts = ["eine Katze und andere Katzen", "einer anderen Katze"]
    features, _ = TextFeatures.fit(texts, TextRecipe(min_df=1, stop_words="de", stem="german"))
    assert features.names() == ["katz"]
    # the stem of a word on the list is on no list: andere and anderen would both be left as "and"
    stems, _ = TextFeatures.fit(texts, TextRecipe(min_df=1, stem="german"))
    kept, _ = TextFeatures.fit(texts, TextRecipe(min_df=1, stem="german", stop_words=("andere",)))
    assert "and" in (stems.names() or [])
    assert "and" in (kept.names() or [])


@pytest.mark.parametrize("recipe", [{}, {"hash_features": 64}, {"stem": "german"}, {"lowercase": False}])
def test_features_keep_the_words_and_need_no_list(recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["Der Hund und die Katze", "ein Hund, eine Maus, und die Katze"]
    features, X = TextFeatures.fit(texts, TextRecipe(min_df=1, stop_words="de", **recipe))
    params = features.params_json()
    assert {"und", "der", "eine"} <= set(params["stop_words"])
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        assert name != "stopwordsiso"
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    again = load_features("text", params, features.arrays())
    found = stack([again.row({"text": text}) for text in texts], again.n_features)
    assert abs(vstack([found - X])).max() < 1e-12
    assert again.params_json() == params


def test_words_of_ones_own_stay_as_they_were_given() -> None:
    recipe = TextRecipe(stop_words=("don't", "The"))
    assert with_stop_words(recipe) is recipe


def test_no_list_is_loaded_where_none_is_named() -> None:
    script = (
        "import sys; from app.features.text import TextFeatures; from app.datasets.recipe_schemas import TextRecipe\n"
        "TextFeatures.fit(['a word', 'a word'], TextRecipe())\n"
        "assert not {'stopwordsiso', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("given", "stem"), [("en", "english"), ("pt-BR", "portuguese"), ("German", "german"), ("porter", "porter")]
)
def test_stems_and_lemmas_go_by_tags_of_languages_too(given: str, stem: str) -> None:
    assert TextRecipe.model_validate({"stem": given}).stem == stem
    assert TextRecipe.model_validate({"lemmas": ["pt-BR", "DE", "enm"]}).lemmas == ("pt", "de", "enm")
    for wrong in ({"stem": "zh-Hant"}, {"lemmas": ["zh-Hant"]}, {"stem": 3}, {"lemmas": [3]}, {"lemmas": "de"}):
        with pytest.raises(ValidationError):
            TextRecipe.model_validate(wrong)
