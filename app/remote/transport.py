"""HTTP to the service: address, key, retries, and answers turned into values or errors."""

import logging
import math
import os
import random
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from uuid import uuid4

import httpx
import orjson
from pydantic import BaseModel, ValidationError

from app.json_text import faults
from app.remote import credentials
from app.remote.credentials import Credential
from app.remote.errors import (
    ClientError,
    ResponseError,
    TimedOutError,
    UnauthenticatedError,
    UnexpectedAnswerError,
    UnreachableError,
    from_answer,
)
from app.schemas import ProblemItem

B = TypeVar("B", bound=BaseModel)
Content = bytes | Callable[[], Iterator[bytes]]
Body = BaseModel | Mapping[str, Any]

DEFAULT_URL = "http://127.0.0.1:8000"
PREFIX = "/api/v1"
# in the data folder: where `polymargin up` served it last, and where its user has signed in since
ADDRESS, SIGNED_IN = Path("run/address"), Path("run/signed-in")
_ANOTHER = "To use another service, set POLYMARGIN_URL to its address."
MAX_FAULTS = 20
# Statuses that say nothing about the request itself: a later attempt may succeed.
_PASSING = frozenset({429, 502, 503, 504})
_GLANCE_SECONDS = 2.0
# what is waited for longer is said once; without a configuration of logs it is printed on stderr
_LONG_WAIT_SECONDS = 5
_log = logging.getLogger("polymargin.client")
POLL_SECONDS = 0.5


class Transport:
    """One connection pool to one service.

    Parameters
    ----------
    url : str or None
        Address of the service; None: ``POLYMARGIN_URL``, else where the service of ``POLYMARGIN_HOME`` (~/.polymargin)
        was started last, or where its user signed in since, else http://127.0.0.1:8000.
    api_key : str or None
        None: ``POLYMARGIN_API_KEY``, else the token of a sign-in to this service, else the content of ``admin.key``,
        both in ``POLYMARGIN_HOME`` (~/.polymargin).
    timeout : float
        Seconds to wait for an answer's next bytes.
    attempts : int
        How often a request is sent at most when the connection fails or the service is not ready.
    """

    def __init__(self, url: str | None, api_key: str | None, *, timeout: float = 60.0, attempts: int = 5) -> None:
        given = url or os.environ.get("POLYMARGIN_URL")
        kept = _home() / (SIGNED_IN if (_home() / SIGNED_IN).exists() else ADDRESS)
        remembered = _read(kept)
        self.url = (given or remembered or DEFAULT_URL).rstrip("/")
        # said where the service does not answer, or does not know the key
        self._chosen_by = "" if given else f", as {kept} says" if remembered else ", the default address"
        self.attempts = attempts
        self._timeout = timeout
        self.own_key = api_key or os.environ.get("POLYMARGIN_API_KEY")
        self._choose_key()

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled, as all that have a connection are then refused."""
        raise TypeError(
            "a connection to a service cannot be pickled or copied, because its key would be written too: make a "
            "Client in the process that needs one"
        )

    def close(self) -> None:
        self._http.close()

    def signed_in(self, credential: Credential) -> None:
        """Keep the token of a person who has signed in, here and for later processes; raises OSError."""
        credentials.save(_home(), self.url, credential)
        kept = _home() / SIGNED_IN
        kept.parent.mkdir(mode=0o700, exist_ok=True)
        kept.write_text(self.url + "\n")
        self._replace_key()

    def sign_in(self) -> Credential | None:
        """The token of a person who has signed in to this service and not out again; it may have expired."""
        return credentials.find(_home(), self.url)

    def signed_out(self) -> None:
        """Forget the token, and that commands are for this service; raises OSError."""
        credentials.forget(_home(), self.url)
        if _read(_home() / SIGNED_IN) == self.url:
            (_home() / SIGNED_IN).unlink()
        self._replace_key()

    def _replace_key(self) -> None:
        self._http.close()
        self._choose_key()

    def _choose_key(self) -> None:
        self._sign_in = None if self.own_key else self.sign_in()
        # only the user who started the service on this machine can read its key
        key = self.own_key or (self._sign_in.secret if self._sign_in else _read(_key_file()))
        self._key_from = None if self.own_key or self._sign_in else _key_file()
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        options: dict[str, Any] = {"timeout": self._timeout, "verify": self._trusted()}
        self._http = self._opened(base_url=self.url + PREFIX, headers=self._headers, **options)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def looks(self, timeout: float | None, still: Callable[[], str]) -> Iterator[None]:
        """One item now and then, for each look at something that is awaited; the last raises TimedOutError.

        Parameters
        ----------
        timeout : float or None
            Seconds in which to look.
        still : callable
            Says then what is as before.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            yield
            if deadline is not None and time.monotonic() >= deadline:
                raise TimedOutError(f"{still()} after {timeout:g} seconds")
            self.sleep(POLL_SECONDS)

    def wait(self, attempt: int, retry_after: str | None = None) -> None:
        """Sleep before the next attempt: 0.2 s, doubled each time, at most 5 s, less a random part."""
        seconds = min(5.0, 0.1 * 2**attempt) * random.uniform(0.5, 1.0)
        if retry_after is not None and retry_after.isdigit():
            seconds = max(seconds, min(30.0, float(retry_after)))
        self.sleep(seconds)

    def get(self, answer: type[B], path: str, **params: Any) -> B:
        return self.parsed(answer, self.send("GET", path, params=params).content)

    def post(
        self,
        answer: type[B],
        path: str,
        body: Body | None = None,
        *,
        credential: str | None = None,
        **params: Any,
    ) -> B:
        return self.ask("POST", answer, path, body, credential=credential, **params)

    def ask(
        self,
        method: str,
        answer: type[B],
        path: str,
        body: Body | None = None,
        revision: int | None = None,
        credential: str | None = None,
        **params: Any,
    ) -> B:
        """The answer to a request with a JSON body; ``revision`` and ``credential`` as of :meth:`send`."""
        response = self.send(method, path, params=params, json=body, revision=revision, credential=credential)
        return self.parsed(answer, response.content)

    def parsed(self, answer: type[B], content: bytes) -> B:
        """The body of an answer as a model.

        Raises
        ------
        UnexpectedAnswerError
            The body has another form: another program answers at the address, or a service of another version.
        """
        try:
            return answer.model_validate_json(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            reason = f"{place}: {first['msg']}" if place else str(first["msg"])
            raise UnexpectedAnswerError(self.url, answer.__name__, reason) from None

    def glance(self, answer: type[B], path: str, **params: Any) -> B | None:
        """What is at a path now, asked for once and without patience, for views; None if it does not come."""
        options: dict[str, Any] = {"headers": self._headers, "timeout": _GLANCE_SECONDS, "verify": self._trusted()}
        try:
            response = httpx.get(f"{self.url}{PREFIX}{path}", params=params, **options)
            return answer.model_validate_json(response.content) if response.status_code == 200 else None
        except (httpx.HTTPError, ValidationError):
            return None

    def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        content: Content = b"",
        json: Body | None = None,
        headers: Mapping[str, str] | None = None,
        revision: int | None = None,
        timeout: float | None = None,
        credential: str | None = None,
    ) -> httpx.Response:
        """One answer with a status below 400.

        A POST carries an ``Idempotency-Key``, the same in every attempt, so that all methods may be tried again.

        Parameters
        ----------
        content : bytes or callable
            The body, or a function that starts it again for each attempt.
        json : model or mapping, optional
            The body instead, as JSON; of a model the fields that were set.
        revision : int, optional
            The revision that the resource must have; None: whatever it has.
        timeout : float, optional
            Seconds to wait for the answer, where it takes longer than most.
        credential : str, optional
            A token in place of the client's key; empty: none.

        Raises
        ------
        UnreachableError
            No attempt reached the service.
        ResponseError
            The service refused.
        """
        sent = dict(headers or {})
        if json is not None:
            # The service is the one judge of what is valid: its message names the place, whichever client was used.
            content = _json(json.model_dump(mode="json", exclude_unset=True) if isinstance(json, BaseModel) else json)
            sent["Content-Type"] = "application/json"
        if revision is not None:
            sent["If-Match"] = f'"{revision}"'
        if credential is not None:
            sent["Authorization"] = f"Bearer {credential}" if credential else ""
        if method == "POST":
            sent.setdefault("Idempotency-Key", uuid4().hex)
        query = given(**(params or {}))
        _require_storable(query, "/query")
        said = False
        for attempt in range(1, self.attempts + 1):
            body = content if isinstance(content, bytes) else content()
            try:
                wait = httpx.USE_CLIENT_DEFAULT if timeout is None else timeout
                response = self._http.request(method, path, params=query, content=body, headers=sent, timeout=wait)
            except httpx.TransportError as error:
                if attempt == self.attempts or isinstance(error, httpx.UnsupportedProtocol):
                    raise self._unreachable(error) from None
                self.wait(attempt)
                continue
            if response.status_code < 400:
                return response
            if response.status_code not in _PASSING or attempt == self.attempts:
                if credential is not None:
                    raise from_answer(response.status_code, response.content)
                raise self._refusal(response.status_code, response.content)
            retry_after = response.headers.get("Retry-After", "")
            if not said and retry_after.isdigit() and int(retry_after) >= _LONG_WAIT_SECONDS:
                said = True
                _log.warning("%s Trying again.", from_answer(response.status_code, response.content).detail)
            self.wait(attempt, retry_after)
        raise AssertionError("unreachable: the last attempt returns or raises")

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str], timeout: float) -> Iterator[Iterator[str]]:
        """The lines of a long answer, one attempt; httpx.TransportError passes through to the caller."""
        with self._http.stream("GET", path, headers=dict(headers), timeout=timeout) as response:
            if response.status_code >= 400:
                raise self._refusal(response.status_code, response.read())
            yield response.iter_lines()

    def pieces(self, path: str, params: Mapping[str, Any]) -> Iterator[bytes]:
        """The body of a long answer as it comes, one attempt.

        Raises
        ------
        UnreachableError
            The service was not reached, or the answer was interrupted.
        ResponseError
            The service refused.
        """
        query = given(**params)
        try:
            with self._http.stream("GET", path, params=query) as response:
                if response.status_code >= 400:
                    raise self._refusal(response.status_code, response.read())
                yield from response.iter_bytes()
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    def _trusted(self) -> ssl.SSLContext | bool:
        """By which certificates the service is trusted; by none for http, as reading them takes 40 ms."""
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if self.url.startswith("http://") else True

    def _opened(self, **settings: Any) -> httpx.Client:
        return httpx.Client(**settings)

    def _refusal(self, status: int, body: bytes) -> ResponseError:
        """The error of an answer; where a key is missing or unknown, with the address and where both come from."""
        error = from_answer(status, body)
        if not isinstance(error, UnauthenticatedError):
            return error
        if "Authorization" not in self._headers:
            error.detail = (
                f"{self.url} takes an API key: set POLYMARGIN_API_KEY, or sign in with polymargin login {self.url}; "
                f"there is no {_key_file()} to be read"
            )
        elif self._sign_in is not None:
            error.detail = f"The sign-in to {self.url} has ended. Sign in again: polymargin login {self.url}"
        elif self._chosen_by or self._key_from:
            key = f"the key in {self._key_from}" if self._key_from else "this API key"
            error.detail = f"{self.url}{self._chosen_by}, does not know {key}. {_ANOTHER}"
        return error

    def _unreachable(self, error: httpx.TransportError) -> UnreachableError:
        if isinstance(error, httpx.UnsupportedProtocol):
            return UnreachableError(
                f"{self.url} is not the address of a service; it must begin with http:// or https://"
            )
        reason = str(error) or type(error).__name__
        advice = f" {_ANOTHER}" if self._chosen_by else ""
        return UnreachableError(
            f"No answer from {self.url}{self._chosen_by} ({reason}). Is the service running?{advice}"
        )


def given(**fields: Any) -> dict[str, Any]:
    """The fields of a request that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


class Resource:
    """A part of the client, which asks the service by the client's connection."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport


def _json(body: Any) -> bytes:
    """A request's JSON; raises ClientError where it has a value that JSON cannot write."""
    try:
        content = orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY, default=_listed)
    except orjson.JSONEncodeError as error:
        _require_storable(body)
        raise ClientError(f"The request cannot be written: {error}") from None
    # NaN and infinities become null, which the service could only take for what was left out
    fault = next(_not_finite(body), None) if b"null" in content else None
    if fault is not None:
        raise ClientError("The request has a number that is not finite", [fault])
    return content


def _listed(value: Any) -> Any:
    """An array whose values are not side by side in memory, as a column or each second number of a row is."""
    if not hasattr(value, "tolist"):
        raise TypeError
    return value.tolist()


def _require_storable(value: Any, prefix: str = "") -> None:
    """Raise ClientError where text has half of a surrogate pair, as arguments in another encoding than UTF-8 have."""
    found = [ProblemItem(pointer=prefix + place, detail=reason) for place, reason in islice(faults(value), MAX_FAULTS)]
    if found:
        raise ClientError("The request has text that cannot be stored", found)


def _not_finite(value: Any, pointer: str = "") -> Iterator[ProblemItem]:
    if isinstance(value, float):
        if not math.isfinite(value):
            yield ProblemItem(pointer=pointer, detail=f"{value} is not a finite number")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            # NaN is how data frames say that a value is missing, and null is how records do
            if name != "record":
                yield from _not_finite(inner, f"{pointer}/{name}")
    elif isinstance(value, list | tuple):
        for at, inner in enumerate(value):
            yield from _not_finite(inner, f"{pointer}/{at}")
    elif hasattr(value, "tolist"):
        yield from _not_finite(value.tolist(), pointer)


def _home() -> Path:
    home = os.environ.get("POLYMARGIN_HOME")
    return Path(home) if home else Path.home() / ".polymargin"


def _key_file() -> Path:
    return _home() / "admin.key"


def _read(file: Path) -> str | None:
    return file.read_text().strip() or None if os.access(file, os.R_OK) else None
