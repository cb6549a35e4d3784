"""Datasets: what was received is kept, described and only deleted when nothing needs it."""

import hashlib
from collections.abc import Callable

import pytest
from pydantic import ValidationError
from sqlalchemy import update
from sqlalchemy.orm import Session, sessionmaker

from app.datasets import rows as dataset_rows
from app.datasets import service as datasets
from app.datasets import versions
from app.datasets.schemas import NewDataset
from app.errors import Conflict, InvalidInput, NotFound
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.models import service as models
from app.operation.status import status
from app.store import tables
from app.store.corpus import MOST_LISTED
from app.store.db import db_now, writing
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
    statistics = dataset_rows.statistics(session, shown.id)
    assert [(count.label, count.train, count.test) for count in statistics.classes] == [("b", 3, 0), ("a", 1, 0)]
    assert (statistics.empty_rows, statistics.test_only_labels) == (1, [])
    rows = dataset_rows.rows(session, "digits", offset=1, limit=2)
    assert rows.n_rows == 4
    assert [(row.row, row.label, row.features) for row in rows.rows] == [(1, "a", [(1, 1.5)]), (2, "b", [])]


def test_texts_and_splits_are_described(session: Session, dataset: Callable[..., str]) -> None:
    dataset("text,label,split\none,a,train\nsix,b,train\ntwo,c,test\n", format="csv")
    statistics = dataset_rows.statistics(session, "digits")
    assert (statistics.n_train, statistics.n_test, statistics.n_features) == (2, 1, None)
    assert statistics.test_only_labels == ["c"]
    row = dataset_rows.rows(session, "digits", offset=2).rows[0]
    assert (row.text, row.split, row.features) == ("two", "test", None)


def test_sets_of_labels_are_counted_and_shown(session: Session, dataset: Callable[..., str]) -> None:
    dataset("b, a 1:1\nc 1:1\n 1:2\na,b,c 1:1\n", label_separator=",")
    shown = datasets.get(session, "digits")
    assert (shown.n_rows, shown.n_classes, shown.n_train) == (4, 3, 4)
    statistics = dataset_rows.statistics(session, "digits")
    assert statistics.labels_per_row is not None
    assert statistics.labels_per_row.model_dump() == {"least": 0, "most": 3, "mean": 1.5}
    assert [(count.label, count.train) for count in statistics.classes] == [("a", 2), ("b", 2), ("c", 2)]
    rows = dataset_rows.rows(session, "digits").rows
    assert [(row.label, row.labels) for row in rows] == [
        (None, ["a", "b"]), (None, ["c"]), (None, []), (None, ["a", "b", "c"]),
    ]  # fmt: skip


def test_the_test_parts_sets_are_counted_apart(session: Session, dataset: Callable[..., str]) -> None:
    dataset("text,tags,split\none,a b,train\nsix,,test\ntwo,b c,test\n", "tagged", "csv", label_column="tags",
            label_separator=" ")  # fmt: skip
    statistics = dataset_rows.statistics(session, "tagged")
    assert {count.label: (count.train, count.test) for count in statistics.classes} == {
        "a": (1, 0), "b": (1, 1), "c": (0, 1),
    }  # fmt: skip
    assert statistics.test_only_labels == ["c"]


@pytest.mark.parametrize(("format", "separator"), [("svmlight", ";"), ("jsonl", ",")])
def test_a_separator_that_the_format_does_not_have_is_refused(session: Session, format: str, separator: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        datasets.check_new(session, NewDataset(name="x", format=format, label_separator=separator))
    assert refused.value.errors[0].pointer == "/label_separator"


def test_a_file_that_cannot_be_read_is_reported_row_by_row(session: Session, dataset: Callable[..., str]) -> None:
    dataset("a 1:1\nb 1:x\nc 2\n")
    shown = datasets.get(session, "digits")
    assert shown.state == "failed"
    assert shown.error is not None
    assert [item.row for item in shown.error.errors] == [2, 3]
    job = jobs.get(session, shown.job or "")
    assert (job.state, job.error) == ("failed", shown.error)
    with pytest.raises(Conflict, match="failed"):
        dataset_rows.statistics(session, "digits")


def test_names_and_formats_are_checked_before_a_byte_comes(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    with pytest.raises(Conflict, match="'digits'"):
        datasets.check_new(session, NewDataset(name="digits", format="csv"))
    with pytest.raises(ValidationError, match="name"):
        NewDataset(name="../x", format="csv")
    with pytest.raises(ValidationError, match="'xlsx' or 'xmc'"):
        NewDataset(name="x", format="pickle")  # type: ignore[arg-type]


def test_a_refused_upload_leaves_no_file(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    before = sorted(files().root.rglob("*"))
    with pytest.raises(Conflict):
        datasets.register(session, NewDataset(name="digits", format="svmlight"), _upload("a 1:1\n"))
    with pytest.raises(InvalidInput, match="empty"):
        datasets.register(session, NewDataset(name="other", format="svmlight"), _upload(""))
    assert sorted(files().root.rglob("*")) == before


def test_a_dataset_is_deleted_with_its_files(session: Session, dataset: Callable[..., str]) -> None:
    id = dataset()
    datasets.delete(session, "digits")
    with pytest.raises(NotFound):
        datasets.get(session, id)
    assert not files().path(f"datasets/{id}").exists()


def test_a_dataset_in_use_is_never_deleted(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    job = jobs.submit(session, TrainRequest(solver="weston_watkins", dataset="digits", model="m"))
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
    run(jobs.submit(session, TrainRequest(solver="weston_watkins", dataset="digits", model="m")).id)
    with pytest.raises(Conflict, match="force=true deletes the dataset and keeps the models"):
        datasets.delete(session, "digits")
    datasets.delete(session, "digits", force=True)
    version = models.version(session, "m")
    assert version.dataset is None
    assert len(version.dataset_sha256) == 64


def test_a_cancelled_import_fails_its_dataset(session: Session) -> None:
    shown = datasets.register(session, NewDataset(name="d", format="svmlight"), _upload(ROWS))
    assert versions.listed(session, "d") == []
    jobs.cancel(session, shown.job or "")
    assert datasets.get(session, "d").state == "failed"
    assert versions.listed(session, "d") == []
    assert [item.state for item in datasets.page(session).items] == ["failed"]
    assert (datasets.n_folded(session), status(session).n_datasets) == (0, 1)
    with writing(session):
        session.execute(update(tables.Dataset).values(created_at=db_now() - 2 * 86400))
    # lists leave it out a day later, and it can still be found
    assert (datasets.n_folded(session), status(session).n_datasets) == (1, 0)
    assert datasets.page(session).items == []
    assert [item.name for item in datasets.page(session, old_failures=True).items] == ["d"]
    assert datasets.get(session, "d").state == "failed"


def test_the_classes_of_a_dataset_are_listed_in_pages_whatever_their_number(
    session: Session, dataset: Callable[..., str], configure: Callable[..., None]
) -> None:
    n = MOST_LISTED + 30
    dataset("".join(f"c{i:04} 1:1\n" for i in range(n)) + "c0007 1:1\n")
    first = dataset_rows.statistics(session, "digits", 0, 2)
    assert [count.label for count in first.classes] == ["c0007", "c0000"]
    last = dataset_rows.statistics(session, "digits", n - 3, 1000)
    assert [count.label for count in last.classes] == [f"c{i:04}" for i in range(n - 3, n)]
    assert dataset_rows.statistics(session, "digits", n, 10).classes == []
    row = session.get(tables.Dataset, datasets.get(session, "digits").id)
    assert row is not None
    assert dataset_rows.class_counts(row).train.sum() == n + 1
    session.rollback()
    request = TrainRequest(dataset="digits", model="m", solver="one_vs_rest", test_fraction=0.0)
    assert jobs.submit(session, request).state == "queued"


def test_a_dataset_of_too_many_classes_fails_with_the_reason(
    session: Session, dataset: Callable[..., str], configure: Callable[..., None]
) -> None:
    configure(max_classes=2)
    dataset()
    error = datasets.get(session, "digits").error
    assert error is not None
    assert "3 classes; at most 2" in error.detail
