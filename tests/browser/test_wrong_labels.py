"""A label that is wrong is found on the page of a version, corrected there, and the model is trained again."""

from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE_MS, TEXTS, Service

from app.client import Client

pytestmark = pytest.mark.slow

EVIL = "<script>alert(1)</script>"


def test_a_wrong_label_is_corrected_and_the_model_trained_again(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    file = tmp_path / "torn.jsonl"
    file.write_bytes(TEXTS + b'{"text": "%s deep sea", "label": "vegetable"}\n' % EVIL.encode())
    client.datasets.upload(file, "torn").wait()
    client.train("torn", "torn", "weston_watkins", {"C": 0.1}, keep_duals=True).wait()
    client.evaluate("torn", "torn", version=1, part="all", resamples=0).wait()
    page.goto(f"{service.url}/models/torn/versions/1")
    card = page.locator("#mistakes")
    card.get_by_text("Row 36").wait_for()
    assert EVIL in card.locator(".text").inner_text()
    correct = card.get_by_role("button", name="Correct row")
    assert correct.is_disabled()
    card.get_by_role("button", name="Prediction is correct").click()
    correct.click()
    card.get_by_text("corrected: water").wait_for()
    assert client.datasets.get("torn").version == 2
    assert client.datasets.rows("torn", 36).rows[0].label == "water"
    card.get_by_role("link", name="Train again").click()
    assert page.get_by_label("Model").input_value() == "torn"
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_role("link", name="Version 2 of torn").wait_for()
    request = client.models.version("torn", 2).request
    assert (request["solver"], request["params"], request["warm_start"]) == ("weston_watkins", {"C": 0.1}, "torn@1")
    page.goto(f"{service.url}/models/torn/versions/1")
    delete = card.get_by_role("button", name="Delete", exact=True)
    delete.click()
    assert card.get_by_label("Label", exact=True).is_disabled()
    card.get_by_role("button", name="Delete row").click()
    card.get_by_text("1 deleted").wait_for()
    card.get_by_text("deleted", exact=True).wait_for()
    assert client.datasets.get("torn").version == 3
    assert client.datasets.get("torn").n_rows == 36


def test_concepts_have_their_names_in_the_matrix_the_errors_and_the_terms(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    rows = ["loaf,https://x.org/c1", "pot,https://x.org/c2"] * 12 + ["loaf,https://x.org/c2"] * 9
    rows += ["yarn,https://x.org/c3", "pot,https://x.org/c3"] * 6
    (tmp_path / "named.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    tree = "parent,child,name\nroot,https://x.org/c1,Baking\nroot,https://x.org/c2,Pottery\nroot,https://x.org/c3,\n"
    (tmp_path / "names.csv").write_text(tree)
    client.datasets.upload(tmp_path / "named.csv", "named").wait()
    client.hierarchies.upload(tmp_path / "names.csv", "named", name_field="name")
    client.train("named", "named", "weston_watkins", hierarchy="named").wait()
    client.evaluate("named", "named", part="all", resamples=0).wait()
    page.goto(f"{service.url}/models/named/versions/1")
    heads = page.locator("#matrix thead button")
    heads.first.wait_for()
    assert set(heads.all_inner_texts()) == {"Baking", "Pottery", "https://x.org/c3"}
    heads.get_by_text("Pottery").click()
    page.locator("#matrix [data-said]", has_text="confused classes with Pottery").wait_for()
    error = page.locator("#mistakes li", has_text="labelled Pottery").first
    assert "Baking https://x.org/c1" in " ".join(error.inner_text().split())
    field = error.get_by_label("Label", exact=True)
    assert field.input_value() == "https://x.org/c2"
    assert error.locator(".field small").inner_text() == "Pottery"
    error.get_by_role("button", name="Prediction is correct").click()
    assert error.locator(".field small").inner_text() == "Baking"
    page.locator("#labels").get_by_role("button", name="Baking").click()
    page.locator("#terms").get_by_role("columnheader", name="For Baking").wait_for()


def test_terms_of_a_class_are_shown_where_its_name_is_pressed(page: Any, service: Service) -> None:
    page.goto(f"{service.url}/models/foods/versions/2")
    page.locator("#labels").get_by_role("button", name="water").click()
    terms = page.locator("#terms")
    terms.get_by_role("columnheader", name="For water").wait_for()
    assert {"blue", "deep", "sea"} <= set(terms.get_by_role("rowheader").all_inner_texts())


def test_a_dataset_page_finds_wrong_labels_and_corrects_them(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    file = tmp_path / "judged.jsonl"
    file.write_bytes(TEXTS + b'{"text": "%s deep blue sea", "label": "vegetable"}\n' % EVIL.encode())
    client.datasets.upload(file, "judged").wait()
    client.train("judged", "judged", "weston_watkins", {"C": 1.0}).wait()
    page.goto(f"{service.url}/datasets/judged")
    card = page.locator("#curate")
    assert card.get_by_label("Method").input_value() == "judged"
    card.get_by_role("button", name="Find wrong labels").click()
    found = page.locator("#mistakes")
    found.get_by_text("Row 36").wait_for(timeout=PATIENCE_MS)
    first = found.locator("li").first
    assert "labelled vegetable, suggested water" in first.inner_text()
    assert EVIL in first.locator(".text").inner_text()
    assert "Most similar rows: water" in first.inner_text()
    first.get_by_role("button", name="Suggestion is correct").click()
    found.get_by_role("button", name="Correct row").click()
    found.get_by_text("corrected: water").wait_for(timeout=PATIENCE_MS)
    assert client.datasets.rows("judged", 36).rows[0].label == "water"
    assert found.get_by_role("link", name="Train again").get_attribute("href") == "/train?dataset=judged"


def test_a_dataset_page_chooses_rows_for_a_review_queue(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    waiting = tmp_path / "waiting-rows.csv"
    waiting.write_text("text\n" + "\n".join(f"deep green sea {number}" for number in range(30)) + "\n")
    client.datasets.upload(waiting, "waiting-rows", unlabelled=True).wait()
    page.goto(f"{service.url}/datasets/waiting-rows")
    card = page.locator("#curate")
    assert card.get_by_role("button", name="Find wrong labels").count() == 0
    card.get_by_label("Model").select_option("foods")
    card.get_by_label("Rows").fill("5")
    card.get_by_role("button", name="Choose rows").click()
    chosen = page.locator("#suggested")
    chosen.get_by_text("1 to 5 of 5 rows of waiting-rows").wait_for(timeout=PATIENCE_MS)
    assert "deep green sea" in chosen.locator("tbody tr").first.inner_text()
    chosen.get_by_label("Review queue").fill("label-next")
    chosen.get_by_role("button", name="Review these rows").click()
    page.locator("#row-text:focus").wait_for(timeout=PATIENCE_MS)
    assert client.reviews.get("label-next").n_rows == 5
