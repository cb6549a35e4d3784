"""People sign in programs by the device flow of an OpenID Connect provider (RFC 8628)."""

import asyncio
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from asking import TestClient, bearer, problem
from fastapi import FastAPI
from identity_provider import IdentityProvider

from app.access.schemas import DeviceCode
from app.async_client import AsyncClient
from app.client import Client
from app.config import settings
from app.remote import awaiting, transport
from app.remote.errors import (
    ForbiddenError,
    NotFoundError,
    SignInError,
    TooManyError,
    UnauthenticatedError,
    UnavailableError,
    UnreachableError,
)
from app.remote.transport import Transport

URL = "http://127.0.0.1"
DEVICE, TOKEN = "/api/v1/sign-in/device", "/api/v1/sign-in/token"


class Person:
    """Someone who watches a program wait, and acts at one of its pauses."""

    def __init__(self, provider: IdentityProvider) -> None:
        self.provider = provider
        self.codes: list[DeviceCode] = []
        self.pauses: list[float] = []
        self.acts: list[Callable[[], object]] = []

    def see(self, code: DeviceCode) -> None:
        self.codes.append(code)

    def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if self.acts:
            self.acts.pop(0)()

    def nothing(self) -> None:
        pass

    def approve(self) -> None:
        self.provider.enter(self.codes[-1].user_code)

    def decline(self) -> None:
        self.provider.enter(self.codes[-1].user_code, approves=False)


@pytest.fixture
def person(provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch) -> Person:
    person = Person(provider)
    monkeypatch.setattr(Transport, "sleep", lambda _self, seconds: person.wait(seconds))
    return person


@pytest.fixture
def service(opened: Callable[..., FastAPI], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., FastAPI]:
    """Make the application that clients reach, whose user has a home of their own and no key."""

    def make(**more: object) -> FastAPI:
        app = opened(**more)
        made = dict[str, Any](app=app)

        def http(*, base_url: str, headers: dict[str, str], timeout: float, verify: object) -> TestClient:
            return TestClient(made["app"], base_url=base_url, headers=headers)

        monkeypatch.setattr(transport.httpx, "Client", http)
        monkeypatch.setenv("POLYMARGIN_HOME", str(tmp_path / "user"))
        for name in ("POLYMARGIN_API_KEY", "POLYMARGIN_URL"):
            monkeypatch.delenv(name, raising=False)
        return app

    return make


def _kept(tmp_path: Path) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((tmp_path / "user/sign-ins.json").read_text())
    return kept


def test_a_person_signs_in_once_and_out_again(
    service: Callable[..., FastAPI], person: Person, secrets: dict[str, str], tmp_path: Path
) -> None:
    admin = TestClient(service(), headers=bearer(secrets["admin"]))
    person.acts = [person.nothing, person.approve]
    with Client(URL) as client:
        token = client.login(person.see)
        assert (token.name, token.role, token.workspace) == ("ann", "clerk", "default")
        assert client.datasets.list().items == []
        with pytest.raises(ForbiddenError):
            client.keys.list()
    assert person.pauses == [1, 1]
    (code,) = person.codes
    assert code.verification_uri == f"{person.provider.issuer}/device"
    assert code.verification_uri_complete == f"{person.provider.issuer}/device?user_code={code.user_code}"
    file = tmp_path / "user/sign-ins.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    with Client() as client:  # the address is known from now on, too
        assert client.url == URL
        assert client.datasets.list().items == []
        assert client.logout() == "ann"
    assert _kept(tmp_path) == {}
    refused = admin.get("/api/v1/datasets", headers=bearer(token.secret or ""))
    problem(refused, 401, "unauthenticated")
    with Client() as client:
        assert client.url == transport.DEFAULT_URL
        with pytest.raises(SignInError, match="Nobody is signed in"):
            client.logout()
    entries = admin.get("/api/v1/audit?key=ann").json()["items"]
    found = [(one["what"], one["method"], one["route"], one["before"], one["after"]) for one in entries]
    assert found[:2] == [
        ("token", "DELETE", TOKEN, {}, None),
        ("token", "POST", TOKEN, None, {"by": "OpenID device flow"}),
    ]
    assert token.secret not in json.dumps(entries)
    (ann,) = [key for key in admin.get("/api/v1/keys").json()["items"] if key["kind"] == "person"]
    assert ann["name"] == "ann"
    assert not ann["revoked"]


def test_browser_and_program_are_the_same_person(
    service: Callable[..., FastAPI], person: Person, secrets: dict[str, str]
) -> None:
    app = service()
    browser = TestClient(app, follow_redirects=False)
    begun = browser.get("/sign-in/openid")
    browser.get(person.provider.approve(begun.headers["location"]))
    person.acts = [person.approve]
    with Client(URL) as client:
        client.login(person.see)
    admin = TestClient(app, headers=bearer(secrets["admin"]))
    people = [key["name"] for key in admin.get("/api/v1/keys").json()["items"] if key["kind"] == "person"]
    assert people == ["ann"]


def test_a_program_slows_down_as_the_provider_says(service: Callable[..., FastAPI], person: Person) -> None:
    service()
    slow, pending = (400, {"error": "slow_down"}), (400, {"error": "authorization_pending"})
    person.provider.device_answers = [pending, slow, pending, slow]
    person.provider.interval = None  # five seconds, then
    person.acts = [person.approve]
    with Client(URL) as client:
        client.login(person.see)
    assert person.pauses == [5, 5, 10, 10, 15]


def test_a_person_may_decline(service: Callable[..., FastAPI], person: Person, tmp_path: Path) -> None:
    service()
    person.acts = [person.decline]
    with Client(URL) as client, pytest.raises(ForbiddenError, match=r"The sign-in was declined at 127\.0\.0\.1\."):
        client.login(person.see)
    assert not (tmp_path / "user/sign-ins.json").exists()


def test_a_code_that_nobody_enters_expires(
    service: Callable[..., FastAPI], person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    service()
    person.provider.device_answers = [(400, {"error": "authorization_pending"}), (400, {"error": "expired_token"})]
    with Client(URL) as client, pytest.raises(UnauthenticatedError, match="Nobody entered the code before it expired"):
        client.login(person.see)
    authorize = person.provider.authorize_device

    def brief(form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        status, codes = authorize(form, authorization)
        return status, {**codes, "expires_in": 1e-6}

    monkeypatch.setattr(person.provider, "authorize_device", brief)
    with Client(URL) as client, pytest.raises(SignInError, match="Nobody entered the code before it expired"):
        client.login(person.see)


def test_a_code_signs_in_once_and_a_made_up_one_never(service: Callable[..., FastAPI], person: Person) -> None:
    browser = TestClient(service(failed_keys_per_minute=0.001))
    code = browser.post(DEVICE).json()
    person.provider.enter(code["user_code"])
    first = browser.post(TOKEN, json={"device_code": code["device_code"]})
    assert first.headers["cache-control"] == "no-store"
    assert first.json()["state"] == "signed_in"
    said = problem(browser.post(TOKEN, json={"device_code": code["device_code"]}), 401)["detail"]
    assert said == "The identity provider did not confirm the sign-in. Try to sign in again."
    answers = [browser.post(TOKEN, json={"device_code": f"made-up-{n}"}).status_code for n in range(21)]
    assert answers == [401] * 19 + [429] * 2


def test_an_address_starts_so_many_sign_ins(service: Callable[..., FastAPI], person: Person) -> None:
    browser = TestClient(service(failed_keys_per_minute=0.001))
    assert [browser.post(DEVICE).status_code for _ in range(22)] == [200] * 20 + [429] * 2
    with Client(URL, attempts=1) as client, pytest.raises(TooManyError, match="too many sign-ins"):
        client.login(person.see)


def test_a_program_asks_for_its_token_so_often(service: Callable[..., FastAPI], person: Person) -> None:
    browser = TestClient(service(failed_keys_per_minute=10))
    codes = [browser.post(DEVICE).json()["device_code"] for _ in range(2)]
    answers = [browser.post(TOKEN, json={"device_code": codes[0]}).status_code for _ in range(14)]
    assert answers[:10] == [200] * 10
    assert answers[-1] == 429
    assert browser.post(TOKEN, json={"device_code": codes[1]}).json()["state"] == "pending"


def test_a_person_without_a_role_is_sent_to_the_contact(service: Callable[..., FastAPI], person: Person) -> None:
    service(access_contact="help@example.org")
    person.provider.user["groups"] = ["others"]
    person.acts = [person.approve]
    said = "The account ann is in no group that may use this service. Ask help@example.org for access."
    with Client(URL) as client, pytest.raises(ForbiddenError) as caught:
        client.login(person.see)
    assert caught.value.detail == said


def test_a_token_ends_with_the_access_of_its_person(
    service: Callable[..., FastAPI], person: Person, secrets: dict[str, str], tmp_path: Path
) -> None:
    admin = TestClient(service(), headers=bearer(secrets["admin"]))
    person.acts = [person.approve]
    with Client(URL) as client:
        client.login(person.see)
        assert admin.delete("/api/v1/keys/ann").status_code == 204
        with pytest.raises(UnauthenticatedError) as caught:
            client.datasets.list()
        said = f"The sign-in to {URL} has ended. Sign in again: polymargin login {URL}"
        assert caught.value.detail == said
        assert client.logout() == "ann"  # what has ended is only forgotten
    assert _kept(tmp_path) == {}


def test_a_token_ends_by_itself(service: Callable[..., FastAPI], person: Person) -> None:
    app = service(session_seconds=60)
    person.acts = [person.approve]
    with Client(URL) as client:
        token = client.login(person.see)
        assert token.expires_at is not None
        app.state.keyring.forget()
        with app.state.sessions() as session:
            session.connection().exec_driver_sql("UPDATE sign_ins SET expires_at = expires_at - 61")
            session.commit()
        with pytest.raises(UnauthenticatedError, match="has ended"):
            client.datasets.list()


def test_a_provider_that_is_away_is_waited_for_once_the_code_is_shown(
    service: Callable[..., FastAPI], person: Person
) -> None:
    service()
    person.provider.device_answers = [(503, {})]
    person.acts = [person.approve]
    with Client(URL, attempts=1) as client:
        client.login(person.see)
    assert person.pauses == [1, 2]


def test_a_provider_that_stays_away_is_reported(
    service: Callable[..., FastAPI], person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    service(openid_issuer="http://127.0.0.1:9")
    said = "The identity provider does not answer as expected."
    with Client(URL, attempts=1) as client, pytest.raises(UnavailableError) as caught:
        client.login(person.see)
    assert caught.value.detail == said
    assert person.codes == []
    service()
    person.provider.device_answers = [(503, {})] * 100_000
    authorize = person.provider.authorize_device

    def brief(form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        status, codes = authorize(form, authorization)
        return status, {**codes, "expires_in": 0.5}

    monkeypatch.setattr(person.provider, "authorize_device", brief)
    with Client(URL, attempts=1) as client, pytest.raises(UnavailableError) as caught:
        client.login(person.see)
    assert caught.value.detail == said


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ((400, {"error": "unauthorized_client"}), NotFoundError, "127.0.0.1 does not allow the device flow"),
        ((401, {"error": "invalid_client"}), NotFoundError, "127.0.0.1 does not accept this service's client id"),
        ((500, {}), UnavailableError, "does not answer as expected"),
        ((200, {"user_code": "A"}), UnavailableError, "does not answer as expected"),
        (
            (
                200,
                {"device_code": "x", "user_code": "\x1b[2J", "verification_uri": "https://a.example", "expires_in": 9},
            ),
            UnavailableError,
            "does not answer as expected",
        ),
        (
            (200, {"device_code": "x", "user_code": "A", "verification_uri": "file:///etc", "expires_in": 9}),
            UnavailableError,
            "does not answer as expected",
        ),
    ],
)
def test_a_provider_that_starts_no_sign_in_is_reported(
    answer: tuple[int, dict[str, Any]],
    error: type[Exception],
    said: str,
    service: Callable[..., FastAPI],
    person: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service()
    monkeypatch.setattr(person.provider, "authorize_device", lambda *_: answer)
    with Client(URL, attempts=1) as client, pytest.raises(error, match=said):
        client.login(person.see)
    assert person.codes == []


def test_a_provider_without_the_flow_and_a_service_without_a_provider_are_reported(
    service: Callable[..., FastAPI], person: Person
) -> None:
    person.provider.has_device_flow = False
    service()
    with Client(URL) as client, pytest.raises(NotFoundError, match=r"127\.0\.0\.1 has no device flow. Use an API key"):
        client.login(person.see)
    person.provider.has_device_flow = True  # the administrator reads that and allows it
    person.acts = [person.approve]
    with Client(URL) as client:
        client.login(person.see)
    service(openid_issuer="")
    with Client(URL) as client, pytest.raises(NotFoundError, match="no identity provider"):
        client.login(person.see)


@pytest.mark.parametrize("wrong", [{"aud": "another"}, {"iss": "https://another.example"}, {"exp": 1_000_000_000}])
def test_a_token_of_the_provider_with_a_wrong_claim_signs_nobody_in(
    wrong: dict[str, Any], service: Callable[..., FastAPI], person: Person
) -> None:
    service()
    person.provider.wrong = wrong
    person.acts = [person.approve]
    with Client(URL) as client, pytest.raises(UnauthenticatedError, match="token is not valid"):
        client.login(person.see)


def test_an_api_key_is_not_revoked_by_signing_out(app: FastAPI, secrets: dict[str, str]) -> None:
    viewer = TestClient(app, headers=bearer(secrets["viewer"]))
    problem(viewer.delete(TOKEN), 409, "conflict")
    assert viewer.get("/api/v1/datasets").status_code == 200


def test_a_key_that_is_given_takes_precedence(
    service: Callable[..., FastAPI], person: Person, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    service()
    person.acts = [person.approve]
    with Client(URL) as client:
        client.login(person.see)
    with Client(URL, secrets["admin"]) as client:
        assert client.keys.list().items
    monkeypatch.setenv("POLYMARGIN_API_KEY", secrets["admin"])
    with Client(URL) as client:
        assert client.has_own_key
        assert client.keys.list().items


def test_no_key_is_sent_while_nobody_is_signed_in(
    service: Callable[..., FastAPI], person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service()
    (tmp_path / "user").mkdir()
    (tmp_path / "user/admin.key").write_text("pm_of_another_service")
    sent: list[str] = []
    ask = TestClient.request

    def note(self: TestClient, method: str, url: str, **options: Any) -> Any:
        sent.append(options["headers"].get("Authorization"))
        return ask(self, method, url, **options)

    monkeypatch.setattr(TestClient, "request", note)
    person.acts = [person.approve]
    with Client(URL) as client:
        client.login(person.see)
    assert sent == ["", ""]


def test_a_token_that_could_not_be_revoked_is_forgotten_and_said_to_be_valid(
    service: Callable[..., FastAPI], person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service()
    person.acts = [person.approve]
    with Client(URL) as client:
        client.login(person.see)

    def away(*_args: object, **_options: object) -> None:
        raise httpx.ConnectError("away")

    monkeypatch.setattr(TestClient, "request", away)
    with Client(URL, attempts=1) as client, pytest.raises(SignInError, match="removed from this machine, but is valid"):
        client.logout()
    assert _kept(tmp_path) == {}
    with Client(URL, attempts=1) as client, pytest.raises(UnreachableError):
        client.login(person.see)


def test_a_file_of_another_form_counts_as_none(service: Callable[..., FastAPI], person: Person, tmp_path: Path) -> None:
    service()
    (tmp_path / "user").mkdir()
    (tmp_path / "user/sign-ins.json").write_text("[]")
    person.acts = [person.approve]
    with Client(URL) as client:
        client.login(person.see)
    assert list(_kept(tmp_path)) == [URL]


def test_the_commands_show_the_code_and_keep_the_secret(
    service: Callable[..., FastAPI],
    person: Person,
    secrets: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    command: Callable[..., tuple[int, str, str]],
    tmp_path: Path,
) -> None:
    service()

    def run(*arguments: str) -> tuple[str, str]:
        status, out, err = command(*arguments)
        assert status == 0
        return out, err

    def approve_shown() -> None:
        person.provider.enter(person.provider.user_codes[-1])

    person.acts = [approve_shown]
    out, err = run("login", URL)
    code = person.provider.user_codes[-1]
    assert f"Open {person.provider.issuer}/device and enter the code {code}\n" in err
    assert out.startswith(f"Signed in to {URL} as ann (clerk in default) until ")
    secret = _kept(tmp_path)[URL]["secret"]
    person.acts = [approve_shown]
    out, err = run("login", "--json")
    assert json.loads(out)["name"] == "ann"
    assert "enter the code" in err
    assert secret not in out + err
    assert _kept(tmp_path)[URL]["secret"] != secret
    assert run("logout")[0] == f"Signed ann out of {URL}\n"
    monkeypatch.setenv("POLYMARGIN_API_KEY", secrets["admin"])
    person.acts = [approve_shown]
    assert "POLYMARGIN_API_KEY is set" in run("login", URL)[0]


def test_notebooks_print_the_code_and_event_loops_await_the_person(
    service: Callable[..., FastAPI],
    person: Person,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    app = service()
    person.acts = [lambda: person.provider.enter(person.provider.user_codes[-1])]
    with Client(URL) as client:
        assert client.login().name == "ann"
    assert f"enter the code {person.provider.user_codes[-1]}\n" in capsys.readouterr().out

    def opened(self: awaiting.AwaitingTransport, *, verify: object, **options: Any) -> Any:
        return awaiting._Http(httpx.AsyncClient(transport=httpx.ASGITransport(app), **options))

    monkeypatch.setattr(awaiting.AwaitingTransport, "_opened", opened)
    monkeypatch.setattr(awaiting.AwaitingTransport, "sleep", lambda _self, seconds: person.wait(seconds))
    person.acts = [lambda: person.provider.enter(person.provider.user_codes[-1])]

    async def sign_in() -> str | None:
        async with AsyncClient(URL) as client:
            token = await client.login(person.see)
            await client.datasets.list()
            await client.logout()
            name: str | None = token.name
            return name

    assert asyncio.run(sign_in()) == "ann"


def test_tokens_are_kept_as_digests(service: Callable[..., FastAPI], person: Person) -> None:
    app = service()
    person.acts = [person.approve]
    with Client(URL) as client:
        secret = client.login(person.see).secret
    with app.state.sessions() as session:
        rows = session.connection().exec_driver_sql("SELECT * FROM sign_ins").all()
    assert [row.kind for row in rows] == ["token"]
    assert str(secret) not in str(rows)
    assert rows[0].expires_at > settings().session_seconds
