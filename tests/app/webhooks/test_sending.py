"""What is sent is signed, goes to allowed hosts at public addresses alone, and is never redirected."""

import socket
from collections.abc import Callable
from typing import Any

import pytest
from receiving import Receiver

from app.errors import InvalidInput
from app.outbound import is_public
from app.webhooks.sending import check_url, new_secret, send, signature

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_the_signature_is_that_of_standard_webhooks() -> None:
    found = signature(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert len({new_secret() for _ in range(3)}) == 3
    with pytest.raises(ValueError, match="base64"):
        signature("whsec_?", "a", 0, b"")


def test_a_delivery_is_posted_with_its_headers(receiver: Receiver) -> None:
    assert send(receiver.url, [SECRET], "1", 7, b"{}").status == 204
    [(path, headers, body)] = receiver.received
    assert (path, body, headers["content-type"]) == ("/hook?a=b", b"{}", "application/json")
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("1", "7")
    assert headers["webhook-signature"] == signature(SECRET, "1", 7, b"{}")
    assert headers["host"] == receiver.url.split("/")[2]


@pytest.mark.parametrize("status", [302, 307, 404, 500])
def test_other_answers_are_failures_and_redirects_are_not_followed(receiver: Receiver, status: int) -> None:
    receiver.status = status
    sent = send(receiver.url, [SECRET], "1", 7, b"{}")
    assert (sent.status, str(status) in str(sent.error)) == (status, True)
    assert len(receiver.received) == 1


def test_who_does_not_listen_is_an_error(receiver: Receiver) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        sent = send(f"http://localhost:{free.getsockname()[1]}/", [SECRET], "1", 7, b"{}")
    assert sent.status is None
    assert "refused" in str(sent.error).lower()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://evil.example/", "not one of POLYMARGIN_WEBHOOK_HOSTS"),
        ("https://example.org/", "not one of"),
        ("https://localhost.evil.example/", "not one of"),
        ("ftp://localhost/", "expected a URL"),
        ("https://user:word@localhost/", "no user"),
        ("https://localhost/#a", "fragment"),
        ("https://localhost:99999/", "not a URL"),
        ("https://localhost/a b", "expected a URL"),
        ("https://localhost/\r\nX: y", "expected a URL"),
    ],
)
@pytest.mark.usefixtures("receiver")
def test_urls_that_are_not_allowed_are_refused(url: str, said: str) -> None:
    check_url("https://a.example.org/hook")
    with pytest.raises(InvalidInput) as refused:
        check_url(url)
    assert said in refused.value.errors[0].detail
    assert said in str(send(url, [SECRET], "1", 7, b"{}").error)


def test_private_addresses_and_plain_http_are_refused_by_default(
    receiver: Receiver, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(webhook_hosts="*", webhook_private=False)
    assert "not encrypted" in str(send(receiver.url, [SECRET], "1", 7, b"{}").error)
    assert "private addresses" in str(send(receiver.url.replace("http", "https"), [SECRET], "1", 7, b"{}").error)
    asked: list[Any] = []

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        asked.append(address)
        raise OSError("not now")

    found = [(0, 0, 0, "", ("10.0.0.1", 443)), (0, 0, 0, "", ("93.184.216.34", 443))]
    monkeypatch.setattr("app.outbound.socket.getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr("app.outbound.socket.create_connection", connect)
    assert "not now" in str(send("https://x.example/", [SECRET], "1", 7, b"{}").error)
    assert asked == [("93.184.216.34", 443)]  # the checked address, not the name again
    assert receiver.received == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True), ("2606:2800:220:1::1", True),
        ("127.0.0.1", False), ("10.1.2.3", False), ("169.254.169.254", False), ("100.64.0.1", False),
        ("0.0.0.0", False), ("224.0.0.1", False), ("::1", False), ("fe80::1%eth0", False), ("fd00::1", False),
        ("::ffff:10.0.0.1", False), ("64:ff9b::a00:1", False), ("2002:a00:1::", False),
    ],
)  # fmt: skip
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) == public
