"""A load generator that keeps a pace: requests are due at fixed moments, whether or not those before are answered.

A request's time counts from the moment at which it was due, so that what waits for a busy service is not left out.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import uvloop


class Paced(NamedTuple):
    """One request.

    Attributes
    ----------
    due : float
        When it was due, by ``time.perf_counter``.
    seconds : float
        Until its answer was whole.
    good : bool
        It was answered 200.
    """

    due: float
    seconds: float
    good: bool


def keep_pace(
    port: int,
    path: str,
    bodies: Sequence[bytes],
    secret: str,
    rate: float,
    seconds: float,
    connections: int = 16,
    note: Callable[[Paced], None] | None = None,
) -> list[Paced]:
    """Ask so many times a second for so long.

    Parameters
    ----------
    note : callable, optional
        Is given each request once it is answered.
    """
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {secret}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    )
    requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]
    return uvloop.run(_run(port, requests, rate, seconds, connections, note or (lambda _: None)))


async def _run(
    port: int,
    requests: list[bytes],
    rate: float,
    seconds: float,
    connections: int,
    note: Callable[[Paced], None],
) -> list[Paced]:
    waiting: asyncio.Queue[float | None] = asyncio.Queue()
    found: list[Paced] = []
    askers = [
        asyncio.create_task(_ask(port, requests[number :: min(connections, len(requests))], waiting, found, note))
        for number in range(min(connections, len(requests)))
    ]
    began = time.perf_counter()
    for number in range(int(rate * seconds)):
        due = began + number / rate
        ahead = due - time.perf_counter()
        if ahead > 0:
            await asyncio.sleep(ahead)
        waiting.put_nowait(due)
    for _ in askers:
        waiting.put_nowait(None)
    await asyncio.gather(*askers)
    return found


async def _ask(
    port: int,
    requests: list[bytes],
    waiting: asyncio.Queue[float | None],
    found: list[Paced],
    note: Callable[[Paced], None],
) -> None:
    streams, at = None, 0
    while (due := await waiting.get()) is not None:
        at = (at + 1) % len(requests)
        try:
            if streams is None:
                streams = await asyncio.open_connection("127.0.0.1", port)
            streams[1].write(requests[at])
            head = (await streams[0].readuntil(b"\r\n\r\n")).lower()
            mark = head.index(b"content-length:") + 15
            await streams[0].readexactly(int(head[mark : head.index(b"\r\n", mark)]))
            good = head.startswith(b"http/1.1 200")
            if b"connection: close" in head:
                streams = None
        except (OSError, asyncio.IncompleteReadError, ValueError):
            streams, good = None, False
        found.append(Paced(due, time.perf_counter() - due, good))
        note(found[-1])
    if streams is not None:
        streams[1].close()
