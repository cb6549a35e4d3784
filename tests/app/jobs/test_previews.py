"""What a recipe makes of one row is what a job's features would be."""

import pytest
from asking import TestClient, problem
from working import upload

from app.jobs import previews

URL = "/api/v1/datasets/rows/preview"
TEXTS = b"".join(
    b'{"text": "%s", "label": "%s", "split": "%s"}\n' % row
    for row in [(b"red apple", b"a", b"train"), (b"green apple", b"b", b"train"), (b"blue apple pie", b"a", b"test")]
    * 2
)


def test_a_row_has_the_terms_of_training_rows_as_the_recipe_says(client: TestClient) -> None:
    upload(client, "rows", TEXTS, "jsonl")
    body = client.post(URL, json={"row": 2}).json()
    assert (body["n_fitted"], body["n_features"], body["n_values"]) == (4, 3, 1)
    assert body["features"] == [{"feature": "apple", "value": 1.0}]
    prefixed = client.post(URL, json={"row": 0, "text": {"prefix": 2}}).json()
    assert {each["feature"] for each in prefixed["features"]} == {"red", "re*", "apple", "ap*"}


def test_numbers_are_scaled_by_the_training_rows(client: TestClient) -> None:
    upload(client, "rows", b"label,x,split\na,1,train\nb,3,train\na,5,test\n", "csv")
    assert client.post(URL, json={"row": 2}).json()["features"] == [{"feature": "x", "value": 5.0}]
    scaled = client.post(URL, json={"row": 2, "columns": {"scaling": "standard"}}).json()
    assert scaled["features"] == [{"feature": "x", "value": 3.0}]


def test_a_table_shows_numbers_levels_and_terms(client: TestClient) -> None:
    upload(
        client, "rows", b"label,x,c,t\na,1,u,some words\nb,3,v,some other\n", "csv",
        number_columns="x", category_columns="c", text_columns="t",
    )  # fmt: skip
    found = client.post(URL, json={"row": 1, "columns": {"scaling": "none", "min_level_rows": 1}}).json()["features"]
    assert {each["feature"]: each["value"] for each in found} == {"x": 3.0, "c=v": 1.0, "t: some": 1.0}


def test_cleaning_is_counted_in_the_sample_and_shown_of_the_row(client: TestClient) -> None:
    rows = ["<p>red <b>apple</b></p>", "green apple", "<i>blue</i> apple"]
    upload(client, "rows", "".join(f'{{"text": "{text}", "label": "{text[0]}"}}\n' for text in rows).encode(), "jsonl")
    assert client.post(URL, json={"row": 0}).json()["cleaning"] is None
    body = client.post(URL, json={"row": 0, "text": {"clean": ["html"]}}).json()
    assert {each["feature"] for each in body["features"]} == {"apple"}
    assert "cleaning" in body, body["detail"]
    found = body["cleaning"]
    assert (found["n_texts"], found["n_changed"], found["changes"]["tags"]) == (3, 2, 6)
    assert (found["characters_before"], found["characters_after"]) == (51, 30)
    assert (found["before"], found["after"]) == ("<p>red <b>apple</b></p>", "red apple")
    unchanged = client.post(URL, json={"row": 1, "text": {"clean": ["html"]}}).json()["cleaning"]
    assert (unchanged["before"], unchanged["after"]) == (None, None)


def test_text_columns_are_cleaned_each_by_its_own_recipe(client: TestClient) -> None:
    content = b"label,t,u\na,<b>one</b>,<b>two</b>\nb,<b>one</b>,<b>two</b>\n"
    upload(client, "rows", content, "csv", text_columns=["t", "u"])
    found = client.post(URL, json={"text": {"fields": {"u": {"clean": ["html"]}}}}).json()["cleaning"]
    assert found["changes"] == {"tags": 4}
    assert (found["before"], found["after"]) == ("<b>two</b>", "two")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"row": 6}, "has the rows 0 to 5"),
        ({"text": {"min_df": 9}}, "terms in"),
        ({"text": {"prefix": 1}}, ""),
        ({"columns": {"scaling": "robust"}}, "does not fit"),
        ({"text": {"hash_features": (1 << 22) + 1}}, "at most 4,194,304 features"),
    ],
)
def test_what_is_not_to_be_had_is_refused(client: TestClient, body: dict[str, object], said: str) -> None:
    upload(client, "rows", TEXTS, "jsonl")
    assert said in problem(client.post(URL, json=body), 422)["detail"]


def test_terms_may_be_hashed_into_as_many_features_as_are_told(client: TestClient) -> None:
    upload(client, "rows", TEXTS, "jsonl")
    assert client.post(URL, json={"text": {"hash_features": 1 << 22}}).json()["n_features"] == 1 << 22


def test_only_so_many_rows_are_previewed_at_a_time(client: TestClient) -> None:
    upload(client, "rows", TEXTS, "jsonl")
    for _ in range(previews.MOST_AT_ONCE):
        previews._places.acquire()
    try:
        answer = client.post(URL, json={})
        problem(answer, 503, "unavailable")
        assert int(answer.headers["Retry-After"]) > 0
    finally:
        previews._places.release(previews.MOST_AT_ONCE)
    assert client.post(URL, json={}).status_code == 200
    problem(client.post(URL, json={"row": 99}), 422, "invalid_input")
    assert client.post(URL, json={}).status_code == 200


def test_texts_alone_are_not_trained_on_with_a_recipe_of_columns(client: TestClient) -> None:
    upload(client, "rows", TEXTS, "jsonl")
    body = {"kind": "train", "dataset": "rows", "model": "m", "columns": {"scaling": "robust"}}
    assert problem(client.post("/api/v1/jobs", json=body), 422)["errors"][0]["pointer"] == "/columns"


def test_the_stop_words_are_of_the_language_of_the_texts(client: TestClient) -> None:
    german = b'{"text": "Das sind die vielen B\xc3\xa4ume in einem Wald, der in der N\xc3\xa4he ist", "label": "%s"}\n'
    upload(client, "rows", german % b"a" * 20 + german % b"b" * 20, "jsonl")

    def terms(stop_words: object) -> set[str]:
        found = client.post(URL, json={"text": {"stop_words": stop_words}})
        assert found.status_code == 200, found.text
        return {each["feature"] for each in found.json()["features"]}

    assert {"die", "der", "wald"} <= terms([])
    assert "wald" in terms("auto") == terms("de") == terms("german")
    assert not {"die", "der"} & terms("auto")


def test_a_language_that_is_not_known_is_refused_where_it_is_to_be_found_out(client: TestClient) -> None:
    upload(client, "rows", TEXTS, "jsonl")
    refused = problem(client.post(URL, json={"text": {"stop_words": "auto"}}), 422)
    assert refused["errors"][0]["pointer"] == "/text/stop_words"
    assert "too few or too short to detect their language" in refused["errors"][0]["detail"]
