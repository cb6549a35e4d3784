"""Connections of clients that mean no good, to a real server on loopback."""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from app.config import Settings
from app.http.connections import HEAD_BYTES, Guard, GuardedProtocol
from app.server import descriptors, guard

GET = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
Start = Callable[..., "Server"]


class Server:
    """A server that answers how many bytes of a body came, or as many bytes as a path says."""

    def __init__(self, **bounds: Any) -> None:
        self.guard = Guard(**bounds)
        self.left = threading.Event()
        self.scopes: list[Any] = []
        protocol: Any = partial(GuardedProtocol, self.guard)
        config = uvicorn.Config(
            self._app, port=0, http=protocol, ws="none", interface="asgi3", log_config=None, lifespan="off"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        deadline = time.monotonic() + 60
        while not self._server.started:
            assert time.monotonic() < deadline, "the server has not started within a minute"
            time.sleep(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]

    def connect(self) -> socket.socket:
        found = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        return found

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        n_bytes, more = 0, True
        self.scopes.append(scope)
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.left.set()
                return
            n_bytes += len(message.get("body", b""))
            more = message.get("more_body", False)
        body = str(n_bytes).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/endless":
            with contextlib.suppress(OSError):
                for _ in range(1000):
                    await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
            self.left.set()
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def make(**bounds: Any) -> Server:
            server = Server(**bounds)
            stack.callback(server.stop)
            return server

        yield make


def _rest(connection: socket.socket) -> bytes:
    """What still comes until the server closes."""
    found = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            found += piece
    return bytes(found)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", b"\r\n"])
def test_a_connection_that_asks_nothing_is_closed(sent: bytes, start: Start) -> None:
    server = start(head_seconds=0.2)
    with server.connect() as connection:
        connection.sendall(sent)
        assert _rest(connection).startswith(b"HTTP/1.1 408 ")
    assert not server.guard.open


def test_a_head_that_comes_byte_by_byte_has_no_more_time(start: Start) -> None:
    server = start(head_seconds=0.3)
    with server.connect() as connection:
        with contextlib.suppress(OSError):
            for _ in range(10_000):
                connection.sendall(b"X" if _ else b"GET /")
                time.sleep(0.02)
        with contextlib.suppress(OSError):
            assert b" 408 " in _rest(connection)
    assert not server.guard.open


def test_a_second_request_has_its_own_time(start: Start) -> None:
    server = start(head_seconds=0.3)
    with server.connect() as connection:
        connection.sendall(GET)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        connection.sendall(GET[:20])
        assert b" 408 " in _rest(connection)


def test_an_endless_head_is_refused(start: Start) -> None:
    server = start()
    with server.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        with contextlib.suppress(OSError):
            connection.sendall(b"x" * 4 * HEAD_BYTES)
        with contextlib.suppress(OSError):
            assert b" 431 " in connection.recv(1 << 16)


def test_a_body_that_does_not_come_is_given_up(start: Start) -> None:
    server = start(body_seconds=0.2, least_rate=1e6)
    with server.connect() as connection:
        connection.sendall(POST + b"some")
        assert _rest(connection) == b""
    assert server.left.wait(60)


def test_a_body_that_comes_at_its_rate_has_all_its_time(start: Start) -> None:
    server = start(body_seconds=0.2, least_rate=1000.0)
    with server.connect() as connection:
        connection.sendall(POST + b"x" * 500_000)
        time.sleep(0.5)
        connection.sendall(b"x" * 500_000)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


def test_endless_trailers_are_refused_as_a_head_and_reach_nobody(start: Start) -> None:
    server = start()
    for piece in (b"X-More: " + b"y" * 1000 + b"\r\n", b"z" * 1000):  # many trailers; one that does not end
        with server.connect() as connection:
            connection.sendall(CHUNKED + b"4\r\nsome\r\n0\r\n" + b"X: ")
            sent = 0
            with contextlib.suppress(OSError):
                while sent < 64 * HEAD_BYTES:
                    connection.sendall(piece)
                    sent += len(piece)
            assert sent < 64 * HEAD_BYTES
            with contextlib.suppress(OSError):
                assert b" 431 " in connection.recv(1 << 16)
    with server.connect() as connection:
        connection.sendall(CHUNKED + b"4\r\nsome\r\n0\r\nX-Trailer: 1\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        # the connection goes on
        connection.sendall(CHUNKED + b"4\r\nsome\r\n0\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    assert all(name != b"x-trailer" for scope in server.scopes for name, _ in scope["headers"])


@pytest.mark.parametrize("host", [b"evil.example", b"evil.example:81", b"[::1]:81"])
def test_a_whole_url_names_the_host_whatever_the_header_says(host: bytes, start: Start) -> None:
    server = start()
    with server.connect() as connection:
        connection.sendall(b"GET http://%b/x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % host)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    (scope,) = server.scopes
    assert [value for name, value in scope["headers"] if name == b"host"] == [host]
    assert scope["path"] == "/x"


def test_an_endless_extension_of_a_chunk_is_refused(start: Start) -> None:
    server = start()
    with server.connect() as connection:
        connection.sendall(CHUNKED + b"4;")
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 64 * HEAD_BYTES:
                connection.sendall(b"x" * 1000)
                sent += 1000
        assert sent < 64 * HEAD_BYTES


def test_many_small_chunks_are_a_body_like_any_other(start: Start) -> None:
    server = start()
    with server.connect() as connection:
        connection.sendall(CHUNKED + b"1;name=value\r\nx\r\n" * 50_000 + b"0\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        assert b"50000" in _rest(connection)


def test_a_body_that_has_sent_much_does_not_pause_for_ever(start: Start) -> None:
    server = start(body_seconds=0.05, least_rate=1.0)  # by the mean alone it might pause for eleven days
    with server.connect() as connection:
        connection.sendall(POST + b"x" * 999_999)
        assert _rest(connection) == b""
    assert server.left.wait(60)


def test_a_client_that_does_not_read_its_answer_is_cut_off(start: Start) -> None:
    server = start(body_seconds=0.3)
    with server.connect() as connection:
        connection.sendall(GET.replace(b"/ ", b"/endless ", 1))
        assert server.left.wait(60)
    deadline = time.monotonic() + 60
    while server.guard.open:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_address_has_so_many_connections_and_gets_them_back(start: Start) -> None:
    server = start(per_address=3)
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(server.connect()).sendall(POST)
        while sum(not connection.asks_nothing for connection in list(server.guard.open)) < 3:
            time.sleep(0.01)
        with server.connect() as refused:
            answer = _rest(refused)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 5\r\n" in answer
        assert b'"code": "unavailable"' in answer
    deadline = time.monotonic() + 60
    while server.guard.open:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with server.connect() as connection:
        connection.sendall(GET)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


def test_connections_that_ask_nothing_give_way_to_those_that_do(start: Start) -> None:
    server = start(per_address=8, head_seconds=600)
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(server.connect())
        with server.connect() as connection:
            connection.sendall(GET)
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        assert len(server.guard.open) <= 8


@pytest.mark.slow
def test_1200_idle_sockets_of_many_addresses_keep_nobody_out_of_a_process_with_1024_descriptors(
    secrets: dict[str, str], configure: Callable[..., None]
) -> None:
    configure(head_seconds=600, log_level="critical")
    # of this process, which is the clients
    assert descriptors() > 1500
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)); "
    limited += f"from app.server import main; main('127.0.0.1', {port})"
    api = subprocess.Popen([sys.executable, "-c", limited], stderr=subprocess.DEVNULL)

    def connected(address: str) -> socket.socket:
        while True:
            assert api.poll() is None
            with contextlib.suppress(ConnectionRefusedError):
                return socket.create_connection(("127.0.0.1", port), 60, (address, 0))
            time.sleep(0.1)

    try:
        with ExitStack() as stack:
            for number in range(1200):
                stack.enter_context(connected(f"127.0.0.{2 + number % 6}"))
            for address in ("127.0.0.2", "127.0.0.9"):
                with connected(address) as connection:
                    head = "GET /api/v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                    head += f"Authorization: Bearer {secrets['viewer']}\r\n\r\n"
                    connection.sendall(head.encode())
                    assert _rest(connection).startswith(b"HTTP/1.1 200 ")
                    assert len(list(Path(f"/proc/{api.pid}/fd").iterdir())) < 1024
    finally:
        api.kill()
        api.wait()


def test_what_is_no_request_is_answered_with_a_problem(start: Start) -> None:
    server = start()
    with server.connect() as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00nonsense\r\n\r\n")
        answer = _rest(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json\r\n" in answer


def test_connections_leave_descriptors_for_files() -> None:
    assert guard(Settings(connections=4096), 1024).in_all == 768
    assert guard(Settings(connections=100), 1024).in_all == 100
    assert guard(Settings(connections_per_address=0), 1024).per_address == 0
