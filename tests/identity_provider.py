"""An OpenID Connect provider on loopback that signs in whom a test names."""

import hashlib
import hmac
import json
import secrets
import threading
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

from joserfc import jws
from joserfc.jwk import ECKey, KeySet, RSAKey

CLIENT, SECRET = "polymargin", "a+secret of:the%20client"
ANN = {"sub": "user-1", "preferred_username": "ann", "email": "ann@example.org", "groups": ["annotators", "staff"]}


class IdentityProvider:
    """What the provider says, and how it errs.

    Attributes
    ----------
    user : dict
        The claims of the next person who signs in.
    wrong : dict
        Claims that the next ID tokens have instead of the right ones; None: that claim is missing.
    user_info : dict or None
        What the user information says; None: there is no such endpoint.
    algorithm : str
        Of signatures: RS256, ES256, or `none` for tokens without one.
    device_answers : list of (int, dict)
        What the token endpoint says next to the device flow, before it looks at what the person has done.
    has_device_flow : bool
        Whether the provider's document names an endpoint for it.
    """

    def __init__(self) -> None:
        self.user: dict[str, Any] = dict(ANN)
        self.wrong: dict[str, Any] = {}
        self.wrong_document: dict[str, Any] = {}
        self.user_info: dict[str, Any] | None = None
        self.algorithm = "RS256"
        self.asked: list[str] = []
        self.device_answers: list[tuple[int, dict[str, Any]]] = []
        self.has_device_flow = True
        self.interval: int | None = 1
        self.issuer = ""
        self.user_codes: list[str] = []
        self._devices: dict[str, dict[str, Any]] = {}
        self._granted: dict[str, dict[str, str]] = {}
        self._grants = 0
        self.rotate()

    def rotate(self, named: bool = True) -> None:
        """Sign with new keys from now on, and publish those alone; or with a single key without an id."""
        if not named:
            key = RSAKey.generate_key(2048)
            self.keys, self.published = {"RS256": key}, {"keys": [key.as_dict(private=False)]}
            return
        name = secrets.token_hex(4)
        self.keys: dict[str, Any] = {
            "RS256": RSAKey.generate_key(2048, {"kid": f"rsa-{name}", "use": "sig", "alg": "RS256"}),
            "ES256": ECKey.generate_key("P-256", {"kid": f"ec-{name}", "use": "sig", "alg": "ES256"}),
        }
        self.published = KeySet(list(self.keys.values())).as_dict(private=False)

    def approve(self, url: str) -> str:
        """Where a browser that was sent to ``url`` is sent back to, once the user has signed in."""
        asked = dict(parse_qsl(urlsplit(url).query))
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(16)
        self._granted[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], 'iss': self.issuer})}"

    def enter(self, user_code: str, approves: bool = True) -> None:
        """The user enters the code that a program shows, and lets it sign in or not."""
        (device,) = [one for one in self._devices.values() if one["user_code"] == user_code]
        device["state"] = "approved" if approves else "denied"

    def authorize_device(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """The answer of the device authorization endpoint (RFC 8628, 3.2)."""
        if not _is_client(authorization):
            return 401, {"error": "invalid_client"}
        assert "openid" in form["scope"].split()
        code, user_code = secrets.token_urlsafe(16), f"{secrets.token_hex(2)}-{secrets.token_hex(2)}".upper()
        self.user_codes.append(user_code)
        self._devices[code] = {"user_code": user_code, "state": "authorization_pending"}
        page = f"{self.issuer}/device"
        more = {} if self.interval is None else {"interval": self.interval}
        codes = {"device_code": code, "user_code": user_code, "expires_in": 600, "verification_uri": page}
        return 200, {**codes, "verification_uri_complete": f"{page}?user_code={user_code}", **more}

    def _redeem_device(self, code: str) -> tuple[int, dict[str, Any]]:
        if self.device_answers:
            return self.device_answers.pop(0)
        device = self._devices.get(code)
        if device is None:
            return 400, {"error": "invalid_grant"}
        if device["state"] == "denied":
            return 400, {"error": "access_denied"}
        if device["state"] != "approved":
            return 400, {"error": "authorization_pending"}
        del self._devices[code]
        return self._tokens({})

    def document(self) -> dict[str, Any]:
        names = {"authorization": "authorize", "token": "token"} | ({"userinfo": "me"} if self.user_info else {})
        names |= {"device_authorization": "device-authorization"} if self.has_device_flow else {}
        endpoints = {f"{name}_endpoint": f"{self.issuer}/{path}" for name, path in names.items()}
        return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/jwks", **endpoints, **self.wrong_document}

    def redeem(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """The answer of the token endpoint."""
        if not _is_client(authorization):
            return 401, {"error": "invalid_client"}
        if form["grant_type"] == "urn:ietf:params:oauth:grant-type:device_code":
            return self._redeem_device(form["device_code"])
        asked = self._granted.pop(form.get("code", ""), None)
        challenge = _coded(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if (
            asked is None
            or asked["redirect_uri"] != form["redirect_uri"]
            or challenge.decode() != asked["code_challenge"]
        ):
            return 400, {"error": "invalid_grant"}
        return self._tokens({"nonce": asked["nonce"]})

    def _tokens(self, more: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, **more, **self.user}
        claims = {name: value for name, value in (claims | self.wrong).items() if value is not None}
        return 200, {"access_token": "an-access-token", "token_type": "Bearer", "id_token": self._signed(claims)}

    def _signed(self, claims: dict[str, Any]) -> str:
        payload = json.dumps(claims)
        if self.algorithm == "none":
            parts = (json.dumps({"alg": "none"}).encode(), payload.encode(), b"")
            return b".".join(map(_coded, parts)).decode()
        if self.algorithm == "HS256":  # by the public key, which anybody has
            header = {"alg": "HS256", "kid": self.keys["RS256"].kid}
            text = b".".join(_coded(json.dumps(part).encode()) for part in (header, claims))
            signature = hmac.digest(self.keys["RS256"].as_pem(private=False), text, "sha256")
            return b".".join((text, _coded(signature))).decode()
        key = self.keys[self.algorithm]
        header = {"alg": self.algorithm} | ({"kid": key.kid} if key.kid else {})
        return str(jws.serialize_compact(header, payload, key, algorithms=[self.algorithm]))


def _is_client(authorization: str) -> bool:
    # both parts are encoded like a form's fields (RFC 6749, 2.3.1)
    parts = b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
    return (unquote_plus(parts[0]), unquote_plus(parts[2])) == (CLIENT, SECRET)


def _coded(part: bytes) -> bytes:
    return urlsafe_b64encode(part).rstrip(b"=")


@contextmanager
def running(host: str = "127.0.0.1") -> Iterator[IdentityProvider]:
    """A provider on a free port; to browsers, ``localhost`` is another site than ``127.0.0.1``."""
    provider = IdentityProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            provider.asked.append(url.path)
            if url.path == "/.well-known/openid-configuration":
                self._say(200, provider.document())
            elif url.path == "/jwks":
                self._say(200, provider.published)
            elif url.path == "/me" and self.headers["Authorization"] == "Bearer an-access-token":
                self._say(200, provider.user_info)
            elif url.path == "/authorize":
                target = escape(provider.approve(self.path), quote=True)
                head = '<html lang="en"><title>Provider</title><link rel="icon" href="data:,">'
                text = f'<!doctype html>{head}<a href="{target}">Continue as Ann</a>'
                self._send(200, "text/html", text.encode())
            else:
                self._say(404, {"error": "not_found"})

        def do_POST(self) -> None:
            form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            provider.asked.append(self.path)
            answer = provider.authorize_device if self.path == "/device-authorization" else provider.redeem
            self._say(*answer(form, self.headers.get("Authorization", "")))

        def _say(self, status: int, document: Any) -> None:
            self._send(status, "application/json", json.dumps(document).encode())

        def _send(self, status: int, media_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    provider.issuer = f"http://{host}:{server.server_port}"
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
