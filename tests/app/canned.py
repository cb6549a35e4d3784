"""A service of canned answers on loopback, which remembers what it was asked."""

import json
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

from app.cli import main

JOB = {
    "id": "j1",
    "kind": "train",
    "state": "running",
    "dataset": "d1",
    "request": {"model": "topics"},
    "attempt": 1,
    "worker": "w",
    "progress": None,
    "result": None,
    "error": None,
    "created_at": "2025-01-02T03:04:05Z",
    "started_at": None,
    "finished_at": None,
}
SUCCEEDED = JOB | {"state": "succeeded", "result": {"model": "topics", "version": 3}}
DATASET = {
    "id": "d1",
    "name": "papers",
    "format": "jsonl",
    "state": "importing",
    "sha256": "0" * 64,
    "size_bytes": 3,
    "created_at": "2025-01-02T03:04:05Z",
}
HIERARCHY = {
    "id": "h1",
    "name": "tree",
    "format": "csv",
    "sha256": "0" * 64,
    "n_nodes": 7,
    "n_leaves": 5,
    "depth": 2,
    "levels": [2, 5],
    "created_at": "2025-01-02T03:04:05Z",
}


def status_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run a command line; gives its status."""
    monkeypatch.setattr("sys.argv", ["polymargin", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def problem(status: int, code: str, detail: str = "no", errors: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "type": f"urn:polymargin:problem:{code}",
        "title": "t",
        "status": status,
        "code": code,
        "detail": detail,
        "request_id": "r1",
        "errors": errors or [],
    }


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    lists: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Canned:
    """Answers by ``METHOD /path``: given one after the other, the last one again and again.

    Refusals have ``retry_after`` as a header.
    """

    url: str = ""
    retry_after: str = ""
    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, list[tuple[int, bytes]]] = field(default_factory=lambda: defaultdict(list))

    def answer(self, call: str, body: Any = None, status: int = 200) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers[call].append((status, content))

    def take(self, call: str) -> tuple[int, bytes]:
        given = self.answers[call]
        if not given:
            return 404, json.dumps(problem(404, "not_found", f"nothing canned for {call}")).encode()
        return given.pop(0) if len(given) > 1 else given[0]


def serve(canned: Canned) -> ThreadingHTTPServer:
    """Start to answer on a free port of loopback; the caller shuts the server down."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            place = urlsplit(self.path)
            path = place.path.removeprefix("/api/v1")
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            canned.asked.append(
                Asked(self.command, path, dict(parse_qsl(place.query)), headers, body, parse_qs(place.query))
            )
            status, content = canned.take(f"{self.command} {path}")
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            if canned.retry_after and status >= 400:
                self.send_header("Retry-After", canned.retry_after)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815 - names of the base class

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    canned.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server
