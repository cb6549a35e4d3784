"""Sign-ins by a proxy that has asked the person already, as oauth2-proxy does: it says in headers who asks.

Only the address of the connection itself counts, never one that a header names.
"""

import ipaddress

from starlette.types import ASGIApp, Receive, Scope, Send

from app.access.keys import PROXY
from app.access.people import LONGEST_SUBJECT, Visitor, groups_in
from app.config import Settings

_PEER = "peer"


class Peer:
    """Notes the address of each connection, before what a trusted proxy says of the client's takes its place."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope.setdefault("state", {})[_PEER] = scope.get("client")
        await self._app(scope, receive, send)


class Proxies:
    """The proxies whose headers name people.

    Parameters
    ----------
    config : Settings
        With addresses of proxies.
    """

    def __init__(self, config: Settings) -> None:
        self._networks = config.sign_in_networks
        self._user = config.proxy_user_header.lower().encode()
        self._name = config.proxy_name_header.lower().encode()
        self._groups = config.proxy_groups_header.lower().encode()

    def visitor(self, scope: Scope) -> Visitor | None:
        """The person whom a proxy's request is from; None where it comes from elsewhere or names nobody."""
        subject = self.user(scope)
        if subject is None:
            return None
        name = _value(scope, self._name) or subject
        return Visitor(PROXY, subject, name, groups_in(",".join(_values(scope, self._groups))))

    def user(self, scope: Scope) -> str | None:
        """The user whom a proxy's request names; None where it comes from elsewhere or names nobody."""
        user = _value(scope, self._user) if self._is_trusted(scope) else None
        return user if user and len(user) <= LONGEST_SUBJECT else None

    def _is_trusted(self, scope: Scope) -> bool:
        client = scope.get("state", {}).get(_PEER, scope.get("client"))
        try:
            address = ipaddress.ip_address(client[0] if client else "")
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)


def _value(scope: Scope, header: bytes) -> str | None:
    """The header's text; None where there is none or several, of which one may be the client's."""
    values = _values(scope, header)
    return values[0].strip() if len(values) == 1 else None


def _values(scope: Scope, header: bytes) -> list[str]:
    return [value.decode("utf-8", "replace") for name, value in scope["headers"] if name == header]
