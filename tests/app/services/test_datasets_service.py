"""Datasets: what was received is kept, described and only deleted when nothing needs it."""

import hashlib
from collections.abc import Callable

import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.errors import Conflict, InvalidInput, NotFound, UnsupportedFormat
from app.schemas.jobs import TrainRequest
from app.services import datasets, jobs, models
from app.store.files import Upload, files
from workers.tasks import run

ROWS = "b 1:1 3:2\na 2:1.5\nb\nb 1:1\n"


def _upload(text: str) -> Upload:
    upload = files().upload()
    upload.write(text.encode())
    return upload


def test_an_upload_becomes_a_ready_dataset(session: Session, dataset: Callable[..., str]) -> None:
    dataset(ROWS)
    shown = datasets.get(session, "digits")
    assert (shown.state, shown.kind, shown.error) == ("ready", "sparse", None)
    assert (shown.n_rows, shown.n_train, shown.n_classes, shown.n_features, shown.nnz) == (4, 4, 2, 3, 4)
    assert (shown.sha256, shown.size_bytes) == (hashlib.sha256(ROWS.encode()).hexdigest(), len(ROWS))
    statistics = datasets.statistics(session, shown.id)
    assert [(count.label, count.train, count.test) for count in statistics.classes] == [("b", 3, 0), ("a", 1, 0)]
    assert (statistics.empty_rows, statistics.test_only_labels) == (1, [])
    rows = datasets.rows(session, "digits", offset=1, limit=2)
    assert rows.n_rows == 4
    assert [(row.row, row.label, row.features) for row in rows.rows] == [(1, "a", [(1, 1.5)]), (2, "b", [])]


def test_texts_and_splits_are_described(session: Session, dataset: Callable[..., str]) -> None:
    dataset("text,label,split\none,a,train\nsix,b,train\ntwo,c,test\n", format="csv")
    statistics = datasets.statistics(session, "digits")
    assert (statistics.n_train, statistics.n_test, statistics.n_features) == (2, 1, None)
    assert statistics.test_only_labels == ["c"]
    row = datasets.rows(session, "digits", offset=2).rows[0]
    assert (row.text, row.split, row.features) == ("two", "test", None)


def test_a_file_that_cannot_be_read_is_told_row_by_row(session: Session, dataset: Callable[..., str]) -> None:
    dataset("a 1:1\nb 1:x\nc 2\n")
    shown = datasets.get(session, "digits")
    assert shown.state == "failed"
    assert shown.error is not None
    assert [item.row for item in shown.error.errors] == [2, 3]
    job = jobs.get(session, shown.job or "")
    assert (job.state, job.error) == ("failed", shown.error)
    with pytest.raises(Conflict, match="failed"):
        datasets.statistics(session, "digits")


def test_names_and_formats_are_checked_before_a_byte_comes(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    with pytest.raises(Conflict, match="'digits'"):
        datasets.check_new(session, "digits", "csv")
    with pytest.raises(InvalidInput):
        datasets.check_new(session, "../x", "csv")
    with pytest.raises(UnsupportedFormat, match="svmlight, csv, jsonl"):
        datasets.check_new(session, "x", "pickle")


def test_a_refused_upload_leaves_no_file(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    before = sorted(files().root.rglob("*"))
    with pytest.raises(Conflict):
        datasets.register(session, "digits", "svmlight", _upload("a 1:1\n"))
    with pytest.raises(InvalidInput, match="empty"):
        datasets.register(session, "other", "svmlight", _upload(""))
    assert sorted(files().root.rglob("*")) == before


def test_a_dataset_is_deleted_with_its_files(session: Session, dataset: Callable[..., str]) -> None:
    id = dataset()
    datasets.delete(session, "digits")
    with pytest.raises(NotFound):
        datasets.get(session, id)
    assert not files().path(f"datasets/{id}").exists()


def test_a_dataset_in_use_is_never_deleted(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    job = jobs.submit(session, TrainRequest(dataset="digits", model="m"))
    with pytest.raises(Conflict, match=job.id):
        datasets.delete(session, "digits", force=True)
    jobs.cancel(session, job.id)
    datasets.delete(session, "digits")
    with pytest.raises(Conflict, match="deleted"):
        jobs.retry(session, job.id)


def test_a_dataset_that_models_came_from_is_deleted_only_by_force(
    database: sessionmaker[Session], session: Session, dataset: Callable[..., str]
) -> None:
    dataset()
    run(jobs.submit(session, TrainRequest(dataset="digits", model="m")).id)
    with pytest.raises(Conflict, match="force"):
        datasets.delete(session, "digits")
    datasets.delete(session, "digits", force=True)
    version = models.version(session, "m")
    assert version.dataset is None
    assert len(version.dataset_sha256) == 64


def test_a_cancelled_import_fails_its_dataset(session: Session) -> None:
    shown = datasets.register(session, "d", "svmlight", _upload(ROWS))
    jobs.cancel(session, shown.job or "")
    assert datasets.get(session, "d").state == "failed"
    assert [item.state for item in datasets.page(session).items] == ["failed"]
