"""Pages on a narrow screen: nothing is out of sight, and tables stay tables to a screen reader."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from browsing import OPEN, PAGES, TOO_WIDE, Service, places, signed_in

from app.client import Client

pytestmark = pytest.mark.slow

# a matrix of classes is a picture, which is moved in its frame
SIDEWAYS = """() => [document.documentElement, ...document.querySelectorAll(".scroll:not(.matrix)")]
    .filter((each) => each.scrollWidth > each.clientWidth + 1)
    .map((each) => `${each.scrollWidth}: ${each.innerText.slice(0, 100)}`)"""


def test_nothing_is_scrolled_sideways(opened: Callable[..., Any], client: Client, service: Service) -> None:
    page = signed_in(opened(390), service.url, service.key)
    jobs = {job.kind: job.id for job in client.jobs.list().items}
    for path in (*PAGES, *(f"/jobs/{id}" for id in jobs.values())):
        assert page.goto(f"{service.url}{path}").status == 200, path
        page.wait_for_load_state("networkidle" if path != "/" else "load")
        assert page.evaluate(TOO_WIDE) == [], path
        page.evaluate(OPEN)
        assert page.evaluate(SIDEWAYS) == [], path


def test_long_names_in_a_tree_are_beside_their_buttons_and_long_ids_are_cut_at_the_beginning(
    opened: Callable[..., Any], client: Client, service: Service, tmp_path: Path
) -> None:
    top, below = "https://example.org/vocabulary/of/many/crafts/c1", "https://example.org/vocabulary/of/many/crafts/c2"
    names = f"{top},Crafts that people have practised in villages since the middle ages", f"{below},Pottery"
    (tmp_path / "long.csv").write_text(f"parent,child,name\nroot,{names[0]}\n{top},{names[1]}\n")
    client.hierarchies.upload(tmp_path / "long.csv", "long-names", name_field="name")
    page = signed_in(opened(390), service.url, service.key)
    page.goto(f"{service.url}/hierarchies/long-names")
    parts = ("button", ".name", ".id", ".id bdi")
    button, name, frame, whole = places(page, *(f"#tree .node {part}" for part in parts))
    assert name["top"] < button["bottom"]
    assert name["left"] > button["left"]
    # the id goes beyond its frame on the left
    assert whole["width"] > frame["width"]
    assert whole["left"] < frame["left"]
    assert page.evaluate(SIDEWAYS) == []


def test_a_formula_breaks_into_lines(opened: Callable[..., Any], service: Service) -> None:
    page = signed_in(opened(390, refused=True), service.url, service.key)  # the method asks for a label tree
    page.goto(f"{service.url}/train")
    page.wait_for_load_state("networkidle")
    page.evaluate(OPEN)
    page.get_by_label("Method", exact=True).select_option("orthogonal_transfer")
    formula = page.get_by_role("group", name="Objective")
    formula.locator("math").nth(4).wait_for()
    frame, *lines = formula.evaluate(
        "each => [each, ...each.querySelectorAll('math')].map((one) => one.getBoundingClientRect().toJSON())"
    )
    assert max(line["right"] for line in lines) <= frame["right"]
    assert len({round(line["bottom"]) for line in lines}) > 1


def test_cells_below_each_other_tell_their_column_and_are_still_cells_of_a_table(
    opened: Callable[..., Any], service: Service
) -> None:
    page = signed_in(opened(390), service.url, service.key)
    page.goto(f"{service.url}/datasets")
    row = page.get_by_role("table").get_by_role("row").filter(has=page.get_by_role("rowheader", name="foods"))
    cell = row.get_by_role("cell").nth(1)
    assert page.get_by_role("columnheader").nth(2).inner_text() == "Rows"
    assert cell.evaluate("cell => getComputedStyle(cell, '::before').content") == '"Rows"'
    boxes = row.get_by_role("cell").evaluate_all("all => all.map((one) => one.getBoundingClientRect().toJSON())")
    assert {box["left"] for box in boxes} == {boxes[0]["left"]}
    assert all(upper["top"] < lower["top"] for upper, lower in pairwise(boxes))


def test_rows_that_a_script_adds_are_stacked_too(opened: Callable[..., Any], client: Client, service: Service) -> None:
    page = signed_in(opened(390), service.url, service.key)
    page.goto(f"{service.url}/jobs/{client.models.get('foods').latest.job}")
    page.get_by_text("Log", exact=True).click()
    cell = page.get_by_role("cell", name="job ended")
    cell.wait_for()
    assert cell.evaluate("cell => getComputedStyle(cell, '::before').content") == '"Event"'


def test_the_sections_of_a_version_are_folded_below_its_main_figures(
    opened: Callable[..., Any], service: Service
) -> None:
    page = signed_in(opened(390), service.url, service.key)
    page.goto(f"{service.url}/models/foods/versions/2")
    page.wait_for_load_state("networkidle")
    assert page.get_by_text("Test error", exact=True).is_visible()
    assert page.evaluate("document.documentElement.scrollHeight") < 4 * 900
    origin = page.locator("details.fold").filter(has=page.get_by_role("heading", name="About this version"))
    assert not origin.get_by_text("SHA-256").first.is_visible()
    origin.locator("summary").first.click()
    assert origin.get_by_text("SHA-256").first.is_visible()
    # a link to a section opens it
    page.goto(f"{service.url}/models/foods/versions/2?order=label#labels")
    page.locator("#labels tbody tr").first.wait_for()
    assert page.locator("#drift > details[open]").count() == 0


def test_the_sections_of_a_dataset_and_of_a_comparison_are_folded(opened: Callable[..., Any], service: Service) -> None:
    page = signed_in(opened(390), service.url, service.key)
    for path, title in (("/datasets/foods", "Rows per class"), ("/models/foods/compare?a=1&b=2", "Measures")):
        page.goto(f"{service.url}{path}")
        page.wait_for_load_state("networkidle")
        section = page.locator("details.fold").filter(has=page.get_by_role("heading", name=title))
        assert section.get_attribute("open") is None
        section.locator("summary").first.click()
        assert section.get_by_role("table").or_(section.locator(".chart")).first.is_visible()
        assert page.locator("#warnings details.fold").count() == 0


def test_a_wide_screen_folds_nothing(opened: Callable[..., Any], service: Service) -> None:
    page = signed_in(opened(1280), service.url, service.key)
    page.goto(f"{service.url}/models/foods/versions/2")
    page.wait_for_load_state("networkidle")
    assert page.locator("details.fold").count() == 0
