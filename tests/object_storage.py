"""A server that speaks S3 in this process, whose answers a test may spoil."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

# what S3 says when it asks to slow down
_BUSY = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"


class _Silent(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        pass


class ObjectStorage:
    """A running server.

    Attributes
    ----------
    url : str
    requests : list of (str, str)
        Methods and paths of all requests so far.
    spoil : callable
        Takes the method and the path of a request; the answer is ``busy`` for 503, ``truncated`` for half of the
        content, ``expired`` for credentials that are no longer valid, ``slow`` for an answer that comes
        ``slow_seconds`` after what was asked for is done, or None for what the server answers.
    slow_seconds : float
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.spoil: Callable[[str, str], str | None] = lambda _method, _path: None
        self.slow_seconds = 1.0
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self, threaded=True, request_handler=_Silent)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.requests.append(request)
        fault = self.spoil(*request)
        if fault == "busy":
            start_response("503 Slow Down", [("Content-Type", "application/xml")])
            return [_BUSY]
        if fault == "expired":
            start_response("403 Forbidden", [("Content-Type", "application/xml")])
            return [_BUSY.replace(b"SlowDown", b"ExpiredToken")]
        answer: Iterable[bytes] = self._app(environ, start_response)
        if fault == "slow":
            answer = [b"".join(answer)]
            time.sleep(self.slow_seconds)
        if fault == "truncated":
            content = b"".join(answer)
            return [content[: len(content) // 2]]
        return answer

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def new_bucket(self, name: str) -> None:
        """Make an empty bucket."""
        boto3.client("s3", endpoint_url=self.url).create_bucket(Bucket=name)


@contextmanager
def object_storage() -> Iterator[ObjectStorage]:
    """A server for the block."""
    server = ObjectStorage()
    try:
        yield server
    finally:
        server.stop()
