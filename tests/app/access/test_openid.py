"""People sign in to the dashboard by an OpenID Connect provider, and are then treated as keys are."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from asking import TestClient, problem
from fastapi import FastAPI
from identity_provider import CLIENT, SECRET, IdentityProvider
from structlog.testing import capture_logs

from app.access import openid, people, sign_in_settings
from app.access.group_roles import Place, highest_place, parse_groups
from app.config import Settings, settings
from app.errors import SettingsError
from app.main import create_app


@pytest.fixture
def app(opened: Callable[..., FastAPI]) -> FastAPI:
    return opened()


@pytest.fixture
def browser(app: FastAPI) -> TestClient:
    return TestClient(app, follow_redirects=False)


def _sign_in(browser: TestClient, provider: IdentityProvider, next: str = "/") -> Any:
    """The answer to the browser's return from the provider."""
    begun = browser.get(f"/sign-in/openid?next={quote(next, safe='')}")
    assert begun.status_code == 303, begun.text
    assert begun.headers["location"].startswith(f"{provider.issuer}/authorize?")
    return browser.get(provider.approve(begun.headers["location"]))


def _refused(answer: Any, status: int, said: str) -> None:
    assert answer.status_code == status
    assert said in answer.text
    assert not [one for one in answer.headers.get_list("set-cookie") if "_openid" not in one]


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_person_signs_in_and_has_the_role_of_the_group(
    algorithm: str, browser: TestClient, provider: IdentityProvider, client: TestClient
) -> None:
    provider.algorithm = algorithm
    answer = _sign_in(browser, provider, "/jobs?state=failed")
    assert answer.status_code == 200
    assert 'http-equiv="refresh" content="0; url=/jobs?state=failed"' in answer.text
    assert "ann · clerk" in browser.get("/").text
    assert browser.get("/api/v1/datasets").status_code == 200
    problem(browser.get("/api/v1/keys"), 403, "forbidden")
    (person,) = [key for key in client.get("/api/v1/keys").json()["items"] if key["kind"] == "person"]
    assert (person["name"], person["role"], person["workspace"]) == ("ann", "clerk", "default")
    entries = client.get(f"/api/v1/audit?key={person['id']}").json()["items"]
    assert {(one["what"], one["key"], one["route"]) for one in entries} == {
        ("key", "ann", openid.CALLBACK),
        ("session", "ann", openid.CALLBACK),
    }
    assert [one["after"] for one in entries if one["what"] == "session"] == [{"by": "OpenID"}]


def test_the_session_is_that_of_a_key_with_cookie_and_token(browser: TestClient, provider: IdentityProvider) -> None:
    answer = _sign_in(browser, provider)
    cookie = next(one for one in answer.headers.get_list("set-cookie") if "_openid" not in one).lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert f"max-age={int(settings().session_seconds)}" in cookie
    token = re.search(r'name="csrf-token" content="([0-9a-f]{64})"', browser.get("/").text)
    assert token is not None
    problem(browser.post("/api/v1/jobs", json={}), 403, "forbidden")
    assert browser.post("/api/v1/jobs", json={}, headers={"X-CSRF-Token": token[1]}).status_code == 422
    assert browser.post("/sign-out", data={"csrf": token[1]}).status_code == 303
    problem(browser.get("/api/v1/datasets"), 401, "unauthenticated")


def test_the_form_leads_to_the_provider_and_still_takes_keys(
    browser: TestClient, provider: IdentityProvider, secrets: dict[str, str]
) -> None:
    form = browser.get("/sign-in?next=/jobs").text
    assert 'href="http://127.0.0.1/sign-in/openid?next=%2Fjobs"' in form
    assert "Sign in at 127.0.0.1" in form
    assert browser.post("/sign-in", data={"key": secrets["viewer"]}).status_code == 303
    assert "Sign in at" not in browser.get("/sign-in?link=abc").text
    assert provider.asked == []  # before a person wants to sign in


def test_without_an_issuer_nothing_leads_to_one(config: Settings) -> None:
    browser = TestClient(create_app(config), follow_redirects=False)
    assert "Sign in at" not in browser.get("/sign-in").text
    for path in (openid.START, openid.CALLBACK):
        assert browser.get(path).status_code == 404


def test_the_package_is_loaded_when_a_person_signs_in_and_not_before() -> None:
    program = "import sys, app.access.openid; sys.exit(bool({'authlib', 'joserfc'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[3]).returncode == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another"},
        {"aud": "another", "azp": CLIENT},
        {"aud": [CLIENT, "another"]},
        {"azp": "another"},
        {"iss": "https://another.example"},
        {"exp": 1_000_000_000},
        {"exp": None},
        {"iat": None},
        {"iat": 9_999_999_999},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "x" * 256},
    ],
    ids=str,
)
def test_a_token_with_a_wrong_claim_signs_nobody_in(
    wrong: dict[str, Any], browser: TestClient, provider: IdentityProvider, client: TestClient
) -> None:
    provider.wrong = wrong
    _refused(_sign_in(browser, provider), 401, "token")
    assert [key for key in client.get("/api/v1/keys").json()["items"] if key["kind"] == "person"] == []


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_a_token_that_the_provider_has_not_signed_is_refused(
    algorithm: str, browser: TestClient, provider: IdentityProvider
) -> None:
    provider.algorithm = algorithm
    _refused(_sign_in(browser, provider), 401, "token is not valid")


def test_a_token_that_another_has_signed_is_refused(browser: TestClient, provider: IdentityProvider) -> None:
    kept = provider.published
    provider.rotate()
    forged, provider.published = provider.published, kept
    for key, real in zip(forged["keys"], kept["keys"], strict=True):
        key["kid"] = real["kid"]
    provider.keys = {name: _renamed(key, kept) for name, key in provider.keys.items()}
    _refused(_sign_in(browser, provider), 401, "token is not valid")
    provider.rotate()


def _renamed(key: Any, published: Any) -> Any:
    kid = next(one["kid"] for one in published["keys"] if one["kty"] == key.key_type)
    return type(key).import_key({**key.as_dict(private=True), "kid": kid})


def test_new_keys_of_the_provider_are_fetched_once_they_sign(browser: TestClient, provider: IdentityProvider) -> None:
    _sign_in(browser, provider)
    _sign_in(browser, provider)
    assert provider.asked.count("/jwks") == 1
    provider.rotate()
    assert _sign_in(browser, provider).status_code == 200
    assert provider.asked.count("/jwks") == 2
    provider.published = {"keys": provider.published["keys"][:0]}
    provider.rotate()
    provider.published = {"keys": [one | {"kid": "unknown"} for one in provider.published["keys"]]}
    _refused(_sign_in(browser, provider), 401, "token is not valid")
    provider.rotate()


def test_a_new_key_without_an_id_is_fetched_too(browser: TestClient, provider: IdentityProvider) -> None:
    provider.rotate(named=False)
    assert _sign_in(browser, provider).status_code == 200
    provider.rotate(named=False)
    assert _sign_in(browser, provider).status_code == 200
    provider.rotate()


def test_an_answer_to_another_attempt_is_refused(app: FastAPI, browser: TestClient, provider: IdentityProvider) -> None:
    begun = browser.get(openid.START)
    target = provider.approve(begun.headers["location"])
    other = TestClient(app, follow_redirects=False)
    _refused(other.get(target), 401, "has not started a sign-in")
    other.get(openid.START)
    _refused(other.get(target), 401, "another sign-in")
    _refused(browser.get(re.sub("state=[^&]*", "state=x", target)), 401, "another sign-in")
    assert "/token" not in provider.asked


def test_an_answer_of_another_issuer_or_with_an_error_is_refused(
    browser: TestClient, provider: IdentityProvider
) -> None:
    target = provider.approve(browser.get(openid.START).headers["location"])
    _refused(browser.get(re.sub("iss=[^&]*", "iss=https://x.example", target)), 401, "another identity provider")
    target = provider.approve(browser.get(openid.START).headers["location"])
    denied = re.sub("code=[^&]*", "error=access_denied&error_description=<b>", target)
    _refused(browser.get(denied), 401, "did not sign you in")


def test_a_code_counts_once(browser: TestClient, provider: IdentityProvider) -> None:
    begun = browser.get(openid.START)
    target = provider.approve(begun.headers["location"])
    (attempt,) = [(name, value) for name, value in browser.cookies.items() if name.endswith("_openid")]
    assert browser.get(target).status_code == 200
    _refused(browser.get(target), 401, "has not started a sign-in")  # the browser has forgotten its attempt
    thief = TestClient(browser.app, cookies=dict([attempt]), follow_redirects=False)
    _refused(thief.get(target), 401, "did not confirm")  # and the provider knows the code no more


@pytest.mark.parametrize("next", ["https://evil.example/", "//evil.example/", "/\\evil.example/", "/\tx"])
def test_a_sign_in_leads_to_pages_of_this_service_alone(
    next: str, browser: TestClient, provider: IdentityProvider
) -> None:
    answer = _sign_in(browser, provider, next)
    assert 'content="0; url=/"' in answer.text
    assert "evil" not in answer.text


def test_a_next_that_the_browser_has_made_up_is_refused_too(browser: TestClient, provider: IdentityProvider) -> None:
    target = provider.approve(browser.get(openid.START).headers["location"])
    (name, value) = next(iter(browser.cookies.items()))
    attempt = value.strip('"').partition(".")[0]
    for place in ("aHR0cHM6Ly9ldmlsLmV4YW1wbGU=", "Ly9ldmlsLmV4YW1wbGU=", "%%%", "_w=="):
        forger = TestClient(browser.app, cookies={name: f"{attempt}.{place}"}, follow_redirects=False)
        assert "evil" not in forger.get(target).text


def test_who_has_no_group_learns_whom_to_ask(opened: Callable[..., FastAPI], provider: IdentityProvider) -> None:
    browser = TestClient(opened(access_contact="help@example.org"), follow_redirects=False)
    for groups in (["strangers"], [], None, 7, [["annotators"]]):
        provider.user |= {"groups": groups, "preferred_username": "<b>ann</b>"}
        answer = _sign_in(browser, provider)
        _refused(answer, 403, "Ask help@example.org for access.")
        assert "&lt;b&gt;ann" in answer.text


def test_a_default_role_lets_people_in_without_a_group(
    opened: Callable[..., FastAPI], provider: IdentityProvider
) -> None:
    browser = TestClient(opened(default_role="viewer"), follow_redirects=False)
    del provider.user["groups"]
    assert _sign_in(browser, provider).status_code == 200
    assert "ann · viewer" in browser.get("/").text


def test_roles_and_workspaces_follow_the_groups_at_each_sign_in(
    browser: TestClient, provider: IdentityProvider, client: TestClient
) -> None:
    _sign_in(browser, provider)
    provider.user["groups"] = ["annotators", "cn=heads,ou=lab"]
    _sign_in(browser, provider)
    assert "ann · admin" in browser.get("/").text
    provider.user["groups"] = ["legal"]
    _sign_in(browser, provider)
    (person,) = [key for key in client.get("/api/v1/keys").json()["items"] if key["kind"] == "person"]
    assert (person["role"], person["workspace"]) == ("editor", "legal")
    changes = [one for one in client.get("/api/v1/audit").json()["items"] if one["what"] == "key" and one["before"]]
    assert {"role": "clerk"} in [one["before"] for one in changes]
    assert all(one["key"] == "ann" for one in changes)
    cookies = dict(browser.cookies)
    provider.user["groups"] = []
    _refused(_sign_in(browser, provider), 403, "is in no group")
    problem(TestClient(browser.app, cookies=cookies).get("/api/v1/datasets"), 401, "unauthenticated")


def test_a_revoked_person_is_signed_out_and_stays_out(
    app: FastAPI, browser: TestClient, provider: IdentityProvider, secrets: dict[str, str]
) -> None:
    _sign_in(browser, provider)
    admin = TestClient(app, headers={"Authorization": f"Bearer {secrets['admin']}"})
    assert admin.delete("/api/v1/keys/ann").status_code == 204
    problem(browser.get("/api/v1/datasets"), 401, "unauthenticated")
    _refused(_sign_in(browser, provider), 403, "may no longer use this service")


def test_names_are_those_of_keys_and_nobody_gets_that_of_another(
    app: FastAPI, provider: IdentityProvider, client: TestClient
) -> None:
    for subject, name in [("1", "the-admin"), ("2", "jürgen@example.org"), ("3", "李"), ("4", "李"), ("1", "changed")]:
        provider.user |= {"sub": subject, "preferred_username": name}
        assert _sign_in(TestClient(app, follow_redirects=False), provider).status_code == 200
    names = {key["name"] for key in client.get("/api/v1/keys").json()["items"] if key["kind"] == "person"}
    assert names == {"the-admin-2", "jurgen-example.org", "person", "person-2"}


def test_two_first_sign_ins_at_once_are_of_one_person(
    browser: TestClient, provider: IdentityProvider, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve, stale = people.resolve, []

    def resolve_late(*given: Any) -> Any:
        found = resolve(*given)
        if not stale:  # another process has the same person at this moment
            stale.append(found)
            people.save(given[0], given[1], resolve(*given))
        return found

    monkeypatch.setattr(people, "resolve", resolve_late)
    assert _sign_in(browser, provider).status_code == 200
    assert "ann · clerk" in browser.get("/").text
    assert [key["name"] for key in client.get("/api/v1/keys").json()["items"] if key["kind"] == "person"] == ["ann"]


def test_a_person_is_one_of_its_issuer(opened: Callable[..., FastAPI], provider: IdentityProvider) -> None:
    visitor = people.Visitor("https://one.example", "user-1", "ann", frozenset(["annotators"]))
    app = opened()
    ids = set()
    for issuer in ("https://one.example", "https://other.example", "https://one.example"):
        with app.state.sessions() as session:
            one = people.Visitor(issuer, visitor.subject, visitor.name, visitor.groups)
            ids.add(people.save(session, one, people.resolve(session, one, settings())).key_id)
    assert len(ids) == 2


def test_a_person_is_not_the_last_administrator(
    app: FastAPI, browser: TestClient, provider: IdentityProvider, secrets: dict[str, str]
) -> None:
    provider.user["groups"] = ["cn=heads,ou=lab"]
    _sign_in(browser, provider)
    admin = TestClient(app, headers={"Authorization": f"Bearer {secrets['admin']}"})
    problem(admin.delete("/api/v1/keys/the-admin"), 409, "conflict")
    assert admin.delete("/api/v1/keys/ann").status_code == 204


def test_groups_come_from_nested_claims_and_from_the_user_information(
    opened: Callable[..., FastAPI], provider: IdentityProvider
) -> None:
    provider.user = {"sub": "user-1", "realm_access": {"roles": ["annotators"]}}
    browser = TestClient(opened(openid_groups_claim="realm_access.roles"), follow_redirects=False)
    assert _sign_in(browser, provider).status_code == 200
    assert "user-1 · clerk" in browser.get("/").text
    provider.user = {"sub": "user-2"}
    provider.user_info = {"sub": "user-2", "groups": ["annotators"], "email": "bo@example.org"}
    browser = TestClient(opened(openid_groups_claim="groups"), follow_redirects=False)
    assert _sign_in(browser, provider).status_code == 200
    assert "bo-example.org · clerk" in browser.get("/").text
    provider.user = {"sub": "user-3"}  # whom the user information is not about
    _refused(_sign_in(browser, provider), 403, "is in no group")


def test_guessed_answers_count_as_guessed_keys(opened: Callable[..., FastAPI], provider: IdentityProvider) -> None:
    browser = TestClient(opened(failed_keys_per_minute=0.001), follow_redirects=False)
    answers = []
    for _ in range(22):
        browser.get(openid.START)
        answers.append(browser.get(f"{openid.CALLBACK}?code=x&state=x").status_code)
    assert answers == [401] * 20 + [429] * 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "https://another.example"},
        {"authorization_endpoint": None},
        {"authorization_endpoint": 7},
    ],
)
def test_a_provider_that_errs_is_reported_to_people(
    wrong: dict[str, Any], browser: TestClient, provider: IdentityProvider
) -> None:
    provider.wrong_document = wrong
    answer = browser.get(openid.START)
    assert answer.status_code == 503
    assert "The identity provider" in answer.text
    assert 'name="key"' in answer.text  # keys still sign in


def test_a_provider_that_does_not_answer_holds_up_no_key(
    opened: Callable[..., FastAPI], secrets: dict[str, str]
) -> None:
    app = opened(openid_issuer="http://127.0.0.1:9")
    browser = TestClient(app, follow_redirects=False)
    assert browser.get(openid.START).status_code == 503
    assert browser.post("/sign-in", data={"key": secrets["viewer"]}).status_code == 303


def test_the_secret_comes_from_a_file_and_gets_to_no_log_nor_text(
    opened: Callable[..., FastAPI], provider: IdentityProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened()
    assert SECRET not in repr(settings())
    monkeypatch.delenv("POLYMARGIN_OPENID_CLIENT_SECRET")
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    monkeypatch.setenv("POLYMARGIN_OPENID_CLIENT_SECRET_FILE", str(file))
    settings.cache_clear()
    with capture_logs() as logs:
        browser = TestClient(create_app(settings()), follow_redirects=False)
        assert _sign_in(browser, provider).status_code == 200
        provider.wrong = {"nonce": "x"}
        _sign_in(browser, provider)
    assert SECRET not in repr(logs)
    assert "code=" not in repr(logs)
    file.unlink()
    with pytest.raises(SettingsError, match="OPENID_CLIENT_SECRET_FILE"):
        create_app(settings())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"openid_client_id": ""}, "POLYMARGIN_OPENID_CLIENT_ID"),
        ({"public_url": ""}, "POLYMARGIN_PUBLIC_URL"),
        ({"public_url": "https://a.example/path"}, "without a path"),
        ({"group_roles": ""}, "POLYMARGIN_GROUP_ROLES"),
        ({"group_roles": "a=owner"}, "expected one of the roles"),
        ({"group_roles": "a=clerk, b=admin"}, "semicolons"),
        ({"group_roles": "a=clerk; a=admin"}, "twice"),
        ({"group_roles": "a"}, "semicolons"),
        ({"default_role": "viewer@a/b"}, "workspace"),
        ({"openid_issuer": "http://id.example.org"}, "https://"),
        ({"openid_client_secret_file": "/x"}, "either"),
    ],
)
def test_settings_that_do_not_fit_are_refused_at_the_start(
    given: dict[str, str], said: str, opened: Callable[..., FastAPI]
) -> None:
    with pytest.raises(SettingsError, match=said):
        opened(**given)


def test_without_the_package_the_start_names_the_command_that_installs_it(
    opened: Callable[..., FastAPI], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in_settings, "find_spec", lambda _name: None)
    with pytest.raises(SettingsError, match=r"pip install 'polymargin\[openid\]'"):
        opened()


def test_the_highest_role_counts_and_of_equal_ones_the_first() -> None:
    places = parse_groups("a=viewer; b=editor@legal; c=editor; d=clerk")
    assert highest_place({"a", "c", "b"}, places, None) == Place("editor", "legal")
    assert highest_place({"a", "d"}, places, Place("admin")) == Place("clerk")
    assert highest_place({"z"}, places, Place("viewer")) == Place("viewer")
    assert highest_place(set(), places, None) is None


def test_the_callback_is_at_the_address_that_the_settings_name(
    opened: Callable[..., FastAPI], provider: IdentityProvider
) -> None:
    browser = TestClient(opened(public_url="https://polymargin.example.org/"), follow_redirects=False)
    begun = browser.get(openid.START, headers={"X-Forwarded-Host": "evil.example"})
    query = urlsplit(begun.headers["location"]).query
    assert "secure" in begun.headers["set-cookie"].lower()
    assert f"redirect_uri={quote('https://polymargin.example.org' + openid.CALLBACK, safe='')}" in query
