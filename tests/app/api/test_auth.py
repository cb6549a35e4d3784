import pytest
from asking import TestClient, bearer, problem
from fastapi import FastAPI

from app.api import auth
from app.services import keys
from app.store.db import sessions

OPEN = {"/healthz", "/readyz", "/metrics"}


def test_every_route_but_the_signs_of_life_asks_for_a_key(app: FastAPI) -> None:
    asked = 0
    with TestClient(app) as client:
        for path, methods in app.openapi()["paths"].items():
            for method in methods:
                if path in OPEN:
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
        ("POST", "/datasets?name=a&format=csv", "editor"),
        ("DELETE", "/datasets/a", "editor"),
        ("POST", "/hierarchies?name=a&format=csv", "editor"),
        ("DELETE", "/hierarchies/a", "editor"),
        ("POST", "/jobs", "editor"),
        ("POST", "/jobs/a/cancel", "editor"),
        ("POST", "/jobs/a/retry", "editor"),
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
    roles = ["viewer", "editor", "admin"]
    with TestClient(app) as client:
        for number, mine in enumerate(roles):
            response = client.request(method, "/api/v1" + path, headers=bearer(secrets[mine]))
            if number < roles.index(role):
                assert role in problem(response, 403, "forbidden")["detail"]
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


def test_a_key_revoked_elsewhere_is_refused_once_it_is_forgotten(
    client: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(auth.time, "monotonic", lambda: now[0])
    with sessions()() as session:
        made = keys.create(session, "elsewhere", "viewer")
        assert client.get("/api/v1/models", headers=bearer(made.secret)).status_code == 200
        keys.revoke(session, made.id)
    now[0] += 3.1
    problem(client.get("/api/v1/models", headers=bearer(made.secret)), 401)


def test_a_remembered_key_needs_no_sql(
    client: TestClient, app: FastAPI, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.get("/api/v1/solvers").status_code == 200

    def asked(*_: object) -> None:
        raise AssertionError("the database was asked")

    monkeypatch.setattr(keys, "authenticate", asked)
    assert client.get("/api/v1/solvers").status_code == 200


def test_a_key_name_that_is_taken_is_a_conflict(client: TestClient) -> None:
    assert client.post("/api/v1/keys", json={"name": "a"}).status_code == 201
    problem(client.post("/api/v1/keys", json={"name": "a"}), 409, "conflict")
    problem(client.post("/api/v1/keys", json={"name": "b", "role": "king"}), 422)


def test_the_last_administrator_stays(client: TestClient) -> None:
    (admin,) = [key for key in client.get("/api/v1/keys").json()["items"] if key["role"] == "admin"]
    problem(client.delete(f"/api/v1/keys/{admin['id']}"), 409)
