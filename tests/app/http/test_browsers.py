"""Security headers, and which hosts and origins are served."""

import pytest
from asking import TestClient, bearer, problem

from app.config import Settings
from app.main import create_app


def test_every_answer_has_the_headers_that_keep_browsers_from_using_it(client: TestClient) -> None:
    answers = [
        client.get("/healthz"),
        client.get("/docs"),
        client.get("/api/v1/nothing"),
        client.get("/api/v1/datasets", headers={"Authorization": ""}),
        client.get("/api/v1/datasets", headers={"Host": "evil.example"}),
        client.post("/api/v1/keys", content=b"x", headers={"Content-Length": "999999999"}),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 404, 401, 421, 413]
    for answer in answers:
        headers = answer.headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        # a form without any referrer would be sent without its origin, too
        page = headers["content-type"].startswith("text/html")
        assert headers["referrer-policy"] == ("same-origin" if page else "no-referrer")
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"].startswith("default-src 'none'; ")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "strict-transport-security" not in headers
    assert "script-src" not in answers[0].headers["content-security-policy"]
    policy = answers[1].headers["content-security-policy"].split("; ")
    assert {"script-src 'self'", "style-src 'self'", "base-uri 'none'", "form-action 'self'"} <= set(policy)


def test_over_tls_browsers_are_told_to_stay_there(client: TestClient) -> None:
    assert "max-age" in client.get("https://127.0.0.1/healthz").headers["strict-transport-security"]


def test_a_request_has_one_host(client: TestClient) -> None:
    hosts = [("Host", "evil.example"), ("Host", "127.0.0.1")]
    for headers in (hosts, hosts[::-1]):
        assert problem(client.get("/healthz", headers=headers), 400, "malformed")["detail"]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("[::1]:8000", 200),
        ("192.0.2.7", 200),
        ("localhost", 200),
        ("API.example.org", 200),
        ("a.b.example.net:80", 200),
        ("evil.example", 421),
        ("api.example.org.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("badexample.net", 421),
        ("[::1", 421),
        ("[::1]evil.example", 421),
        ("[::1]evil.example:80", 421),
        ("[127.0.0.1]", 421),
        ("[::1]:99999", 421),
        ("evil.example@127.0.0.1", 421),
        ("127.0.0.1/evil.example", 421),
        ("127.0.0.1?evil.example", 421),
        ("127.0.0.1#evil.example", 421),
        ("", 421),
    ],
)
def test_only_names_of_the_service_are_served(host: str, status: int, config: Settings) -> None:
    app = create_app(config.model_copy(update={"allowed_hosts": "api.example.org, .example.net"}))
    with TestClient(app) as client:
        assert client.get("/healthz", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 201),
        ("http://127.0.0.1", 201),
        ("https://ui.example.org", 201),
        ("http://evil.example", 403),
        ("http://127.0.0.1:9999", 403),
        ("null", 403),
    ],
)
def test_only_pages_of_known_origins_change_anything(
    origin: str | None, status: int, config: Settings, secrets: dict[str, str]
) -> None:
    app = create_app(config.model_copy(update={"allowed_origins": "https://ui.example.org"}))
    headers = bearer(secrets["admin"]) | ({} if origin is None else {"Origin": origin})
    with TestClient(app, headers=headers) as client:
        answer = client.post("/api/v1/keys", json={"name": "new", "role": "viewer"})
        assert len(client.get("/api/v1/keys").json()["items"]) == len(secrets) + (status == 201)
    if status == 403:
        problem(answer, 403, "forbidden")
    assert answer.status_code == status
