"""Fixtures for what talks to a service."""

from collections.abc import Iterator

import pytest
from canned import Canned, serve


@pytest.fixture
def canned(monkeypatch: pytest.MonkeyPatch) -> Iterator[Canned]:
    """A service of canned answers; the environment names it, and nothing is waited for between attempts."""
    service = Canned()
    server = serve(service)
    monkeypatch.setenv("POLYMARGIN_URL", service.url)
    monkeypatch.setenv("POLYMARGIN_API_KEY", "pm_secret")
    monkeypatch.setattr("time.sleep", lambda _: None)
    yield service
    server.shutdown()
    server.server_close()
