import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import MARKER, TestClient, bearer, call, problem
from fastapi import FastAPI

from app.config import Settings, settings
from app.main import create_app
from app.store.files import files

FILE = b"a 1:1 2:0.5\nb 2:1\n" * 10
URL = "/api/v1/datasets?name=letters&format=svmlight"


def stored(config: Settings) -> list[Path]:
    return [path for path in config.files_folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("form", [False, True])
def test_a_file_sent_raw_or_as_a_form_becomes_a_dataset_with_its_hash(
    client: TestClient, config: Settings, form: bool
) -> None:
    body: Any = {"files": {"file": ("letters.svm", FILE)}} if form else {"content": FILE}
    response = client.post(URL, **body)
    assert response.status_code == 202, response.text
    dataset = response.json()
    assert (dataset["state"], dataset["name"]) == ("importing", "letters")
    assert (dataset["sha256"], dataset["size_bytes"]) == (hashlib.sha256(FILE).hexdigest(), len(FILE))
    assert response.headers["location"] == f"/api/v1/datasets/{dataset['id']}"
    assert client.get(response.headers["location"]).json() == dataset
    assert [path.read_bytes() for path in stored(config)] == [FILE]


def test_a_claim_of_ten_gigabytes_is_refused_before_a_byte_is_read(app: FastAPI, secrets: dict[str, str]) -> None:
    headers = {**bearer(secrets["editor"]), "Content-Length": str(10 << 30)}
    sent, _, reads = asyncio.run(call(app, URL, headers, [None]))
    assert sent["status"] == 413
    assert (b"connection", b"close") in sent["headers"]
    assert reads <= 1


def test_a_body_that_grows_beyond_the_bound_is_refused_and_leaves_nothing(
    config: Settings, secrets: dict[str, str]
) -> None:
    app = create_app(config.model_copy(update={"max_upload_bytes": 1000}))
    with TestClient(app, headers=bearer(secrets["editor"])) as client:
        problem(client.post(URL, content=iter([b"x" * 600] * 2)), 413, "too_large")
        assert client.get("/api/v1/datasets").json()["items"] == []
    assert stored(config) == []


def test_bodies_of_other_routes_have_the_smaller_bound(config: Settings, secrets: dict[str, str]) -> None:
    app = create_app(config.model_copy(update={"max_body_bytes": 1000}))
    with TestClient(app, headers=bearer(secrets["editor"])) as client:
        for body in (b"x" * 1001, iter([b"x" * 600] * 2)):
            headers = {"Content-Type": "application/json"}
            problem(client.post("/api/v1/jobs", content=body, headers=headers), 413, "too_large")


def test_a_client_that_leaves_in_the_middle_leaves_no_file_and_no_row(
    app: FastAPI, config: Settings, secrets: dict[str, str]
) -> None:
    headers = {**bearer(secrets["editor"]), "Content-Length": "1000"}
    sent, _, _ = asyncio.run(call(app, URL, headers, [b"x" * 100, None]))
    assert "status" not in sent
    assert stored(config) == []
    with TestClient(app, headers=bearer(secrets["editor"])) as client:
        assert client.get("/api/v1/datasets").json()["items"] == []


def test_a_body_without_length_is_ended_where_the_workspace_has_no_room_for_all_that_comes_in(
    secrets: dict[str, str], config: Settings, configure: Callable[..., None]
) -> None:
    configure(max_stored_bytes=3 << 20)
    other = files().upload("default")
    other.write(b"x" * (2 << 20))
    chunks: list[bytes | None] = [b"a 1:1\n" * (1 << 16)] * 100
    sent, body, reads = asyncio.run(call(create_app(settings()), URL, bearer(secrets["editor"]), chunks))
    assert sent["status"] == 507
    assert b"are being uploaded" in body
    assert reads < 10
    other.abort()
    assert stored(config) == []


def test_a_body_shorter_than_its_content_length_is_refused(
    app: FastAPI, config: Settings, secrets: dict[str, str]
) -> None:
    headers = {**bearer(secrets["editor"]), "Content-Length": "1000"}
    sent, _, _ = asyncio.run(call(app, URL, headers, [b"x" * 100, b""]))
    assert sent["status"] == 400
    assert stored(config) == []


def test_an_empty_file_is_refused(client: TestClient, config: Settings) -> None:
    assert "empty" in problem(client.post(URL, content=b""), 422)["detail"]
    assert "empty" in problem(client.post(URL, files={"file": ("a", b"")}), 422)["detail"]
    assert stored(config) == []


def test_a_taken_name_is_refused_before_the_body_is_read(app: FastAPI, secrets: dict[str, str]) -> None:
    with TestClient(app, headers=bearer(secrets["editor"])) as client:
        assert client.post(URL, content=FILE).status_code == 202
    sent, _, reads = asyncio.run(call(app, URL, bearer(secrets["editor"]) | {"Content-Length": "50"}, [b"", None]))
    assert (sent["status"], reads) == (409, 0)


@pytest.mark.parametrize(
    ("content", "media_type", "words"),
    [
        (b"--b\r\nnot a header\r\n\r\nx\r\n--b--\r\n", "multipart/form-data; boundary=b", "multipart"),
        (b'--b\r\nContent-Disposition: form-data; name="f"\r\n\r\nx', "multipart/form-data; boundary=b", "closing"),
        (b"x", "multipart/form-data", "boundary"),
    ],
)
def test_a_broken_form_is_reported_as_one(
    client: TestClient, config: Settings, content: bytes, media_type: str, words: str
) -> None:
    response = client.post(URL, content=content, headers={"Content-Type": media_type})
    assert words in problem(response, 400, "malformed")["detail"]
    assert stored(config) == []


def test_a_form_with_two_parts_is_refused(client: TestClient, config: Settings) -> None:
    response = client.post(URL, files=[("file", ("a", b"x")), ("more", ("b", b"y"))])
    assert "several parts" in problem(response, 422)["detail"]
    assert stored(config) == []


def test_a_compressed_body_is_refused(client: TestClient) -> None:
    problem(client.post(URL, content=b"x", headers={"Content-Encoding": "gzip"}), 415, "unsupported_format")


def test_an_unknown_format_names_the_known_ones(client: TestClient) -> None:
    document = problem(client.post(f"/api/v1/datasets?name=a&format={MARKER}", content=b"x"), 422)
    assert document["errors"][0]["pointer"] == "/query/format"
    assert "svmlight" in document["errors"][0]["detail"]
    assert MARKER not in str(document)
