"""Security headers on every answer, and the hosts and origins that are served."""

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache

from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import Forbidden, Malformed, Misdirected, PolymarginError
from app.http.problems import problem

_MOST_SERVED = 1000
_MOST_PORT = 65_535
# RFC 9110, section 7.2: a name or address, that of IPv6 in brackets, and a port
_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::(?P<port>[0-9]{0,5}))?")
_SAFE = {"GET", "HEAD", "OPTIONS"}
_CLOSED = b"default-src 'none'; frame-ancestors 'none'"
# pages have their styles and scripts from here alone; pictures bring their styles along
_PAGE = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_PICTURE = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_OWN = {name for name, _ in _ALWAYS} | {b"content-security-policy", b"cache-control", b"strict-transport-security"}
Headers = list[tuple[bytes, bytes]]


def secured(headers: Iterable[tuple[bytes, bytes]], scheme: str) -> Headers:
    """The headers of an answer with those that keep browsers from doing more with it than showing it."""
    given = [(name.lower(), value) for name, value in headers]
    of_names = dict(given)
    media_type = of_names.get(b"content-type", b"")
    policy = _CLOSED
    if media_type.startswith(b"text/html"):
        policy = _PAGE
    elif media_type.startswith(b"image/svg"):
        policy = _PICTURE
    added = _added(policy, scheme == "https")
    if of_names.keys().isdisjoint(_OWN):
        return given + added
    return given + [pair for pair in added if pair[0] not in of_names]


@lru_cache
def _added(policy: bytes, secure: bool) -> Headers:
    more = [*_ALWAYS, (b"content-security-policy", policy), (b"cache-control", b"no-store")]
    return [*more, (b"strict-transport-security", b"max-age=31536000")] if secure else more


class Hosts:
    """The names by which the service may be asked.

    Parameters
    ----------
    names : str
        With commas between, ``.example.org`` for all below it, ``*`` for any. Addresses and localhost always are.
    """

    def __init__(self, names: str) -> None:
        self._names = {name.strip().lower() for name in names.split(",") if name.strip()}
        self._known: set[bytes] = set()  # as requests spell them

    def known(self, host: bytes) -> bool:
        """Whether a ``Host`` was found to be served before."""
        return host in self._known

    def serves(self, host: bytes) -> bool:
        """Whether a ``Host`` is served."""
        if host in self._known:
            return True
        served = self._is_own(host.decode("latin-1").strip().lower())
        if served and len(self._known) < _MOST_SERVED:
            self._known.add(host)
        return served

    def _is_own(self, host: str) -> bool:
        # urlsplit would ignore what is between a bracket and the port, and before an @
        found = _HOST.fullmatch(host)
        if found is None or int(found["port"] or 0) > _MOST_PORT:
            return False
        name = found["name"] or ""
        if found["address"]:
            try:
                ipaddress.IPv6Address(found["address"])
            except ValueError:
                return False
            return True
        if name == "localhost" or name.endswith(".localhost") or "*" in self._names or name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return any(known.startswith(".") and name.endswith(known) for known in self._names)
        return True


class HostCheck:
    """Refuses requests for names that are none of this service's, and changes that other sites' pages ask for.

    A page whose name an attacker lets point to this machine (DNS rebinding) says its own name as Host. Addresses and
    localhost cannot be redirected so, and are always served.

    Parameters
    ----------
    app : ASGI application
    origins : str
        Origins with commas between, as ``https://example.org``, whose pages may ask for changes; its own always may.
    """

    def __init__(self, app: ASGIApp, hosts: Hosts, origins: str) -> None:
        self._app = app
        self._hosts = hosts
        self._origins = {origin.strip().lower().rstrip("/") for origin in origins.split(",") if origin.strip()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = self._fault(scope) if scope["type"] == "http" else None
        if fault is None:
            await self._app(scope, receive, send)
        else:
            await problem(fault, scope.get("state", {}).get("request_id"))(scope, receive, send)

    def _fault(self, scope: Scope) -> PolymarginError | None:
        host = origin = None
        for name, value in scope["headers"]:
            if name == b"host":
                if host is not None:
                    return Malformed("The request has several Host headers.")
                host = value
            elif name == b"origin":
                origin = value.decode("latin-1").strip().lower()
        if host is not None and not self._hosts.serves(host):
            return Misdirected(
                "The Host header is not an allowed name of this service; add it to POLYMARGIN_ALLOWED_HOSTS."
            )
        if origin is not None and scope["method"] not in _SAFE and not self._may_change(origin, host):
            return Forbidden(
                "Pages of this Origin must not change anything; POLYMARGIN_ALLOWED_ORIGINS lists the allowed origins."
            )
        return None

    def _may_change(self, origin: str, host: bytes | None) -> bool:
        own = None if host is None else host.decode("latin-1").strip().lower()
        return origin in self._origins or (own is not None and origin.partition("://")[2] == own)
