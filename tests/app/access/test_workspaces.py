"""Workspaces: nothing of another one is seen, changed or named by any route; and owners, who alone delete."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from asking import JSON, TestClient, bearer, problem
from fastapi import FastAPI
from starlette.routing import Route
from working import SPARSE, run, train, trained, upload

from app.store import db, tables

TREE = b"parent,child\nroot,a\nroot,bc\nbc,b\nbc,c\n"
LETTER = {"indices": [1, 4], "values": [1.0, 0.5]}
# What reaches the look-up of the name; {} for the others. A new route that names something belongs here.
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/sign-in/token"): {"device_code": "x"},
    ("POST", "/jobs"): {"dataset": "letters", "model": "m"},
    ("POST", "/jobs/plan"): {"dataset": "letters", "model": "m", "solver": "weston_watkins", "shards": 1},
    ("PUT", "/models/{ref}/aliases/{alias}"): {"version": 1},
    ("POST", "/models/{ref}/feedback"): {"instance": [1.0], "labels": ["a"]},
    ("PUT", "/models/{ref}/retention"): {"keep_last": 1},
    ("PATCH", "/models/{ref}/versions/{number}"): {"notes": "x"},
    ("PATCH", "/models/{ref}"): {"license": "CC0-1.0"},
    ("POST", "/models/{ref}/predict"): {"instances": [[1.0]]},
    ("POST", "/models/{ref}/compare"): {"a": "1", "b": "1"},
    ("POST", "/models/{ref}/nearest"): {"instance": [1.0]},
    ("PATCH", "/rules/{ref}"): {"enabled": False},
    ("POST", "/reviews"): {"name": "r", "job": "9" * 32},
    ("PUT", "/reviews/{ref}/decisions/{row}"): {"label": "a"},
    ("POST", "/reviews/{ref}/release"): {"rows": [0]},
    ("POST", "/rules"): {"name": "r", "model": "letters", "cron": "0 0 29 2 *"},
    ("POST", "/datasets/{ref}/corrections"): {"corrections": [{"row": 0, "labels": ["a"]}]},
}
QUERIES: dict[tuple[str, str], dict[str, Any]] = {
    ("GET", "/evaluations"): {"model": "letters"},
    ("GET", "/hierarchies/{ref}/changes"): {"since": "tree"},
    ("GET", "/models/{ref}/compare"): {"a": "1", "b": "1"},
    ("GET", "/models/{ref}/versions/{number}/terms"): {"label": "a"},
    ("GET", "/figures/code"): {"model": "letters", "version": 1},
    ("GET", "/figures/drift"): {"model": "letters", "version": 1},
    ("GET", "/figures/path"): {"model": "letters", "version": 1},
    ("GET", "/figures/thresholds"): {"model": "letters", "version": 1},
    ("GET", "/figures/classes"): {"dataset": "letters"},
    ("GET", "/figures/spread"): {"dataset": "letters", "of": "lengths"},
    ("GET", "/figures/job"): {"job": "/jobs/{id}"},
    ("GET", "/figures/tuning"): {"job": "/jobs/{id}", "of": "time"},
    ("GET", "/figures/reliability"): {"evaluation": "/evaluations/{id}"},
    ("GET", "/figures/confusions"): {"evaluation": "/evaluations/{id}"},
}
# These name nothing of a workspace, or make something in that of the key.
FREE = {
    ("GET", "/datasets"), ("POST", "/datasets"), ("GET", "/hierarchies"), ("POST", "/hierarchies"), ("GET", "/jobs"),
    ("GET", "/models"), ("GET", "/rules"), ("GET", "/reviews"), ("GET", "/solvers"), ("GET", "/solvers/{name}"),
    ("GET", "/keys"), ("POST", "/keys"), ("GET", "/audit"), ("GET", "/usage"), ("GET", "/status"),
    ("POST", "/datasets/example"), ("POST", "/datasets/columns"), ("POST", "/uploads"), ("GET", "/webhooks"),
    ("POST", "/webhooks"), ("DELETE", "/sign-in/token"),
}  # fmt: skip
# These are about the whole installation.
INSTALLATION = {("GET", "/storage"), ("POST", "/storage/collect"), ("POST", "/models/import")}


@pytest.fixture
def things(models: TestClient) -> dict[str, str]:
    """What the default workspace has, by the places of paths that name it."""
    assert models.post("/api/v1/hierarchies?name=tree&format=csv", content=TREE).status_code == 201
    job = models.post("/api/v1/jobs", json={"kind": "evaluate", "model": "letters", "dataset": "letters"}).json()
    run(job["id"])
    assert models.put("/api/v1/models/letters/aliases/production", json={"version": 1}).status_code == 200
    rule = {"name": "nightly", "model": "letters", "cron": "0 0 29 2 *"}
    assert models.post("/api/v1/rules", json=rule).status_code == 201
    reported = models.post("/api/v1/models/letters/feedback", json={"instance": LETTER, "labels": ["a"]})
    key = next(key for key in models.get("/api/v1/keys").json()["items"] if key["name"] == "the-viewer")
    given: Any = {"id": "5" * 32, "name": "unsure", "job_id": "0" * 32, "model": "letters", "version": 1}
    given |= {"dataset_version": 1, "sure_share": 0.0, "seed": 0, "opinions": 1, "created_at": 0.0}
    with db.sessions()() as session:
        session.add(tables.Review(**given))
        hook: Any = {"url": "https://x.example", "events": [], "secret": "", "created_at": 0.0, "collected_at": 0.0}
        session.add(tables.Webhook(id="6" * 32, name="hook", **hook))
        session.flush()
        sent: Any = {"key": "k", "event": "job.failed", "payload": {}, "state": "failed", "attempts": 10, "due_at": 0.0}
        session.add(tables.WebhookDelivery(id="7" * 32, webhook_id="6" * 32, created_at=0.0, **sent))
        row: Any = {"row": 0, "place": 0, "alternatives": [], "sure": False, "state": "open", "revision": 1}
        session.add(tables.ReviewRow(review_id="5" * 32, **row))
        session.commit()
    return {
        "/webhooks/{ref}": "hook",
        "/webhooks/hook/deliveries/{id}": "7" * 32,
        "/reviews/{ref}": "unsure",
        "/datasets/{ref}": "letters",
        "/hierarchies/{ref}": "tree",
        "/jobs/{id}": job["id"],
        "/evaluations/{id}": job["id"],
        "/models/{ref}": "letters",
        "/rules/{ref}": "nightly",
        "/models/letters/feedback/{id}": reported.json()["id"],
        "/keys/{ref}": key["id"],
        "/uploads/{id}": models.post("/api/v1/uploads", json={"size_bytes": 3}).json()["id"],
        "/solvers/{name}": "spoc",
    }


@pytest.fixture
def stranger(app: FastAPI, models: TestClient) -> Iterator[TestClient]:
    """A client with an administrator's key of another workspace."""
    with _of_workspace(app, models, "elsewhere", "admin") as client:
        yield client


def _of_workspace(app: FastAPI, admin: TestClient, workspace: str, role: str) -> TestClient:
    made = admin.post("/api/v1/keys", json={"name": f"of-{workspace}", "role": role, "workspace": workspace})
    assert made.status_code == 201, made.text
    return TestClient(app, headers=bearer(made.json()["secret"]))


def _everything(client: TestClient) -> list[Any]:
    lists = ["datasets", "hierarchies", "jobs", "models", "evaluations", "rules", "reviews", "webhooks"]
    lists.append("models/letters/versions")
    lists.append("models/letters/feedback")
    return [client.get(f"/api/v1/{path}").json() for path in lists]


def test_no_route_shows_or_changes_what_another_workspace_has(
    app: FastAPI, models: TestClient, things: dict[str, str], stranger: TestClient
) -> None:
    before = _everything(models)
    ids = set(re.findall(r"\b[0-9a-f]{32}\b", str(before) + str(models.get("/api/v1/keys").json())))
    ids -= {key["id"] for key in stranger.get("/api/v1/keys").json()["items"]}
    assert len(ids) >= 10
    routes: list[Route] = [route for route in app.state.routes if route.path.startswith("/api/v1/")]
    walked = 0
    for route in routes:
        path = route.path.removeprefix("/api/v1")
        for method in sorted((route.methods or set()) - {"HEAD"}):
            url = path.replace("{number}", "1").replace("{alias}", "production").replace("{row}", "0")
            for place, name in things.items():
                if url.startswith(place):
                    url = url.replace(place, f"{place[: place.index('{')]}{name}")
            assert "{" not in url, f"{url}: `things` needs a name for the place"
            body = BODIES.get((method, path), {})
            query = {key: things.get(str(of), of) for key, of in QUERIES.get((method, path), {}).items()}
            headers = JSON | {"Upload-Offset": "0"}
            answer = stranger.request(method, f"/api/v1{url}", params=query, headers=headers, json=body)
            shown = set(re.findall(r"\b[0-9a-f]{32}\b", answer.text)) - {*url.split("/"), *map(str, query.values())}
            assert not ids & shown, (method, path)
            if (method, path) in INSTALLATION:
                problem(answer, 403, "forbidden")
            elif (method, path) not in FREE:
                problem(answer, 404, "not_found")
                walked += 1
    assert walked >= 25
    assert _everything(models) == before
    assert {key["workspace"] for key in stranger.get("/api/v1/keys").json()["items"]} == {"elsewhere"}


def test_no_page_shows_what_another_workspace_has(
    models: TestClient, things: dict[str, str], stranger: TestClient
) -> None:
    for path in ("", "datasets", "hierarchies", "jobs", "models", "train", "playground"):
        text = stranger.get(f"/{path}").text
        assert "letters" not in text, path
        assert "foods" not in text, path
    job = things["/jobs/{id}"]
    named = ["datasets/letters", "hierarchies/tree", f"jobs/{job}", "models/letters", "models/letters/versions/1"]
    for path in named:
        assert models.get(f"/{path}").status_code == 200
        assert stranger.get(f"/{path}").status_code == 404, path


@pytest.mark.slow
def test_what_another_workspace_has_is_told_by_no_route_from_what_is_not_there(
    app: FastAPI, models: TestClient, things: dict[str, str], stranger: TestClient
) -> None:
    assert models.get("/api/v1/models/letters").status_code == 200

    def reported(method: str, path: str, name: str, body: Any) -> tuple[int, str]:
        url = re.sub(r"\{[^}]*\}", name, path.replace("{number}", "1").replace("{version}", "1"))
        answer = stranger.request(method, url, headers=JSON, json=body, follow_redirects=False)
        text = re.sub(r'"request_id": ?"[0-9a-f]*"', "", answer.text)
        return answer.status_code, re.sub(r"\b[0-9a-f]{32}\b|nonce[^ >]*", "", text.replace(name, "NAME"))

    # methods are the same for all, and are suggested if one is nearly spelled right
    named = [route for route in app.state.routes if "{" in route.path and "/solvers/" not in route.path]
    routes: list[Route] = named
    bodies: list[Any] = [{}, {"instances": [LETTER]}, {"inputs": [LETTER]}, {"version": 1}, {"keep_last": 1}]
    walked = 0
    for route in routes:
        for method in sorted((route.methods or set()) - {"HEAD"}):
            for body in bodies:
                for name in {"letters", "tree"}:
                    there = reported(method, route.path, name, body)
                    assert there == reported(method, route.path, "n" * len(name), body), (method, route.path)
            walked += 1
    assert walked >= 40


def test_requests_that_name_things_of_another_workspace_find_nothing(
    models: TestClient, things: dict[str, str], stranger: TestClient
) -> None:
    assert upload(stranger, "own", SPARSE, "svmlight")["state"] == "ready"
    for request in (
        {"dataset": "own", "model": "m", "hierarchy": "tree", "solver": "orthogonal_transfer"},
        {"kind": "evaluate", "model": "letters", "dataset": "own"},
    ):
        problem(stranger.post("/api/v1/jobs", json=request), 404, "not_found")
    problem(models.post("/api/v1/jobs", json={"dataset": "own", "model": "m"}), 404, "not_found")


def test_names_are_of_a_workspace(models: TestClient, stranger: TestClient) -> None:
    before = models.get("/api/v1/models/letters").json()
    swapped = SPARSE.replace(b"b ", b"z ")
    trained(stranger, "letters", swapped, "svmlight")
    job = stranger.post("/api/v1/jobs", json={"kind": "evaluate", "model": "letters", "dataset": "letters"}).json()
    run(job["id"])
    assert stranger.get(f"/api/v1/evaluations/{job['id']}").json()["dataset"] == job["dataset"]
    assert models.get("/api/v1/models/letters").json() == before
    asked = {"instances": [LETTER]}
    labels = [
        client.post("/api/v1/models/letters/predict", json=asked).json()["predictions"][0]["label"]
        for client in (models, stranger, models)
    ]
    assert labels == ["b", "z", "b"]
    assert stranger.get("/api/v1/models/letters").json()["owner"] == "of-elsewhere"
    problem(stranger.post("/api/v1/datasets?name=letters&format=svmlight", content=SPARSE), 409)


def test_a_key_of_another_workspace_is_made_by_the_installations_administrators_alone(
    models: TestClient, stranger: TestClient
) -> None:
    refused = stranger.post("/api/v1/keys", json={"name": "intruder", "role": "admin", "workspace": "default"})
    assert "default" in problem(refused, 403, "forbidden")["detail"]
    made = stranger.post("/api/v1/keys", json={"name": "colleague"})
    assert made.json()["workspace"] == "elsewhere"
    listed = models.get("/api/v1/keys").json()["items"]
    assert {"elsewhere", "default"} == {key["workspace"] for key in listed}
    assert models.delete(f"/api/v1/keys/{made.json()['id']}").status_code == 204


@pytest.mark.parametrize(
    ("kind", "content", "format"), [("datasets", SPARSE, "svmlight"), ("hierarchies", TREE, "csv")]
)
def test_only_its_owner_and_administrators_delete_a_thing(
    app: FastAPI, client: TestClient, secrets: dict[str, str], kind: str, content: bytes, format: str
) -> None:
    with TestClient(app, headers=bearer(secrets["editor"])) as editor:
        for name, maker in (("of-admin", client), ("of-editor", editor), ("another", editor)):
            made = maker.post(f"/api/v1/{kind}?name={name}&format={format}", content=content).json()
            assert made["owner"] == ("the-admin" if maker is client else "the-editor")
            if kind == "datasets":
                run(made["job"])
        assert "'the-admin'" in problem(editor.delete(f"/api/v1/{kind}/of-admin"), 403, "forbidden")["detail"]
        assert client.get(f"/api/v1/{kind}/of-admin").status_code == 200
        for deleter, name in ((editor, "of-editor"), (client, "another"), (client, "of-admin")):
            assert deleter.delete(f"/api/v1/{kind}/{name}").status_code == 204


def test_editors_append_and_correct_rows_of_a_dataset_that_another_key_made(
    app: FastAPI, client: TestClient, secrets: dict[str, str]
) -> None:
    n_rows = upload(client, "d", SPARSE, "svmlight")["n_rows"]
    with TestClient(app, headers=bearer(secrets["editor"])) as editor:
        appended = editor.post("/api/v1/datasets/d/rows", content=b"a 1:1\n")
        assert appended.status_code == 202, appended.text
        run(appended.json()["id"])
        corrected = editor.post("/api/v1/datasets/d/corrections", json={"corrections": [{"row": 0, "delete": True}]})
        assert corrected.status_code == 202, corrected.text
        run(corrected.json()["id"])
        dataset = editor.get("/api/v1/datasets/d").json()
        assert (dataset["version"], dataset["n_rows"], dataset["owner"]) == (3, n_rows, "the-admin")
        problem(editor.delete("/api/v1/datasets/d"), 403, "forbidden")


def test_jobs_and_models_tell_who_made_them(app: FastAPI, client: TestClient, secrets: dict[str, str]) -> None:
    with TestClient(app, headers=bearer(secrets["editor"])) as editor:
        upload(client, "d", SPARSE, "svmlight")
        assert train(editor, "d", "m")["owner"] == "the-editor"
        assert client.get("/api/v1/models/m").json()["owner"] == "the-editor"
