"""Sign-ins through an OpenID Connect provider: the authorization code flow, with PKCE, state and nonce, and the device
flow (RFC 8628).

A browser keeps one random secret while its user is at the provider. State, nonce and code verifier are derived from it:
any API process can finish what another began, and an answer for another browser is refused. A program keeps its device
code in the same way.
"""

import hmac
import json
import secrets
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote_plus, urlencode, urlsplit

import httpx
import structlog
from pydantic import ValidationError

from app.access.people import LONGEST_SUBJECT, Visitor, groups_in
from app.access.schemas import DeviceCode
from app.config import Settings
from app.errors import Forbidden, NotFound, Unauthenticated, Unavailable

log = structlog.get_logger()

START = "/sign-in/openid"
CALLBACK = f"{START}/callback"
ATTEMPT_SECONDS = 900
# by keys that only the provider has: never `none`, and never a secret that both have
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]
_KEPT_SECONDS = 3600.0
_TIMEOUT_SECONDS = 10.0
_MOST_BYTES = 1 << 20
_LEEWAY_SECONDS = 60
_AGAIN = "Try to sign in again."
_DEVICE_ENDPOINT = "device_authorization_endpoint"
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
Waiting = Literal["pending", "slow_down"]
_WAITING: dict[str, Waiting] = {"authorization_pending": "pending", "slow_down": "slow_down"}


def new_attempt() -> str:
    """The secret of a new attempt to sign in."""
    return secrets.token_urlsafe(32)


class Provider:
    """The identity provider that the settings name; it is asked only when a person signs in.

    Parameters
    ----------
    config : Settings
        With an issuer.
    """

    def __init__(self, config: Settings) -> None:
        self._config = config
        self._secret = config.openid_secret
        self.host = urlsplit(config.openid_issuer).hostname or ""
        self.start_url = config.public_url + START
        self._redirect_uri = config.public_url + CALLBACK
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, Any]] = {}

    def authorization_url(self, attempt: str) -> str:
        """Where to send a browser that has begun an attempt.

        Raises
        ------
        Unavailable
            The provider does not answer, or not as OpenID Connect says.
        """
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        endpoint = self._endpoint("authorization_endpoint")
        query = {
            "response_type": "code",
            "client_id": self._config.openid_client_id,
            "redirect_uri": self._redirect_uri,
            "scope": self._config.openid_scopes,
            "state": _derived(attempt, "state"),
            "nonce": _derived(attempt, "nonce"),
            "code_challenge": create_s256_code_challenge(_derived(attempt, "verifier")),
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    def visitor(self, attempt: str, answer: Mapping[str, str]) -> Visitor:
        """Who has signed in, from the query with which the provider has sent the browser back.

        Raises
        ------
        Unauthenticated
            The answer belongs to another attempt or issuer, the provider refuses it, or the ID token is not valid.
        Unavailable
            The provider does not answer, or not as OpenID Connect says.
        """
        if not hmac.compare_digest(_derived(attempt, "state").encode(), answer.get("state", "").encode()):
            raise Unauthenticated(f"The answer belongs to another sign-in, or is too old. {_AGAIN}")
        if answer.get("iss", self._config.openid_issuer) != self._config.openid_issuer:
            raise Unauthenticated(f"The answer comes from another identity provider. {_AGAIN}")
        if "error" in answer or not answer.get("code"):
            log.warning("openid.refused", error=answer.get("error", "")[:100])
            raise Unauthenticated(f"The identity provider did not sign you in. {_AGAIN}")
        tokens = self._redeem(answer["code"], _derived(attempt, "verifier"))
        claims = self._claims(tokens, _derived(attempt, "nonce"))
        return self._described(claims, tokens.get("access_token"))

    def device_code(self) -> DeviceCode:
        """The codes of a new sign-in by a program (RFC 8628, 3.1 and 3.2).

        Raises
        ------
        NotFound
            The provider has no device flow, or not for this client.
        Unavailable
            The provider does not answer, or not as RFC 8628 says.
        """
        # read again before a no: who has just allowed the flow at the provider tries it at once
        if not any(isinstance(self._document(fresh).get(_DEVICE_ENDPOINT), str) for fresh in (False, True)):
            raise NotFound(f"{self.host} has no device flow. Use an API key.")
        status, answer = self._post(_DEVICE_ENDPOINT, {"scope": self._config.openid_scopes})
        if status != 200:
            error = str(answer.get("error", ""))[:100]
            log.warning("openid.device_refused", status=status, error=error)
            if status >= 500:
                raise Unavailable("The identity provider does not answer as expected.")
            if error == "invalid_client":
                raise NotFound(f"{self.host} does not accept this service's client id and secret. Use an API key.")
            raise NotFound(f"{self.host} does not allow the device flow for this service. Use an API key.")
        try:
            return DeviceCode.model_validate(answer)
        except ValidationError as error:
            log.warning("openid.device_code", fields=[fault["loc"] for fault in error.errors(include_input=False)])
            raise Unavailable("The identity provider does not answer as expected.") from None

    def device_visitor(self, device_code: str) -> Visitor | Waiting:
        """Who has entered the user code of a sign-in, or what the provider says as long as nobody has (RFC 8628, 3.5).

        Raises
        ------
        Forbidden
            The person has refused the sign-in.
        Unauthenticated
            The code is unknown, was used or has expired, or the ID token is not valid.
        Unavailable
            The provider does not answer, or not as OpenID Connect says.
        """
        status, answer = self._post("token_endpoint", {"grant_type": _DEVICE_GRANT, "device_code": device_code})
        error = str(answer.get("error", ""))
        if status >= 500:
            log.warning("openid.no_answer", status=status)
            raise Unavailable("The identity provider does not answer as expected.")
        if error in _WAITING:
            return _WAITING[error]
        if error == "access_denied":
            raise Forbidden(f"The sign-in was declined at {self.host}.")
        if error == "expired_token":
            raise Unauthenticated("Nobody entered the code before it expired. Sign in again.")
        tokens = self._confirmed(status, answer)
        return self._described(self._claims(tokens, None), tokens.get("access_token"))

    def _redeem(self, code: str, verifier: str) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": verifier,
        }
        return self._confirmed(*self._post("token_endpoint", form))

    def _confirmed(self, status: int, tokens: dict[str, Any]) -> dict[str, Any]:
        if status != 200 or not isinstance(tokens.get("id_token"), str):
            log.warning("openid.code_refused", status=status, error=str(tokens.get("error", ""))[:100])
            raise Unauthenticated(f"The identity provider did not confirm the sign-in. {_AGAIN}")
        return tokens

    def _post(self, name: str, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """The answer of an endpoint to a form that this service sends as the provider's client."""
        from authlib.oauth2.auth import ClientAuth

        endpoint = self._endpoint(name)
        method, name_and_secret = "none", (self._config.openid_client_id, self._secret)
        if self._secret:
            known = self._document().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
            method = "client_secret_basic" if "client_secret_basic" in known else "client_secret_post"
        if method == "client_secret_basic":  # encoded like a form's fields (RFC 6749, 2.3.1), which authlib leaves out
            name_and_secret = (quote_plus(self._config.openid_client_id), quote_plus(self._secret))
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        auth = ClientAuth(*name_and_secret, method)
        endpoint, headers, body = auth.prepare("POST", endpoint, headers, urlencode(form))
        return _ask("POST", endpoint, headers, body)

    def _claims(self, tokens: dict[str, Any], nonce: str | None) -> dict[str, Any]:
        """The claims of a valid ID token; without a nonce where no browser carries it, as in the device flow."""
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt
        from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError

        try:
            try:
                token = jwt.decode(tokens["id_token"], self._keys(), algorithms=_ALGORITHMS)
            except (InvalidKeyIdError, BadSignatureError):  # the provider may have changed its keys, which need no id
                token = jwt.decode(tokens["id_token"], self._keys(fresh=True), algorithms=_ALGORITHMS)
            options: Any = {
                "iss": {"essential": True, "value": self._config.openid_issuer},
                "aud": {"essential": True, "value": self._config.openid_client_id},
            }
            params = {
                "nonce": nonce,
                "client_id": self._config.openid_client_id,
                "access_token": tokens.get("access_token"),
            }
            claims = CodeIDToken(token.claims, token.header, options, params)
            claims.validate(leeway=_LEEWAY_SECONDS)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            log.warning("openid.token_refused", error=type(error).__name__)
            raise Unauthenticated(f"The identity provider's token is not valid. {_AGAIN}") from None
        return dict(claims)

    def _described(self, claims: dict[str, Any], access_token: object) -> Visitor:
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT:
            raise Unauthenticated("The identity provider's token does not name a user.")
        groups = _found(claims, self._config.openid_groups_claim)
        endpoint = self._document().get("userinfo_endpoint")
        if groups is None and isinstance(endpoint, str) and isinstance(access_token, str):
            _require_safe(endpoint, self._config.openid_issuer)
            status, more = _ask("GET", endpoint, {"Authorization": f"Bearer {access_token}"})
            if status == 200 and more.get("sub") == subject:
                claims = {**more, **claims}
                groups = _found(claims, self._config.openid_groups_claim)
        names = (self._config.openid_name_claim, "email", "name", "sub")
        name = next(name for name in (_found(claims, one) for one in names) if isinstance(name, str) and name)
        return Visitor(self._config.openid_issuer, subject, name, groups_in(groups))

    def _keys(self, fresh: bool = False) -> Any:
        from joserfc.jwk import KeySet

        return KeySet.import_key_set(self._fetched(self._endpoint("jwks_uri"), fresh))  # type: ignore[arg-type]

    def _endpoint(self, name: str) -> str:
        endpoint = self._document().get(name)
        if not isinstance(endpoint, str):
            raise Unavailable(f"The identity provider names no {name}.")
        _require_safe(endpoint, self._config.openid_issuer)
        return endpoint

    def _document(self, fresh: bool = False) -> dict[str, Any]:
        issuer = self._config.openid_issuer
        document = self._fetched(f"{issuer.rstrip('/')}/.well-known/openid-configuration", fresh)
        if document.get("issuer") != issuer:
            log.warning("openid.other_issuer", expected=issuer, found=str(document.get("issuer"))[:200])
            raise Unavailable("The identity provider's issuer differs from POLYMARGIN_OPENID_ISSUER.")
        return document

    def _fetched(self, url: str, fresh: bool = False) -> dict[str, Any]:
        with self._lock:
            at, document = self._kept.get(url, (0.0, None))
        if document is None or fresh or time.monotonic() - at > _KEPT_SECONDS:
            status, document = _ask("GET", url, {"Accept": "application/json"})
            if status != 200:
                log.warning("openid.no_document", url=url, status=status)
                raise Unavailable("The identity provider does not answer as expected.")
            with self._lock:
                self._kept[url] = time.monotonic(), document
        found: dict[str, Any] = document
        return found


def _derived(attempt: str, purpose: str) -> str:
    value = hmac.digest(attempt.encode(), f"openid {purpose}".encode(), "sha256")
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def _found(claims: Mapping[str, Any], path: str) -> Any:
    """The claim of that name, or where its dots lead; None where there is none."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _require_safe(endpoint: str, issuer: str) -> None:
    """Raise Unavailable for an endpoint without TLS, unless the issuer itself is on loopback."""
    if not endpoint.startswith("https://") and not issuer.startswith("http://"):
        log.warning("openid.unsafe_endpoint", url=endpoint[:200])
        raise Unavailable("The identity provider gives an address without TLS.")


def _ask(method: str, url: str, headers: Mapping[str, str], body: str | None = None) -> tuple[int, dict[str, Any]]:
    """Ask the provider; the status, and the JSON object that it answers. Raises Unavailable."""
    content = b""
    try:
        with httpx.stream(method, url, headers=dict(headers), content=body, timeout=_TIMEOUT_SECONDS) as response:
            for part in response.iter_bytes():
                content += part
                if len(content) > _MOST_BYTES:
                    raise ValueError("the answer is too long")
        document = json.loads(content)
        if not isinstance(document, dict):
            raise ValueError("the answer is not an object")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        log.warning("openid.no_answer", url=url, error=type(error).__name__)
        raise Unavailable("The identity provider does not answer as expected.") from error
    return response.status_code, document
