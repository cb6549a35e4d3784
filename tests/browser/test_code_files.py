"""A clerk codes a file on a model's page, and appends rows on a dataset's, in a real browser."""

import time
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from browsing import PATIENCE_MS, Service, picture

from app.client import Client

pytestmark = pytest.mark.slow


def test_a_file_is_coded_on_the_models_page(
    page: Any, client: Client, service: Service, tmp_path: Path, pictures: bool
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("code,title\n0011,a ripe apple\n0012,green leek\n0013,sweet pear\n")
    page.goto(f"{service.url}/models/sure-foods")
    form = page.locator("#code")
    form.locator("input[type=file]").set_input_files(str(rows))
    form.get_by_role("alert").wait_for(timeout=PATIENCE_MS)
    assert "no column 'text' among the 2 columns" in form.get_by_role("alert").inner_text()
    form.get_by_label("Text columns").fill("title")
    form.get_by_label("Precision of sure labels, %").fill("50")
    form.get_by_label("Text columns").blur()
    form.locator("[data-rows] table").wait_for(timeout=PATIENCE_MS)
    assert "a ripe apple" in form.locator("[data-rows]").inner_text()
    form.locator("[data-expected]", has_text="3 rows.").wait_for(timeout=PATIENCE_MS)
    precision = form.get_by_label("Precision of sure labels, %")
    precision.fill("0.95")
    precision.blur()
    form.locator("[data-expected]:empty").wait_for(state="attached", timeout=PATIENCE_MS)
    assert "percentage" in precision.evaluate("input => input.validationMessage")
    precision.fill("50")
    precision.blur()
    form.locator("[data-expected]", has_text="3 rows.").wait_for(timeout=PATIENCE_MS)
    form.get_by_label("Review queue").fill("titles")
    form.get_by_label("Share of sure rows in the queue, %").fill("100")
    picture(page, pictures, "code-a-file")
    form.get_by_role("button", name="Code").click()
    with page.expect_download(timeout=PATIENCE_MS) as download:
        form.get_by_role("link", name="Download").click(timeout=PATIENCE_MS)
    file = tmp_path / "coded.xlsx"
    download.value.save_as(file)
    assert download.value.suggested_filename == "rows-sure-foods-1.xlsx"
    book = openpyxl.load_workbook(file)
    assert book.sheetnames == ["Sure", "To review", "Model"]
    codes = {row[0] for sheet in book.worksheets[:2] for row in list(sheet.values)[1:]}
    assert codes == {"0011", "0012", "0013"}
    form.get_by_role("link", name="Review 3 rows").click(timeout=PATIENCE_MS)
    page.locator("#row-text:focus").wait_for(timeout=PATIENCE_MS)
    assert client.reviews.get("titles").n_rows == 3
    assert not _temporary(client)


def test_a_file_in_another_encoding_is_coded_once_it_is_chosen(page: Any, service: Service, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_bytes("text\na ripe apple, grüner\n".replace(",", "").encode("latin-1"))
    page.goto(f"{service.url}/models/sure-foods")
    form = page.locator("#code")
    form.locator("input[type=file]").set_input_files(str(rows))
    form.get_by_role("alert", name="").filter(has_text="valid UTF-8").wait_for(timeout=PATIENCE_MS)
    form.get_by_label("Encoding").select_option("windows-1252")
    form.locator("[data-rows]", has_text="a ripe apple grüner").wait_for(timeout=PATIENCE_MS)
    form.locator("[data-expected]", has_text="1 rows.").wait_for(timeout=PATIENCE_MS)


def test_the_decimal_separator_of_a_file_to_code_can_be_chosen(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("w;label\n" + "".join(f"{n % 2 * 3},5;{'red' if n % 2 else 'green'}\n" for n in range(24)))
    client.datasets.upload(rows, "commas", decimal="comma").wait()
    client.train("commas", "commas", "weston_watkins").wait()
    rows.write_text("w,h\n1.250,2\n")
    page.goto(f"{service.url}/models/commas")
    form = page.locator("#code")
    form.locator("input[type=file]").set_input_files(str(rows))
    form.get_by_role("alert", name="").filter(has_text="1.250").wait_for(timeout=PATIENCE_MS)
    form.get_by_label("Decimal separator").select_option("point")
    form.locator("[data-expected]", has_text="1 rows.").wait_for(timeout=PATIENCE_MS)


def test_a_file_is_coded_by_the_version_in_production_unless_another_is_chosen(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text\na ripe apple\n")
    labels = service.url + "/models/labels-of-foods"
    client.train("foods", "labels-of-foods", "centroids").wait()
    client.train("foods", "labels-of-foods", "centroids").wait()
    page.goto(labels)
    version = page.locator("#code").get_by_label("Version")
    assert version.locator("option:checked").inner_text() == "2 (latest)"
    client.models.set_alias("labels-of-foods", "production", 1)
    page.goto(labels)
    assert version.locator("option:checked").inner_text() == "production (version 1)"
    for choice, number in (("production (version 1)", 1), ("2 (latest)", 2)):
        version.select_option(label=choice)
        page.locator("#code input[type=file]").set_input_files(str(rows))
        page.locator("#code [data-expected]", has_text="1 rows.").wait_for(timeout=PATIENCE_MS)
        page.locator("#code").get_by_role("button", name="Code").click()
        page.locator("#code").get_by_role("link", name="Download").wait_for(timeout=PATIENCE_MS)
        (job, *_) = client.jobs.list(kind="predict").items
        assert job.result is not None
        assert job.result.version == number


def _temporary(client: Client) -> list[str]:
    return [each.name for each in client.datasets.list().items if each.name.startswith("coding-")]


def test_a_file_that_is_chosen_and_not_coded_leaves_no_dataset(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text\na ripe apple\ngreen leek\n")
    page.goto(f"{service.url}/models/sure-foods")
    form = page.locator("#code")
    form.locator("input[type=file]").set_input_files(str(rows))
    form.locator("[data-expected]", has_text="2 rows").wait_for(timeout=PATIENCE_MS)
    assert _temporary(client)
    page.goto(f"{service.url}/datasets")
    # the browser sends the request after the page has gone
    for _ in range(100):
        if not _temporary(client):
            break
        time.sleep(0.1)
    assert not _temporary(client)


def test_rows_are_appended_on_the_datasets_page(page: Any, client: Client, service: Service, tmp_path: Path) -> None:
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("text,label\nan apple,fruit\na leek,vegetable\n")
    new.write_text("text,label\na pear,fruit\n")
    client.datasets.upload(old, "growing").wait()
    page.goto(f"{service.url}/datasets/growing")
    page.locator("#append input[type=file]").set_input_files(str(new))
    page.get_by_role("button", name="Append").click()
    page.wait_for_url("**/jobs/*", timeout=PATIENCE_MS)
    client.jobs.get(page.url.rpartition("/")[2]).wait()
    assert client.datasets.get("growing").n_rows == 3
