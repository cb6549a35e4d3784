"""People decide the rows of a review queue in a real browser, by the keyboard alone and side by side."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from axe import serious_faults
from browsing import PATIENCE_MS, Service, picture, places, signed_in

from app.client import Client

pytestmark = pytest.mark.slow

TITLES = {"0110": "miller", "0120": "baker", "0210": "driver", "0220": "pilot", "0310": "nurse"}
NAMES = {"0110": "Flour millers", "0120": "Bakers", "0210": "Lorry drivers", "0220": "Pilots", "0310": "Nurses"}
WORDS = ("flour", "truck", "bread", "plane", "ward", "young", "old", "senior", "first", "second", "night", "day")

# the text of another row than the one before, or that there is none
NEXT = """(before) => {
    if (document.getElementById("row").hidden)
        return document.getElementById("row-empty").textContent.startsWith("No more") && "none";
    const text = document.getElementById("row-text").textContent;
    return text !== before && text;
}"""


def values(buttons: Any) -> list[str]:
    """The labels of buttons."""
    return [*buttons.evaluate_all("all => all.map((each) => each.value)")]


@pytest.fixture(scope="module")
def model(service: Service, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of five occupations, whose labels have names and a place in a tree."""
    folder, draw = tmp_path_factory.mktemp("occupations"), Random(0)
    rows = [f"{title} {' '.join(draw.sample(WORDS, 2))},{code}" for code, title in TITLES.items() for _ in range(16)]
    (folder / "jobs.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    groups = {"01": "Food", "02": "Transport", "03": "Health"}
    tree = ["parent,child,name"] + [f"root,{code},{name}" for code, name in groups.items()]
    tree += [f"{code[:2]},{code},{name}" for code, name in NAMES.items()]
    (folder / "tree.csv").write_text("\n".join(tree) + "\n")
    with Client(service.url, service.key) as client:
        client.datasets.upload(folder / "jobs.csv", "occupations").wait()
        client.hierarchies.upload(folder / "tree.csv", "occupation-tree", name_field="name")
        client.train("occupations", "occupations", "auto", {"folds": 2}, hierarchy="occupation-tree").wait()
    return "occupations"


@pytest.fixture
def make_queue(client: Client, model: str, tmp_path: Path) -> Callable[..., Any]:
    def make(name: str, n_rows: int, **more: Any) -> Any:
        draw, titles = Random(n_rows), list(TITLES.values())
        texts = [f"{titles[row % 5]} {' '.join(draw.sample(WORDS, 3))} {row}" for row in range(n_rows)]
        (tmp_path / f"{name}.csv").write_text("text\n" + "\n".join(texts) + "\n")
        client.datasets.upload(tmp_path / f"{name}.csv", name, for_model=model).wait()
        asked = {"top_k": 3, "format": "parquet", "threshold": 0.0} | more
        job = client.predict_dataset(model, name, **asked)
        job.wait()
        return client.reviews.create(name, job.id, sure_share=1.0)

    return make


def opened_queue(page: Any, service: Service, name: str) -> Any:
    page.goto(f"{service.url}/reviews/{name}")
    page.locator("#row-text:focus").wait_for(timeout=PATIENCE_MS)
    return page


def test_fifty_rows_are_coded_by_the_keyboard_alone(
    opened: Callable[..., Any], service: Service, client: Client, make_queue: Callable[..., Any], pictures: bool
) -> None:
    make_queue("fifty", 50)
    page = opened()
    page.goto(f"{service.url}/reviews/fifty")
    page.locator("#key:focus").wait_for()
    page.keyboard.type(service.key)
    page.keyboard.press("Enter")
    page.locator("#row-text:focus").wait_for()
    picture(page, pictures, "review")
    right = {title: code for code, title in TITLES.items()}
    expected: dict[int, str] = {}
    before = ""
    for at in range(50):
        page.wait_for_function("before => document.getElementById('row-text').textContent !== before", arg=before)
        before = page.locator("#row-text").inner_text()
        title, row = before.split()[0], int(before.split()[-1])
        offered = values(page.locator("#choices button"))
        expected[row] = right[title]
        if at == 7:  # undone, and decided once more
            page.keyboard.press("1")
            page.wait_for_function("before => document.getElementById('row-text').textContent !== before", arg=before)
            page.keyboard.press("u")
            page.wait_for_function("before => document.getElementById('row-text').textContent === before", arg=before)
            page.locator("#progress", has_text="7of 50 rows").wait_for()
        if at == 11:
            page.keyboard.press("c")
            page.keyboard.type("sounds like two jobs")
            page.keyboard.press("Enter")
        if at % 5 == 4 or right[title] not in offered:
            page.keyboard.press("/")
            page.keyboard.type(right[title] if at % 2 else NAMES[right[title]][:5].lower())
            page.keyboard.press("Enter")
        else:
            page.keyboard.press(str(offered.index(right[title]) + 1))
    page.get_by_text("No more rows to decide here.").wait_for()
    page.locator("#progress", has_text="50of 50 rows").wait_for()
    page.locator("#progress tr", has_text="admin").wait_for()
    decided = client.reviews.rows("fifty").rows
    assert {row.row: row.label for row in decided} == expected
    assert [row.opinions[0].comment for row in decided].count("sounds like two jobs") == 1
    measured = client.reviews.get("fifty").measured_precision
    assert measured is not None
    assert measured.n_rows == 50


def test_alternatives_have_their_probabilities_and_the_language_of_the_queue(
    page: Any, service: Service, client: Client, make_queue: Callable[..., Any], model: str
) -> None:
    make_queue("hidden", 4)
    opened_queue(page, service, "hidden")
    assert page.locator("#choices .probability").count() == 0
    job = client.predict_dataset(model, "hidden", top_k=3, format="parquet", min_precision=0.9999, language="fi")
    job.wait()
    client.reviews.create("shown", job.id)
    with page.expect_request(lambda each: "/labels?" in each.url) as asked:
        opened_queue(page, service, "shown")
    assert "language=fi&" in asked.value.url
    given = client.reviews.rows("shown").rows[0].alternatives
    shares = [float(each.rstrip("%\u202f")) for each in page.locator("#choices .probability").all_inner_texts()]
    assert shares == pytest.approx([100 * (each.probability or 0.0) for each in given], abs=0.06)


def test_a_label_that_the_model_does_not_know_is_chosen_as_a_new_one(
    page: Any, service: Service, client: Client, make_queue: Callable[..., Any]
) -> None:
    make_queue("fresh", 1)
    opened_queue(page, service, "fresh")
    page.keyboard.press("/")
    page.keyboard.type("zebra keeper")
    page.locator("#found-labels", has_text="New label zebra keeper").wait_for(timeout=PATIENCE_MS)
    page.get_by_role("option", name="New label zebra keeper").click()
    page.locator("#progress", has_text="1of 1 rows").wait_for(timeout=PATIENCE_MS)
    assert [row.label for row in client.reviews.rows("fresh").rows] == ["zebra keeper"]


def test_sets_are_corrected_by_the_keyboard_alone(
    page: Any, service: Service, client: Client, tmp_path: Path, pictures: bool
) -> None:
    rows = [(code, other) for code in TITLES for other in TITLES if code <= other] * 3
    lines = [f"{TITLES[code]} {TITLES[other]} {n},{';'.join({code, other})}" for n, (code, other) in enumerate(rows)]
    (tmp_path / "sets.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    tree = ["parent,child,name"] + [f"root,{code},{name}" for code, name in NAMES.items()] + ["root,0410,Clerks"]
    (tmp_path / "flat.csv").write_text("\n".join(tree) + "\n")
    client.datasets.upload(tmp_path / "sets.csv", "sets", label_separator=";").wait()
    client.hierarchies.upload(tmp_path / "flat.csv", "flat", name_field="name")
    client.train("sets", "sets", "node_svm", {"C": 1.0}, hierarchy="flat").wait()
    (tmp_path / "new.csv").write_text("text\nmiller driver\nbaker\npilot nurse\n")
    client.datasets.upload(tmp_path / "new.csv", "new-sets", for_model="sets").wait()
    job = client.predict_dataset("sets", "new-sets", top_k=4, format="parquet")
    job.wait()
    assert client.reviews.create("sets", job.id).n_rows == 3
    opened_queue(page, service, "sets")
    picture(page, pictures, "review-sets")
    expected: dict[str | None, set[str]] = {}
    for at in range(3):
        text = page.locator("#row-text").inner_text()
        labels = values(page.locator("#choices button"))
        on = values(page.locator("#choices [aria-pressed=true]"))
        assert labels[: len(on)] == on
        if at == 0:  # one goes, one comes by its name, and all is undone and done again
            page.keyboard.press("1")
            page.keyboard.type("/clerk")
            page.locator("#found-labels [aria-selected=true]").wait_for()
            page.keyboard.press("Enter")
            page.locator("#row-text:focus").wait_for()
            page.keyboard.press("Enter")
            page.wait_for_function(NEXT, arg=text)
            page.keyboard.press("u")
            page.wait_for_function("text => document.getElementById('row-text').textContent === text", arg=text)
            on = [*(on[1:] if on else labels[:1]), "0410"]
            assert values(page.locator("#choices [aria-pressed=true]")) == on
        if at == 1:  # the empty set
            for place, label in enumerate(labels, 1):
                if label in on:
                    page.keyboard.press(str(place))
            page.get_by_role("button", name="Confirm no label").wait_for()
            on = []
        expected[text] = {*on}
        page.keyboard.press("Enter")
        page.wait_for_function(NEXT, arg=text)
    page.locator("#progress", has_text="3of 3 rows").wait_for()
    decided = client.reviews.rows("sets").rows
    assert {row.text: {*(row.labels or [])} for row in decided} == expected
    found = client.reviews.get("sets").measured_precision
    assert found is not None
    assert (found.of, found.n_added) == ("decided_rows", 1)


def test_names_come_first_and_whole_on_a_narrow_screen(
    opened: Callable[..., Any], service: Service, make_queue: Callable[..., Any]
) -> None:
    make_queue("narrow", 6)
    page = signed_in(opened(390), service.url, service.key)
    page.goto(f"{service.url}/reviews/narrow")
    page.locator("#choices .id").first.wait_for()
    name, code = page.locator("#choices .label").first.inner_text().split("\n")[:2]
    assert NAMES[code.strip()] == name.strip()
    label, below = places(page, "#choices .label", "#choices .label small")
    assert label["width"] > 100
    assert below["top"] > label["top"]


def test_names_that_come_late_leave_the_focus_where_it_is(
    opened: Callable[..., Any], service: Service, make_queue: Callable[..., Any]
) -> None:
    make_queue("late", 6)
    page = signed_in(opened(), service.url, service.key)
    held: list[Any] = []
    asked = re.compile(r"/reviews/\w+/labels\?")
    page.route(asked, lambda route: held.append(route))
    with page.expect_request(asked):
        page.goto(f"{service.url}/reviews/late")
    button = page.locator("#choices button").first
    button.focus()
    page.wait_for_function("() => document.activeElement.matches('#choices button')")
    button.evaluate("e => { window.first = e; }")
    while held:
        held.pop().fulfill(
            json={"labels": [{"label": button.get_attribute("value"), "name": "Late", "path": ["Above"]}]},
        )
    page.locator("#choices small", has_text="Above").wait_for()
    assert page.evaluate("() => window.first === document.activeElement && window.first.textContent.includes('Late')")


def test_labels_that_are_paths_are_shown_once(page: Any, service: Service, make_queue: Callable[..., Any]) -> None:
    make_queue("paths", 6)
    found = [
        {"label": "a > b > c", "name": None, "path": ["a", "a > b"]},
        {"label": "x", "name": "Pans", "path": ["Home", "Home/Kitchen"]},
    ]
    page.route(re.compile(r"/reviews/\w+/labels\?"), lambda route: route.fulfill(json={"labels": found, "n_labels": 2}))
    page.goto(f"{service.url}/reviews/paths")
    page.locator("#label-search").fill("a")
    page.locator("#found-labels li", has_text="Pans").wait_for()
    shown = [" ".join(text.split()) for text in page.locator("#found-labels li").all_text_contents()]
    assert shown[:2] == ["a > b > c", "Pans xHome › Kitchen"]


def test_two_people_in_two_browsers_meet_no_row_twice(
    opened: Callable[..., Any], service: Service, client: Client, make_queue: Callable[..., Any]
) -> None:
    make_queue("shared", 24)
    met: dict[str, list[str]] = {"ann": [], "bob": []}
    pages = {}
    for name in met:
        pages[name] = signed_in(opened(), service.url, client.keys.create(name, "editor").secret)
        pages[name].goto(f"{service.url}/reviews/shared")
    while pages:
        for name, page in list(pages.items()):
            text = page.wait_for_function(NEXT, arg=met[name][-1] if met[name] else "").json_value()
            if text == "none":
                del pages[name]
            else:
                met[name].append(text)
                page.keyboard.press("1")
    everything = [*met["ann"], *met["bob"]]
    assert min(map(len, met.values())) > 0
    assert (len(everything), len(set(everything))) == (24, 24)
    for _ in range(600):  # the last decision may be on its way when the other page finds no row
        if client.reviews.get("shared").states["decided"] == 24:
            return
        time.sleep(0.1)
    raise AssertionError("a decision was lost")


def test_the_pages_of_reviews_are_accessible_and_tab_comes_to_everything(
    page: Any, service: Service, make_queue: Callable[..., Any]
) -> None:
    make_queue("open-to-all", 12)
    for path in ("/reviews", "/reviews/open-to-all"):
        page.goto(f"{service.url}{path}")
        if path != "/reviews":
            page.locator("#row-text:focus").wait_for()
            page.keyboard.press("1")
            page.keyboard.type("/pilot")
            page.locator("#found-labels li").first.wait_for()
        assert serious_faults(page) == {}, path
