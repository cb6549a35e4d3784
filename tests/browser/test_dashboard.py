"""What people do on the dashboard, in a real browser."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from axe import serious_faults
from browsing import LONG, PAGES, PATIENCE_MS, TEXTS, TOO_WIDE, Service, place, places, signed_in, upload_noise

from app.client import Client

pytestmark = pytest.mark.slow

EVIL = '<script>alert("x")</script><img src=x onerror=alert(1)>'
TWO_GOOD = b'{"text": "one", "label": "a"}\n{"text": "two", "label": "b"}\n'


def test_versions_are_promoted_and_rolled_back(page: Any, client: Client, service: Service) -> None:
    page.goto(f"{service.url}/models/foods")
    for button, version in (("Promote to 2", 2), ("Roll back to 1", 1)):
        page.get_by_role("button", name=button).click()
        page.get_by_role("button", name="Confirm").click()
        page.locator("tr", has_text="production").get_by_role("link", name=str(version), exact=True).first.wait_for()
        assert client.models.get("foods").aliases[0].version == version


def test_a_question_that_is_not_confirmed_changes_nothing(page: Any, client: Client, service: Service) -> None:
    page.goto(f"{service.url}/models/foods")
    page.get_by_role("button", name="Promote to 2").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Back", exact=True).wait_for()
    page.keyboard.press("Escape")
    page.locator("#confirm").wait_for(state="hidden")
    assert client.models.get("foods").aliases[0].version == 1


def test_the_curve_moves_and_the_job_is_cancelled(page: Any, client: Client, service: Service, tmp_path: Path) -> None:
    upload_noise(client, tmp_path)
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
    page.get_by_role("link", name="Train exact with lee_lin_wahba").first.click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Confirm").click()
    page.locator("#state .badge.cancelled").wait_for()
    page.get_by_role("button", name="Try again").wait_for()
    assert client.jobs.get(job.id).state == "cancelled"


def test_an_upload_with_errors_shows_its_lines_in_the_form_and_can_be_sent_again(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    file = tmp_path / "some rows.jsonl"
    file.write_bytes(TWO_GOOD + b"not json\n" + TWO_GOOD + b'{"text": "no label"}\n')
    page.goto(f"{service.url}/datasets")
    page.get_by_label("Drop a file here").set_input_files(file)
    assert page.get_by_label("Name").input_value() == "some-rows"
    page.get_by_role("button", name="Upload").click()
    faults = page.locator("#upload [role=alert] li")
    faults.first.wait_for()
    assert [re.split("[,:]", fault)[0] for fault in faults.all_inner_texts()] == ["line 3", "line 6"]
    assert "not valid JSON" in faults.first.inner_text()
    broken = client.datasets.get("some-rows")
    assert broken.state == "failed"
    file.write_bytes(TWO_GOOD)
    page.get_by_label("Drop a file here").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    page.locator("#histogram[data-points]").wait_for()
    replaced = client.datasets.get("some-rows")
    assert (replaced.state, replaced.n_rows) == ("ready", 2)
    assert replaced.id != broken.id


def test_a_table_of_texts_numbers_and_categories_comes_in_by_the_form(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    file = tmp_path / "orders.csv"
    rows = [f"a longer note on order {n},{('red', 'blue')[n % 2]},{n / 4},{('ham', 'spam')[n % 2]}" for n in range(40)]
    file.write_text("note,colour,price,label\n" + "\n".join(rows) + "\n")
    page.goto(f"{service.url}/datasets")
    infer = page.get_by_label("Infer column types from values")
    page.get_by_label("Format").select_option("svmlight")
    assert infer.is_disabled()
    assert not infer.is_checked()
    page.get_by_label("Drop a file here").set_input_files(file)
    assert infer.is_enabled()
    assert infer.is_checked()
    infer.uncheck()
    page.get_by_role("button", name="Upload").click()
    page.locator("#upload [role=alert] li").first.wait_for()
    infer.check()
    page.get_by_role("button", name="Upload").click()
    page.locator("#histogram[data-points]").wait_for()
    assert client.datasets.get("orders").kind == "table"
    columns = {each.name: each.role for each in client.datasets.statistics("orders").columns or []}
    assert columns == {"note": "text", "colour": "category", "price": "number"}


def test_a_large_file_comes_in_pieces_and_goes_on_where_the_connection_broke(
    opened: Callable[..., Any], client: Client, service: Service, tmp_path: Path
) -> None:
    file = tmp_path / "large.jsonl"
    row = b'{"text": "%s", "label": "a"}\n' % (b"word " * 2000)
    file.write_bytes(row * 500 + row.replace(b'"a"', b'"b"') * 500)
    page = signed_in(opened(refused=True), service.url, service.key)
    broken: list[str] = []

    def lose(route: Any) -> None:
        if broken or route.request.method != "PATCH":
            route.continue_()
        else:
            broken.append(route.request.url)
            route.abort("connectionreset")

    page.route("**/api/v1/uploads/*", lose)
    page.goto(f"{service.url}/datasets")
    page.get_by_label("Drop a file here").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    page.locator("#histogram[data-points]").wait_for()
    assert len(broken) == 1
    assert client.datasets.get("large").n_rows == 1000
    assert page.evaluate("localStorage.length") == 0


def test_a_refused_upload_says_why(opened: Callable[..., Any], service: Service, tmp_path: Path) -> None:
    file = tmp_path / "foods.jsonl"
    file.write_bytes(TWO_GOOD)
    page = signed_in(opened(refused=True), service.url, service.key)
    page.goto(f"{service.url}/datasets")
    page.get_by_label("Drop a file here").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("alert").get_by_text("a dataset named 'foods' already exists").wait_for()
    assert page.get_by_role("button", name="Upload").is_enabled()


def test_a_viewer_sees_no_button_that_it_may_not_press(
    opened: Callable[..., Any], client: Client, service: Service
) -> None:
    key = client.keys.create(f"viewer-{time.time_ns()}", "viewer").secret
    page = signed_in(opened(), service.url, key)
    for path in PAGES:
        if not path.startswith(("/train", "/keys", "/audit")):
            page.goto(f"{service.url}{path}")
            assert (
                page.locator(
                    "button[data-path], #upload, #new-alias, #tour, #tags, #correct, [data-send], a[href^='/train']"
                ).count()
                == 0
            ), path
    page.goto(f"{service.url}/playground?model=foods")
    page.get_by_label("Text").fill("a red apple")
    page.get_by_role("button", name="Predict").click()
    page.get_by_role("heading", name="fruit").wait_for()


def test_script_tags_in_labels_and_texts_are_inert(page: Any, client: Client, service: Service, tmp_path: Path) -> None:
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
    page.get_by_label("Text").fill(f"one {EVIL}")
    page.get_by_role("button", name="Predict").click()
    page.get_by_role("heading", name=f"{EVIL}one").wait_for()
    assert page.locator("main script, main img").count() == 0


def test_a_version_shows_its_measures_and_how_honest_it_is(page: Any, service: Service) -> None:
    page.goto(f"{service.url}/models/sure-foods/versions/1")
    page.locator("#reliability[data-points]").wait_for()
    assert page.get_by_role("cell", name="fruit").or_(page.get_by_role("rowheader", name="fruit")).count() >= 1
    page.locator("#labels").get_by_label("Order").select_option("label")
    page.wait_for_url("**order=label**")
    assert page.locator("#labels tbody th").all_inner_texts() == ["fruit", "vegetable", "water"]


def test_the_slider_of_the_threshold_moves_what_is_answered_and_goes_on_to_the_playground(
    page: Any, client: Client, service: Service
) -> None:
    page.goto(f"{service.url}/models/sure-foods/versions/1")
    card = page.locator("#thresholds")
    card.locator(".chart[data-points]").wait_for()
    slider = card.get_by_label("Minimum probability")
    points = client.models.thresholds("sure-foods", 1).points
    for key, point in (("Home", points[0]), ("End", points[-1])):
        slider.press(key)
        reported = card.get_by_role("status").inner_text()
        assert f"{100 * point.answered:.1f}" in reported
        assert f"{100 * point.precision:.1f}" in reported
    card.get_by_role("link", name="Try it with this threshold").click()
    page.get_by_label("Text").fill("red round apple")
    assert float(page.get_by_label("Minimum probability").input_value()) == pytest.approx(
        points[-1].threshold, abs=1e-6
    )
    page.get_by_role("button", name="Predict").click()
    page.locator("#answer .notice").wait_for()


def test_a_confusion_matrix_of_two_thousand_classes_is_sorted_moved_and_drawn_around_one(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    draw, rows = Random(0), []
    for number in range(6000):
        true = number % 2000
        reported = true ^ 1 if draw.random() < 0.4 else true
        rows.append({"text": f"token{true}", "label": f"{EVIL if reported == 7 else 'class'} {reported:04}"})
    (tmp_path / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    client.datasets.upload(tmp_path / "many.jsonl", "many").wait()
    client.train("many", "many", "centroids", test_fraction=0).wait()
    client.evaluate("many", "many", part="all", resamples=0).wait()
    page.goto(f"{service.url}/models/many/versions/1")
    matrix = page.locator("#matrix")
    matrix.locator("table[data-classes='20']").wait_for()
    assert matrix.locator("td").count() == 400
    assert "1 to 20 of" in matrix.get_by_role("status").inner_text()
    worst, other = matrix.locator("tbody th").all_inner_texts()[:2]
    assert int(worst[-4:]) ^ 1 == int(other[-4:])
    matrix.get_by_role("button", name="Next").click()
    assert "21 to 40" in matrix.get_by_role("status").inner_text()
    matrix.get_by_label("Order").select_option("name")
    evil = matrix.get_by_role("rowheader").first
    assert evil.inner_text() == f"{EVIL} 0007"
    matrix.get_by_label("Classes shown").select_option("80")
    assert matrix.locator("td").count() == 6400
    evil.get_by_role("button").press("Enter")
    assert sorted(name[-4:] for name in matrix.locator("tbody th").all_inner_texts()) == ["0006", "0007"]
    assert matrix.locator("td.wrong").count() >= 1
    matrix.get_by_role("button", name="All classes").click()
    assert matrix.locator("td").count() == 6400


def test_a_tree_is_folded_and_searched(page: Any, service: Service) -> None:
    page.goto(f"{service.url}/hierarchies/things")
    page.get_by_role("button", name="Children of food").click()
    page.get_by_text("vegetable").wait_for()
    page.get_by_role("button", name="Children of food").click()
    page.get_by_text("vegetable").wait_for(state="hidden")
    page.get_by_label("Find a node").fill("VEGET")
    page.get_by_text("1 found").wait_for()
    page.get_by_text("in food").wait_for()


def test_the_form_of_a_method_is_made_of_its_schema(page: Any, client: Client, service: Service) -> None:
    page.goto(f"{service.url}/train?dataset=foods")
    page.get_by_text("Method and parameters").click()
    page.get_by_label("Method", exact=True).select_option("softmax")
    formula = page.locator("details:has(> summary:text-is('Summary')) > pre")
    assert formula.text_content().strip().startswith("minimise")
    page.locator("#param-C").fill("3")
    page.get_by_label("Seed").fill("7")
    page.get_by_label("Model").fill("by-form")
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_role("link", name="Version 1 of by-form").wait_for()
    request = client.models.get("by-form").latest.request
    assert (request["solver"], request["params"], request["seed"]) == ("softmax", {"C": 3}, 7)


def test_a_job_is_tagged_and_its_log_is_read(page: Any, client: Client, service: Service) -> None:
    job = client.jobs.get(client.models.get("foods").latest.job)
    page.goto(f"{service.url}/jobs/{job.id}")
    page.get_by_label("Tag", exact=True).fill("purpose")
    page.get_by_label("Tag value").fill("<b>test</b>")
    page.get_by_role("button", name="Add").click()
    page.get_by_text("purpose: <b>test</b>").wait_for()
    assert client.jobs.get(job.id).tags["purpose"] == "<b>test</b>"
    page.get_by_role("button", name="Remove the tag purpose").click()
    page.get_by_text("purpose:").wait_for(state="detached")
    page.get_by_text("Log", exact=True).click()
    page.get_by_role("cell", name="job ended").wait_for()
    with page.expect_download() as awaited:
        page.get_by_role("link", name="PNG").click()
    assert Path(awaited.value.path()).read_bytes().startswith(b"\x89PNG")


def test_the_audit_log_tells_what_a_key_has_changed(page: Any, service: Service) -> None:
    page.goto(f"{service.url}/audit")
    page.get_by_label("Name or id").fill("foods")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="foods").first.wait_for()
    assert page.get_by_role("row").count() > 1


def test_a_new_key_is_shown_once_and_revoked(page: Any, client: Client, service: Service) -> None:
    page.goto(f"{service.url}/keys")
    page.get_by_label("Name").fill("by-page")
    page.get_by_role("button", name="Create").click()
    secret = page.locator("#new-key pre").inner_text()
    assert re.fullmatch(r"pm_[\w-]{43}", secret)
    page.get_by_role("link", name="Done").click()
    assert secret not in page.content()
    page.get_by_role("button", name="Revoke by-page").click()
    page.get_by_role("button", name="Confirm").click()
    page.locator("tr", has_text="by-page").get_by_text("revoked").wait_for()
    assert next(key for key in client.keys.list().items if key.name == "by-page").revoked


# the page of a training job is in no list of paths: its id is known when there is one
@pytest.mark.parametrize("path", [*PAGES, "/sign-in", "/jobs/"])
def test_every_page_fits_its_window_and_logs_no_error_and_axe_finds_nothing_serious(
    path: str, opened: Callable[..., Any], client: Client, service: Service
) -> None:
    page = signed_in(opened(scheme="dark"), service.url, service.key)
    if path == "/jobs/":
        path += next(job.id for job in client.jobs.list().items if job.kind == "train" and job.state == "succeeded")
    assert page.goto(f"{service.url}{path}").status == 200
    page.wait_for_load_state("networkidle" if path != "/" else "load")
    assert page.evaluate(TOO_WIDE) == []
    assert page.locator("h1").count() == 1
    assert serious_faults(page) == {}


def test_on_a_phone_every_button_is_in_sight_and_the_pages_stand_in_one_line(
    opened: Callable[..., Any], service: Service
) -> None:
    page = signed_in(opened(390), service.url, service.key)
    for path, name in (("/models/foods", "Promote to 2"), ("/models/foods", "Remove production"), ("/keys", "Revoke")):
        page.goto(f"{service.url}{path}")
        box = place(page.get_by_role("button", name=name).first)
        assert 0 <= box["left"] < box["right"] <= 390, name
    tops = page.evaluate("[...document.querySelectorAll('.side li')].map((each) => each.offsetTop)")
    assert len(set(tops)) == 1
    here = place(page.locator(".side [aria-current]"))
    assert 0 <= here["left"] < here["right"] <= 390
    page.goto(f"{service.url}/audit?thing=foods")
    heights = page.evaluate(
        "[...document.querySelectorAll('td small .nowrap')].map((each) => each.getClientRects().length)"
    )
    assert set(heights) == {1}


def test_a_legend_stands_above_the_bars(page: Any, client: Client, service: Service, tmp_path: Path) -> None:
    file, parts = tmp_path / "parted.jsonl", ("train", "test", "validation")
    rows = [{"text": f"word{n} and more", "label": "ab"[n % 2], "split": parts[n // 2 % 3]} for n in range(60)]
    file.write_text("\n".join(map(json.dumps, rows)))
    client.datasets.upload(file, "parted").wait()
    page.goto(f"{service.url}/datasets/parted")
    for chart in ("#histogram", "[data-of=lengths]"):
        page.locator(f"{chart}[data-points] .legend .traces").first.wait_for()
        legend, plot = places(page, f"{chart} .legend", f"{chart} .gridlayer")
        assert legend["bottom"] <= plot["top"] + 1, chart


def test_the_keyboard_alone_signs_in_skips_the_menu_and_goes_on(opened: Callable[..., Any], service: Service) -> None:
    page = opened()
    page.goto(f"{service.url}/datasets")
    page.locator("#key:focus").wait_for()  # the browser moves the focus with its first frame, after the load event
    page.keyboard.type(service.key)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Datasets").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_a_recipe_shows_what_becomes_of_a_row_while_it_is_edited(page: Any, service: Service) -> None:
    page.goto(f"{service.url}/train?dataset=foods")
    page.get_by_text("Method and parameters").click()
    features = page.locator("#preview li")
    features.filter(has_text="apple").wait_for()
    page.get_by_label("Word prefixes").fill("3")
    features.filter(has_text="app*").wait_for()
    page.get_by_label("Row", exact=True).fill("1")
    features.filter(has_text="leek").wait_for()
    assert features.filter(has_text="apple").count() == 0
    words = page.get_by_label("Stop words")
    assert {"auto", "de", "en"} <= set(words.locator("option").evaluate_all("all => all.map(one => one.value)"))
    with page.expect_request("**/preview") as asked:
        words.select_option("german")
    assert asked.value.post_data_json["text"] == {"prefix": 3, "stop_words": "de"}
    with page.expect_request("**/preview") as asked:
        page.get_by_label("Weights of text columns").fill('{"title": {"weight": 0.5}}')
        page.get_by_label("Weights of text columns").blur()
    assert asked.value.post_data_json["text"]["fields"] == {"title": {"weight": 0.5}}


def test_the_form_asks_of_texts_and_numbers_what_they_have(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    file = tmp_path / "numbers.csv"
    file.write_text("x,y,label\n" + "\n".join(f"{n % 7},{n % 3},{'ab'[n % 2]}" for n in range(40)) + "\n")
    client.datasets.upload(file, "numbers").wait()
    page.goto(f"{service.url}/train?dataset=numbers")
    page.get_by_text("Method and parameters").click()
    scaling, least = page.get_by_label("Scaling"), page.get_by_label("Minimum documents")
    scaling.select_option("robust")
    assert not least.is_visible()
    page.locator("#preview li").first.wait_for()
    page.get_by_label("Dataset").select_option("foods")
    assert least.is_visible()
    assert not scaling.is_visible()
    page.get_by_label("Model").fill("unscaled")
    page.get_by_label("Method").select_option("centroids")
    page.get_by_role("button", name="Train").click()
    page.wait_for_url("**/jobs/*")
    assert client.jobs.get(page.url.rsplit("/", 1)[1]).request.get("columns") is None


def test_a_dataset_shows_how_its_rows_are_spread(page: Any, client: Client, service: Service, tmp_path: Path) -> None:
    file = tmp_path / "repeated.jsonl"
    file.write_bytes(TEXTS)
    client.datasets.upload(file, "repeated").wait()  # one of its own: other tests add rows to foods
    page.goto(f"{service.url}/datasets/repeated")
    page.locator("#spread [data-of=lengths][data-points]").wait_for()
    assert "33 of 36" in page.locator("#spread").inner_text()
    assert "33 rows (92%) repeat an earlier row" in page.locator("#warnings").inner_text()
    with page.expect_download() as download:
        page.locator("#spread").get_by_role("link", name="SVG").first.click()
    assert download.value.suggested_filename == "spread.svg"
