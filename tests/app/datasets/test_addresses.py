"""Files that the service fetches itself: from addresses that the settings allow, and from no others."""

import errno
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest
from asking import TestClient

from app.config import settings
from app.datasets import addresses
from app.errors import InvalidInput, StorageFull, TooLarge, TooMany, Unavailable

ROWS = b"label,text\na,one two\nb,three\na,two one\nb,four three\n"


class _Source(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        moved = {"/open/moved": "/open/rows.csv", "/open/round": "/open/round", "/open/away": "/closed/rows.csv"}
        if self.path in moved:
            self.send_response(302)
            self.send_header("Location", moved[self.path])
            self.end_headers()
            return
        status = {"/open/busy": 503, "/open/none": 404}.get(self.path, 200)
        self.send_response(status)
        if self.path != "/open/slow":
            self.send_header("Content-Length", str(len(ROWS) + (100 if self.path == "/open/cut" else 0)))
        if self.path == "/open/packed":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(ROWS)
        while self.path == "/open/slow":
            self.wfile.write(b".")
            time.sleep(0.01)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def source(configure: Callable[..., None]) -> Iterator[str]:
    """The address of a server whose folder ``open`` is allowed."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Source)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    configure(sources=f"s3://lake/data, {address}/open/", sources_private=True)
    yield address
    server.shutdown()
    server.server_close()


def _fetched(address: str) -> bytes:
    found: list[bytes] = []
    addresses.fetch(address, found.append)
    return b"".join(found)


@pytest.mark.parametrize("path", ["rows.csv", "rows.csv?version=2", "moved"])
def test_an_allowed_address_is_read(path: str, source: str) -> None:
    assert _fetched(f"{source}/open/{path}") == ROWS


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("{}/closed/rows.csv", "POLYMARGIN_SOURCES"),
        ("{}/open/../closed/rows.csv", "has no .."),
        ("{}/open/%2e%2e/closed/rows.csv", "has no .."),
        ("{}/open/away", "POLYMARGIN_SOURCES"),
        ("{}/open/round", "redirects"),
        ("{}/open/none", "status 404"),
        ("{}/open/packed", "Content-Encoding"),
        ("http://name:word@host/open/", "no user"),
        ("https://elsewhere.example/open/rows.csv", "POLYMARGIN_SOURCES"),
        ("s3://lake/database/rows.csv", "POLYMARGIN_SOURCES"),
        ("s3://lakes/data/rows.csv", "POLYMARGIN_SOURCES"),
        ("gs://lake/data/rows.csv", "POLYMARGIN_SOURCES"),
        ("file:///etc/passwd", "https://host/path"),
        ("https://host:x/", "not a URL"),
        ("https://hö.example/", "ASCII"),
        ("{}/open/a b", "ASCII"),
    ],
)
def test_other_addresses_are_refused(address: str, why: str, source: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        _fetched(address.format(source))
    assert why in refused.value.errors[0].detail


def test_private_addresses_are_refused_unless_the_settings_allow_them(
    source: str, configure: Callable[..., None]
) -> None:
    configure(sources_private=False)
    with pytest.raises(InvalidInput) as refused:
        _fetched(f"{source}/open/rows.csv")
    assert "POLYMARGIN_SOURCES_PRIVATE" in refused.value.errors[0].detail


def test_a_source_that_fails_is_told_apart_from_one_that_is_refused(
    source: str, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("busy", "cut"):
        with pytest.raises(Unavailable):
            _fetched(f"{source}/open/{path}")
    configure(max_upload_bytes=10)
    with pytest.raises(TooLarge):
        _fetched(f"{source}/open/rows.csv")
    monkeypatch.setattr(addresses, "_fetches", threading.BoundedSemaphore(1))
    with addresses._fetches, pytest.raises(TooMany):
        _fetched(f"{source}/open/rows.csv")


def test_a_source_that_takes_too_long_is_hung_up_on(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_MOST_SECONDS", 0.2)
    with pytest.raises(Unavailable):
        _fetched(f"{source}/open/slow")


def test_a_full_disk_is_not_the_fault_of_the_source(source: str) -> None:
    def full(_block: bytes) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with pytest.raises(StorageFull):
        addresses.fetch(f"{source}/open/rows.csv", full)


def test_an_object_in_google_cloud_storage_is_read(lake: Any, configure: Callable[..., None]) -> None:
    lake.blob("data/some rows.csv").upload_from_string(ROWS)
    configure(sources="gs://lake/data/")
    assert _fetched("gs://lake/data/some%20rows.csv") == ROWS
    with pytest.raises(InvalidInput, match="no file"):
        _fetched("gs://lake/data/none.csv")
    with pytest.raises(InvalidInput):
        _fetched("gs://lake/other/rows.csv")


def test_an_object_of_a_bucket_is_read(bucket: Any, configure: Callable[..., None]) -> None:
    client = boto3.client("s3", endpoint_url=bucket.url)
    client.create_bucket(Bucket="lake")
    client.put_object(Bucket="lake", Key="data/some rows.csv", Body=ROWS)
    configure(sources="s3://lake/data/")
    assert _fetched("s3://lake/data/some%20rows.csv") == ROWS
    with pytest.raises(InvalidInput):
        _fetched("s3://lake/data/none.csv")


def test_a_dataset_is_made_of_an_address(client: TestClient, source: str) -> None:
    query = {"name": "fetched", "format": "csv", "label_column": "label", "text_columns": "text"}
    made = client.post("/api/v1/datasets", params=query | {"address": f"{source}/open/rows.csv"})
    assert made.status_code == 202, made.text
    assert made.json()["size_bytes"] == len(ROWS)
    again = client.post("/api/v1/datasets", params=query | {"name": "x", "address": f"{source}/closed/rows.csv"})
    assert (again.status_code, again.json()["errors"][0]["pointer"]) == (422, "/address")
    both = client.post(
        "/api/v1/datasets", params=query | {"name": "z", "address": f"{source}/open/rows.csv"}, content=ROWS
    )
    assert both.status_code == 422
    hashed = query | {"name": "y", "address": f"{source}/open/rows.csv", "sha256": "0" * 64}
    assert client.post("/api/v1/datasets", params=hashed).status_code == 422
    assert list(settings().files_folder.glob("incoming/*")) == []
