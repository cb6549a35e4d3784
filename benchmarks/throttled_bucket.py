"""A bucket that serves a folder by the part of S3 that reading takes, at the speed of a network.

A server that keeps objects in memory copies a large one for each range of it; this one reads the range from its file.
"""

import argparse
import sys
import threading
import time
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_CHUNK = 64 << 10


class Throttle:
    """Bytes per second that all answers share."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._lock = threading.Lock()
        self._due = time.monotonic()

    def wait(self, n_bytes: int) -> None:
        with self._lock:
            self._due = max(self._due, time.monotonic()) + n_bytes / self._per_second
            seconds = self._due - time.monotonic()
        if seconds > 0:
            time.sleep(seconds)


def serve(folder: Path, per_second: float, latency: float) -> ThreadingHTTPServer:
    """A server on a free port of loopback, whose bucket ``bench`` has the files below ``folder``."""
    throttle = Throttle(per_second)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            time.sleep(latency)
            url = urlsplit(self.path)
            _, _, key = unquote(url.path).strip("/").partition("/")
            path = folder / key
            if not key:
                self._list(parse_qs(url.query).get("prefix", [""])[0])
            elif path.is_file():
                self._send_file(path, with_body)
            else:
                self._send(404, b"<Error><Code>NoSuchKey</Code></Error>" if with_body else b"")

        def _list(self, prefix: str) -> None:
            rows = "".join(
                f"<Contents><Key>{escape(key)}</Key><Size>{path.stat().st_size}</Size><LastModified>"
                f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%dT%H:%M:%S.000Z}</LastModified></Contents>"
                for path in sorted(folder.rglob("*"))
                if path.is_file() and (key := path.relative_to(folder).as_posix()).startswith(prefix)
            )
            text = f"<ListBucketResult><Name>bench</Name><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
            self._send(200, text.encode())

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _send_file(self, path: Path, with_body: bool) -> None:
            size = path.stat().st_size
            begin, end = 0, size
            asked = self.headers.get("Range")
            if asked:
                first, _, last = asked.removeprefix("bytes=").partition("-")
                begin, end = int(first), min(size, int(last) + 1) if last else size
            self.send_response(206 if asked else 200)
            self.send_header("Content-Length", str(end - begin))
            if asked:
                self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
            self.send_header("Last-Modified", formatdate(path.stat().st_mtime, usegmt=True))
            self.send_header("ETag", f'"{size:x}"')
            self.end_headers()
            if not with_body:
                return
            with path.open("rb") as file:
                file.seek(begin)
                for at in range(begin, end, _CHUNK):
                    part = file.read(min(_CHUNK, end - at))
                    throttle.wait(len(part))
                    self.wfile.write(part)

        def log_message(self, *_: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--megabytes-per-second", type=float, default=100.0)
    arguments.add_argument("--latency-ms", type=float, default=15.0)
    chosen = arguments.parse_args()
    server = serve(chosen.folder, 1e6 * chosen.megabytes_per_second, chosen.latency_ms / 1000)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
