"""A load generator: connections that each send their next request when the last is answered."""

import asyncio
import time

import numpy as np
import uvloop

WARM_SECONDS = 1.0
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


class _Connection(asyncio.Protocol):
    def __init__(self, requests: list[bytes], at: int, until: list[float], latencies: list[float]) -> None:
        self._requests, self._at, self._until, self._latencies = requests, at, until, latencies
        self._seen = b""
        self._sent = 0.0
        self.over = asyncio.get_running_loop().create_future()
        self.answered = self.failed = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._at = (self._at + 1) % len(self._requests)
        self._sent = time.perf_counter()
        self._transport.write(self._requests[self._at])

    def data_received(self, data: bytes) -> None:
        self._seen += data
        end = self._seen.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._seen[:end].lower()
        mark = head.index(b"content-length:") + 15
        length = int(head[mark : (head + b"\r\n").index(b"\r\n", mark)])
        if len(self._seen) < end + 4 + length:
            return
        self.answered += 1
        self.failed += not self._seen.startswith(b"HTTP/1.1 200")
        self._seen = b""
        now = time.perf_counter()
        if now > self._until[0]:
            self._latencies.append(now - self._sent)
        if now < self._until[1]:
            self._send()
        else:
            self._transport.close()
            self.over.set_result(None)


def load(
    port: int, path: str, bodies: list[bytes], secret: str, connections: int, seconds: float, kind: str = JSON
) -> dict[str, float]:
    """Requests a second, latencies in milliseconds (p50, p99), and how many were answered, also before the time that
    counts, and not by 200.
    """
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {secret}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: "
    )
    requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]
    return uvloop.run(_run(port, requests, connections, seconds))


async def _run(port: int, requests: list[bytes], connections: int, seconds: float) -> dict[str, float]:
    begin = time.perf_counter() + WARM_SECONDS
    latencies: list[float] = []
    open_ones = []
    for number in range(connections):
        until = [begin, begin + seconds]
        _, protocol = await asyncio.get_running_loop().create_connection(
            lambda number=number, until=until: _Connection(requests, 7 * number, until, latencies),  # type: ignore[misc]
            "127.0.0.1",
            port,
        )
        open_ones.append(protocol)
    await asyncio.gather(*(one.over for one in open_ones))
    p50, p99 = np.percentile(latencies, [50, 99]) * 1000 if latencies else (np.nan, np.nan)
    answered, failed = (float(sum(getattr(one, what) for one in open_ones)) for what in ("answered", "failed"))
    rate = len(latencies) / seconds
    return {"rate": rate, "p50": float(p50), "p99": float(p99), "answered": answered, "failed": failed}
