"""Endpoints to measure the service by: one that does nothing, and one that parses and scores and does nothing else.

``python -m benchmarks.serving_peers bare|scoring PORT MODEL``
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import uvicorn

from solvers.core.model import Model
from solvers.core.stored_models import load_model

_HEAD = [(b"content-type", b"application/json")]


async def _body(receive: Any) -> bytes:
    message = await receive()
    content: bytes = message["body"]
    while message["more_body"]:
        message = await receive()
        content += message["body"]
    return content


async def _answer(send: Any, body: bytes) -> None:
    head = [*_HEAD, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body."""
    await _body(receive)
    await _answer(send, b'{"predictions": []}')


def scoring(model: Model) -> Any:
    """Parses the body, and scores its instances one by one."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        document = orjson.loads(await _body(receive))
        answers = []
        for instance in document["instances"]:
            indices, values = np.array(instance["indices"], np.int32), np.array(instance["values"])
            best, scores = model.top(indices, values, document["top_k"])
            answers.append([(model.classes[c], s) for c, s in zip(best.tolist(), scores.tolist(), strict=True)])
        await _answer(send, orjson.dumps({"predictions": answers}))

    return app


if __name__ == "__main__":
    kind, port, folder = sys.argv[1:]
    app: Any = bare if kind == "bare" else scoring(load_model(Path(folder))[0])
    uvicorn.run(app, port=int(port), lifespan="off", ws="none", log_level="error", access_log=False)
