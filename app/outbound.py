"""Connections to other hosts: only to public addresses unless the settings allow others, checked before connecting."""

import http.client
import ipaddress
import socket
import ssl
from collections.abc import Collection
from urllib.parse import SplitResult, unquote, urlsplit

# IPv4 addresses inside IPv6 ones, which a gateway may route anywhere
_TRANSLATED = tuple(ipaddress.ip_network(net) for net in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32"))


class RefusedError(Exception):
    """The settings do not allow a request to this URL."""


def require_within(url: str, prefixes: str, setting: str) -> None:
    """Raise RefusedError unless a URL begins with one of the comma-separated prefixes of a setting."""
    if ".." in unquote(urlsplit(url).path).split("/"):
        raise RefusedError("an address has no ..")
    allowed = [prefix.strip() for prefix in prefixes.split(",") if prefix.strip()]
    if not any(url.startswith(prefix if prefix.endswith("/") else f"{prefix}/") for prefix in allowed):
        raise RefusedError(f"it does not begin with one of {setting}, which an administrator sets")


def parts_of(url: str, schemes: Collection[str], example: str) -> SplitResult:
    """The parts of a URL in ASCII that has one of the schemes, a host, and no user or fragment.

    Parameters
    ----------
    example : str
        Of such a URL, for the message.

    Raises
    ------
    RefusedError
        It is none.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise RefusedError(f"not a URL: {error}") from None
    plain = url.isascii() and url.isprintable() and not {" ", "\\"} & {*url}
    if parts.scheme not in schemes or not host or not plain:
        raise RefusedError(f"expected {example}, in ASCII")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise RefusedError("expected a URL with no user, password or fragment")
    return parts


def connection(parts: SplitResult, *, private: bool, setting: str, seconds: float) -> http.client.HTTPConnection:
    """A connection to an address of the URL's host that may be reached.

    Parameters
    ----------
    parts : SplitResult
        Of an http or https URL.
    private : bool
        Whether private, local and other non-public addresses may be reached.
    setting : str
        The setting that decides it, for the message.
    seconds : float
        How long to wait for the connection, and for each part of the answer.

    Raises
    ------
    RefusedError
        The host has only private addresses.
    OSError
        The name was not resolved.
    """
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(each[4][0]) for each in found]
    reached = [each for each in addresses if private or is_public(each)]
    if not reached:
        raise RefusedError(f"{host} has only private addresses; set {setting} to allow them")
    if parts.scheme == "https":
        return _HTTPS(host, port, reached[0], seconds)
    return _HTTP(host, port, reached[0], seconds)


def is_public(address: str) -> bool:
    """Whether an address belongs to the public Internet."""
    known = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(known, ipaddress.IPv6Address):
        if known.ipv4_mapped is not None:
            known = known.ipv4_mapped
        elif any(known in network for network in _TRANSLATED):
            return False
    return known.is_global and not known.is_multicast


def hang_up(connection: http.client.HTTPConnection) -> None:
    """End a connection that another thread reads from or writes to."""
    if connection.sock is not None:
        try:
            connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:  # it has ended
            return


class _HTTP(http.client.HTTPConnection):
    """A connection to a checked address, which speaks as to its name."""

    def __init__(self, host: str, port: int, address: str, seconds: float) -> None:
        super().__init__(host, port, timeout=seconds)
        self._address = address

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), self.timeout)


class _HTTPS(_HTTP):
    default_port = 443

    def connect(self) -> None:
        super().connect()
        self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)
