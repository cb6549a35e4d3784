"""What people do on the dashboard, in a real browser."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from browsing import PATIENCE_MS, Service, signed_in

from app.client import Polymargin

pytestmark = pytest.mark.slow

EVIL = '<script>alert("x")</script><img src=x onerror=alert(1)>'
# so exact that it is still at it when the test has looked
LONG = {"C": 1000.0, "tol": 1e-12, "max_epochs": 10**8}
TWO_GOOD = b'{"text": "one", "label": "a"}\n{"text": "two", "label": "b"}\n'
PAGES = (
    "/", "/datasets", "/datasets/foods", "/hierarchies", "/hierarchies/things", "/train", "/jobs", "/models",
    "/models/foods", "/models/foods/versions/2", "/models/sure-foods/versions/1", "/models/foods/compare?a=1&b=2",
    "/playground", "/keys", "/docs",
)  # fmt: skip


def test_versions_are_promoted_and_rolled_back(page: Any, client: Polymargin, service: Service) -> None:
    page.goto(f"{service.url}/models/foods")
    for button, version in (("Promote to 2", 2), ("Roll back to 1", 1)):
        page.get_by_role("button", name=button).click()
        page.get_by_role("button", name="Yes, go on").click()
        page.locator("tr", has_text="production").get_by_role("link", name=str(version), exact=True).first.wait_for()
        assert client.models.get("foods").aliases[0].version == version


def test_a_question_that_is_not_confirmed_changes_nothing(page: Any, client: Polymargin, service: Service) -> None:
    page.goto(f"{service.url}/models/foods")
    page.get_by_role("button", name="Promote to 2").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="No", exact=True).wait_for()
    page.keyboard.press("Escape")
    page.locator("#confirm").wait_for(state="hidden")
    assert client.models.get("foods").aliases[0].version == 1


def test_the_curve_moves_and_the_job_is_cancelled(
    page: Any, client: Polymargin, service: Service, tmp_path: Path
) -> None:
    draw, words = Random(0), [f"word{number}" for number in range(400)]
    rows = [{"text": " ".join(draw.choices(words, k=12)), "label": f"label{draw.randrange(20)}"} for _ in range(1500)]
    (tmp_path / "noise.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    client.datasets.upload(tmp_path / "noise.jsonl", "noise").wait()
    job = client.train("noise", "exact", "lee_lin_wahba", LONG)
    page.goto(f"{service.url}/jobs/{job.id}")
    chart = page.locator("#gap-chart[data-points]")
    chart.wait_for()
    before = int(chart.get_attribute("data-points"))
    page.wait_for_function(
        "before => Number(document.getElementById('gap-chart').dataset.points) > before",
        arg=before,
        timeout=PATIENCE_MS,
    )
    page.goto(f"{service.url}/")
    page.wait_for_function("() => document.querySelector('[data-spark]')?.dataset.points > 1", timeout=PATIENCE_MS)
    page.get_by_role("link", name="Train exact by lee_lin_wahba").first.click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Yes, go on").click()
    page.locator("#state .badge.cancelled").wait_for()
    page.get_by_role("button", name="Try again").wait_for()
    assert client.jobs.get(job.id).state == "cancelled"


def test_an_upload_with_errors_shows_its_lines(page: Any, service: Service, tmp_path: Path) -> None:
    file = tmp_path / "some rows.jsonl"
    file.write_bytes(TWO_GOOD + b"not json\n" + TWO_GOOD + b'{"text": "no label"}\n')
    page.goto(f"{service.url}/datasets")
    page.get_by_label("Drop a file here").set_input_files(file)
    assert page.get_by_label("Name").input_value() == "some-rows"
    page.get_by_role("button", name="Upload").click()
    page.locator(".badge.failed").wait_for()
    rows = page.locator("tbody tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == ["3", "6"]
    assert "not valid JSON" in rows[0]


def test_a_refused_upload_says_why(opened: Callable[..., Any], service: Service, tmp_path: Path) -> None:
    file = tmp_path / "foods.jsonl"
    file.write_bytes(TWO_GOOD)
    page = signed_in(opened(refused=True), service.url, service.key)
    page.goto(f"{service.url}/datasets")
    page.get_by_label("Drop a file here").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("alert").get_by_text("is called 'foods' already").wait_for()
    assert page.get_by_role("button", name="Upload").is_enabled()


def test_a_viewer_sees_no_button_that_it_may_not_press(
    opened: Callable[..., Any], client: Polymargin, service: Service
) -> None:
    key = client.keys.create(f"viewer-{time.time_ns()}", "viewer").secret
    page = signed_in(opened(), service.url, key)
    for path in PAGES:
        if path not in ("/train", "/keys"):
            page.goto(f"{service.url}{path}")
            assert page.locator("button[data-path], #upload, #new-alias, #tour, a[href^='/train']").count() == 0, path
    page.goto(f"{service.url}/playground?model=foods")
    page.get_by_label("What it shall label").fill("a red apple")
    page.get_by_role("button", name="Predict").click()
    page.get_by_role("heading", name="fruit").wait_for()


def test_script_tags_in_labels_and_texts_are_inert(
    page: Any, client: Polymargin, service: Service, tmp_path: Path
) -> None:
    file = tmp_path / "evil.csv"
    quoted = EVIL.replace('"', '""')
    file.write_text("text,label\n" + "".join(f'"{word} {quoted}","{quoted}{word}"\n' for word in ("one", "two") * 10))
    client.datasets.upload(file, "evil").wait()
    client.train("evil", "evil", "weston_watkins").wait()
    client.evaluate("evil", "evil", version=1, resamples=0).wait()
    tree = tmp_path / "evil.json"
    tree.write_text('{"<script>alert(1)</script>": ["<img src=x onerror=alert(1)>", "b"]}')
    client.hierarchies.upload(tree, "evil")
    for path in ("/datasets/evil", "/models/evil/versions/1", "/jobs"):
        page.goto(f"{service.url}{path}")
        page.wait_for_load_state("networkidle")
    page.goto(f"{service.url}/datasets/evil")
    page.locator("#histogram[data-points] .plot-container").hover()
    page.goto(f"{service.url}/hierarchies/evil")
    page.get_by_text("<script>alert(1)</script>").wait_for()
    page.get_by_role("button", name="Children of").click()
    page.get_by_text("<img src=x onerror=alert(1)>").wait_for()
    page.goto(f"{service.url}/playground?model=evil")
    page.get_by_label("What it shall label").fill(f"one {EVIL}")
    page.get_by_role("button", name="Predict").click()
    page.get_by_role("heading", name=f"{EVIL}one").wait_for()
    assert page.locator("main script, main img").count() == 0


def test_a_version_shows_its_measures_and_how_honest_it_is(page: Any, service: Service) -> None:
    page.goto(f"{service.url}/models/sure-foods/versions/1")
    page.locator("#reliability[data-points]").wait_for()
    assert page.get_by_role("cell", name="fruit").or_(page.get_by_role("rowheader", name="fruit")).count() >= 1
    page.get_by_label("Order").select_option("label")
    page.wait_for_url("**order=label**")
    assert page.locator("#labels tbody th").all_inner_texts() == ["fruit", "vegetable", "water"]


def test_a_tree_is_folded_and_searched(page: Any, service: Service) -> None:
    page.goto(f"{service.url}/hierarchies/things")
    page.get_by_role("button", name="Children of food").click()
    page.get_by_text("vegetable").wait_for()
    page.get_by_role("button", name="Children of food").click()
    page.get_by_text("vegetable").wait_for(state="hidden")
    page.get_by_label("Find a node").fill("VEGET")
    page.get_by_text("1 found").wait_for()
    page.get_by_text("in food").wait_for()


def test_the_form_of_a_method_is_made_of_its_schema(page: Any, client: Polymargin, service: Service) -> None:
    page.goto(f"{service.url}/train?dataset=foods")
    page.get_by_text("Method, parameters and more").click()
    page.get_by_label("Method", exact=True).select_option("softmax")
    page.locator("#param-C").fill("3")
    page.get_by_label("Seed").fill("7")
    page.get_by_label("Model").fill("by-form")
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_role("link", name="Version 1 of by-form").wait_for()
    request = client.models.get("by-form").latest.request
    assert (request["solver"], request["params"], request["seed"]) == ("softmax", {"C": 3}, 7)


def test_a_new_key_is_shown_once_and_revoked(page: Any, client: Polymargin, service: Service) -> None:
    page.goto(f"{service.url}/keys")
    page.get_by_label("Name").fill("by-page")
    page.get_by_role("button", name="Make").click()
    secret = page.locator("#new-key pre").inner_text()
    assert re.fullmatch(r"pm_[\w-]{43}", secret)
    page.get_by_role("link", name="I have it").click()
    assert secret not in page.content()
    page.get_by_role("button", name="Revoke by-page").click()
    page.get_by_role("button", name="Yes, go on").click()
    page.locator("tr", has_text="by-page").get_by_text("revoked").wait_for()
    assert next(key for key in client.keys.list().items if key.name == "by-page").revoked


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_page_fits_its_window_and_logs_no_error(
    width: int, scheme: str, opened: Callable[..., Any], client: Polymargin, service: Service
) -> None:
    page = signed_in(opened(width, scheme), service.url, service.key)
    job = next(job for job in client.jobs.list().items if job.kind == "train" and job.state == "succeeded")
    for path in (*PAGES, f"/jobs/{job.id}"):
        answer = page.goto(f"{service.url}{path}")
        assert answer.status == 200, path
        page.wait_for_load_state("networkidle" if path != "/" else "load")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.locator("h1").count() == 1, path


def test_the_keyboard_alone_signs_in_skips_the_menu_and_goes_on(opened: Callable[..., Any], service: Service) -> None:
    page = opened()
    page.goto(f"{service.url}/datasets")
    page.keyboard.type(service.key)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Datasets").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(scheme: str, opened: Callable[..., Any], service: Service) -> None:
    axe = Path(__file__).parents[2] / "build/browser/node_modules/axe-core/axe.min.js"
    if not axe.exists():
        pytest.skip("axe-core is not installed: make test-browser")
    page = signed_in(opened(1280, scheme), service.url, service.key)
    for path in (*PAGES, "/sign-in"):
        page.goto(f"{service.url}{path}")
        page.wait_for_load_state("networkidle" if path != "/" else "load")
        page.evaluate("document.querySelectorAll('main details').forEach((each) => { each.open = true; })")
        page.evaluate(axe.read_text())
        found = page.evaluate("axe.run()")["violations"]
        serious = {
            each["id"]: [node["html"][:200] for node in each["nodes"][:3]]
            for each in found
            if each["impact"] in ("serious", "critical")
        }
        assert serious == {}, path
