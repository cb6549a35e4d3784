"""The parts of one prediction, each measured by itself, and the whole application without sockets."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import orjson

from app.access.keys import digest
from app.main import create_app
from app.predictions import service as predictions
from benchmarks import serving_model

REPEATS = 3000


def phases(secret: str) -> list[list[str]]:
    """Rows of phase, median microseconds, share of the whole."""
    app = create_app()
    bodies = [serving_model.body(1, seed) for seed in range(64)]
    documents = [orjson.loads(body) for body in bodies]
    reference = ("default", serving_model.NAME, None, None)
    loaded = app.state.models.get(reference)
    rows = [loaded.features.row(document["instances"][0]) for document in documents]
    scores = [loaded.model.score_one(*row) for row in rows]
    answers = [predictions.predict(loaded, document, 1000) for document in documents]
    keyring = app.state.keyring
    keyring.known.get(digest(secret))

    def whole_top(at: int) -> None:
        loaded.model.top(*rows[at], 5)

    parts: dict[str, Callable[[int], Any]] = {
        "key": lambda at: (digest(secret), keyring.known.ready(digest(secret))),
        "model by its name": lambda at: app.state.models.ready(reference),
        "JSON of the request": lambda at: orjson.loads(bodies[at]),
        "features": lambda at: loaded.features.row(documents[at]["instances"][0]),
        "scores": lambda at: loaded.model.score_one(*rows[at]),
        "JSON of the answer": lambda at: orjson.dumps(answers[at]),
    }
    found = {name: _median(part) for name, part in parts.items()}
    found["best labels"] = _median(whole_top) - found["scores"]
    predicted = _median(lambda at: predictions.predict(loaded, documents[at], 1000))
    found["checks and the answer's form"] = predicted - sum(found[n] for n in ("features", "scores", "best labels"))
    assert len(scores[0]) == serving_model.CLASSES
    whole = asyncio.run(_application(app, secret, bodies))
    found["routing, middleware, counters"] = whole - sum(found.values())
    found["all, without sockets"] = whole
    return [[name, f"{1e6 * seconds:.1f}", f"{seconds / whole:.0%}"] for name, seconds in found.items()]


def _median(part: Callable[[int], Any]) -> float:
    times = np.empty(REPEATS)
    for number in range(REPEATS):
        began = time.perf_counter()
        part(number % 64)
        times[number] = time.perf_counter() - began
    return float(np.median(times))


async def _application(app: Callable[..., Awaitable[None]], secret: str, bodies: list[bytes]) -> float:
    path = f"/api/v1/models/{serving_model.NAME}/predict"
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    times = np.empty(REPEATS)
    for number in range(REPEATS):
        content = bodies[number % 64]
        headers = [
            (b"host", b"127.0.0.1"),
            (b"authorization", f"Bearer {secret}".encode()),
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(content)),
        ]
        scope = {
            "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
            "headers": headers, "http_version": "1.1", "scheme": "http", "root_path": "",
        }  # fmt: skip

        async def receive(content: bytes = content) -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        sent.clear()
        began = time.perf_counter()
        await app(scope, receive, send)
        times[number] = time.perf_counter() - began
        assert sent[0]["status"] == 200, sent
    return float(np.median(times))
