"""Every route of the application, whatever it is: no answer without a key, and none for a role that is too low."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import JSON, TestClient, bearer, problem
from fastapi import FastAPI
from starlette.routing import Route

from app import logs, main

# open to all: signs of life, and the description of the API
OPEN = {"/healthz", "/readyz", "/metrics", "/docs", "/openapi.json", "/v2/health/live", "/v2/health/ready", "/ping"}
# these ask for a sign-in, as test_pages checks; and the files that pages are made of are open
PAGES = {route.path for router in main.PAGES for route in router.routes} - OPEN | {"/static/{digest}/{name}"}
# a program signs in by these, without a key, and out with its token
SIGNING_IN = {("POST", "/api/v1/sign-in/device"), ("POST", "/api/v1/sign-in/token")}
SIGNING_OUT = ("DELETE", "/api/v1/sign-in/token")
# these read, although they are asked by POST
READING = {
    ("POST", "/api/v1/models/{ref}/predict"),
    ("POST", "/api/v1/models/{ref}/nearest"),
    ("POST", "/api/v1/jobs/plan"),
    ("POST", "/api/v1/datasets/{ref}/preview"),
}
# other protocols ask for predictions by POST, and report what is right by these
REPORTING = {("POST", "/v1/projects/{ref}/learn"), ("POST", "/label-studio/{ref}/webhook")}
# a clerk's; the others that change something are an editor's
CLERICAL = REPORTING | {
    ("POST", "/api/v1/datasets"),
    ("POST", "/api/v1/datasets/columns"),
    ("DELETE", "/api/v1/datasets/{ref}"),
    ("POST", "/api/v1/uploads"),
    ("PATCH", "/api/v1/uploads/{id}"),
    ("DELETE", "/api/v1/uploads/{id}"),
    ("POST", "/api/v1/jobs"),
    ("PATCH", "/api/v1/jobs/{id}"),
    ("POST", "/api/v1/jobs/{id}/cancel"),
    ("POST", "/api/v1/jobs/{id}/retry"),
    ("POST", "/api/v1/models/{ref}/feedback"),
    ("POST", "/api/v1/reviews"),
    ("POST", "/api/v1/reviews/{ref}/claim"),
    ("POST", "/api/v1/reviews/{ref}/release"),
    ("POST", "/api/v1/reviews/{ref}/decisions"),
    ("PUT", "/api/v1/reviews/{ref}/decisions/{row}"),
    ("DELETE", "/api/v1/reviews/{ref}/decisions/{row}"),
}
PROTOCOL_PATHS = ("/v1/", "/v2/", "/mlflow/", "/invocations", "/label-studio/")
ADMINISTRATION = ("/api/v1/keys", "/api/v1/audit", "/api/v1/storage", "/api/v1/models/import", "/api/v1/webhooks")


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
                if path == "/metrics" and headers:
                    problem(answer, 401, "unauthenticated")
                elif (method, path) in SIGNING_IN:
                    problem(answer, 422 if path.endswith("/token") else 404)
                elif path in OPEN:
                    assert answer.status_code in ((404,) if path == "/ping" else (200, 503)), path
                else:
                    problem(answer, 401, "unauthenticated")


def test_the_open_routes_are_those_that_the_page_about_security_names(app: FastAPI) -> None:
    routes: list[Route] = app.state.routes
    found = set()
    with TestClient(app, follow_redirects=False) as client:
        for route in routes:
            url = re.sub(r"\{[^}]*\}", "1", route.path)
            answers = [client.request(method, url) for method in sorted((route.methods or set()) - {"HEAD"})]
            asked = [each.status_code == 303 and each.headers["location"].startswith("/sign-in") for each in answers]
            if any(each.status_code != 401 and not to_sign_in for each, to_sign_in in zip(answers, asked, strict=True)):
                found.add(route.path)
    page = (Path(__file__).parents[3] / "SECURITY.md").read_text()
    table = page.partition("## Open routes")[2].partition("\n## ")[0]
    named = {path for row in re.findall(r"^\| (.*?) \|", table, re.MULTILINE) for path in re.findall("`(.*?)`", row)}
    assert found == named


@pytest.mark.parametrize("role", [pytest.param("viewer", marks=pytest.mark.slow), "clerk", "editor"])
def test_no_route_answers_a_role_that_is_too_low(role: str, app: FastAPI, secrets: dict[str, str]) -> None:
    with TestClient(app, headers=bearer(secrets[role])) as client:
        refused = 0
        for method, path, url in _routes(app):
            administers = path.startswith(ADMINISTRATION)
            asks = path.startswith(PROTOCOL_PATHS) and (method, path) not in REPORTING
            changes = method != "GET" and (method, path) not in READING | SIGNING_IN | {SIGNING_OUT} and not asks
            answer = client.request(method, url, headers=JSON, content=b"{}")
            clerical = (method, path) in CLERICAL
            if administers or (changes and (role == "viewer" or (role == "clerk" and not clerical))):
                problem(answer, 403, "forbidden")
                refused += 1
            else:
                assert answer.status_code not in (401, 403), (method, path)
        assert refused >= {"viewer": 12, "clerk": 12, "editor": 3}[role]


@pytest.mark.parametrize(
    ("body", "needed"),
    [
        (b'{"kind": "predict"}', "clerk"),
        (b'{"kind": "train"}', "editor"),
        (b'{"kind": "tune"}', "editor"),
        (b'{"kind": "evaluate"}', "editor"),
        (b'{"dataset": "d"}', "editor"),
        (b"{", "editor"),
    ],
)
def test_a_viewer_learns_which_role_a_kind_of_job_needs(
    body: bytes, needed: str, app: FastAPI, secrets: dict[str, str]
) -> None:
    with TestClient(app, headers=bearer(secrets["viewer"])) as client:
        refused = problem(client.post("/api/v1/jobs", headers=JSON, content=body), 403, "forbidden")
    assert refused["detail"] == f"This requires the {needed} role; your role is viewer."


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
