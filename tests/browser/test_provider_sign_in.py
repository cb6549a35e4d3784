"""A person signs in to the dashboard through an identity provider of another site."""

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browsing import Service, begin, end
from identity_provider import CLIENT, SECRET, IdentityProvider, running

from app.client import Client

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def provider(chromium: Any) -> Iterator[IdentityProvider]:
    with running("localhost") as provider:  # to browsers, another site than 127.0.0.1
        yield provider


@pytest.fixture(scope="module")
def provided(provider: IdentityProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose people sign in at the provider."""
    port = _free_port()
    settings = {
        "OPENID_ISSUER": provider.issuer,
        "OPENID_CLIENT_ID": CLIENT,
        "OPENID_CLIENT_SECRET": SECRET,
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "GROUP_ROLES": "annotators=admin",
    }
    running, process = begin(tmp_path_factory.mktemp("home"), "--port", str(port), **settings)
    try:
        yield running
    finally:
        end(process)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_person_signs_in_through_the_provider_and_finds_the_page_that_was_wanted(
    opened: Callable[..., Any], provided: Service
) -> None:
    page = opened()
    page.goto(f"{provided.url}/audit?key=ann")
    page.get_by_role("link", name="Sign in at localhost").click()
    page.get_by_role("link", name="Continue as Ann").click()
    page.wait_for_url(f"{provided.url}/audit?key=ann")
    page.get_by_text("ann · admin").wait_for()
    page.get_by_role("cell", name="session").first.wait_for()
    # the session changes things as that of a key does
    page.get_by_role("link", name="Keys", exact=True).click()
    page.get_by_label("Name").fill("ci")
    page.get_by_role("button", name="Create").click()
    page.get_by_text("pm_").first.wait_for()
    page.goto(f"{provided.url}/keys")
    page.get_by_role("row", name="ann person admin").wait_for()
    with Client(provided.url, provided.key) as client:
        client.keys.revoke("ann")
    page.goto(f"{provided.url}/keys")
    page.get_by_role("link", name="Sign in at localhost").wait_for()


def test_a_person_without_a_group_learns_whom_to_ask(
    opened: Callable[..., Any], provided: Service, provider: IdentityProvider
) -> None:
    provider.user = {"sub": "user-9", "preferred_username": "zoe", "groups": []}
    page = opened(refused=True)
    page.goto(f"{provided.url}/sign-in")
    page.get_by_role("link", name="Sign in at localhost").click()
    page.get_by_role("link", name="Continue as Ann").click()
    page.get_by_text("The account zoe is in no group that may use this service.").wait_for()
    # a key still signs in
    page.get_by_label("API key").fill(provided.key)
    page.get_by_role("button", name="Sign in with a key").click()
    page.get_by_text("admin · admin").wait_for()
