"""Every route of the application, whatever it is: no answer without a key, and none for a role that is too low."""

import json
import re
from collections.abc import Iterator

import pytest
from asking import JSON, TestClient, bearer, problem
from fastapi import FastAPI
from starlette.routing import Route

from app import logs, main

# open to all: signs of life, and the description of the API
OPEN = {"/healthz", "/readyz", "/metrics", "/docs", "/openapi.json"}
# these ask for a sign-in, as test_pages tells; and the files that pages are made of are open
PAGES = {route.path for part in main.PAGES for route in part.router.routes} - OPEN | {"/static/{digest}/{name}"}
# these read, although they are asked by POST
READING = {
    ("POST", "/api/v1/models/{ref}/predict"),
    ("POST", "/api/v1/models/{ref}/nearest"),
    ("POST", "/api/v1/jobs/plan"),
    ("POST", "/api/v1/datasets/{ref}/preview"),
}
# other protocols ask for predictions by POST, and tell what is right by these
TELLING = {("POST", "/v1/projects/{ref}/learn"), ("POST", "/label-studio/{ref}/webhook")}
SPOKEN = ("/v1/", "/v2/", "/mlflow/", "/invocations", "/label-studio/")
ADMINISTRATION = ("/api/v1/keys", "/api/v1/audit", "/api/v1/storage", "/api/v1/models/import")


def _routes(app: FastAPI) -> Iterator[tuple[str, str, str]]:
    routes: list[Route] = app.state.routes
    for route in routes:
        if route.path in PAGES:
            continue
        for method in sorted((route.methods or set()) - {"HEAD"}):
            yield method, route.path, re.sub(r"\{[^}]*\}", "1", route.path)


def test_the_routes_that_are_walked_are_those_that_are_described(app: FastAPI) -> None:
    described = {(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods}
    walked = {(method, path) for method, path, _ in _routes(app)}
    assert described <= walked
    assert {path for _, path in walked - described} <= OPEN


def test_no_route_answers_without_a_key_or_with_a_wrong_one(app: FastAPI, secrets: dict[str, str]) -> None:
    with TestClient(app) as client:
        for method, path, url in _routes(app):
            for headers in ({}, bearer("pm_wrong"), {"Authorization": secrets["admin"]}):
                answer = client.request(method, url, headers={**JSON, **headers}, content=b"{}")
                if path in OPEN:
                    assert answer.status_code in (200, 503), path
                else:
                    problem(answer, 401, "unauthenticated")


@pytest.mark.parametrize("role", [pytest.param("viewer", marks=pytest.mark.slow), "editor"])
def test_no_route_answers_a_role_that_is_too_low(role: str, app: FastAPI, secrets: dict[str, str]) -> None:
    with TestClient(app, headers=bearer(secrets[role])) as client:
        refused = 0
        for method, path, url in _routes(app):
            administers = path.startswith(ADMINISTRATION)
            asks = path.startswith(SPOKEN) and (method, path) not in TELLING
            changes = method != "GET" and (method, path) not in READING and not asks
            answer = client.request(method, url, headers=JSON, content=b"{}")
            if administers or (changes and role == "viewer"):
                problem(answer, 403, "forbidden")
                refused += 1
            else:
                assert answer.status_code not in (401, 403), (method, path)
        assert refused >= (12 if role == "viewer" else 3)


def test_secrets_are_in_no_line_of_the_log(
    app: FastAPI, secrets: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    logs.configure("debug")
    try:
        with TestClient(app, headers=bearer(secrets["admin"])) as client:
            new = client.post("/api/v1/keys", json={"name": "new", "role": "viewer"}).json()
            wrong = "pm_" + "W" * 43
            for method, _, url in _routes(app):
                for secret in (new["secret"], wrong, secrets["editor"]):
                    client.request(method, url, headers={**JSON, **bearer(secret)}, content=b'{"secret": "x"}')
            client.delete(f"/api/v1/keys/{new['id']}")
    finally:
        logs.configure("error")
    out, err = capfd.readouterr()
    lines = [json.loads(line) for line in err.splitlines()]
    assert {line["key"] for line in lines} >= {"the-admin", "the-editor", "new", None}
    for secret in (*secrets.values(), new["secret"], wrong):
        assert secret not in out + err
        assert secret[3:20] not in out + err
