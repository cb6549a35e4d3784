"""Files that come in pieces: continued after a break, used once, counted, and forgotten."""

import base64
import errno
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from asking import TestClient, problem
from working import SPARSE, run, upload

from app.client import Client
from app.config import Settings, settings
from app.datasets import partial_uploads as services
from app.datasets import service as datasets
from app.errors import NotFound
from app.operation import sweep as sweeping
from app.remote import files as remote_files
from app.remote import uploads as remote_uploads
from app.remote.errors import ClientError, ConflictError, UnreachableError, UploadInterruptedError
from app.remote.transport import Transport
from app.store import db, partial_uploads
from app.store.files import files
from app.store.partial_uploads import Partial, find

URL = "/api/v1/uploads"
SHA256 = hashlib.sha256(SPARSE).hexdigest()


def begin(client: TestClient, size: int = len(SPARSE)) -> str:
    response = client.post(URL, json={"size_bytes": size})
    assert response.status_code == 201, response.text
    assert response.headers["location"] == f"{URL}/{response.json()['id']}"
    assert response.json()["offset"] == 0
    id: str = response.json()["id"]
    return id


def send(client: TestClient, id: str, offset: int, piece: bytes, **headers: str) -> Any:
    return client.patch(f"{URL}/{id}", content=piece, headers={"Upload-Offset": str(offset), **headers})


def checksum(piece: bytes) -> str:
    return f"sha256 {base64.b64encode(hashlib.sha256(piece).digest()).decode()}"


def whole(client: TestClient, content: bytes = SPARSE) -> str:
    id = begin(client, len(content))
    assert send(client, id, 0, content).status_code == 200
    return id


def test_pieces_make_a_dataset_as_one_body_does(client: TestClient) -> None:
    id, half = begin(client), len(SPARSE) // 2
    answer = send(client, id, 0, SPARSE[:half], **{"Upload-Checksum": checksum(SPARSE[:half])})
    assert (answer.json()["offset"], answer.headers["upload-offset"]) == (half, str(half))
    found = client.get(f"{URL}/{id}")
    assert (found.json()["offset"], found.headers["upload-offset"]) == (half, str(half))
    query = {"name": "pieces", "format": "svmlight", "upload": id, "sha256": SHA256}
    problem(client.post("/api/v1/datasets", params=query), 409, "conflict")
    assert send(client, id, half, SPARSE[half:]).json()["offset"] == len(SPARSE)
    made = client.post("/api/v1/datasets", params=query)
    assert made.status_code == 202, made.text
    run(made.json()["job"])
    dataset = client.get("/api/v1/datasets/pieces").json()
    assert (dataset["state"], dataset["sha256"], dataset["n_rows"]) == ("ready", SHA256, SPARSE.count(b"\n"))
    problem(client.post("/api/v1/datasets", params=query | {"name": "again"}), 409, "conflict")
    problem(client.get(f"{URL}/{id}"), 409, "conflict")


def test_pieces_are_appended_as_one_body_is(client: TestClient) -> None:
    upload(client, "grown", SPARSE, "svmlight")
    query = {"format": "svmlight", "upload": whole(client)}
    response = client.post("/api/v1/datasets/grown/rows", params=query)
    run(response.json()["id"])
    assert client.get("/api/v1/datasets/grown").json()["n_rows"] == 2 * SPARSE.count(b"\n")


def test_a_request_that_is_repeated_finds_its_answer(client: TestClient) -> None:
    query = {"name": "once", "format": "svmlight", "upload": whole(client)}
    first, again = (client.post("/api/v1/datasets", params=query, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize("token", [None, "k"])
def test_of_two_requests_that_use_an_upload_at_once_one_makes_a_dataset(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    headers = {} if token is None else {"Idempotency-Key": token}
    id = whole(client)
    second_found_it = threading.Event()
    register, found_ = datasets.register, partial_uploads.find
    others: list[Any] = []

    def ask(name: str) -> Any:
        return client.post("/api/v1/datasets", params={"name": name, "upload": id}, headers=headers)

    def found(*arguments: Any) -> Partial | None:
        partial = found_(*arguments)
        if others:
            second_found_it.set()
        return partial

    def register_while_another_begins(*arguments: Any) -> Any:
        if not others:
            others.append(pool.submit(ask, "one" if token else "two"))
            assert second_found_it.wait(600)
        return register(*arguments)

    monkeypatch.setattr(partial_uploads, "find", found)
    monkeypatch.setattr(datasets, "register", register_while_another_begins)
    with ThreadPoolExecutor() as pool:
        first = ask("one")
        second = others[0].result()
    assert first.status_code == 202, first.text
    if token is None:
        assert problem(second, 409, "conflict")["detail"] == "the upload has already been used"
    else:
        assert (second.status_code, second.json()["id"]) == (202, first.json()["id"])
    assert [item["name"] for item in client.get("/api/v1/datasets").json()["items"]] == ["one"]


def test_a_refused_request_leaves_the_upload_to_another(client: TestClient) -> None:
    upload(client, "taken", SPARSE, "svmlight")
    id = whole(client)
    problem(client.post("/api/v1/datasets", params={"name": "taken", "upload": id}), 409, "conflict")
    wrong = client.post("/api/v1/datasets", params={"name": "free", "upload": id, "sha256": "0" * 64})
    assert problem(wrong, 422, "invalid_input")["errors"][0]["detail"] == f"its SHA-256 is {SHA256}"
    both = client.post("/api/v1/datasets", params={"name": "free", "upload": id}, content=b"a 1:1\n")
    problem(both, 422, "invalid_input")
    assert client.post("/api/v1/datasets", params={"name": "free", "upload": id}).status_code == 202


def test_the_hash_of_a_file_that_comes_at_once_is_compared_too(client: TestClient) -> None:
    query = {"name": "at-once", "format": "svmlight", "sha256": "0" * 64}
    problem(client.post("/api/v1/datasets", params=query, content=SPARSE), 422, "invalid_input")
    assert client.post("/api/v1/datasets", params=query | {"sha256": SHA256}, content=SPARSE).status_code == 202


def test_a_piece_that_does_not_fit_is_refused_and_changes_nothing(client: TestClient) -> None:
    id = begin(client, 10)
    assert send(client, id, 0, b"12345").status_code == 200
    for offset in (0, 4, 6, 10):
        refused = problem(send(client, id, offset, b"x"), 409, "conflict")
        assert refused["detail"] == f"the piece begins at {offset}, but 5 bytes have been received"
    damaged = send(client, id, 5, b"67x90", **{"Upload-Checksum": checksum(b"67890")})
    assert problem(damaged, 422, "invalid_input")["errors"][0]["pointer"] == "/Upload-Checksum"
    problem(send(client, id, 5, b"678901"), 422, "invalid_input")
    for headers in ({}, {"Upload-Offset": "-1"}, {"Upload-Offset": "5", "Upload-Checksum": "md5 x"}):
        problem(client.patch(f"{URL}/{id}", content=b"6", headers=headers), 422, "invalid_input")
    assert client.get(f"{URL}/{id}").json()["offset"] == 5


def test_only_one_piece_is_written_at_a_time(client: TestClient) -> None:
    id = begin(client, 10)
    partial = find(files(), "default", id)
    assert partial is not None
    with partial.piece(0):
        problem(send(client, id, 0, b"12345"), 409, "conflict")
    assert send(client, id, 0, b"12345").status_code == 200


def test_an_upload_whose_last_piece_may_be_cut_off_again_is_not_used(client: TestClient) -> None:
    id = begin(client)
    partial = find(files(), "default", id)
    assert partial is not None
    with partial.piece(0) as piece:
        piece.write(SPARSE)
        refused = problem(client.post("/api/v1/datasets", params={"name": "d", "upload": id}), 409, "conflict")
        assert refused["detail"] == "a piece of the upload is still being written"
        piece.discard()
    assert client.get(f"{URL}/{id}").json()["offset"] == 0
    assert list(files().path("incoming").iterdir()) == []
    assert send(client, id, 0, SPARSE).status_code == 200
    assert client.post("/api/v1/datasets", params={"name": "d", "upload": id}).status_code == 202


def test_an_upload_is_discarded_or_forgotten_after_a_while(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, config: Settings
) -> None:
    id = begin(client)
    assert client.delete(f"{URL}/{id}").status_code == 204
    problem(client.get(f"{URL}/{id}"), 404, "not_found")
    kept, old = begin(client), begin(client)
    (folder,) = files().path("uploads").glob(f"{old}@*")
    for path in (*folder.iterdir(), folder):
        os.utime(path, (0, 0))
    with db.sessions()() as session:
        sweeping.tidy(session, files())
    assert client.get(f"{URL}/{kept}").status_code == 200
    problem(client.get(f"{URL}/{old}"), 404, "not_found")


@pytest.mark.parametrize(
    "do", [lambda found: found.offset, lambda found: found.piece(0).__enter__(), lambda found: found.whole(files())]
)
def test_an_upload_that_others_forget_at_the_same_moment_is_not_there(
    client: TestClient, do: Callable[[Any], object]
) -> None:
    found = find(files(), "default", begin(client))
    assert client.delete(f"{URL}/{found and found.id}").status_code == 204
    with pytest.raises(NotFound):
        do(found)
    assert list(files().path("incoming").glob("*")) == []


def test_what_was_kept_of_an_upload_that_others_forget_is_kept(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = whole(client)
    register = datasets.register

    def registered_then_forgotten(*arguments: Any) -> Any:
        made = register(*arguments)
        assert client.delete(f"{URL}/{id}").status_code == 204
        return made

    monkeypatch.setattr(datasets, "register", registered_then_forgotten)
    answer = client.post("/api/v1/datasets", params={"name": "d", "format": "svmlight", "upload": id})
    assert answer.status_code == 202, answer.text


@pytest.mark.parametrize("fills", ["before", "after"])
def test_an_upload_on_a_disk_that_fills_is_used_with_its_dataset_or_not_at_all(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, fills: str
) -> None:
    id, register = whole(client), datasets.register
    query = {"name": "d", "format": "svmlight", "upload": id}

    def full(*_arguments: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fill() -> None:
        broken.setattr(partial_uploads, "open", lambda path, mode: (full if "w" in mode else open)(path, mode), False)
        broken.setattr(partial_uploads, "sync_folder", full)

    def registered_then_full(*arguments: Any) -> Any:
        made = register(*arguments)
        fill()
        return made

    with monkeypatch.context() as broken:
        if fills == "before":
            fill()
            problem(client.post("/api/v1/datasets", params=query), 507, "storage_full")
            assert client.get("/api/v1/datasets").json()["items"] == []
            assert client.get(f"{URL}/{id}").json()["offset"] == len(SPARSE)
        else:
            broken.setattr(datasets, "register", registered_then_full)
            made = client.post("/api/v1/datasets", params=query)
            assert made.status_code == 202, made.text
    if fills == "before":
        assert client.post("/api/v1/datasets", params=query).status_code == 202
    problem(client.post("/api/v1/datasets", params=query | {"name": "again"}), 409, "conflict")
    (folder,) = files().path("uploads").iterdir()
    assert not (folder / ".about.json").exists()


def test_uploads_are_bounded_as_other_files_are(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    problem(client.post(URL, json={"size_bytes": 2**49}), 413, "too_large")
    for size in (0, -1, 1.5, "3", 2**60):
        problem(client.post(URL, json={"size_bytes": size}), 422, "invalid_input")
    monkeypatch.setenv("POLYMARGIN_MAX_STORED_BYTES", "100")
    settings.cache_clear()
    problem(client.post(URL, json={"size_bytes": 101}), 507, "storage_full")
    first, second = begin(client, 100), begin(client, 100)
    assert send(client, first, 0, b"x" * 60).status_code == 200
    problem(send(client, second, 0, b"x" * 60), 507, "storage_full")


def test_a_workspace_has_so_many_uploads_at_a_time(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "_MOST", 2)
    begin(client)
    used = whole(client)
    assert client.post("/api/v1/datasets", params={"name": "d", "upload": used}).status_code == 202
    answer = client.post(URL, json={"size_bytes": 1})
    assert problem(answer, 429, "too_many")["detail"].startswith("The workspace has 2 uploads in pieces")
    assert answer.headers["retry-after"] == "60"
    assert client.delete(f"{URL}/{used}").status_code == 204
    begin(client)


@pytest.fixture
def big(wired: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, secrets: dict[str, str]) -> Iterator[Any]:
    """A client that sends all files in pieces of 50 bytes, and a file."""
    monkeypatch.setattr(remote_files, "FROM_BYTES", 1)
    monkeypatch.setattr(remote_uploads, "PIECE_BYTES", 50)
    monkeypatch.setattr(Transport, "sleep", lambda self, seconds: None)
    path = tmp_path / "rows.svm"
    path.write_bytes(SPARSE)
    with Client("http://127.0.0.1", secrets["admin"], attempts=1) as service:
        yield service, path


def test_the_client_goes_on_where_an_upload_broke_off(big: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service, path = big
    send_, sent = service.uploads.__class__.send, []

    def failing(self: Any, id: str, offset: int, piece: bytes) -> Any:
        sent.append(offset)
        if len(sent) == 3:  # the piece has come, and the answer is lost
            send_(self, id, offset, piece)
        if len(sent) in (3, 4):
            if len(sent) == 4:
                raise UnreachableError("no answer")
            return send_(self, id, offset, piece)
        return send_(self, id, offset, piece)

    monkeypatch.setattr(remote_uploads.Uploads, "send", failing)
    with pytest.raises(UploadInterruptedError, match="was interrupted at 150 of") as broken:
        service.datasets.upload(path, "big")
    made = service.datasets.upload(path, "big", resume=broken.value.upload)
    assert (made.size_bytes, made.sha256) == (len(SPARSE), SHA256)
    assert sent[:5] == [0, 50, 100, 150, 150]
    path.write_bytes(SPARSE[:-1])
    with pytest.raises(ClientError, match="already been used"):
        service.datasets.upload(path, "more", resume=broken.value.upload)


def test_nothing_of_a_large_file_is_sent_under_a_name_that_is_taken(big: Any) -> None:
    service, path = big
    assert service.datasets.upload(path, "big").name == "big"
    folders = [*files().path("uploads").iterdir()]
    with pytest.raises(ConflictError, match="choose another name"):
        service.datasets.upload(path, "big")
    assert [*files().path("uploads").iterdir()] == folders


def test_another_file_is_not_taken_for_the_rest(big: Any) -> None:
    service, path = big
    begun = service.uploads.begin(7)
    with pytest.raises(ClientError, match=r"has 7 bytes, but the file has"):
        service.datasets.upload(path, "big", resume=begun.id)
