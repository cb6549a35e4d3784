"""Python client for event loops: the methods of :class:`app.client.Client`, each of them to be awaited.

``async with AsyncClient() as client: job = await client.train("papers", "topics"); await job.wait()``
"""

import functools
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Self, get_origin

from app.client import Client
from app.remote.awaiting import AwaitingTransport, iterate, run

_CLIENT_MODULE = re.compile(rf"{re.escape(Client.__module__.removesuffix('client'))}(client|remote\.\w+|\w+\.client)")


class AsyncClient:
    """A connection to one service, for one event loop.

    All that a :class:`app.client.Client` has is here, and is described there. Methods are awaited, ``job.events()``
    is for ``async for``, and the jobs and datasets that are returned have methods of the same kind. Files are read and
    written within the loop's thread.

    Parameters
    ----------
    url, api_key, timeout, attempts
        As of :class:`app.client.Client`.
    """

    def __init__(
        self, url: str | None = None, api_key: str | None = None, *, timeout: float = 60.0, attempts: int = 5
    ) -> None:
        self._client = _BlockingClient(url, api_key, timeout=timeout, attempts=attempts)

    def __getattr__(self, name: str) -> Any:
        return _attribute(self._client, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *dir(self._client)]

    def __repr__(self) -> str:
        return f"<AsyncClient of {self._client.url}>"

    async def close(self) -> None:
        await run(self._client.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class _BlockingClient(Client):
    _connect = AwaitingTransport


class _Awaited:
    """A part of the client, or a job or dataset, whose methods are awaited."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __getattr__(self, name: str) -> Any:
        return _attribute(self._value, name)

    def __dir__(self) -> list[str]:
        return dir(self._value)

    def __repr__(self) -> str:
        return repr(self._value)

    def __eq__(self, other: object) -> bool:
        return bool(self._value == (other._value if isinstance(other, _Awaited) else other))

    __hash__ = None  # type: ignore[assignment]  # as of the bodies within


def _attribute(owner: Any, name: str) -> Any:
    if name.startswith("_") and name != "_repr_html_":
        raise AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}")
    value = getattr(owner, name)
    if inspect.ismethod(value) and _CLIENT_MODULE.fullmatch(value.__func__.__module__):
        return _awaiting(value)
    return _shown(value)


def _awaiting(method: Callable[..., Any]) -> Callable[..., Any]:
    if get_origin(inspect.signature(method).return_annotation) is Iterator:

        @functools.wraps(method)
        def each(*args: Any, **kwargs: Any) -> Any:
            return iterate(method(*args, **kwargs))

        return each

    @functools.wraps(method)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        return _shown(await run(method, *args, **kwargs))

    return awaited


def _shown(value: Any) -> Any:
    return _Awaited(value) if hasattr(value, "_transport") else value


def __getattr__(name: str) -> Any:
    if name == "AsyncPolymargin":
        warnings.warn(
            "AsyncPolymargin is now polymargin.AsyncClient; this name will be removed in version 1.1",
            DeprecationWarning,
            stacklevel=2,
        )
        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
