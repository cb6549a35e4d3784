"""Pages by the keyboard alone: Tab comes to everything in the order in which it is read, and shows where it is."""

from typing import Any

import pytest
from browsing import Service

from app.client import Client

pytestmark = pytest.mark.slow

MOST_STOPS = 400
WATCH = "window.stops = []; document.addEventListener('focusin', (event) => window.stops.push(event.target));"
# where the last Tab has led: out of the page or to its beginning, or on, and whether that is seen
LOOK = """() => {
    const at = document.activeElement;
    if (at === null || at === document.body) return "out";
    if (window.stops.indexOf(at) < window.stops.length - 1) return window.stops.pop() && "out";
    if (at.type === "date") return "";  // the browser's own, with parts that have a focus each
    const [style, box] = [getComputedStyle(at), at.getBoundingClientRect()];
    const seen = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
    return seen && at.matches(":focus-visible") && style.outlineStyle !== "none" ? "" : at.outerHTML.slice(0, 200);
}"""
LEFT_OUT = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
    .filter((each) => each.tabIndex >= 0 && !each.disabled && each.type !== "hidden" && each.checkVisibility())
    .filter((each) => !window.stops.includes(each)).map((each) => each.outerHTML.slice(0, 200))"""
BACKWARDS = """() => window.stops.slice(1)
    .filter((each, place) => window.stops[place].compareDocumentPosition(each) & Node.DOCUMENT_POSITION_PRECEDING)
    .map((each) => each.outerHTML.slice(0, 200))"""


def test_tab_comes_to_everything_in_its_order_and_shows_where_it_is(
    page: Any, client: Client, service: Service
) -> None:
    training = client.models.get("foods").latest.job
    for path in (
        "/", "/datasets", "/datasets/foods", "/hierarchies", "/hierarchies/things", "/train", "/tune", "/jobs",
        f"/jobs/{training}", "/models", "/models/foods", "/models/foods/versions/2", "/models/foods/compare?a=1&b=2",
        "/playground", "/keys", "/audit",
    ):  # fmt: skip
        page.goto(f"{service.url}{path}")
        page.wait_for_load_state("networkidle" if path != "/" else "load")
        page.evaluate(WATCH)
        hidden, stops = [], 0
        page.keyboard.press("Tab")
        while (found := page.evaluate(LOOK)) != "out" and stops < MOST_STOPS:
            hidden += [found] if found else []
            stops += 1
            page.keyboard.press("Tab")
        assert stops < MOST_STOPS, f"{path}: Tab leads to no end"
        assert (hidden, page.evaluate(LEFT_OUT), page.evaluate(BACKWARDS)) == ([], [], []), path


def test_a_question_keeps_the_focus_until_it_is_answered_and_gives_it_back(page: Any, service: Service) -> None:
    page.goto(f"{service.url}/datasets/foods")
    page.get_by_role("button", name="Delete").focus()
    page.keyboard.press("Space")
    page.get_by_role("dialog").wait_for()
    for _ in range(4):
        outside = "document.activeElement !== document.body && document.activeElement.closest('dialog') === null"
        assert not page.evaluate(outside)
        page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    assert page.evaluate("document.activeElement.textContent") == "Delete"


@pytest.mark.parametrize(("path", "id"), [("/models/foods/compare?a=1&b=2", "a"), ("/playground?model=foods", "model")])
def test_a_choice_that_loads_the_page_anew_stays_in_focus(path: str, id: str, page: Any, service: Service) -> None:
    page.goto(f"{service.url}{path}")
    chosen = page.locator(f"#{id}")
    before = chosen.input_value()
    other = next(each for each in chosen.locator("option").all() if each.get_attribute("value") != before)
    with page.expect_navigation():
        chosen.select_option(other.get_attribute("value"))
    page.locator(f"#{id}:focus").wait_for()
    assert chosen.input_value() != before
