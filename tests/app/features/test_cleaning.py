"""Texts of HTML pages and of PDF files, cleaned; places of what is left."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from asking import TestClient
from hypothesis import given
from hypothesis import strategies as st
from working import answers, run, train, upload

from app.datasets.recipe_schemas import FieldRecipe, TextRecipe
from app.exports import archive_loader
from app.features import cleaning, excerpts, reading
from app.features.cleaning import Cleaned
from app.features.concept_names import ConceptName
from app.features.named_text import NamedTextFeatures
from app.features.text import TextFeatures

PAGE = """<!DOCTYPE html>
<html><head><title>Of apples</title><script>if (a < b) { write("<p>code</p>"); }</script>
<style>p { color: red }</style></head>
<body class=plain data-x="a > b"><!-- a <b>comment</b> -->
<p>Red apples
   &amp; gre<b>en</b> pears&nbsp;here<br/>and there
<ul><li>one<li>two</ul><pre>kept
lines</pre></body></html>"""
PAGES = "\f".join(
    f"Journal of Fruit 12\n\nThe {name} apple is an exam-\nple of a well-\nknown ﬁne fruit. Pre-\nand post-war.\n"
    f"It is well-known, {name}, for soft\u00ad\nness and a\u00a0{name} half-\n\n{page}\n"
    for page, name in enumerate(["red", "green", "blue", "white"], 8)
)
SOURCES = [("html",), ("pdf",), ("html", "pdf")]
PARTS = st.sampled_from(
    ["<", ">", "</", "<p", "<b>", "</b>", "<script>", "</script>", "<!--", "-->", "&amp;", "&#", ";", '"', "'", "=",
     " ", "\n", "\f", "-", "a", "B", "é", "7", "\u00ad", "ﬁ", "\ufeff", "(cid:3)", "日", "<a href=", "&lt;", "/",
     "\t", "pre"]
)  # fmt: skip
ANY = st.lists(PARTS, max_size=60).map("".join) | st.text(max_size=60)


def cleaned(text: str, *sources: str) -> str:
    return Cleaned(text, sources).text


def test_a_page_is_read_as_it_is_shown() -> None:
    assert cleaned(PAGE, "html") == ("Of apples\nRed apples & green pears here\nand there\none\ntwo\nkept\nlines")
    assert Cleaned(PAGE, ["html"]).counts()["scripts and styles"] == 2


@pytest.mark.parametrize(
    "text",
    [
        "where a < b and c > d", "a<b and c>d", "i<n; i<=m", "vector<string> of <names>", "<john@example.org> wrote",
        "see <http://example.org/a>", "x <- y; y -> x", "AT&T; R&D &unknown;", "<!-- a comment without end",
    ],
)  # fmt: skip
def test_what_is_no_markup_stays(text: str) -> None:
    assert cleaned(text, "html") == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<div class='a'><p>one <b>two <i>three</p> four", "one two three four"),
        ('<p title="open>one <img alt="" src="x"> two', "one two"),
        ("<script>one two", "one two"),
        ("one <style> two", "one two"),
        ('<script src="a.js"/>one <script>x</script>two', "one two"),
        ("<p>one <div two", "one div two"),
        ("&lt;p&gt;one &amp;amp; two&lt;/p&gt;", "one two"),
        ("<jats:p>one <jats:italic>two</jats:italic></jats:p>", "one two"),
        ("<p>a < b <p>c", "a b c"),
    ],
)
def test_a_broken_page_loses_no_words(text: str, words: str) -> None:
    assert re.findall(r"\w+", cleaned(text, "html")) == words.split()


def test_pages_of_a_file_become_one_text() -> None:
    of_each = (
        "The {0} apple is an example of a well-known fine fruit. Pre- and post-war.\n"
        "It is well-known, {0}, for softness and a {0} half-"
    )
    names = ["red", "green", "blue", "white"]
    assert cleaned(PAGES, "pdf") == "\n".join(["Journal of Fruit 12", *map(of_each.format, names)])
    assert Cleaned(PAGES, ["pdf"]).counts()["page lines"] == 3 + 4


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a cut exam-\nple", "a cut example"),
        ("across exam-\n\n1\n\fple\n\n2\n\f", "across example"),
        ("state-of-the-\nart", "state-of-the-art"),
        ("NATO: INTER-\nNATIONAL and international", "NATO: INTERNATIONAL and international"),
        ("Müller-\nLüdenscheidt", "Müller-\nLüdenscheidt"),
        ("1914-\n1918", "1914-\n1918"),
        ("Ein-\nund Ausgang", "Ein- und Ausgang"),
        ("A Title\nThe text goes\non here", "A Title\nThe text goes on here"),
        ("1 2 3\n\f4 5 6\n\f7 8 9\n", "1 2 3\n4 5 6\n7 8 9"),
        ("e\u00adven (cid:12)", "even"),
    ],
)
def test_lines_of_a_file(text: str, result: str) -> None:
    assert cleaned(text, "pdf") == result


@given(ANY, st.sampled_from(SOURCES))
def test_every_character_comes_from_the_text_in_its_order(text: str, sources: tuple[str, ...]) -> None:
    found = Cleaned(text, sources)
    places = [found.place(at, at + 1) for at in range(len(found.text))]
    assert all(0 <= begin < end <= len(text) for begin, end in places)
    assert places == sorted(places)
    for character, (begin, end) in zip(found.text, places, strict=True):
        if end - begin == 1 and character.isalnum() and text[begin] < "\ufb00":
            assert text[begin] == character


@given(st.lists(st.sampled_from(["<p>", "</p>", "<b>", "</b>", "<br/>", "one", " ", "\n", "a < b", "<!-- x -->"])))
def test_a_clean_page_stays_as_it_is(parts: list[str]) -> None:
    once = cleaned("".join(parts), "html")
    assert cleaned(once, "html") == once


@given(ANY)
def test_without_sources_nothing_changes(text: str) -> None:
    assert Cleaned(text, ()).text == text


@pytest.mark.parametrize("other", [{}, {"max_words": 6}, {"max_sentences": 2}, {"ngram_max": 2, "char_ngrams": (2, 3)}])
def test_features_are_those_of_the_cleaned_text_with_places_in_the_whole(other: dict[str, Any]) -> None:
    recipe = TextRecipe.model_validate({"min_df": 1} | other)
    texts, sources = [PAGE, PAGES], ("html", "pdf")
    features, X = TextFeatures.fit(texts, recipe.model_copy(update={"clean": sources}))
    plain, expected = TextFeatures.fit([cleaned(text, *sources) for text in texts], recipe)
    assert features.names() == plain.names()
    assert (expected != X).nnz == 0
    for at, text in enumerate(texts):
        indices, values = features.text_row(text)
        assert values.tolist() == X[at].data.tolist()
        for index, spans in features.spans({"text": text}, indices.tolist()).items():
            if (term := str(features.named(index))).isalpha():
                for begin, end in spans:
                    assert cleaned(text[begin:end], *sources).lower() == term


def test_names_are_found_where_the_page_has_them() -> None:
    text = "<p>Of a gre<b>en</b>\n  tea</p>"
    recipe = TextRecipe(min_df=1, clean=("html",))
    features, _ = NamedTextFeatures.fit([text], recipe, [ConceptName(0, "green tea")], ["green tea"])
    named = [at for at in range(features.terms.n_features, features.n_features) if "hits" in str(features.named(at))]
    ((begin, end),) = features.spans({"text": text}, named)[named[0]]
    assert text[begin:end] == "gre<b>en</b>\n  tea"


def test_a_field_may_be_cleaned_or_left_on_its_own() -> None:
    recipe = TextRecipe(clean=("pdf", "html", "pdf"), fields={"title": FieldRecipe(clean=()), "body": FieldRecipe()})
    assert recipe.clean == ("html", "pdf")
    assert recipe.of_field("title").clean == ()
    assert recipe.of_field("body").clean == ("html", "pdf")


def test_params_without_cleaning_are_as_before() -> None:
    features, _ = TextFeatures.fit(["one two"], TextRecipe(min_df=1))
    assert "clean" not in features.params_json()
    cleaning_too, _ = TextFeatures.fit(["one two"], TextRecipe(min_df=1, clean=("pdf",)))
    again = TextFeatures.from_arrays(cleaning_too.params_json(), cleaning_too.arrays())
    assert again.text_recipe.clean == ("pdf",)


def test_the_modules_of_the_script_of_an_archive_define_different_names() -> None:
    seen: set[str] = set()
    for module in (archive_loader, reading, cleaning, excerpts):
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        names = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        for node in tree.body:
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                names |= {each.id for each in ast.walk(target) if isinstance(each, ast.Name)} if target else set()
        assert not seen & names
        seen |= names


def _page(text: str) -> str:
    return f"<html><head><script>var apple = 1;</script></head><body><p>{text}</p><!-- sea --></body></html>"


@pytest.mark.parametrize("fields", [False, True], ids=["one text", "fields"])
def test_a_job_over_a_file_cleans_its_texts_as_a_request_does(client: TestClient, fields: bool) -> None:
    texts = {"fruit": "a red app<b>le</b> &amp; a pear", "water": "the blue sea", "plant": "a green leek"}
    rows = [
        {"title": f"of {label}", "text": _page(f"{text} {n % 3}"), "label": label, "id": f"r{n}"}
        for n in range(8)
        for label, text in texts.items()
    ]
    recipe: dict[str, Any] = {"min_df": 1, "clean": ["html"]}
    options: dict[str, Any] = {"ignore_columns": "title"}
    if fields:
        recipe = {"min_df": 1, "fields": {"title": {"weight": 0.5}, "text": {"clean": ["html"]}}}
        options = {"text_columns": ["title", "text"]}
    upload(client, "pages", "\n".join(map(json.dumps, rows)).encode(), "jsonl", **options)
    job = train(client, "pages", "m", text=recipe, test_fraction=0)
    assert job["state"] == "succeeded", job["error"]
    # other marks around the same words, which are read as labels in their tags
    asked = [row | {"text": str(row["text"]).replace("<p>", '<div title="the blue sea"><p>')} for row in rows]
    unlabelled = [{key: value for key, value in row.items() if key != "label"} for row in asked]
    upload(client, "new", "\n".join(map(json.dumps, unlabelled)).encode(), "jsonl", unlabelled="true", **options)
    body = {"kind": "predict", "dataset": "new", "model": "m", "format": "jsonl"}
    made = client.post("/api/v1/jobs", json=body)
    run(made.json()["id"])
    file = client.get(f"/api/v1/jobs/{made.json()['id']}/predictions").text.splitlines()
    found = [json.loads(line) for line in file]
    plain = [re.sub("<script.*?</script>|<[^>]*>", "", str(row["text"])).replace("&amp;", "&") for row in rows]
    for texts_of_request in ([row["text"] for row in asked], plain):
        instances = [
            {"record": {"title": row["title"], "text": text}} if fields else {"text": text}
            for row, text in zip(rows, texts_of_request, strict=True)
        ]
        known = answers(client, "m", {"instances": instances})["predictions"]
        assert [(each["label"], each["score"]) for each in found] == [
            (each["label"], pytest.approx(each["score"], rel=1e-9)) for each in known
        ]
    assert [each["label"] for each in found] == [row["label"] for row in rows]
