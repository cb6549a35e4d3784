from datetime import UTC, datetime, timedelta
from time import time

import pytest
from asking import TestClient, bearer, problem
from fastapi import FastAPI
from sqlalchemy import update

from app import short_cache as remembered
from app.access import authentication as auth
from app.config import Settings, settings
from app.main import create_app
from app.store import tables
from app.store.db import sessions

OPEN = {"/healthz", "/readyz", "/metrics", "/v2/health/live", "/v2/health/ready", "/ping"}
# a program signs in by these, without a key
SIGNING_IN = {("post", "/api/v1/sign-in/device"), ("post", "/api/v1/sign-in/token")}


def test_every_route_but_the_signs_of_life_asks_for_a_key(app: FastAPI) -> None:
    asked = 0
    with TestClient(app) as client:
        for path, methods in app.openapi()["paths"].items():
            for method in methods:
                if path in OPEN or (method, path) in SIGNING_IN:
                    continue
                url = path.replace("{number}", "1").replace("{", "").replace("}", "")
                for headers in ({}, {"Authorization": "Basic eDp5"}, bearer("pm_wrong"), {"Authorization": "Bearer "}):
                    response = client.request(method, url, headers=headers)
                    problem(response, 401, "unauthenticated")
                    assert response.headers["www-authenticate"] == "Bearer"
                asked += 1
    assert asked >= 20


def test_health_and_documentation_are_open(app: FastAPI) -> None:
    with TestClient(app) as client:
        for path in ("/healthz", "/docs", "/openapi.json", "/metrics"):
            assert client.get(path).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "role"),
    [
        ("POST", "/datasets?name=a&format=csv", "clerk"),
        ("DELETE", "/datasets/a", "clerk"),
        ("POST", "/hierarchies?name=a&format=csv", "editor"),
        ("DELETE", "/hierarchies/a", "editor"),
        ("POST", "/jobs", "clerk"),
        ("POST", "/jobs/a/cancel", "clerk"),
        ("POST", "/jobs/a/retry", "clerk"),
        ("PUT", "/models/a/aliases/b", "editor"),
        ("DELETE", "/models/a/aliases/b", "editor"),
        ("GET", "/keys", "admin"),
        ("POST", "/keys", "admin"),
        ("DELETE", "/keys/a", "admin"),
    ],
)
def test_a_role_reaches_its_routes_and_those_of_lesser_roles_only(
    app: FastAPI, secrets: dict[str, str], method: str, path: str, role: str
) -> None:
    roles = ["viewer", "clerk", "editor", "admin"]
    with TestClient(app) as client:
        for number, mine in enumerate(roles):
            response = client.request(method, "/api/v1" + path, headers=bearer(secrets[mine]))
            if number < roles.index(role):
                # without a kind a job is a training, which needs an editor
                named = "editor" if path == "/jobs" else role
                assert named in problem(response, 403, "forbidden")["detail"]
            else:
                assert response.status_code not in (401, 403)


def test_a_viewer_reads_and_predicts(app: FastAPI, secrets: dict[str, str]) -> None:
    with TestClient(app, headers=bearer(secrets["viewer"])) as client:
        for path in ("datasets", "hierarchies", "jobs", "models", "solvers"):
            assert client.get(f"/api/v1/{path}").status_code == 200
        problem(client.post("/api/v1/models/a/predict", json={"instances": [[1.0]]}), 404, "not_found")


def test_a_revoked_key_is_refused_at_once(client: TestClient, app: FastAPI) -> None:
    made = client.post("/api/v1/keys", json={"name": "short-lived", "role": "viewer"})
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    headers = bearer(made.json()["secret"])
    assert client.get("/api/v1/models", headers=headers).status_code == 200
    assert client.delete(f"/api/v1/keys/{made.json()['id']}").status_code == 204
    problem(client.get("/api/v1/models", headers=headers), 401)
    listed = {key["name"]: key for key in client.get("/api/v1/keys").json()["items"]}
    assert listed["short-lived"]["revoked"]
    assert "secret" not in listed["short-lived"]


def test_a_key_is_revoked_by_name_in_its_own_workspace_alone(client: TestClient) -> None:
    ours, theirs = (
        client.post("/api/v1/keys", json={"name": name, "role": "viewer", **more}).json()
        for name, more in (("bob", {}), ("eve", {"workspace": "team-b"}))
    )
    assert client.delete("/api/v1/keys/bob").status_code == 204
    problem(client.delete("/api/v1/keys/eve"), 404)
    problem(client.delete("/api/v1/keys/nobody"), 404)
    revoked = {key["id"]: key["revoked"] for key in client.get("/api/v1/keys").json()["items"]}
    assert (revoked[ours["id"]], revoked[theirs["id"]]) == (True, False)
    assert client.delete(f"/api/v1/keys/{theirs['id']}").status_code == 204


def test_a_key_revoked_in_another_process_is_refused_within_a_second(
    client: TestClient, config: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(remembered.time, "monotonic", lambda: now[0])
    made = client.post("/api/v1/keys", json={"name": "elsewhere"}).json()
    with TestClient(create_app(config), headers=bearer(made["secret"])) as other:
        assert other.get("/api/v1/solvers").status_code == 200
        assert client.delete(f"/api/v1/keys/{made['id']}").status_code == 204
        now[0] += 1.0
        problem(other.get("/api/v1/solvers"), 401)


def test_a_key_ends_at_its_time(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(remembered.time, "monotonic", lambda: now[0])
    soon = datetime.now(UTC) + timedelta(hours=1)
    made = client.post("/api/v1/keys", json={"name": "guest", "expires_at": soon.isoformat()}).json()
    assert datetime.fromisoformat(made["expires_at"]) == soon
    assert client.get("/api/v1/solvers", headers=bearer(made["secret"])).status_code == 200
    with sessions()() as session:
        session.execute(update(tables.Key).where(tables.Key.id == made["id"]).values(expires_at=time() - 1))
        session.commit()
    now[0] += 1.0
    assert "expired" in problem(client.get("/api/v1/solvers", headers=bearer(made["secret"])), 401)["detail"]
    listed = {key["name"]: key for key in client.get("/api/v1/keys").json()["items"]}
    assert (listed["guest"]["expired"], listed["guest"]["revoked"]) == (True, False)
    assert listed["the-admin"]["expires_at"] is None


@pytest.mark.parametrize(
    "expires_at",
    [
        "2001-01-01T00:00:00Z", "2101-01-01T00:00:00", "tomorrow", 4e9, 1e300, {},
        "9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+23:59",
    ],
)  # fmt: skip
def test_a_key_that_has_no_such_end_is_not_made(client: TestClient, expires_at: object) -> None:
    asked = client.post("/api/v1/keys", json={"name": "guest", "expires_at": expires_at})
    assert problem(asked, 422, "invalid_input")["errors"][0]["pointer"] == "/expires_at"
    assert "guest" not in {key["name"] for key in client.get("/api/v1/keys").json()["items"]}


def test_the_last_use_of_a_key_is_written_apart_from_requests(
    app: FastAPI, client: TestClient, secrets: dict[str, str]
) -> None:
    def last_uses() -> dict[str, str | None]:
        return {key["name"]: key["last_used_at"] for key in client.get("/api/v1/keys").json()["items"]}

    client.get("/api/v1/solvers", headers=bearer(secrets["viewer"]))
    assert last_uses() == {"the-viewer": None, "the-clerk": None, "the-editor": None, "the-admin": None}
    app.state.keyring.write_uses()
    used = last_uses()
    assert used["the-editor"] is None
    for name in ("the-viewer", "the-admin"):
        assert abs(datetime.fromisoformat(str(used[name])).timestamp() - time()) < 60


def test_an_address_that_shows_many_unknown_keys_is_slowed_down(
    config: Settings, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(remembered.time, "monotonic", lambda: now[0])
    app = create_app(config.model_copy(update={"failed_keys_per_minute": 60.0}))
    with TestClient(app) as client, TestClient(app, client=("192.0.2.1", 1)) as other:
        assert client.get("/api/v1/solvers", headers=bearer(secrets["viewer"])).status_code == 200
        statuses = [client.get("/api/v1/solvers", headers=bearer(f"pm_{i}")).status_code for i in range(25)]
        assert statuses == [401] * 20 + [429] * 5
        refused = client.get("/api/v1/solvers", headers=bearer(secrets["editor"]))
        problem(refused, 429, "too_many")
        assert refused.headers["retry-after"] == "1"
        now[0] += 0.95
        assert client.get("/api/v1/solvers", headers=bearer(secrets["viewer"])).status_code == 200
        problem(other.get("/api/v1/solvers", headers=bearer("pm_other")), 401)
        now[0] += 0.1
        assert client.get("/api/v1/solvers", headers=bearer(secrets["editor"])).status_code == 200


def test_a_remembered_key_needs_no_sql(
    client: TestClient, app: FastAPI, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.get("/api/v1/solvers").status_code == 200

    def asked(*_: object) -> None:
        raise AssertionError("the database was asked")

    monkeypatch.setattr(auth.KeyRing, "_look_up", asked)
    assert client.get("/api/v1/solvers").status_code == 200


def test_a_key_name_that_is_taken_is_a_conflict(client: TestClient) -> None:
    assert client.post("/api/v1/keys", json={"name": "a"}).status_code == 201
    problem(client.post("/api/v1/keys", json={"name": "a"}), 409, "conflict")
    problem(client.post("/api/v1/keys", json={"name": "b", "role": "king"}), 422)


def test_the_last_administrator_stays(client: TestClient) -> None:
    (admin,) = [key for key in client.get("/api/v1/keys").json()["items"] if key["role"] == "admin"]
    problem(client.delete(f"/api/v1/keys/{admin['id']}"), 409)


def test_a_key_that_asks_too_often_is_told_when_to_come_again(
    config: Settings, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(config.model_copy(update={"requests_per_second": 4.0}))
    with TestClient(app) as client:
        now = [time()]
        monkeypatch.setattr(auth.time, "monotonic", lambda: now[0])
        asks = ["/api/v1/solvers", "/api/v1/usage", "/api/v1/models/none/predict"] * 2
        viewer = bearer(secrets["viewer"])
        statuses = [client.request("POST" if "predict" in path else "GET", path, headers=viewer) for path in asks]
        assert [answer.status_code for answer in statuses] == [200, 200, 415, 200, 429, 429]
        problem(statuses[-1], 429, "too_many")
        assert statuses[-1].headers["retry-after"] == "1"
        assert client.get("/api/v1/solvers", headers=bearer(secrets["editor"])).status_code == 200
        now[0] += 0.26
        assert client.get("/api/v1/usage", headers=viewer).json()["requests_per_second"] == 4.0
        problem(client.get("/api/v1/usage", headers=viewer), 429)


def test_what_a_role_may_not_ask_counts_among_what_its_key_asks(
    config: Settings, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(config.model_copy(update={"requests_per_second": 2.0}))
    with TestClient(app, headers=bearer(secrets["viewer"])) as client:
        now = time()
        monkeypatch.setattr(auth.time, "monotonic", lambda: now)
        assert [client.get("/api/v1/audit").status_code for _ in range(4)] == [403, 403, 429, 429]


def test_an_upload_that_is_larger_than_what_is_left_is_refused_before_it_comes(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, config: Settings
) -> None:
    monkeypatch.setenv("POLYMARGIN_MAX_STORED_BYTES", "10")
    settings.cache_clear()
    refused = client.post("/api/v1/datasets?name=d&format=svmlight", content=b"a 1:1\n" * 9)
    assert "of at most 10" in problem(refused, 507, "storage_full")["detail"]
    assert not list((config.files_folder / "incoming").glob("*"))
