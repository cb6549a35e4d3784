"""A proxy signs people in by headers; from any other address they count for nothing."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asking import TestClient, bearer, problem

from app import server
from app.config import settings
from app.errors import SettingsError

PROXY = "10.1.2.3"
ANN = {
    "X-Forwarded-User": "user-1",
    "X-Forwarded-Preferred-Username": "Ann Smith",
    "X-Forwarded-Groups": "annotators, staff",
}
Asking = Callable[..., TestClient]


@pytest.fixture
def asking(configure: Callable[..., None], secrets: dict[str, str]) -> Iterator[Asking]:
    """Makes clients that ask the service, as it is served, from an address."""
    opened: list[TestClient] = []

    def make(address: str = PROXY, headers: dict[str, str] | None = None, **given: object) -> TestClient:
        configure(**{"sign_in_proxies": "10.0.0.0/8, ::1", "group_roles": "annotators=clerk; heads=admin", **given})
        config = server.server_config(settings(), "127.0.0.1", 0, 5)
        config.load()
        app: Any = config.loaded_app
        client = TestClient(app, client=(address, 50_000), headers=headers, follow_redirects=False)
        client.__enter__()
        opened.append(client)
        return client

    yield make
    for client in opened:
        client.__exit__()


def test_a_proxy_signs_a_person_in_with_the_role_of_the_groups(asking: Asking, secrets: dict[str, str]) -> None:
    browser = asking(headers=ANN)
    answer = browser.get("/jobs?state=failed")
    assert answer.headers["location"] == "/sign-in?next=%2Fjobs%3Fstate%3Dfailed"
    arrived = browser.get(answer.headers["location"])
    assert 'content="0; url=/jobs?state=failed"' in arrived.text
    assert "Ann-Smith · clerk" in browser.get("/").text
    problem(browser.get("/api/v1/keys"), 403, "forbidden")
    admin = bearer(secrets["admin"])
    (person,) = [one for one in browser.get("/api/v1/keys", headers=admin).json()["items"] if one["kind"] == "person"]
    entries = browser.get(f"/api/v1/audit?key={person['id']}", headers=admin).json()["items"]
    assert [one["after"] for one in entries if one["what"] == "session"] == [{"by": "proxy"}]
    assert {one["address"] for one in entries} == {PROXY}


def test_changes_take_the_token_of_the_pages_and_not_the_headers_alone(asking: Asking) -> None:
    browser = asking(headers=ANN)
    problem(browser.post("/api/v1/jobs", json={}), 401, "unauthenticated")  # headers alone are no session
    browser.get("/sign-in")
    problem(browser.post("/api/v1/jobs", json={}), 403, "forbidden")
    token = re.search(r'name="csrf-token" content="([0-9a-f]{64})"', browser.get("/").text)
    assert token is not None
    assert browser.post("/api/v1/jobs", json={}, headers={"X-CSRF-Token": token[1]}).status_code == 422


@pytest.mark.parametrize(
    ("address", "trusted"),
    [("10.255.0.1", True), ("::1", True), ("::ffff:10.0.0.1", True), ("127.0.0.1", False), ("11.0.0.1", False)],
)
def test_headers_count_from_the_addresses_of_proxies_alone(address: str, trusted: bool, asking: Asking) -> None:
    browser = asking(address, headers=ANN)
    answer = browser.get("/sign-in")
    assert ("set-cookie" in answer.headers) == trusted
    assert browser.get("/").status_code == (200 if trusted else 303)
    assert ("Ann" in answer.text) == trusted


def test_an_address_that_a_header_names_is_not_the_proxys(asking: Asking) -> None:
    liar = asking("203.0.113.9", headers=ANN | {"X-Forwarded-For": PROXY}, trusted_proxies="*")
    assert "set-cookie" not in liar.get("/sign-in").headers
    # and a proxy stays one where it names the address of its client
    browser = asking(headers=ANN | {"X-Forwarded-For": "203.0.113.9"}, trusted_proxies=PROXY)
    assert "set-cookie" in browser.get("/sign-in").headers
    assert "Ann-Smith · clerk" in browser.get("/").text


def test_by_default_no_header_signs_anybody_in(asking: Asking) -> None:
    browser = asking("127.0.0.1", headers=ANN, sign_in_proxies="")
    assert "set-cookie" not in browser.get("/sign-in").headers
    assert browser.get("/").status_code == 303


def test_a_session_counts_only_while_the_proxy_names_its_user(asking: Asking) -> None:
    browser = asking(headers=ANN)
    browser.get("/sign-in")
    cookies = dict(browser.cookies)
    assert browser.get("/api/v1/datasets").status_code == 200
    for address, headers in [
        (PROXY, {}),
        (PROXY, ANN | {"X-Forwarded-User": "user-2"}),
        ("127.0.0.1", ANN),
    ]:
        other = asking(address, headers=headers)
        other.cookies.update(cookies)
        problem(other.get("/api/v1/datasets"), 401, "unauthenticated")
    off = asking(headers=ANN, sign_in_proxies="")
    off.cookies.update(cookies)
    problem(off.get("/api/v1/datasets"), 401, "unauthenticated")


def test_the_next_user_of_a_browser_gets_a_session_of_their_own(asking: Asking) -> None:
    browser = asking(headers=ANN)
    browser.get("/sign-in")
    browser.headers.update({"X-Forwarded-User": "user-2", "X-Forwarded-Preferred-Username": "bo"})
    assert browser.get("/").status_code == 303
    browser.get("/sign-in")
    assert "bo · clerk" in browser.get("/").text


@pytest.mark.parametrize(
    "headers",
    [
        [("X-Forwarded-User", "user-1"), ("X-Forwarded-User", "user-2"), ("X-Forwarded-Groups", "annotators")],
        [("X-Forwarded-User", ""), ("X-Forwarded-Groups", "annotators")],
        [("X-Forwarded-User", "x" * 256), ("X-Forwarded-Groups", "annotators")],
        [("X-Forwarded-Preferred-Username", "ann"), ("X-Forwarded-Groups", "annotators")],
    ],
    ids=["two", "empty", "too-long", "none"],
)
def test_headers_that_name_no_one_person_sign_nobody_in(headers: list[tuple[str, str]], asking: Asking) -> None:
    assert "set-cookie" not in asking().get("/sign-in", headers=headers).headers


def test_who_has_no_group_learns_whom_to_ask_and_keys_still_sign_in(asking: Asking, secrets: dict[str, str]) -> None:
    browser = asking(headers=ANN | {"X-Forwarded-Groups": "strangers"}, access_contact="help@example.org")
    answer = browser.get("/sign-in")
    assert answer.status_code == 403
    assert "Ask help@example.org for access." in answer.text
    assert browser.post("/sign-in", data={"key": secrets["viewer"]}).status_code == 303
    assert "the-viewer · viewer" in browser.get("/").text


def test_who_has_signed_out_stays_so_until_a_click(asking: Asking) -> None:
    browser = asking(headers=ANN)
    browser.get("/sign-in")
    token = re.search(r'name="csrf-token" content="([0-9a-f]{64})"', browser.get("/").text)
    assert token is not None
    answer = browser.post("/sign-out", data={"csrf": token[1]})
    page = browser.get(answer.headers["location"])
    assert "set-cookie" not in page.headers
    assert "Sign in as Ann Smith" in page.text
    assert 'href="/sign-in?next=%2F"' in page.text


def test_headers_may_have_other_names(asking: Asking) -> None:
    names = {"proxy_user_header": "Remote-User", "proxy_groups_header": "Remote-Groups"}
    browser = asking(headers=ANN | {"Remote-User": "bo", "Remote-Groups": "heads"}, **names)
    browser.get("/sign-in")
    assert "Ann-Smith · admin" in browser.get("/").text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sign_in_proxies": "proxy.example.org"}, "SIGN_IN_PROXIES"),
        ({"sign_in_proxies": "*"}, "SIGN_IN_PROXIES"),
        ({"group_roles": ""}, "GROUP_ROLES"),
        ({"proxy_user_header": "a b"}, "PROXY_USER_HEADER"),
    ],
)
def test_settings_that_do_not_fit_are_refused(given: dict[str, str], said: str, asking: Asking) -> None:
    with pytest.raises(SettingsError, match=said):
        asking(**given)
