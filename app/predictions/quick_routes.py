"""Predictions that are known to be good: answered in few steps, as the application's layers take longer than scoring.

What may refuse a request is asked here without waiting: is its host one of this service's, its key known, its body of
a size that is taken, its model loaded? Where any of that is not known, or the answer fails, the request goes through
the application as if it had not been here, and is answered or refused there.
"""

import re
import secrets
import time
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.datastructures import State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.access.authentication import KeyRing
from app.access.keys import Principal
from app.config import Settings
from app.http.connections import AT_ONCE
from app.http.hosts import Headers, Hosts, secured
from app.http.middleware import SANE_ID
from app.http.parameters import V1
from app.operation.metrics import Metrics
from app.predictions.inference import answer
from app.predictions.model_cache import LoadedModel, ModelCache
from app.schemas import NAME_PATTERN

_LONGEST = 512
_NAME = re.compile(NAME_PATTERN)
_ROUTE = f"{V1}/models/{{ref}}/predict"  # by which these requests are counted
_PATH = re.compile(f"{V1}/models/([^/]+)/predict")
_VERSION = re.compile("[1-9][0-9]{0,8}")
_NO_EXTENSIONS: dict[str, Any] = {}
_HEADERS = {scheme: secured([(b"content-type", b"application/json")], scheme) for scheme in ("http", "https")}


def _lines(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])


_HEADS = {scheme: _lines(headers) for scheme, headers in _HEADERS.items()}


class _Known(NamedTuple):
    """What is known of a request that can be answered here."""

    principal: Principal
    loaded: LoadedModel
    request_id: str


class QuickPredictions:
    """Answers predictions with a good key of a model that is loaded, and leaves all other requests to the application.

    Parameters
    ----------
    app : ASGI application
    state : State
        The application's: settings, models, keyring, metrics.
    """

    def __init__(self, app: ASGIApp, state: State, hosts: Hosts) -> None:
        self._app = app
        self._hosts = hosts
        self._state = state
        self._settings: Settings = state.settings
        self._keyring: KeyRing = state.keyring
        self._models: ModelCache = state.models
        self._metrics: Metrics = state.metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].endswith("/predict"):
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        known = self._known(scope)
        if known is None or self._keyring.rates.acquire(known.principal.key_id):
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})["key"] = known.principal  # is admitted, should the request go on
        messages = [await receive()]
        while messages[-1].get("more_body", False):
            messages.append(await receive())
        body = await self._answer(known, messages)
        if body is None:
            await self._app(scope, _again(messages, receive), send)
            return
        of_this = [(b"content-length", b"%d" % len(body)), (b"x-request-id", known.request_id.encode())]
        at_once = scope.get("extensions", _NO_EXTENSIONS).get(AT_ONCE)
        if at_once is None or not at_once(_HEADS[scope["scheme"]] + _lines(of_this), body):
            headers = [*_HEADERS[scope["scheme"]], *of_this]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        self._metrics.answered("POST", _ROUTE, 200, time.perf_counter() - started, streamed=False)

    def _known(self, scope: Scope) -> _Known | None:
        """What is known of a request; None where its answer takes more than that."""
        given, query = scope["headers"], scope["query_string"]
        headers = dict(given)
        asked = _asked(scope["path"], query) if len(scope["path"]) + len(query) <= _LONGEST else None
        length = headers.get(b"content-length", b"")
        if (
            asked is None
            or len(headers) != len(given)  # some are there twice
            or headers.get(b"content-type") != b"application/json"
            or not length.isdigit()
            or len(length) > 18
            or int(length) > self._settings.max_body_bytes
            or not self._hosts.known(headers.get(b"host", b""))
            or scope["scheme"] not in _HEADERS
            or b"origin" in headers
            or b"transfer-encoding" in headers
        ):
            return None
        principal = self._keyring.ready(headers.get(b"authorization", b"").decode("latin-1"))
        loaded = None if principal is None else self._models.ready((principal.workspace, *asked))
        if principal is None or loaded is None:
            return None
        named = headers.get(b"x-request-id", b"")
        return _Known(principal, loaded, named.decode() if SANE_ID.fullmatch(named) else secrets.token_hex(16))

    async def _answer(self, known: _Known, messages: list[Message]) -> bytes | None:
        if messages[-1]["type"] != "http.request":
            return None
        content: bytes = messages[0]["body"]
        if len(messages) > 1:
            content = b"".join(message.get("body", b"") for message in messages)
        try:
            return await answer(self._state, known.loaded, content, known.request_id)
        except Exception:  # the application meets it again, and reports it
            return None


@lru_cache(maxsize=1024)
def _asked(path: str, query: bytes) -> tuple[str, int | None, str | None] | None:
    """The name of the model, the version and the alias; None of what the route may refuse."""
    match = _PATH.fullmatch(path)
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    named = dict(pairs)
    if (
        match is None
        or not _NAME.fullmatch(match[1])
        or len(named) != len(pairs)
        or named.keys() - {"version", "alias"}
    ):
        return None
    version, alias = named.get("version"), named.get("alias")
    if (alias is not None and not _NAME.fullmatch(alias)) or (version is not None and not _VERSION.fullmatch(version)):
        return None
    return match[1], None if version is None else int(version), alias


def _again(messages: list[Message], receive: Receive) -> Receive:
    """What receives messages once more, and then those that follow them."""
    waiting = iter(messages)

    async def receive_again() -> Message:
        message = next(waiting, None)
        return await receive() if message is None else message

    return receive_again
