"""The audit log: every change is in it, with who made it, and nothing else changes it."""

import re
from datetime import datetime
from typing import Any

import pytest
from asking import JSON, TestClient, bearer, problem
from fastapi import FastAPI
from starlette.routing import Route
from working import SPARSE, train, upload

from app.access.audit import _kind
from app.datasets import service as datasets
from app.store import files, tables


def entries(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    """Oldest first."""
    listed: list[dict[str, Any]] = client.get("/api/v1/audit", params=query).json()["items"]
    return listed[::-1]


def reported(client: TestClient, **query: Any) -> list[tuple[Any, ...]]:
    return [tuple(each[k] for k in ("key", "method", "what", "name")) for each in entries(client, **query)]


@pytest.fixture
def editor(app: FastAPI, secrets: dict[str, str]) -> TestClient:
    return TestClient(app, headers=bearer(secrets["editor"]))


def test_kinds_of_several_words_are_written_with_underscores() -> None:
    assert [_kind(row) for row in (tables.ReviewRow(), tables.ModelVersion(), tables.Job())] == [
        "review_row",
        "version",
        "job",
    ]


def test_a_change_is_told_with_who_made_it_when_and_from_where(
    client: TestClient, editor: TestClient, secrets: dict[str, str]
) -> None:
    answer = editor.post("/api/v1/datasets?name=d&format=svmlight", content=SPARSE)
    made, importing = entries(client)
    assert made["what"] == "dataset"
    assert (made["thing"], made["name"]) == (answer.json()["id"], "d")
    assert made["before"] is None
    assert made["after"]["sha256"] == answer.json()["sha256"]
    assert (importing["what"], importing["thing"]) == ("job", answer.json()["job"])
    assert (made["key"], made["workspace"], made["address"]) == ("the-editor", "default", "testclient")
    assert (made["method"], made["route"], made["path"]) == ("POST", "/api/v1/datasets", "/api/v1/datasets")
    assert made["request_id"] == answer.headers["x-request-id"]
    assert datetime.fromisoformat(made["at"]).tzinfo is not None


def test_what_was_there_before_is_told_of_every_kind_of_change(client: TestClient, editor: TestClient) -> None:
    upload(client, "d", SPARSE, "svmlight")
    train(client, "d", "m")
    train(client, "d", "m")
    queued = editor.post("/api/v1/jobs", json={"dataset": "d", "model": "m"}).json()
    editor.post(f"/api/v1/jobs/{queued['id']}/cancel")
    editor.post(f"/api/v1/jobs/{queued['id']}/retry")
    editor.post(f"/api/v1/jobs/{queued['id']}/cancel")
    states = [(each["before"], each["after"]) for each in entries(client, thing=queued["id"])[1:]]
    on, off = {"state": "queued"}, {"state": "cancelled"}
    assert states == [(on, off), (off, on), (on, off)]
    editor.put("/api/v1/models/m/aliases/production", json={"version": 1})
    editor.put("/api/v1/models/m/aliases/production", json={"version": 2}, headers={"If-Match": '"1"'})
    editor.delete("/api/v1/models/m/aliases/production")
    moves = [(each["before"], each["after"]) for each in entries(client, thing="m", key="the-editor")]
    alias = "alias production"
    assert moves == [({alias: None}, {alias: 1}), ({alias: 1}, {alias: 2}), ({alias: 2}, {alias: None})]
    client.put("/api/v1/models/m/retention", json={"keep_last": 1})
    kept = entries(client, thing="m")[-1]
    assert (kept["before"], kept["after"]) == ({"keep_last": None}, {"keep_last": 1})
    client.delete("/api/v1/datasets/d?force=true")
    gone = entries(client, thing="d")[-1]
    assert (gone["method"], gone["after"], gone["before"]["name"]) == ("DELETE", None, "d")
    key = client.post("/api/v1/keys", json={"name": "guest"}).json()
    client.delete(f"/api/v1/keys/{key['id']}")
    made, revoked = entries(client, thing="guest")
    assert made["after"]["role"] == "viewer"
    assert (revoked["before"], revoked["after"]) == ({"revoked": False}, {"revoked": True})
    assert key["secret"] not in str(entries(client))
    assert not re.search(r"[0-9a-f]{64}", str(made))


def test_reading_and_what_fails_are_not_told(client: TestClient) -> None:
    upload(client, "d", SPARSE, "svmlight")
    train(client, "d", "m")
    before = entries(client)
    client.get("/api/v1/datasets")
    client.post("/api/v1/models/m/predict", json={"instances": [{"indices": [1], "values": [1.0]}]})
    client.post("/api/v1/jobs/plan", json={"dataset": "d", "model": "m", "solver": "weston_watkins", "shards": 1})
    problem(client.delete("/api/v1/datasets/d"), 409)
    problem(client.post("/api/v1/datasets?name=d&format=svmlight", content=SPARSE), 409)
    problem(client.put("/api/v1/models/m/aliases/production", json={"version": 9}), 404)
    assert entries(client) == before


def test_an_entry_is_there_with_its_change_or_neither(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    upload(client, "d", SPARSE, "svmlight")
    before = entries(client)

    def fails(*_: Any) -> None:
        raise OSError("no such disk")

    # the transaction has gone by when files are removed: what is recorded has happened
    monkeypatch.setattr(files.Files, "delete", fails)
    assert client.delete("/api/v1/datasets/d").status_code >= 500
    assert [each["method"] for each in entries(client)] == [*(each["method"] for each in before), "DELETE"]
    monkeypatch.setattr(datasets, "sql_delete", fails)
    problem(client.delete("/api/v1/datasets/d"), 404)
    assert len(entries(client)) == len(before) + 1


def test_a_repeated_request_is_told_once(client: TestClient) -> None:
    for _ in range(2):
        client.post("/api/v1/datasets?name=d&format=svmlight", content=SPARSE, headers={"Idempotency-Key": "1"})
    assert [each["what"] for each in entries(client)] == ["dataset", "job"]


def test_entries_come_in_pages_and_are_chosen_by_key_thing_and_time(client: TestClient, editor: TestClient) -> None:
    for name in ("a", "b", "c"):
        (client if name == "b" else editor).post(f"/api/v1/datasets?name={name}&format=svmlight", content=SPARSE)
    seen, token = [], None
    for _ in range(3):
        page = client.get("/api/v1/audit", params={"page_size": 2, **({"page_token": token} if token else {})}).json()
        seen += page["items"]
        token = page["next_page_token"]
    assert token is None
    assert seen == entries(client)[::-1]
    assert {each[0] for each in reported(client, key="the-editor")} == {"the-editor"}
    assert len(reported(client, key="the-editor")) == 4
    assert reported(client, thing="b") == [("the-admin", "POST", "dataset", "b")]
    times = [each["at"] for each in entries(client)]
    assert [each["at"] for each in entries(client, since=times[2])] == times[2:]
    assert [each["at"] for each in entries(client, until=times[2])] == times[:2]
    problem(client.get("/api/v1/audit", params={"since": "yesterday"}), 422)
    problem(client.get("/api/v1/audit", params={"since": "2030-01-01T00:00:00"}), 422)


def test_the_log_is_read_by_administrators_and_written_by_no_route(
    app: FastAPI, client: TestClient, editor: TestClient
) -> None:
    problem(editor.get("/api/v1/audit"), 403)
    routes: list[Route] = [route for route in app.state.routes if "/audit" in route.path]
    # a page shows it, too
    assert {(route.path, *(route.methods or ())) for route in routes} == {("/api/v1/audit", "GET"), ("/audit", "GET")}
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        problem(client.request(method, "/api/v1/audit", headers=JSON, content=b"{}"), 405)


def test_an_administrator_sees_the_entries_of_the_own_workspace(app: FastAPI, client: TestClient) -> None:
    made = client.post("/api/v1/keys", json={"name": "theirs", "role": "admin", "workspace": "elsewhere"}).json()
    with TestClient(app, headers=bearer(made["secret"])) as other:
        other.post("/api/v1/datasets?name=secret&format=svmlight", content=SPARSE)
        assert {each["workspace"] for each in entries(other)} == {"elsewhere"}
        assert {each["workspace"] for each in entries(client)} == {"default", "elsewhere"}
