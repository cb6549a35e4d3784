"""What a proxy says of a request is believed only where the proxy is named."""

from collections.abc import Callable

import pytest
from asking import TestClient, bearer

from app import server
from app.config import settings

FORWARDED = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}


@pytest.mark.parametrize(
    ("trusted", "proxy", "believed"),
    [
        ("", "127.0.0.1", False),
        ("10.0.0.0/8", "127.0.0.1", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("127.0.0.1, ::1", "127.0.0.1", True),
        ("*", "192.0.2.1", True),
    ],
)
def test_only_proxies_that_are_named_are_believed(
    trusted: str, proxy: str, believed: bool, configure: Callable[..., None], secrets: dict[str, str]
) -> None:
    configure(trusted_proxies=trusted)
    config = server.server_config(settings(), "127.0.0.1", 0, 5)
    config.load()
    with TestClient(config.loaded_app, client=(proxy, 50000), follow_redirects=False) as client:
        signed_in = client.post("/sign-in", data={"key": secrets["viewer"]}, headers=FORWARDED)
        assert ("secure" in signed_in.headers["set-cookie"].lower()) == believed
        assert ("strict-transport-security" in signed_in.headers) == believed
        client.cookies.clear()
        made = client.post(
            "/api/v1/keys", json={"name": "k", "role": "viewer"}, headers=bearer(secrets["admin"]) | FORWARDED
        )
        assert made.status_code == 201
        (entry, *_) = client.get("/api/v1/audit", headers=bearer(secrets["admin"])).json()["items"]
        assert entry["address"] == ("203.0.113.9" if believed else proxy)
