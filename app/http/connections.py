"""Connections that cost a service what they may, and no more: deadlines, and how many there are at a time.

A connection needs no key, so each is bounded before anybody is asked for one. Heads have a time and a size, and what
follows the last chunk of a body (trailers) counts as one; bodies have a least rate, and an answer that its client does
not read is given up; each address, and all of them together, may have so many connections.
"""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from app.errors import problem_document

HEAD_BYTES = 64 << 10
# among a request's ASGI extensions: answers at once
AT_ONCE = "polymargin.answer_at_once"
# among a request's ASGI state, once its process has been asked to end
DRAINING = "polymargin.draining"
# How far a body may run ahead of its least rate, in multiples of its time: a client that has sent much may pause, but
# a connection whose body has stopped is not kept for hours.
_LONGEST_PAUSE = 10.0

_TITLES = {
    400: ("malformed", "The request cannot be parsed"),
    408: ("request_timeout", "The request did not come in time"),
    431: ("head_too_large", "The request's head is too large"),
    503: ("unavailable", "Temporarily unavailable"),
}


@dataclass
class Guard:
    """What connections may take.

    Attributes
    ----------
    head_seconds : float
        From a connection, or the first byte of its next request, to the end of the request's head.
    body_seconds : float
        For a body beside what ``least_rate`` gives it, and for a client to read something of its answer. However much
        of a body has come, it pauses for ten times as long at most.
    least_rate : float
        Bytes a second of a body, in the mean.
    per_address : int
        Connections of one address; 0: any number.
    in_all : int
        Connections of all addresses.
    """

    head_seconds: float = 10.0
    body_seconds: float = 30.0
    least_rate: float = 1024.0
    per_address: int = 256
    in_all: int = 768
    open: dict["GuardedProtocol", str] = field(default_factory=dict)
    numbers: Counter[str] = field(default_factory=Counter)

    def admit(self, connection: "GuardedProtocol", address: str) -> bool:
        """Take a new connection; where there are too many, in place of the oldest that asks nothing just now."""
        too_many_of_it = 0 < self.per_address <= self.numbers[address]
        if too_many_of_it or len(self.open) >= self.in_all:
            near = (other for other, of in self.open.items() if of == address or not too_many_of_it)
            oldest = next((other for other in near if other.asks_nothing), None)
            if oldest is None:
                return False
            oldest.give_way()
        self.open[connection] = address
        self.numbers[address] += 1
        return True

    def leave(self, connection: "GuardedProtocol") -> None:
        """Forget a connection that has ended."""
        address = self.open.pop(connection, None)
        if address is not None:
            self.numbers[address] -= 1
            if not self.numbers[address]:
                del self.numbers[address]


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which bounds none of this itself."""

    def __init__(self, guard: Guard, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._guard = guard
        self._admitted = False
        self._timer: asyncio.TimerHandle | None = None
        self._looked_at = 0.0
        self._head_since: float | None = None
        self._head_bytes = 0
        self._body_seconds = 0.0  # how long the body may still take, if no more of it comes
        self._framing_bytes = 0  # of chunks and trailers, since the body's last byte
        self._unread = (0, 0.0)  # bytes that the client has not taken, and since when they are as many

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        self._admitted = self._guard.admit(self, address)
        if not self._admitted:
            self._refuse(503, "Too many connections; close some or retry later.", b"retry-after: 5\r\n")
            return
        self._looked_at = self._head_since = self.loop.time()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.leave(self)
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._admitted or self.transport.is_closing():
            return
        if self.asks_nothing and self._head_since is None:
            self._begin_head()
        if self._head_since is not None:
            self._head_bytes += len(data)
        else:
            self._framing_bytes += len(data)
        super().data_received(data)
        if (self._framing_bytes if self._head_since is None else self._head_bytes) > HEAD_BYTES:
            self._refuse(431, f"The request's head, or its trailers, have more than {HEAD_BYTES} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head_since is None:
            self._begin_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head_since is not None:  # else a trailer: nothing reads one, and no check has seen it
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._head_since = None
        if not self.url.startswith((b"/", b"*")):
            self._name_host()
        self._framing_bytes, self._body_seconds = 0, self._guard.body_seconds
        super().on_headers_complete()
        if self.cycle is not None:
            extensions: dict[str, Any] = {AT_ONCE: partial(answer_at_once, self.cycle)}
            self.scope["extensions"] = extensions
            if DRAINING in self.app_state:
                self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._framing_bytes = 0
        longest = _LONGEST_PAUSE * self._guard.body_seconds
        self._body_seconds = min(self._body_seconds + len(body) / self._guard.least_rate, longest)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._framing_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def _name_host(self) -> None:
        """Take the Host from a whole URL in the first line, which counts in its place (RFC 9112, section 3.2.2)."""
        named = httptools.parse_url(self.url)
        host = b"[%b]" % named.host if b":" in (named.host or b"") else named.host or b""
        host += b":%d" % named.port if named.port else b""
        self.headers[:] = [*(pair for pair in self.headers if pair[0] != b"host"), (b"host", host)]

    @property
    def asks_nothing(self) -> bool:
        """No request is being answered."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def give_way(self) -> None:
        """End, so that another connection may be there."""
        self._guard.leave(self)
        self.transport.abort()

    def _begin_head(self) -> None:
        self._head_since, self._head_bytes = self.loop.time(), 0

    def _look(self) -> None:
        """Several times within each deadline: has one passed?"""
        guard, now = self._guard, self.loop.time()
        elapsed, self._looked_at = now - self._looked_at, now
        self._timer = self.loop.call_later(min(guard.head_seconds, guard.body_seconds) / 8, self._look)
        if self.asks_nothing:
            if self._head_since is not None and now - self._head_since > guard.head_seconds:
                self._refuse(408, f"The request was not complete within {guard.head_seconds:g} s.")
                return
        elif self.cycle.more_body:
            if not self.flow.read_paused:  # else it is this service that does not take more
                self._body_seconds -= elapsed
            if self._body_seconds < 0:
                self.transport.abort()
                return
        n_unread = self.transport.get_write_buffer_size()
        if n_unread == 0 or n_unread != self._unread[0]:
            self._unread = (n_unread, now)
        elif now - self._unread[1] > guard.body_seconds:
            self.transport.abort()

    def _refuse(self, status: int, detail: str, more: bytes = b"") -> None:
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.abort()  # a second answer within the first would be taken for a part of it
            return
        code, title = _TITLES[status]
        body = json.dumps(problem_document(code, title, status, detail)).encode()
        head = (
            b"content-type: application/problem+json\r\nx-content-type-options: nosniff\r\nconnection: close\r\n" + more
        )
        length = b"content-length: %d\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + length + body)
        self.transport.close()


def answer_at_once(cycle: RequestResponseCycle, head: bytes, body: bytes) -> bool:
    """Write a whole answer with status 200; False where it has to be sent by its parts.

    uvicorn writes head and body apart, two system calls and two packets, and looks through every header's letters.

    Parameters
    ----------
    cycle : RequestResponseCycle
        The request that is answered.
    head : bytes
        Lines of headers with their ends, ``Content-Length`` among them.
    """
    if cycle.response_started or cycle.disconnected or cycle.flow.write_paused:
        return False
    cycle.response_started = cycle.response_complete = True
    common = [b"%b: %b\r\n" % pair for pair in cycle.default_headers]
    end = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
    cycle.transport.write(b"".join([STATUS_LINE[200], *common, head, end, body]))
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
    return True
