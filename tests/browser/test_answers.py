"""What the playground shows of an answer, and how users correct it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import Service, signed_in

from app.client import Client

pytestmark = pytest.mark.slow


def test_words_that_spoke_for_a_label_are_marked_behind_characters_of_two_code_units_too(
    page: Any, client: Client, service: Service
) -> None:
    page.goto(f"{service.url}/playground?model=foods")
    page.get_by_label("Text").fill("\N{GREEN APPLE} <b>round</b> apple and sea")
    page.get_by_role("button", name="Predict").click()
    answer = page.locator("#answer")
    answer.get_by_role("heading", name="fruit").wait_for()
    assert answer.locator("mark.lifts:not(.small mark)").all_inner_texts() == ["round", "apple"]
    assert answer.locator("mark.lowers:not(.small mark)").all_inner_texts() == ["sea"]
    answer.get_by_text("Margin of fruit over water").click()
    assert {"round", "apple", "sea"} <= set(answer.get_by_role("rowheader").all_inner_texts())
    page.get_by_label("Explain").uncheck()
    page.get_by_role("button", name="Predict").click()
    answer.locator("mark").first.wait_for(state="detached")


def test_labels_are_called_as_their_vocabulary_names_them(page: Any, service: Service) -> None:
    def named(route: Any) -> None:
        found = route.fetch().json()
        for each in found["predictions"][0]["top"]:
            each["names"] = {"de": "Obst", "en": "Fruits"} if each["label"] == "fruit" else None
        route.fulfill(json=found)

    page.route("**/predict*", named)
    page.goto(f"{service.url}/playground?model=foods")
    page.get_by_label("Text").fill("round apple and sea")
    page.get_by_role("button", name="Predict").click()
    answer = page.locator("#answer")
    answer.get_by_role("heading", name="Fruits").wait_for()
    assert answer.locator(".answers .name").first.text_content() == "Fruits fruit"
    assert answer.locator(".answers .name").nth(1).inner_text() in ("vegetable", "water")
    assert answer.get_by_text("Margin of Fruits over").count() == 1


def test_labels_are_called_in_the_first_language_of_the_browser_that_their_vocabulary_has(
    page: Any, service: Service
) -> None:
    names = {"de": "Obst", "en-gb": "Fruit", "en-us": "Fruits", "pt-br": "Frutas", "zh-hant": "水果"}
    cases = [
        (["de-AT", "en"], "Obst"),  # a tag is shortened from its end,
        (["zh-Hant-TW"], "水果"),
        (["pt"], "Frutas"),  # and a variety of the language will do,
        (["en-AU"], "Obst"),  # but none for another variety: the first that there is
        (["fr", "pt-BR", "de"], "Frutas"),
        ([], "Obst"),
        (["en-US", "en-GB"], "Fruits"),
        (["d", "e"], "Obst"),  # no language, though tags begin so
    ]

    def named(route: Any) -> None:
        found = route.fetch().json()
        for each in found["predictions"][0]["top"]:
            each["names"] = names if each["label"] == "fruit" else None
        route.fulfill(json=found)

    page.route("**/predict*", named)
    page.goto(f"{service.url}/playground?model=foods")
    page.get_by_label("Text").fill("round apple")
    for languages, name in cases:
        define = "languages => Object.defineProperty(navigator, 'languages', { value: languages, configurable: true })"
        page.evaluate(define, languages)
        with page.expect_response("**/predict*"):
            page.get_by_role("button", name="Predict").click()
        page.locator("#answer").get_by_role("heading", name=name, exact=True).wait_for()


def test_a_text_of_which_nothing_counts_is_said_to_be_so(page: Any, service: Service) -> None:
    page.goto(f"{service.url}/playground?model=foods")
    blank = page.locator("#answer").get_by_text("The model knows no feature of this instance")
    unknown = page.locator("#answer").get_by_text("The model knows no word of this text")
    for text, shown, n in ((" ", blank, 1), ("apple", blank, 0), ("qwertz", unknown, 1), ("apple", unknown, 0)):
        page.get_by_label("Text").fill(text)
        with page.expect_response("**/predict*"):
            page.get_by_role("button", name="Predict").click()
        shown.wait_for(state="attached" if n else "detached")


def test_a_label_that_no_training_row_has_is_said_to_be_so(page: Any, service: Service) -> None:
    def untrained(route: Any) -> None:
        found = route.fetch().json()
        found["predictions"][0]["labels"][0]["seen"] = False
        route.fulfill(json=found)

    page.goto(f"{service.url}/playground?model=foods")
    page.get_by_label("Text").fill("round apple")
    page.get_by_role("button", name="Predict").click()
    page.locator("#answer").get_by_text("Version").wait_for()
    assert not page.locator("#answer").get_by_text("No training row has").count()
    page.route("**/predict*", untrained)
    page.get_by_role("button", name="Predict").click()
    page.locator("#answer").get_by_text("No training row has: fruit.").wait_for()


def test_a_click_before_the_page_can_answer_it_is_not_lost(page: Any, service: Service) -> None:
    held: list[Any] = []
    page.route("**/words.js*", lambda route: held.append(route))  # of which all modules of the page have need
    page.goto(f"{service.url}/playground?model=foods", wait_until="commit")
    page.get_by_role("button", name="Use a row of the dataset").click()
    while not held:
        page.wait_for_timeout(10)
    held.pop().continue_()
    page.get_by_text("its label is").wait_for()


def test_a_row_of_the_dataset_is_shown_as_the_version_reads_it(page: Any, client: Client, service: Service) -> None:
    rows = [
        {"title": "red apple", "body": "a fruit", "label": "fruit"},
        {"title": "deep sea", "body": "blue water", "label": "water"},
    ]
    client.datasets.upload(rows, "titled", text_columns=["title", "body"]).wait()
    for fields in ({}, {"title": {"weight": 2}}):
        client.train("titled", "titled", "weston_watkins", text={"min_df": 1, "fields": fields}, test_fraction=0).wait()
    for version, begin in ((1, ""), (2, '{"record":{"title":')):
        page.goto(f"{service.url}/playground?model=titled&version={version}")
        page.get_by_role("button", name="Use a row of the dataset").click()
        page.get_by_text("its label is").wait_for()
        shown = page.locator("#instance").input_value()
        assert shown.startswith(begin or ("red apple\na", "deep sea\nb"))
        with page.expect_response("**/predict*") as answered:
            page.get_by_role("button", name="Predict").click()
        assert answered.value.status == 200


def test_a_row_that_cannot_be_had_is_told(opened: Callable[..., Any], service: Service) -> None:
    page = signed_in(opened(refused=True), service.url, service.key)
    page.goto(f"{service.url}/playground?model=foods")
    page.route("**/rows?*", lambda route: route.fulfill(status=503, json={"detail": "The store is away."}))
    page.get_by_role("button", name="Use a row of the dataset").click()
    page.locator("#answer").get_by_text("The store is away.").wait_for()


def test_what_is_said_to_be_right_waits_at_the_model_and_becomes_rows(
    page: Any, client: Client, service: Service
) -> None:
    page.goto(f"{service.url}/playground?model=foods")
    page.get_by_label("Text").fill("a salty wave")
    page.get_by_role("button", name="Predict").click()
    page.get_by_label("Correct label").fill("water")
    page.get_by_role("button", name="Submit correction").click()
    page.get_by_role("link", name="Add feedback to the dataset").click()
    page.locator("#feedback").get_by_text("a salty wave").wait_for()
    reported = client.feedback.list("foods", waiting=True).items
    assert [(each.labels, each.instance) for each in reported] == [(["water"], {"text": "a salty wave"})]
    before = client.datasets.get("foods").version
    page.get_by_role("button", name="Add to dataset").click()
    page.get_by_role("button", name="Confirm").click()
    page.locator("#state .badge.succeeded").wait_for()
    assert client.datasets.get("foods").version == before + 1


def test_late_answers_stand_beside_those_to_rows_held_out(page: Any, client: Client, service: Service) -> None:
    client.predict("sure-foods", [{"text": "a blue deep sea"}] * 50)
    page.goto(f"{service.url}/models/sure-foods/versions/1")
    card = page.locator("#drift")
    row = card.locator("tbody tr").filter(has_text="water")
    row.wait_for()
    assert "total variation" in card.inner_text()
    expected, found = (float(each.rstrip("%")) for each in row.locator("td").all_inner_texts())
    assert expected < 80.0 < found  # other tests ask the model, too
    card.locator(".chart[data-points]").wait_for()
    assert card.locator("figure").is_visible()


def test_labels_whose_share_has_moved_are_called_as_their_vocabulary_names_them(
    page: Any, client: Client, service: Service
) -> None:
    def named(route: Any) -> None:
        found = route.fetch().json()
        for each in found["labels"]["moved"]:
            each["names"] = {"de": "Wasser", "en": "Waters"} if each["label"] == "water" else None
        route.fulfill(json=found)

    client.predict("sure-foods", [{"text": "a blue deep sea"}] * 30)
    page.route("**/drift", named)
    page.goto(f"{service.url}/models/sure-foods/versions/1")
    rows = page.locator("#drift").get_by_role("rowheader")
    rows.filter(has_text="Waters water").wait_for()
    assert set(rows.all_text_contents()) <= {"Waters water", "fruit", "vegetable"}


def test_a_row_of_a_table_with_several_texts_is_asked_with_all_of_them(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    file = tmp_path / "letters.csv"
    rows = [("red apple", "a sweet fruit", "fruit"), ("green leek", "a long stalk", "vegetable")] * 20
    file.write_text("subject,body,label,price\n" + "".join(f"{','.join(row)},{n}\n" for n, row in enumerate(rows)))
    client.datasets.upload(file, "letters", text_columns=["subject", "body"], infer_columns=True).wait()
    client.train("letters", "letters", "centroids").wait()
    page.goto(f"{service.url}/playground?model=letters")
    page.get_by_role("button", name="Use a row of the dataset").click()
    page.locator("#answer").get_by_text("of the dataset; its label is").wait_for()
    record = json.loads(page.get_by_label("Instance").input_value())["record"]
    assert (record["subject"], record["body"]) in (("red apple", "a sweet fruit"), ("green leek", "a long stalk"))
    label = "fruit" if "apple" in record["subject"] else "vegetable"
    page.get_by_role("button", name="Predict").click()
    page.locator("#answer").get_by_role("heading", name=label).wait_for()


def test_a_smaller_copy_is_made_from_the_versions_page_and_tells_what_it_loses(
    page: Any, client: Client, service: Service
) -> None:
    page.goto(f"{service.url}/models/foods/versions/1")
    page.get_by_role("button", name="Create a half-precision copy").click()
    page.locator("#state .badge.succeeded").wait_for()
    made = max(client.models.get("foods").versions)
    page.goto(f"{service.url}/models/foods/versions/{made}")
    copy = page.locator("#copy")
    copy.get_by_role("heading", name="A smaller copy of version 1").wait_for()
    copy.get_by_text("weights in half precision").wait_for()
    assert page.get_by_role("button", name="Create a half-precision copy").count() == 0
