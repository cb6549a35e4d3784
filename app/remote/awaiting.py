"""The client's blocking code within an event loop: what would block is awaited, and no thread is taken.

A call runs in a greenlet. Where it waits for the network, or for time, it switches back to the coroutine that began it,
which awaits that and then lets the call go on. So each request is written once, whether it is awaited or not.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import greenlet
import httpx

from app.remote.transport import Transport

R = TypeVar("R")


class _Call(greenlet.greenlet):  # type: ignore[misc]  # it comes without types
    """A blocking call that an event loop drives."""

    def __init__(self, function: Callable[..., Any]) -> None:
        current = greenlet.getcurrent()
        super().__init__(function, current)
        self.gr_context = current.gr_context


async def run(function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """What a blocking function returns, or raises; all that it waits for is awaited here."""
    call = _Call(function)
    found = call.switch(*args, **kwargs)
    while not call.dead:
        try:
            value = await found
        except BaseException:
            # a cancellation, too, reaches the place that waits
            found = call.throw(*sys.exc_info())
        else:
            found = call.switch(value)
    result: R = found
    return result


async def iterate(values: Iterator[R]) -> AsyncIterator[R]:
    """The values of a blocking iterator, each awaited."""
    nothing = object()
    try:
        while (value := await run(next, values, nothing)) is not nothing:
            yield value
    finally:
        close = getattr(values, "close", None)
        if close is not None:
            await run(close)


class AwaitingTransport(Transport):
    """As :class:`Transport`, for calls that :func:`run` drives."""

    def sleep(self, seconds: float) -> None:
        _awaited(asyncio.sleep(seconds))

    def _opened(self, **settings: Any) -> Any:
        return _Http(httpx.AsyncClient(**settings))


class _Http:
    """The part of httpx.Client's face that the transport needs, over an AsyncClient."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    def request(self, method: str, path: str, *, content: bytes | Iterator[bytes], **options: Any) -> httpx.Response:
        body = content if isinstance(content, bytes) else _pieces(content)
        found: httpx.Response = _awaited(self._client.request(method, path, content=body, **options))
        return found

    @contextmanager
    def stream(self, method: str, path: str, **options: Any) -> Iterator["_Answer"]:
        opened = self._client.stream(method, path, **options)
        response = _awaited(opened.__aenter__())
        try:
            yield _Answer(response)
        finally:
            _awaited(opened.__aexit__(*sys.exc_info()))

    def close(self) -> None:
        _awaited(self._client.aclose())


class _Answer:
    """A response that comes bit by bit."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status_code = response.status_code

    def read(self) -> bytes:
        content: bytes = _awaited(self._response.aread())
        return content

    def iter_lines(self) -> Iterator[str]:
        return _each(self._response.aiter_lines())

    def iter_bytes(self) -> Iterator[bytes]:
        return _each(self._response.aiter_bytes())


def _awaited(awaitable: Awaitable[Any]) -> Any:
    """What an awaitable comes to, for code that runs in a call."""
    call = greenlet.getcurrent()
    if not isinstance(call, _Call) or call.parent is None:
        raise RuntimeError("await the methods of this client")
    return call.parent.switch(awaitable)


def _each(values: AsyncIterator[R]) -> Iterator[R]:
    while True:
        try:
            yield _awaited(values.__anext__())
        except StopAsyncIteration:
            return


async def _pieces(content: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in content:
        yield piece
