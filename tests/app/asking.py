"""Asking the application, and what every answer has in common."""

import asyncio
import warnings
from typing import Any

from fastapi import FastAPI

with warnings.catch_warnings():
    # Starlette's client would rather have a fork of httpx; the one that is installed does as well.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient as _TestClient


class TestClient(_TestClient):
    """A client that asks by an address, as its name is none of the service's."""

    __test__ = False

    def __init__(self, app: FastAPI, **kwargs: Any) -> None:
        super().__init__(app, **{"base_url": "http://127.0.0.1", **kwargs})


MARKER = "xyzzyplugh"
JSON = {"Content-Type": "application/json"}


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def problem(response: Any, status: int, code: str | None = None) -> dict[str, Any]:
    """The problem document of ``response``, which has ``status`` and the form that all of them have."""
    assert response.status_code == status, response.text[:500]
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document["status"] == status
    assert document["request_id"] == response.headers["x-request-id"]
    assert document["title"]
    assert document["detail"]
    assert len(document["errors"]) <= 20
    assert code is None or document["code"] == code
    return document


async def call(
    app: FastAPI, url: str, headers: dict[str, str], chunks: list[bytes | None], method: str = "POST"
) -> tuple[dict[str, Any], bytes, int]:
    """Send chunks (an empty one ends the body, None is the client going away); the answer's head, body and reads.

    After the last chunk the client stays, and says nothing.
    """
    path, _, query = url.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "http_version": "1.1",
        "scheme": "http",
    }
    head: dict[str, Any] = {}
    body = bytearray()
    reads = 0

    async def receive() -> dict[str, Any]:
        nonlocal reads
        reads += 1
        if reads > len(chunks):
            await asyncio.Event().wait()
        chunk = chunks[reads - 1]
        if chunk is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": chunk, "more_body": bool(chunk)}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            head.update(message)
        else:
            body.extend(message["body"])

    await app(scope, receive, send)
    return head, bytes(body), reads
