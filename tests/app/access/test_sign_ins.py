"""Browsers sign in by a key or a link, and change things only with what their pages alone know."""

import itertools
import re

import pytest
from asking import TestClient, bearer, problem
from fastapi import FastAPI
from sqlalchemy import literal

from app.access import keys, sign_ins
from app.access import rate_limits as rates
from app.config import Settings, settings
from app.main import create_app
from app.operation.embedded import addresses, sign_in_path
from app.store.db import sessions, writing


@pytest.fixture
def browser(app: FastAPI) -> TestClient:
    return TestClient(app, follow_redirects=False)


def _sign_in(browser: TestClient, secret: str, **more: str) -> str:
    """Sign in, and give the token of the session's pages."""
    answer = browser.post("/sign-in", data={"key": secret, **more})
    assert answer.status_code == 303, answer.text
    found = re.search(r'name="csrf-token" content="([0-9a-f]{64})"', browser.get("/").text)
    assert found is not None
    return found[1]


def test_a_session_reads_and_predicts_as_its_key_does(browser: TestClient, secrets: dict[str, str]) -> None:
    token = _sign_in(browser, secrets["viewer"])
    assert browser.get("/api/v1/datasets").status_code == 200
    problem(browser.get("/api/v1/keys"), 403, "forbidden")
    answer = browser.post("/api/v1/models/no/predict", json={"instances": []}, headers={"X-CSRF-Token": token})
    problem(answer, 404, "not_found")


def test_a_session_changes_nothing_without_the_token_of_its_pages(browser: TestClient, secrets: dict[str, str]) -> None:
    token = _sign_in(browser, secrets["admin"])
    body = {"name": "new", "role": "viewer"}
    for headers in ({}, {"X-CSRF-Token": "0" * 64}, {"X-CSRF-Token": "é".encode()}):
        problem(browser.post("/api/v1/keys", json=body, headers=headers), 403, "forbidden")
    problem(browser.post("/api/v1/models/no/predict", json={"instances": []}), 403, "forbidden")
    assert browser.post("/api/v1/keys", json=body, headers={"X-CSRF-Token": token}).status_code == 201


def test_the_cookie_is_for_this_origin_and_no_script(browser: TestClient, secrets: dict[str, str]) -> None:
    cookie = browser.post("/sign-in", data={"key": secrets["viewer"]}).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "secure" not in cookie
    over_tls = browser.post("https://127.0.0.1/sign-in", data={"key": secrets["viewer"]})
    assert "secure" in over_tls.headers["set-cookie"].lower()


def test_what_is_no_key_signs_nobody_in(browser: TestClient) -> None:
    answer = browser.post("/sign-in", data={"key": "pm_wrong"})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "The API key is unknown, revoked or expired" in answer.text


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        ("/jobs?state=failed", "/jobs?state=failed"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example/", "/"),
        ("/\tx", "/"),
    ],
)
def test_a_sign_in_leads_to_pages_of_this_service_alone(
    wanted: str, given: str, browser: TestClient, secrets: dict[str, str]
) -> None:
    answer = browser.post("/sign-in", data={"key": secrets["viewer"], "next": wanted})
    assert answer.headers["location"] == given


def test_a_session_ends_with_its_key_and_when_it_is_signed_out_of(
    app: FastAPI, browser: TestClient, client: TestClient, secrets: dict[str, str]
) -> None:
    made = client.post("/api/v1/keys", json={"name": "brief", "role": "viewer"}).json()
    _sign_in(browser, made["secret"])
    client.delete(f"/api/v1/keys/{made['id']}")
    problem(browser.get("/api/v1/datasets"), 401, "unauthenticated")
    token = _sign_in(browser, secrets["viewer"])
    cookies = dict(browser.cookies)
    assert browser.post("/sign-out", data={"csrf": "wrong"}).status_code == 403
    assert browser.post("/sign-out", data={"csrf": token}).status_code == 303
    assert not browser.cookies
    again = TestClient(app, cookies=cookies)
    problem(again.get("/api/v1/datasets"), 401, "unauthenticated")


def test_the_link_of_a_start_signs_an_administrator_in_once(browser: TestClient) -> None:
    with sessions()() as session:
        keys.create(session, "first", "admin")
        secret = keys.create(session, "of-the-file", "admin").secret
    settings().admin_key_file.write_text(secret)
    path = sign_in_path()
    link = {"link": path.partition("?link=")[2]}
    for _ in range(2):  # to look at it does not use it up
        shown = browser.get(path)
        assert shown.status_code == 200
        assert f'name="link" value="{link["link"]}"' in shown.text
        assert "set-cookie" not in shown.headers
    assert browser.post("/sign-in", data=link).status_code == 303
    assert "of-the-file · admin" in browser.get("/").text
    second = TestClient(browser.app).post("/sign-in", data=link)
    assert second.status_code == 401
    assert "already used" in second.text


def test_without_the_file_of_the_key_the_start_names_the_page_that_asks_for_one(browser: TestClient) -> None:
    assert sign_in_path() == "/"
    settings().admin_key_file.write_text("pm_revoked-long-ago")
    assert sign_in_path() == "/"
    opened, _, key, _ = addresses("http://127.0.0.1:8000")
    assert opened.split() == ["Open", "http://127.0.0.1:8000/"]
    assert key == f"  Key   that of an administrator; {settings().admin_key_file} has none"


def test_sessions_and_links_are_kept_as_digests_and_end_in_time(
    config: object, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with sessions()() as session:
        principal = keys.authenticate(session, keys.digest(secrets["viewer"]))
        secret = sign_ins.begin(session, principal.key_id)
        assert sign_ins.principal(session, keys.digest(secret)) == principal
        dump = "\n".join(session.connection().connection.driver_connection.iterdump())  # type: ignore[union-attr]
        assert keys.digest(secret) in dump
        assert secret not in dump
        session.rollback()
        monkeypatch.setattr(sign_ins, "LINK_SECONDS", -1.0)
        with pytest.raises(sign_ins.Unauthenticated):
            sign_ins.redeem(session, sign_ins.offer_link(session, principal.key_id))


def test_guessed_sessions_and_links_count_as_guessed_keys(
    config: Settings, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates.time, "monotonic", lambda: 1000.0)
    app = create_app(config.model_copy(update={"failed_keys_per_minute": 60.0}))
    browser = TestClient(app, follow_redirects=False)
    browser.post("/sign-in", data={"key": secrets["viewer"]})
    own = TestClient(app, cookies=dict(browser.cookies))
    assert own.get("/api/v1/solvers").status_code == 200
    ((name, _),) = browser.cookies.items()
    guesses = [
        TestClient(app, cookies={name: f"guess-{i}"}).get("/api/v1/solvers").status_code
        if i % 2
        else TestClient(app).post("/sign-in", data={"link": f"guess-{i}"}).status_code
        for i in range(24)
    ]
    assert guesses == [401] * 20 + [429] * 4
    app.state.keyring.forget()
    assert own.get("/api/v1/solvers").status_code == 200


def test_a_link_that_is_only_guessed_keeps_no_writer_waiting(config: Settings, secrets: dict[str, str]) -> None:
    with sessions()() as session, sessions()() as other, writing(session), pytest.raises(sign_ins.Unauthenticated):
        sign_ins.redeem(other, "guess")


def test_a_key_has_a_hundred_sessions_at_most(
    config: Settings, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_ins, "_MOST_OF_KEY", 3)
    # the database's clock may show the same millisecond several times
    clock = itertools.count(1_000_000.0)
    monkeypatch.setattr(sign_ins, "db_now", lambda: literal(next(clock)))
    with sessions()() as session:
        viewer, editor = (keys.authenticate(session, keys.digest(secrets[role])) for role in ("viewer", "editor"))
        kept = sign_ins.begin(session, editor.key_id)
        first, *others = [sign_ins.begin(session, viewer.key_id) for _ in range(4)]
        with pytest.raises(sign_ins.Unauthenticated):
            sign_ins.principal(session, keys.digest(first))
        for secret in (kept, *others):
            sign_ins.principal(session, keys.digest(secret))


def test_signing_in_counts_as_a_request_of_its_key_and_is_in_the_audit_log(
    config: Settings, client: TestClient, secrets: dict[str, str]
) -> None:
    app = create_app(config.model_copy(update={"requests_per_second": 0.001}))
    browser = TestClient(app, follow_redirects=False)
    assert browser.post("/sign-in", data={"key": secrets["viewer"]}).status_code == 303
    assert browser.post("/sign-in", data={"key": secrets["viewer"]}).status_code == 429
    (entry,) = [one for one in client.get("/api/v1/audit").json()["items"] if one["route"] == "/sign-in"]
    assert (entry["what"], entry["key"]) == ("session", "the-viewer")


def test_a_key_in_the_header_counts_before_a_cookie(browser: TestClient, secrets: dict[str, str]) -> None:
    _sign_in(browser, secrets["admin"])
    problem(browser.get("/api/v1/keys", headers=bearer(secrets["viewer"])), 403, "forbidden")
