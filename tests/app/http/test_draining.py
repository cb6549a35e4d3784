"""A process that was asked to end: it says so, and goes on answering until its time is over."""

import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest
import uvicorn
from sqlalchemy.orm import Session, sessionmaker

from app.http.connections import Guard, GuardedProtocol
from app.main import create_app
from app.server import Server

SECONDS = 600.0


@pytest.fixture
def server(database: sessionmaker[Session]) -> Iterator[Server]:
    protocol: Any = partial(GuardedProtocol, Guard())
    config = uvicorn.Config(
        create_app(), port=0, http=protocol, ws="none", log_config=None, timeout_graceful_shutdown=5
    )
    server = Server(config, drain_seconds=SECONDS)
    thread = threading.Thread(target=server.run)
    thread.start()
    _until(lambda: server.started)
    yield server
    server.should_exit = server.force_exit = True
    thread.join()


def _until(condition: Any) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_health_checks_fail_first_while_requests_are_answered_and_their_connections_closed(server: Server) -> None:
    url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    with httpx.Client(base_url=url, timeout=SECONDS) as kept:
        before = kept.get("/healthz")
        assert (before.status_code, "connection" in before.headers) == (200, False)
        server.should_exit = True
        _until(lambda: httpx.get(f"{url}/healthz", timeout=SECONDS).status_code == 503)
        for client in (kept, httpx):  # on a connection that was open before, and on a new one
            answer = client.get(f"{url}/openapi.json")
            assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        for path in ("/healthz", "/readyz"):
            refused = httpx.get(url + path, timeout=SECONDS)
            assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
            assert refused.json()["detail"] == "This process is ending: send requests to another one."
            assert "retry-after" in refused.headers
