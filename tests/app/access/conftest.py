"""The identity provider of these tests, and applications that sign people in by it."""

from collections.abc import Callable, Iterator

import pytest
from fastapi import FastAPI
from identity_provider import ANN, CLIENT, SECRET, IdentityProvider, running

from app.config import settings
from app.main import create_app

GROUPS = "annotators=clerk; cn=heads,ou=lab=admin; legal=editor@legal"


@pytest.fixture(scope="module")
def shared_provider() -> Iterator[IdentityProvider]:
    with running() as provider:
        yield provider


@pytest.fixture
def provider(shared_provider: IdentityProvider) -> IdentityProvider:
    """The provider as it is at first; its keys take a moment to make, so that tests share them."""
    fresh = {"user": dict(ANN), "wrong": {}, "wrong_document": {}, "user_info": None, "algorithm": "RS256", "asked": []}
    fresh |= {"device_answers": [], "has_device_flow": True, "interval": 1}
    vars(shared_provider).update(fresh)
    return shared_provider


@pytest.fixture
def opened(
    provider: IdentityProvider, secrets: dict[str, str], configure: Callable[..., None]
) -> Callable[..., FastAPI]:
    """Make an application that sends people to the provider."""

    def make(**more: object) -> FastAPI:
        given = {
            "openid_issuer": provider.issuer,
            "openid_client_id": CLIENT,
            "openid_client_secret": SECRET,
            "public_url": "http://127.0.0.1",
            "group_roles": GROUPS,
            **more,
        }
        configure(**given)
        return create_app(settings())

    return make
