"""Signed requests to other hosts: allowed names only, connected by an address that was checked, never redirected.

The signature is that of Standard Webhooks: HMAC-SHA256 of id, time and body.
"""

import base64
import binascii
import hmac
import http.client
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult

from app import outbound
from app.config import settings
from app.errors import InvalidInput, Item
from app.outbound import RefusedError, hang_up
from app.version import VERSION

_PREFIX = "whsec_"
_SECONDS = 10.0
# of an attempt: a receiver that answers byte by byte does not hold up others for longer
_MOST_SECONDS = 15.0


@dataclass(frozen=True)
class Sent:
    """What came of one attempt: the status that the receiver answered, or why there is none."""

    status: int | None
    error: str | None = None


def new_secret() -> str:
    """A key of 32 random bytes, as receivers configure it."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """The header ``webhook-signature`` of a request; raises ValueError for a secret that is none."""
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("a secret must be whsec_ followed by base64") from None
    digest = hmac.new(key, f"{id}.{timestamp}.".encode() + body, "sha256").digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def check_url(url: str) -> None:
    """Raise InvalidInput unless the settings allow requests to the URL."""
    try:
        _allowed(url)
    except RefusedError as error:
        raise InvalidInput("the URL is not allowed", [Item(str(error), "/url")]) from None


def send(url: str, secrets: Sequence[str], id: str, timestamp: int, body: bytes) -> Sent:
    """Send one delivery by POST, signed with each secret.

    Redirects are not followed, and nothing of the answer but its status is kept.
    """
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"polymargin/{VERSION}",
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(secret, id, timestamp, body) for secret in secrets),
    }
    try:
        parts = _allowed(url)
        private = settings().webhook_private
        connection = outbound.connection(parts, private=private, setting="POLYMARGIN_WEBHOOK_PRIVATE", seconds=_SECONDS)
    except RefusedError as error:
        return Sent(None, str(error))
    except OSError as error:
        return Sent(None, f"the name was not resolved: {error}"[:300])
    late = threading.Timer(_MOST_SECONDS, hang_up, (connection,))
    late.daemon = True
    late.start()
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, body, headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return Sent(None, f"{type(error).__name__}: {error}"[:300])
    finally:
        late.cancel()
        connection.close()
    if 200 <= status < 300:
        return Sent(status)
    note = "; redirects are not followed" if 300 <= status < 400 else ""
    return Sent(status, f"the receiver answered {status}{note}")


def _allowed(url: str) -> SplitResult:
    """The parts of a URL that the settings allow; raises RefusedError."""
    parts = outbound.parts_of(url, ("https", "http"), "a URL such as https://hooks.example.org/path")
    host = parts.hostname or ""
    if parts.scheme == "http" and not settings().webhook_private:
        raise RefusedError("http is not encrypted; give an https URL, or set POLYMARGIN_WEBHOOK_PRIVATE")
    names = [name.strip().lower() for name in settings().webhook_hosts.split(",") if name.strip()]
    if not any(name in ("*", host) or (name.startswith(".") and host.endswith(name)) for name in names):
        raise RefusedError(f"the host {host} is not one of POLYMARGIN_WEBHOOK_HOSTS")
    return parts
