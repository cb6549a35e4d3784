"""The bound on every request's body, held before anything is parsed."""

import asyncio
import contextlib
from collections.abc import Mapping
from fnmatch import fnmatchcase

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import Malformed, TooLarge
from app.http.problems import problem

_LINGER_SECONDS = 2.0
_QUIETLY_DISCARDED = 64 << 10


class BodyLimits:
    """Refuses a body that claims to be, or turns out to be, larger than its route takes.

    An answer that is given before a large body has arrived closes the connection, after a moment in which the rest is
    read away: a connection that is closed over unread bytes is reset, and the client would lose the answer.

    Parameters
    ----------
    app : ASGI application
    uploads : mapping of str to int
        In place of ``max_body_bytes`` where files are posted, by the path of the route; ``*`` in it is any name.
    """

    def __init__(self, app: ASGIApp, max_body_bytes: int, uploads: Mapping[str, int]) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._uploads = uploads
        self._patterns = {path: most for path, most in uploads.items() if "*" in path}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        claim, chunked = "", False
        for key, value in scope["headers"]:
            if key == b"content-length":
                claim = value.decode("latin-1")
            chunked = chunked or key == b"transfer-encoding"
        if not claim and not chunked:
            await self._app(scope, receive, send)
            return
        body = _Body(receive, send, self._limit(scope["path"]) if scope["method"] == "POST" else self._max_body_bytes)
        request_id = scope.get("state", {}).get("request_id")
        if claim and not (claim.isascii() and claim.isdigit()):
            await problem(Malformed("The Content-Length is not a number."), request_id)(scope, receive, send)
        elif claim and (len(claim) > 18 or int(claim) > body.limit):
            await problem(body.too_large(), request_id)(scope, receive, body.send)
        elif chunked or int(claim) > _QUIETLY_DISCARDED:
            await self._app(scope, body.receive, body.send)
        else:
            await self._app(scope, receive, send)

    def _limit(self, path: str) -> int:
        if path in self._uploads:
            return self._uploads[path]
        for pattern, most in self._patterns.items():
            if path.endswith(pattern.rpartition("*")[2]) and fnmatchcase(path, pattern):
                return most
        return self._max_body_bytes


class _Body:
    """One request's body: counts what comes in, and lingers when the answer goes out before its end."""

    def __init__(self, receive: Receive, send: Send, limit: int) -> None:
        self._receive = receive
        self._send = send
        self.limit = limit
        self._n_bytes = 0
        self._complete = False

    def too_large(self) -> TooLarge:
        return TooLarge(f"The body is larger than the limit of {self.limit} bytes.")

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._n_bytes += len(message.get("body", b""))
            self._complete = not message.get("more_body", False)
            if self._n_bytes > self.limit:
                raise self.too_large()
        else:
            self._complete = True
        return message

    async def send(self, message: Message) -> None:
        if self._complete:
            await self._send(message)
        elif message["type"] == "http.response.start":
            await self._send({**message, "headers": [*message["headers"], (b"connection", b"close")]})
        elif message.get("more_body", False):
            await self._send(message)
        else:
            await self._send({**message, "more_body": True})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._discard(), _LINGER_SECONDS)
            await self._send({"type": "http.response.body", "body": b""})

    async def _discard(self) -> None:
        while not self._complete:
            message = await self._receive()
            self._complete = message["type"] != "http.request" or not message.get("more_body", False)
