"""Rows are appended: a new version, which shares its files with the one before, and which jobs name."""

import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import TestClient, problem
from sqlalchemy.orm import Session
from working import run, train, upload

from app.access import quotas
from app.client import Client
from app.operation import sweep as sweeping
from app.store import db
from app.store.corpus import open_corpus
from app.store.files import files
from workers.running.job_context import JobContext

FIRST = b"label,x,y\n" + b"a,1,0\nb,0,1\n" * 6
MORE = b"label,y,x\n" + b"c,5,5\na,0,2\n" * 3


@pytest.fixture
def session(client: TestClient) -> Iterator[Session]:
    """A session on the database of the service."""
    with db.sessions()() as session:
        yield session


def append(client: TestClient, content: bytes, ref: str = "grown", **query: str) -> dict[str, Any]:
    """The job, over."""
    response = client.post(f"/api/v1/datasets/{ref}/rows", params=query, content=content)
    assert response.status_code == 202, response.text
    run(response.json()["id"])
    job: dict[str, Any] = client.get(response.headers["location"]).json()
    return job


@pytest.fixture
def grown(client: TestClient) -> dict[str, Any]:
    return upload(client, "grown", FIRST, "csv")


def test_an_append_makes_a_new_version_and_leaves_the_old_as_it_was(client: TestClient, grown: dict[str, Any]) -> None:
    job = append(client, gzip.compress(MORE))
    assert (job["state"], job["result"]["dataset_version"]) == ("succeeded", 2)
    dataset = client.get("/api/v1/datasets/grown").json()
    assert (dataset["version"], dataset["n_rows"], dataset["n_classes"]) == (2, 18, 3)
    assert dataset["job"] == grown["job"]
    newest, first = client.get("/api/v1/datasets/grown/versions").json()
    assert (newest["version"], newest["n_rows"], newest["job"]) == (2, 18, job["id"])
    assert (first["version"], first["n_rows"], first["sha256"]) == (1, 12, grown["sha256"])
    assert newest["sha256"] == dataset["sha256"] != first["sha256"]
    rows = client.get("/api/v1/datasets/grown/rows?offset=11&limit=3").json()["rows"]
    assert [(row["label"], row["features"]) for row in rows] == [
        ("b", [[1, 1.0]]), ("c", [[0, 5.0], [1, 5.0]]), ("a", [[0, 2.0]]),
    ]  # fmt: skip


def test_versions_share_the_files_of_their_rows(client: TestClient, grown: dict[str, Any]) -> None:
    append(client, MORE)
    folder = files().path(f"datasets/{grown['id']}")
    before, after = sorted(folder.glob("arrays-*"), key=lambda path: len(path.name))
    assert os.path.samefile(before / "data.npy", after / "data.npy")
    assert (after / "data-1.npy").exists()
    files().check(str(after.relative_to(files().root)))
    append(client, MORE)
    assert client.get("/api/v1/datasets/grown").json()["n_rows"] == 24


@pytest.mark.parametrize("n", [1, 17])
def test_many_appends_give_the_rows_of_one_file(client: TestClient, n: int) -> None:
    texts = [f'{{"label": ["t{k % 3}"], "text": "words {k}"}}\n' for k in range(n + 2)]
    upload(client, "grown", texts[0].encode(), "jsonl")
    for text in texts[1:]:
        assert append(client, text.encode(), format="jsonl")["state"] == "succeeded"
    whole = upload(client, "whole", "".join(texts).encode(), "jsonl")
    grown = client.get("/api/v1/datasets/grown").json()
    assert grown["version"] == n + 2
    found, expected = (
        open_corpus(files(), str(newest(Path(f"datasets/{each['id']}")))) for each in (grown, whole)
    )  # fmt: skip
    assert found.texts is not None
    assert expected.texts is not None
    assert list(found.texts) == list(expected.texts)
    assert [found.names(row) for row in range(found.n_rows)] == [expected.names(row) for row in range(found.n_rows)]


def newest(folder: Path) -> Path:
    found = max(files().path(str(folder)).glob("arrays-*"), key=lambda path: path.stat().st_mtime_ns)
    return folder / found.name


def test_a_second_file_may_be_the_test_part(client: TestClient, grown: dict[str, Any]) -> None:
    assert append(client, b"label,x,y\na,1,0\nb,0,2\n", part="test")["state"] == "succeeded"
    assert append(client, b"label,x,y\nb,0,3\n", part="validation")["state"] == "succeeded"
    statistics = client.get("/api/v1/datasets/grown/statistics").json()
    assert (statistics["n_train"], statistics["n_test"], statistics["n_validation"]) == (12, 2, 1)
    assert statistics["repetitions"]["test_in_train"] == 1
    assert statistics["warnings"][0]["code"] == "test_rows_in_training"


def test_a_job_names_the_version_that_it_used_and_may_use_an_older_one(
    client: TestClient, grown: dict[str, Any]
) -> None:
    assert train(client, "grown", "m")["request"]["dataset_version"] == 1
    append(client, MORE)
    assert train(client, "grown", "m")["request"]["dataset_version"] == 2
    assert train(client, "grown", "m", dataset_version=1)["state"] == "succeeded"
    hashes = [client.get(f"/api/v1/models/m/versions/{number}").json()["dataset_sha256"] for number in (1, 2, 3)]
    assert hashes[0] == hashes[2] == grown["sha256"]
    assert hashes[1] == client.get("/api/v1/datasets/grown").json()["sha256"]
    for version, dataset_version in ((1, 1), (2, 2), (2, 1)):
        request = {"kind": "evaluate", "model": "m", "version": version, "dataset": "grown", "part": "all"}
        answer = client.post("/api/v1/jobs", json={**request, "dataset_version": dataset_version})
        run(answer.json()["id"])
        assert client.get(answer.headers["location"]).json()["state"] == "succeeded"
    refused = client.post("/api/v1/jobs", json={"dataset": "grown", "dataset_version": 3, "model": "m"})
    assert problem(refused, 422, "invalid_input")["errors"][0]["pointer"] == "/dataset_version"


def test_rows_appended_before_the_import_has_tidied_up_keep_their_files(client: TestClient) -> None:
    succeed = JobContext.succeed

    def late(context: JobContext, finish: Any) -> None:
        succeed(context, finish)
        patch.undo()
        folder = files().path(f"datasets/{context.lease.dataset_id}")
        (folder / "arrays-7").mkdir()
        (folder / ".arrays-7.half").mkdir()
        assert append(client, MORE)["state"] == "succeeded"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JobContext, "succeed", late)
        grown = upload(client, "grown", FIRST, "csv")
    assert client.get("/api/v1/datasets/grown/rows?offset=12&limit=1").json()["rows"][0]["label"] == "c"
    folder = files().path(f"datasets/{grown['id']}")
    assert sorted(path.name.count("-") for path in folder.glob("*arrays-*")) == [1, 2]


@pytest.mark.parametrize(("trained", "measured"), [(1, 2), (2, 1)])
def test_of_another_version_of_its_dataset_a_model_is_measured_on_rows_that_its_twin_has_not_seen(
    trained: int, measured: int, client: TestClient, grown: dict[str, Any]
) -> None:
    append(client, MORE)
    assert train(client, "grown", "m", dataset_version=trained)["state"] == "succeeded"
    request = {"kind": "evaluate", "model": "m", "dataset": "grown", "dataset_version": measured, "resamples": 0}
    job = client.post("/api/v1/jobs", json=request).json()
    run(job["id"])
    found = client.get(f"/api/v1/evaluations/{job['id']}").json()
    version = client.get("/api/v1/models/m/versions/1").json()
    assert (found["part"], found["measured_model"]) == ("test", True)
    rows, _ = files().load_arrays(f"evaluations/{job['id']}.1")
    split, _ = files().load_arrays(f"models/{version['job']}.1/split")
    seen = np.flatnonzero(split["split"] == 0)
    assert not np.intersect1d(rows["rows"], seen).size


def test_two_versions_are_compared_after_an_append_by_one_call(
    wired: None, client: TestClient, secrets: dict[str, str]
) -> None:
    upload(client, "grown", b"label,x,y\n" + b"a,1,0\nb,0,1\na,2,0\nb,0,3\n" * 10, "csv")
    assert train(client, "grown", "m")["state"] == "succeeded"
    append(client, b"label,x,y\n" + b"a,3,1\nb,1,2\n" * 10)
    assert train(client, "grown", "m")["state"] == "succeeded"
    service = Client("http://127.0.0.1", secrets["editor"])
    found = service.compare("m", 2, 1)
    assert (found.part, found.a.version, found.b.version) == ("test", 2, 1)
    first, second = (service.models.version("m", number) for number in (1, 2))
    assert first.refit is not None
    assert second.refit is not None
    # rows that were held out then are held out now, with some of the new ones
    assert found.n_rows == second.refit.n_test > first.refit.n_test == 8
    made = len(service.evaluations.list(model="m").items)
    assert service.compare("m", 2, 1).n_rows == found.n_rows
    assert client.post("/api/v1/models/m/compare", json={"a": "2", "b": "1"}).json() == {"jobs": []}
    assert len(service.evaluations.list(model="m").items) == made == 2


def test_rows_for_training_make_no_split_of_a_dataset_without_one(client: TestClient, grown: dict[str, Any]) -> None:
    append(client, MORE, part="train")
    assert open_corpus(files(), str(newest(Path(f"datasets/{grown['id']}")))).split is None
    assert train(client, "grown", "m", test_fraction=0.2)["state"] == "succeeded"
    assert "test" in client.get("/api/v1/models/m/versions/1").json()["metrics"]


@pytest.mark.parametrize(
    ("content", "query", "detail"),
    [
        (b"label,x\na,1\n", {}, "the new rows lack 'y'"),
        (b"label,text\na,one\n", {}, "the dataset has numbers, but the new rows have texts"),
        (b"label,x,y,split\na,1,2,test\n", {"part": "test"}, "have a split of their own"),
        (b"label,x,y\na;b,1,2\n", {"label_separator": ";"}, "one label per row, but the new rows have sets"),
        (b"a 1:1\n", {"format": "svmlight"}, "has feature names"),
        (b"label,x,y\na,1,one\n", {}, "1 error"),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_change_nothing(
    client: TestClient, grown: dict[str, Any], content: bytes, query: dict[str, str], detail: str
) -> None:
    job = append(client, content, **query)
    assert job["state"] == "failed"
    assert detail in job["error"]["detail"]
    dataset = client.get("/api/v1/datasets/grown").json()
    assert (dataset["state"], dataset["version"], dataset["n_rows"]) == ("ready", 1, 12)


def test_the_file_of_an_append_is_gone_where_it_is_faulty_and_is_not_tried_again(
    client: TestClient, grown: dict[str, Any]
) -> None:
    job = append(client, b"label,x,y\na,1,one\n")
    assert list(files().path(f"datasets/{grown['id']}").glob("source-*")) == []
    assert "upload it again" in problem(client.post(f"/api/v1/jobs/{job['id']}/retry"), 409, "conflict")["detail"]


def test_a_cancelled_append_counts_until_it_is_swept(
    client: TestClient, grown: dict[str, Any], session: Session, configure: Callable[..., None]
) -> None:
    before = quotas.usage(session, 0).stored_bytes
    job = client.post("/api/v1/datasets/grown/rows", content=MORE).json()
    assert client.post(f"/api/v1/jobs/{job['id']}/cancel").status_code in (200, 202)
    assert quotas.usage(session, 0).stored_bytes == before + len(MORE)
    folder = files().path(f"datasets/{grown['id']}")
    (source,) = folder.glob("source-*")
    (folder / f"arrays-{job['id']}-1").mkdir()
    for path in (source, folder / f"arrays-{job['id']}-1", folder / "arrays-1"):
        os.utime(path, (1, 1))
    assert sweeping.orphans(session, files()) == [f"datasets/{grown['id']}/arrays-{job['id']}-1"]
    configure(keep_checkpoints_seconds=0)
    sweeping.tidy(session, files())
    assert sorted(path.name for path in folder.glob("*[0-9]")) == ["arrays-1"]
    assert quotas.usage(session, 0).stored_bytes == before


def test_the_file_of_an_append_that_is_done_stays_with_its_arrays(
    client: TestClient, grown: dict[str, Any], session: Session, configure: Callable[..., None]
) -> None:
    append(client, MORE)
    configure(keep_checkpoints_seconds=0)
    for path in files().path(f"datasets/{grown['id']}").iterdir():
        os.utime(path, (1, 1))
    assert sweeping.orphans(session, files()) == []


def test_only_one_append_at_a_time_and_what_was_said_of_the_first_file_holds(client: TestClient) -> None:
    upload(client, "grown", b"kind;x\na;1,5\nb;2,5\n", None, label_column="kind", decimal="comma")
    first = client.post("/api/v1/datasets/grown/rows", content=b"kind;x\na;3,5\n")
    assert first.status_code == 202
    problem(client.post("/api/v1/datasets/grown/rows", content=b"kind;x\na;3,5\n"), 409, "conflict")
    problem(client.delete("/api/v1/datasets/grown"), 409, "conflict")
    run(first.json()["id"])
    assert client.get("/api/v1/datasets/grown/rows?offset=2").json()["rows"][0]["features"] == [[0, 3.5]]
    problem(client.post("/api/v1/datasets/none/rows", content=b"x"), 404, "not_found")


def test_an_append_that_is_asked_for_again_with_its_key_is_done_once(client: TestClient, grown: dict[str, Any]) -> None:
    headers = {"Idempotency-Key": "one"}
    first, second = (client.post("/api/v1/datasets/grown/rows", content=MORE, headers=headers) for _ in range(2))
    assert first.json()["id"] == second.json()["id"]
    assert second.headers["idempotency-replayed"] == "true"


def test_labels_that_lost_their_zeros_and_ids_that_are_there_come_with_a_warning(client: TestClient) -> None:
    rows = b"id,text,label\n" + b"".join(b"r%d,word%d,%s\n" % (i, i % 3, (b"0110", b"0222")[i % 2]) for i in range(6))
    upload(client, "codes", rows, "csv", id_column="id")
    more = b"id,text,label\nr9,word1,110\nr1,word2,0222\n"
    warning = append(client, more, "codes")["result"]["warning"]
    assert warning == (
        "1 new label looks like one of the dataset, such as '110' beside '0110': append with merge_labels=numbers to "
        "give the rows its labels; 1 id of the new rows, such as 'r1', is in the dataset already. To undo the append, "
        "delete rows 6 to 7 of the new version"
    )
    undo = {"corrections": [{"row": row, "delete": True} for row in (6, 7)]}
    run(client.post("/api/v1/datasets/codes/corrections", json=undo).json()["id"])
    dataset = client.get("/api/v1/datasets/codes").json()
    assert (dataset["n_rows"], dataset["n_classes"]) == (6, 2)
    merged = append(client, b"id,text,label\nr8,word1,110\n", "codes", merge_labels="numbers")
    assert merged["result"].get("warning") is None
    assert client.get("/api/v1/datasets/codes").json()["n_classes"] == 2
