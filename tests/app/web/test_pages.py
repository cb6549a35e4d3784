"""Every page of the dashboard: who may see it, what it shows, and that what users have named is only text."""

import html
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from asking import TestClient, bearer, problem
from fastapi import FastAPI
from jinja2 import FileSystemLoader
from sqlalchemy import select, update
from version_facts import EDITION
from working import SPARSE, TEXTS, evaluate, run, train, upload

from app import main
from app.hierarchies import examples
from app.models import versions
from app.models.versions import Facts
from app.store import db, tables
from app.web import assets, reference, rendering

PATHS = sorted({route.path for router in main.PAGES for route in router.routes})
EVIL = "<script>alert(1)</script>"


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/docs" and not path.startswith("/sign-")])
def test_who_has_not_signed_in_is_asked_to(path: str, app: FastAPI) -> None:
    url = re.sub(r"\{[^}]*\}", "1", path) + "?page_token=x"
    with TestClient(app, follow_redirects=False) as client:
        for headers in ({}, bearer("pm_wrong")):
            answer = client.get(url, headers=headers)
            assert answer.status_code == 303
            assert answer.headers["location"] == f"/sign-in?next={quote(url, safe='')}"


@pytest.mark.parametrize("role", [pytest.param("viewer", marks=pytest.mark.slow), "editor", "admin"])
def test_a_role_sees_the_buttons_that_it_may_press_and_no_other(
    role: str, app: FastAPI, models: TestClient, secrets: dict[str, str]
) -> None:
    models.put("/api/v1/models/letters/aliases/production", json={"version": 1})
    job = models.get("/api/v1/jobs").json()["items"][0]["id"]
    pages = {
        "/": 200,
        "/datasets": 200,
        "/datasets/letters": 200,
        "/hierarchies": 200,
        "/jobs": 200,
        f"/jobs/{job}": 200,
        "/models": 200,
        "/models/letters": 200,
        "/models/letters/versions/1": 200,
        "/models/letters/compare": 200,
        "/playground": 200,
        "/playground?model=letters": 200,
        "/docs": 200,
        "/train": 403 if role == "viewer" else 200,
        "/keys": 200 if role == "admin" else 403,
        "/audit?key=the-admin&thing=letters": 200 if role == "admin" else 403,
    }
    with TestClient(app, headers=bearer(secrets[role])) as client:
        for path, status in pages.items():
            answer = client.get(path)
            assert answer.status_code == status, path
            assert answer.text.startswith("<!doctype html>")
            text = answer.text
            for change in ('data-method="', '<form class="card" id="upload"', 'href="/train', 'id="new-alias"'):
                assert role != "viewer" or change not in text, (path, change)
            assert ('href="/keys"' in text) == ('href="/audit"' in text) == (role == "admin")
        # an editor deletes what it has made itself
        assert (role == "admin") == ("Delete this dataset" in client.get("/datasets/letters").text)


def test_what_users_have_named_is_text(models: TestClient) -> None:
    rows = [{"text": f"{EVIL} {word}", "label": f"{EVIL}{word}"} for word in ("one", "two") * 4]
    upload(models, "evil", b"".join(json.dumps(row).encode() + b"\n" for row in rows), "jsonl")
    bad = b'{"text": "x"}\n{"' + EVIL.encode() + b'": 1, "text": 3}\n'
    upload(models, "bad", bad, "jsonl", label_column=EVIL)
    for path in ("/", "/datasets", "/datasets/evil", "/datasets/bad", "/jobs", "/playground?model=letters"):
        text = models.get(path).text
        assert EVIL not in text, path
    assert html.escape(EVIL) in models.get("/datasets/evil").text
    assert html.escape(EVIL) in models.get("/datasets/bad").text
    assert EVIL not in models.get(f"/jobs?page_token={quote(EVIL)}").text


def test_a_row_of_a_table_is_shown_once(client: TestClient) -> None:
    upload(client, "table", b"label,note,price\n" + b"a,red and round,1\nb,green,2\n" * 3, "csv", text_columns="note",
           number_columns="price")  # fmt: skip
    assert client.get("/datasets/table").text.count("red and round") == 3


def test_f1_comes_first_on_pages_of_sets(models: TestClient) -> None:
    sets = b"a\t<fruit>\na b\t<fruit> <leaf>\nb\t<leaf>\n" * 6
    assert upload(models, "sets", sets, "annif")["state"] == "ready"
    assert train(models, "sets", "sets", solver="node_svm", text={"min_word_length": 1})["state"] == "succeeded"
    for model, has in (("sets", True), ("foods", False)):
        text = models.get(f"/models/{model}/versions/1").text
        assert ("Micro F1" in text, "of the sets have a label wrong or missing" in text) == (has, has)
        assert ("Test error" in text) != has
        assert ("Test error or micro F1" in models.get(f"/models/{model}").text) == has
    row = re.search(r"/models/sets.*?</tr>", models.get("/models").text, re.DOTALL)
    assert row is not None
    assert re.search(r"F1 (1|0\.\d{3})", row[0])


def test_pages_of_a_version_name_its_concepts_in_the_language_of_the_browser(models: TestClient) -> None:
    torn = [{"text": f"{word} thing", "label": f"http://x.org/{word}"} for word in ("loaf", "pot", "loaf") * 6]
    torn += [{"text": "loaf thing", "label": "http://x.org/pot"}] * 9
    upload(models, "crafts", b"".join(json.dumps(row).encode() + b"\n" for row in torn), "jsonl")
    names = b"parent,child,name@en,name@de\nroot,http://x.org/loaf,Baking,Backen\nroot,http://x.org/pot,Pottery,\n"
    made = models.post("/api/v1/hierarchies", params={"name": "flat", "format": "csv"}, content=names)
    assert made.status_code == 201, made.text
    assert train(models, "crafts", "crafts", hierarchy="flat")["state"] == "succeeded"
    id = evaluate(models, model="crafts", dataset="crafts", part="all")
    confused = models.get(f"/api/v1/evaluations/{id}/confusions").json()
    assert {each["label"]: each["names"]["en"] for each in confused["labels"]} == {
        "http://x.org/loaf": "Baking", "http://x.org/pot": "Pottery"
    }  # fmt: skip
    assert models.get(f"/api/v1/evaluations/{id}/mistakes").json()["names"]["http://x.org/pot"] == {"en": "Pottery"}
    for asked, baking in (("de-AT,de;q=0.9,en;q=0.8", "Backen"), ("fi;q=0.5, en-GB", "Baking"), ("", "Baking")):
        text = models.get("/models/crafts/versions/1", headers={"Accept-Language": asked}).text
        for section in ("<h2>Most confused</h2>", "<h2>Classes</h2>"):
            cells = text.split(section)[1].split("</table>")[0]
            for name in (baking, "Pottery"):
                assert f"{name} <small" in cells, (asked, section)
    # a vocabulary without levels is counted, and not drawn as a tree
    assert 'id="tree"' not in text
    assert "2 labels without a tree" in text
    weights = {"class_weight": {"http://x.org/pot": 10.0}}
    assert train(models, "crafts", "crafts", hierarchy="flat", params=weights)["state"] == "succeeded"
    evaluate(models, model="crafts", dataset="crafts", version=2, part="all")
    compared = models.get("/models/crafts/compare?a=1&b=2").text
    assert "Pottery <small" in compared
    assert "Difference, points" in compared


def test_a_version_without_a_regulariser_says_what_is_proved_of_it(models: TestClient) -> None:
    for number, (labels, verdict) in enumerate(
        {"ab": "yes: every training row", "aabb": "no: 12 training rows"}.items()
    ):
        rows = "".join(f"{labels[i % len(labels)]} {1 + i % 2}:1\n" for i in range(12))
        upload(models, f"limit{number}", rows.encode(), "svmlight")
        body = {"solver": "hard_margin", "test_fraction": 0.0}
        assert train(models, f"limit{number}", f"limit{number}", **body)["state"] == "succeeded"
        text = models.get(f"/models/limit{number}/versions/1").text
        assert verdict in text
        assert ("have a loss lower by more than the tolerance" in text) == (number == 1)
    assert 'id="limit"' not in models.get("/models/letters/versions/1").text


def test_pages_say_that_a_training_has_not_converged_and_ask_before_it_is_promoted(models: TestClient) -> None:
    params = {"max_epochs": 1, "tol": 1e-12, "C": 100}
    made = train(models, "letters", "letters", solver="softmax", params=params, refit=False)
    job, version = made["id"], made["result"]["version"]
    models.put("/api/v1/models/letters/aliases/production", json={"version": 1})
    for path in (f"/jobs/{job}", "/jobs", "/models/letters", f"/models/letters/versions/{version}"):
        assert "training ended after 1 epoch" in models.get(path).text
    promoting = re.findall(r'data-confirm="([^"]*)"', models.get("/models/letters").text)
    assert any(f"to {version}?" in each and f"Version {version} has not converged" in each for each in promoting)


def test_an_adopted_edition_has_the_test_rows_of_its_source_and_no_training_of_its_own(models: TestClient) -> None:
    train(models, "letters", "letters", seed=5)
    with db.sessions()() as session:
        name, newest = "letters", models.get("/api/v1/models/letters").json()["versions"][0]
        model = session.scalars(select(tables.Model).where(tables.Model.name == name)).one()
        query = select(tables.ModelVersion).where(
            tables.ModelVersion.model_id == model.id, tables.ModelVersion.number == newest
        )
        source = session.scalars(query).one()
        kept = {each.name: getattr(source, each.name) for each in fields(Facts) if hasattr(source, each.name)}
        for before in (newest, newest + 1):
            edition = EDITION | {"version": before}
            facts = kept | {"job_id": f"adopting {before}", "hierarchy_sha256": str(before) * 64, "edition_of": edition}
            versions.add(session, name, Facts(**facts), {"test": {"error": 0.5}})
        session.commit()
    page = models.get("/models/letters").text
    rows = {int(number): row for number, row in re.findall(r'/versions/(\d+)">\d+</a></th>(.*?)</tr>', page, re.DOTALL)}
    assert [number for number, row in rows.items() if "other rows" in row] == [1]
    assert [number for number, row in rows.items() if '<td class="number">–</td>' in row] == [newest + 2, newest + 1]
    assert f"epochs of version {newest}<" in models.get(f"/models/letters/versions/{newest + 1}").text


def test_a_comparison_without_versions_proposes_the_two_newest(models: TestClient) -> None:
    train(models, "letters", "letters")
    newest, before = models.get("/api/v1/models/letters").json()["versions"][:2]
    page = models.get("/models/letters/compare").text
    assert re.findall(r'<option value="(\d+)" selected>', page) == [str(before), str(newest)]
    assert "Choose two versions" in page


def test_a_finished_job_leads_to_what_it_has_made(models: TestClient) -> None:
    def page(**request: Any) -> tuple[dict[str, Any], str]:
        id = models.post("/api/v1/jobs", json={"model": "foods", "dataset": "foods", **request}).json()["id"]
        run(id)
        job: dict[str, Any] = models.get(f"/api/v1/jobs/{id}").json()
        assert job["state"] == "succeeded"
        return job, models.get(f"/jobs/{id}").text

    predicted, text = page(kind="predict")
    file = f"/api/v1/jobs/{predicted['id']}/predictions"
    assert f'href="{file}" download>Download' in text
    version = predicted["result"]["version"]
    named = models.get(file).headers["content-disposition"]
    assert named == f'attachment; filename="foods-foods-{version}.parquet"'
    named = models.get(file, params={"name": "Työt 2026"}).headers["content-disposition"]
    assert named == f"attachment; filename*=utf-8''Ty%C3%B6t%202026-foods-{version}.parquet"
    assert models.get(file, params={"name": "../x"}).status_code == 422
    evaluated, text = page(kind="evaluate")
    assert f'/models/foods/versions/1?evaluation={evaluated["result"]["evaluation"]}">Show evaluation' in text
    trained, text = page(solver="weston_watkins")
    assert f'href="/models/foods/versions/{trained["result"]["version"]}">Version' in text


def test_a_dataset_without_labels_shows_nothing_of_labels(models: TestClient) -> None:
    rows = b'{"text": "a leek"}\n{"text": "the sea"}\n'
    assert upload(models, "unlabelled", rows, "jsonl", unlabelled="true")["state"] == "ready"
    for name, has in (("unlabelled", False), ("foods", True)):
        text = models.get(f"/datasets/{name}").text
        assert "Lengths" in text
        assert [part in text for part in ("<dt>Classes", "Rows per class", ">Label<", "/train?dataset=")] == [has] * 4
        assert "Labels of a row" not in text
        assert "Labels per row" not in text


def test_no_page_has_a_script_or_a_style_written_into_it(models: TestClient) -> None:
    for path in ("/", "/datasets/foods", "/models/foods/versions/1", "/train", "/keys", "/docs", "/sign-in"):
        text = models.get(path).text
        assert not re.search(r"<script(?![^>]* src=)", text), path
        assert not re.search(r"<style|\sstyle=|\son\w+=", text), path
        assert set(re.findall(r'(?:src|href)="(https?://[^"]+)', text)) == set(), path


def test_a_failed_dataset_shows_its_lines(models: TestClient) -> None:
    upload(models, "bad", b'{"text": "x", "label": "a"}\nnot json\n', "jsonl")
    text = models.get("/datasets/bad").text
    assert "not valid JSON" in text
    assert re.search(r'<td class="number">2</td>', text)
    assert "was not imported" in models.get("/").text


def test_templates_that_change_beneath_a_running_service_are_not_read(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise AssertionError("a template is read again")

    monkeypatch.setattr(FileSystemLoader, "get_source", gone)
    assert client.get("/").status_code == 200
    assert client.get("/models/nothing").status_code == 404


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-90, "1\u202fmin ago"), (-3, "just now"), (3, "just now"), (90, "in 1\u202fmin"), (100_000, "in 1\u202fday")],
)
def test_what_is_to_come_is_not_told_as_past(seconds: float, said: str) -> None:
    assert rendering.ago(datetime.now(UTC) + timedelta(seconds=seconds)) == said


def test_what_is_not_there_is_a_page_that_says_so(client: TestClient) -> None:
    for path in ("/jobs/none", "/datasets/none", "/models/none/versions/1", "/hierarchies/none"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert "Not found" in answer.text
    assert client.get("/jobs?state=odd").status_code == 422


def test_each_page_shows_the_call_of_the_api_that_it_comes_from(models: TestClient, secrets: dict[str, str]) -> None:
    for path in (
        "/",
        "/datasets",
        "/datasets/letters",
        "/models",
        "/models/letters",
        "/models/letters/versions/1",
        "/jobs",
        "/hierarchies",
        "/keys",
        "/audit",
    ):
        text = html.unescape(models.get(path).text)
        found = re.search(r"curl -fsS [^\n]*?(/api/v1/[^\s'<]+)", text)
        assert found is not None, path
        assert models.get(found[1]).status_code == 200
        assert "with Client(" in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, "–"), (0.25, "250 ms"), (61.0, "1 min 1 s"), (172_799.0, "47 h 59 min"), (5e8, "5 787 d 0 h")],
)
def test_a_duration_is_told_in_the_units_that_suit_it(seconds: float | None, words: str) -> None:
    assert rendering.duration(seconds).replace("\u202f", " ") == words


def test_each_picture_that_a_page_offers_as_a_file_is_had(models: TestClient) -> None:
    offered = {
        link
        for path in ("/datasets/letters", "/datasets/foods", "/models/letters/versions/1", "/jobs")
        for link in re.findall(r'href="(/api/v1/figures/[^"]+)" download', models.get(path).text)
    }
    assert {"spread", "classes", "drift"} <= {link.split("/")[4].split("?")[0] for link in offered}
    for link in sorted(link for link in offered if "svg" in link):
        answer = models.get(html.unescape(link))
        assert answer.status_code == 200, (link, answer.text)
        assert b"<svg" in answer.content


def test_files_of_pages_are_kept_for_a_year_and_found_under_their_digest_alone(client: TestClient) -> None:
    for name in ("style.css", "page.js", "plotly.min.js", "icon.svg"):
        for encoding in ("gzip", "identity"):
            answer = client.get(assets.address(name), headers={"Accept-Encoding": encoding})
            assert answer.status_code == 200
            assert "immutable" in answer.headers["cache-control"]
            assert answer.headers.get("content-encoding", "identity") == encoding
            assert len(answer.content) > 40
    for path in (assets.address("secret.py"), assets.address("..%2Fassets.py"), "/static/0000/style.css"):
        assert client.get(path).status_code == 404


def test_every_file_that_a_template_names_is_there() -> None:
    templates = assets._FOLDER.parent / "templates"
    for template in templates.iterdir():
        for name in re.findall(r"asset\('([^']+)'\)", template.read_text()):
            assert (assets._FOLDER / name).is_file(), (template.name, name)


def test_the_reference_describes_every_route_and_schema(app: FastAPI, client: TestClient) -> None:
    text = html.unescape(TestClient(app).get("/docs").text)
    document: dict[str, Any] = app.openapi()
    for path, methods in document["paths"].items():
        assert path in text
        for operation in methods.values():
            assert f'id="{operation["operationId"]}"' in text
    for name in document["components"]["schemas"]:
        assert f'id="schema-{name}"' in text


def test_the_reference_is_written_once_and_shows_to_each_who_they_are(
    app: FastAPI, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[object] = []
    operations = reference._operations
    monkeypatch.setattr(reference, "_operations", lambda document: written.append(1) or operations(document))
    nobody = TestClient(app).get("/docs").text
    admin = TestClient(app, headers=bearer(secrets["admin"])).get("/docs").text
    assert "the-admin" in admin
    assert "the-admin" not in nobody
    assert len(written) == 1


def test_status_tells_what_runs_and_what_failed(models: TestClient) -> None:
    upload(models, "bad", b"not json\n", "jsonl")
    models.post("/api/v1/jobs", json={"dataset": "foods", "model": "foods", "solver": "softmax"})
    found = models.get("/api/v1/status").json()
    assert found["jobs"]["queued"] == 1
    assert [job["request"]["solver"] for job in found["queued"]] == ["softmax"]
    assert found["queues"] == [{"name": "general", "processes": 0, "busy": 0, "waiting": 1}]
    assert {fault["kind"] for fault in found["attention"]} >= {"dataset_failed", "no_workers"}
    assert (found["n_datasets"], found["n_models"]) == (4, 3)
    assert 0 < found["disk"]["free_bytes"] <= found["disk"]["total_bytes"]


def test_a_failed_job_is_called_on_the_overview_as_on_its_own_page(models: TestClient) -> None:
    given = {"corrections": [{"row": 0, "labels": ["new"]}]}
    job = models.post("/api/v1/datasets/foods/corrections", json=given).json()["id"]
    with db.sessions()() as session:
        error = {"type": "t", "title": "t", "status": 500, "code": "internal", "detail": "It broke."}
        ended = {"state": "failed", "finished_at": db.db_now(), "error": error}
        session.execute(update(tables.Job).where(tables.Job.id == job).values(**ended))
        session.commit()
    link = rf'<a href="/jobs/{job}">\s*Correct labels of foods\s*</a> failed:\s*It broke\.'
    assert re.search(link, models.get("/").text)


def test_the_example_is_made_by_one_request_at_a_time(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def write(corpus: Path) -> None:
        begun.set()
        assert go_on.wait(20)
        corpus.write_bytes(TEXTS)

    monkeypatch.setattr(examples, "_write", write)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.post, "/api/v1/datasets/example")
        try:
            assert begun.wait(20)
            problem(client.post("/api/v1/datasets/example"), 409, "conflict")
        finally:
            go_on.set()
        assert first.result(20).status_code == 202
    assert client.post("/api/v1/datasets/example").status_code == 202


@pytest.mark.parametrize(("quota", "status"), [({"max_jobs": 1}, 429), ({"max_stored_bytes": 1}, 507)])
def test_the_example_is_not_made_for_a_workspace_that_is_full(
    quota: dict[str, int], status: int, client: TestClient, configure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(client, "letters", SPARSE, "svmlight")
    client.post("/api/v1/jobs", json={"dataset": "letters", "model": "letters", "solver": "weston_watkins"})
    configure(**quota)
    monkeypatch.setattr(examples, "_write", None)
    problem(client.post("/api/v1/datasets/example"), status)


def test_nodes_are_found_by_a_part_of_their_name(client: TestClient) -> None:
    tree = b"science.Physics\nscience.physical_chemistry\nart\n"
    client.post("/api/v1/hierarchies", params={"name": "tree", "format": "paths"}, content=tree)
    names = [
        node["name"]
        for node in client.get("/api/v1/hierarchies/tree/nodes", params={"search": "PHYSIC"}).json()["nodes"]
    ]
    assert len(names) == 2
    assert client.get("/api/v1/hierarchies/tree/nodes", params={"search": "%"}).json()["n_nodes"] == 0


def test_the_example_is_made_once_and_its_tour_goes_on_step_by_step(client: TestClient) -> None:
    assert ">Load<" in client.get("/").text
    first = client.post("/api/v1/datasets/example").json()
    assert client.post("/api/v1/datasets/example").json()["id"] == first["id"]
    assert client.get("/api/v1/hierarchies/docstrings").json()["n_nodes"] == 3
    assert "Importing rows" in client.get("/").text
    run(first["job"])
    text = client.get("/").text
    assert ">Load<" not in text
    assert "&#34;dataset&#34;" in text or '"dataset": "docstrings"' in text
    train(client, "docstrings", "docstrings")
    assert 'href="/playground?model=docstrings">Predict' in client.get("/").text
    upload(client, "own", TEXTS, "jsonl")
    assert "Four steps" not in client.get("/").text


def test_an_unknown_address_is_a_page_for_browsers_and_a_problem_for_programs(client: TestClient) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for headers in (browser, {**browser, "Authorization": ""}):
        page = client.get("/modells/industry", headers=headers)
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "No page has this address" in page.text
    problem(client.get("/modells/industry"), 404, "not_found")
    problem(client.get("/api/v1/modells", headers=browser), 404, "not_found")
    problem(client.post("/modells", headers=browser), 404, "not_found")
