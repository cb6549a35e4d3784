"""Machines without a shared folder: each step on another one, with nothing but the database and the bucket between."""

import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.config import settings
from app.datasets import appending, corrections
from app.datasets import rows as dataset_rows
from app.datasets import service as datasets
from app.datasets.schemas import CorrectionsRequest, LabelCorrection, NewRows
from app.errors import Unavailable
from app.evaluations.schemas import EvaluateRequest
from app.exports import archive_imports, archives
from app.jobs import service as jobs
from app.jobs.request_schemas import CompressRequest
from app.jobs.schemas import Job, TrainRequest
from app.models import service as models
from app.operation import doctor, readiness, status
from app.operation import sweep as sweeping
from app.operation.backup import backup, restore
from app.operation.database_copies import BackupError
from app.operation.moving_files import MoveError, move_files
from app.predictions import batch_predictions
from app.predictions.model_cache import ModelCache, load_version
from app.predictions.schemas import BatchPredictRequest
from app.store import db, storage_state
from app.store.files import files
from workers.running import job_context, lanes
from workers.tasks import run

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
TRAIN = TrainRequest(dataset="digits", model="m", solver="weston_watkins", test_fraction=0.3, keep_duals=True)


@pytest.fixture
def machine(configure: Callable[..., None], bucket: Any, tmp_path: Path) -> Callable[[str], None]:
    """``machine(name)`` goes on where nothing of the others' folders is seen."""
    return lambda name: configure(cache=tmp_path / name)


def _done(database: sessionmaker[Session], request: Any) -> Job:
    with database() as session:
        id = jobs.submit(session, request).id
    run(id)
    with database() as session:
        job = jobs.get(session, id)
    assert job.error is None, job.error
    return job


def _quiet(_line: str) -> None:
    pass


@on_sqlite
def test_each_step_may_be_on_another_machine(
    database: sessionmaker[Session], dataset: Callable[..., str], machine: Callable[[str], None], tmp_path: Path
) -> None:
    machine("first")
    id = dataset()
    machine("second")
    _done(database, TRAIN)
    machine("third")
    with database() as session:
        version = models.version(session, "m")
        loaded = load_version(session, version)
        measured = load_version(session, version, measured=True)
        assert loaded.model.classes == measured.model.classes == ("class0", "class1", "class2")
        assert models.selection(session, "m", 1).trials == []
    job = _done(database, BatchPredictRequest(kind="predict", model="m", dataset="digits", format="csv"))
    machine("fourth")
    with database() as session:
        found = batch_predictions.of_job(session, job.id)
        assert len(found.path.read_text().splitlines()) == 61
        upload = files().upload()
        upload.write(b"class0 1:9 2:1\nclass1 2:9\n")
        appended = appending.append(session, "digits", NewRows(), upload)
    machine("fifth")
    run(appended.id)
    with database() as session:
        assert datasets.get(session, "digits").n_rows == 62
        correction = CorrectionsRequest(corrections=[LabelCorrection(row=0, labels=["class2"])])
        corrected = corrections.correct_labels(session, "digits", correction)
    machine("sixth")
    run(corrected.id)
    with database() as session:
        assert dataset_rows.rows(session, "digits", limit=1).rows[0].label == "class2"
    warm = TRAIN.model_copy(update={"warm_start": "m@1", "model": "warm"})
    _done(database, warm)
    _done(database, EvaluateRequest(kind="evaluate", model="m", dataset="digits", part="test"))
    _done(database, CompressRequest(kind="compress", model="m", float16=True))
    machine("seventh")
    with database() as session:
        content = b"".join(archives.make(session, "m", 2).blocks())
        upload = files().upload()
        upload.write(content)
        upload.finish()
        with archive_imports.unpacked(session, upload, lambda: None) as archive:
            archive_imports.register(session, archive, "imported")
    machine("eighth")
    with database() as session:
        load_version(session, models.version(session, "imported"))
        assert {each.part: each.state for each in doctor.examine(hashes=True)}["object storage"] == "ok"
        assert [
            each.detail for each in doctor.examine(hashes=True) if each.part == "files" and each.state != "ok"
        ] == []
        assert sweeping.orphans(session, files()) == []
        datasets.delete(session, id, force=True)
    assert files().names("datasets") == []


@on_sqlite
def test_a_backup_goes_from_a_bucket_to_a_folder_and_to_another_bucket(
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    machine: Callable[[str], None],
    configure: Callable[..., None],
    tmp_path: Path,
) -> None:
    machine("first")
    dataset()
    _done(database, TRAIN)
    machine("second")
    backup(tmp_path / "backup", False, _quiet)
    with database() as session:
        expected = models.version(session, "m").sha256
    address = f"{settings().files}/other"
    for name, files_url in (("folder", ""), ("bucket", address)):
        db.dispose()
        configure(home=tmp_path / name, cache=tmp_path / "own" if files_url else "", files=files_url)
        restore(tmp_path / "backup", _quiet)
        assert bool(list((tmp_path / name / "files").rglob("*.npy"))) == (not files_url)
        with db.sessions()() as session:
            version = models.version(session, "m")
            assert version.sha256 == expected
            load_version(session, version)
    db.dispose()
    configure(home=tmp_path / "third")
    with pytest.raises(BackupError, match="restore into a new prefix"):
        restore(tmp_path / "backup", _quiet)


@on_sqlite
def test_files_move_into_a_bucket_and_back(
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    machine: Callable[[str], None],
    configure: Callable[..., None],
    tmp_path: Path,
) -> None:
    address = settings().files
    configure(files="")
    dataset()
    _done(database, TRAIN)
    before = settings().files_folder
    at_first = move_files(address, _quiet)
    assert at_first["copied"] == at_first["files"] > 10
    assert move_files(address, _quiet) == {**at_first, "copied": 0, "bytes": 0}
    with pytest.raises(MoveError, match="not in a bucket"):
        move_files("folder", _quiet)
    with pytest.raises(MoveError, match="s3://bucket/prefix"):
        move_files("ftp://bucket", _quiet)
    configure(files=address)
    machine("second")
    with database() as session:
        load_version(session, models.version(session, "m"))
    with pytest.raises(MoveError, match="not in the data folder"):
        move_files(address, _quiet)
    shutil.move(before, tmp_path / "former")
    assert move_files("folder", _quiet) == at_first
    for path in (tmp_path / "former").rglob("*"):
        if path.is_file() and not path.relative_to(tmp_path / "former").parts[0].startswith((".", "incoming")):
            assert (before / path.relative_to(tmp_path / "former")).read_bytes() == path.read_bytes()


@on_sqlite
def test_a_job_waits_while_the_storage_is_away_and_ends_the_same(
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    machine: Callable[[str], None],
    bucket: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset()
    _done(database, TRAIN)
    with database() as session:
        expected = models.version(session, "m").sha256
        again = jobs.submit(session, TRAIN.model_copy(update={"model": "n"})).id
    machine("second")
    seen: list[tuple[str, str | None]] = []

    def spoil(method: str, _path: str) -> str | None:
        if method == "PUT" and len(seen) < 4:  # the worker asks whether the storage is back
            with database() as session:
                job = jobs.get(session, again)
                assert job.progress is not None
                seen.append((job.progress.phase, job.queued_again))
        return "expired" if len(seen) < 4 else None

    bucket.spoil = spoil
    monkeypatch.setattr(job_context, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(job_context, "_log", log := Mock())
    run(again)
    assert [call.args[0] for call in log.warning.call_args_list] == ["storage_away"]
    reason = "The object storage answered ExpiredToken: check the bucket and its credentials, or retry later."
    assert seen == [("waiting", reason)] * 4
    with database() as session:
        job = jobs.get(session, again)
        assert (job.state, job.error, job.attempt, job.queued_again) == ("queued", None, 1, reason)
    run(again)
    with database() as session:
        assert jobs.get(session, again).state == "succeeded"
        assert models.version(session, "n").sha256 != expected  # its lineage names another job
        one, other = (load_version(session, models.version(session, name)).model for name in "mn")
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, other.arrays()[name])


@on_sqlite
def test_a_job_that_waits_for_the_storage_can_be_cancelled_and_given_back(
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    machine: Callable[[str], None],
    bucket: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset()
    with database() as session:
        stopped, cancelled = (jobs.submit(session, TRAIN).id for _ in range(2))
    machine("second")

    def spoil(_method: str, _path: str) -> str:
        with database() as session:
            if jobs.get(session, cancelled).state == "running":
                jobs.cancel(session, cancelled)
            elif jobs.get(session, stopped).queued_again is not None:
                lanes.request_drain()
        return "expired"

    bucket.spoil = spoil
    monkeypatch.setattr(job_context, "_PAUSE_SECONDS", 0.01)
    try:
        run(stopped)
    finally:
        lanes.withdraw_drain()
    with database() as session:
        found = jobs.get(session, stopped)
        assert (found.state, found.queued_again) == ("queued", "its worker was stopped")
        jobs.cancel(session, stopped)
    run(cancelled)
    with database() as session:
        assert jobs.get(session, cancelled).state == "cancelled"


def test_pauses_double_up_to_a_minute_and_begin_longer_in_later_attempts() -> None:
    assert list(islice(job_context.pauses(1), 8)) == [1, 2, 4, 8, 16, 32, 60, 60]
    assert list(islice(job_context.pauses(5), 3)) == [16, 32, 60]
    assert next(job_context.pauses(3000)) == 60


@on_sqlite
def test_a_bucket_that_is_not_there_is_named(
    database: sessionmaker[Session], bucket: Any, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_state, "STATE", state := storage_state.StorageState())
    monkeypatch.setattr(readiness, "STATE", state)
    monkeypatch.setattr(status, "STATE", state)
    monkeypatch.setattr(storage_state, "_AGAIN_SECONDS", -1.0)
    assert readiness.check(database).storage == "ok"
    configure(files="s3://nowhere/prefix")
    fault = "The object storage answered NoSuchBucket: check the bucket and its credentials."
    assert storage_state.storage_fault() == fault
    readiness.check(database)  # says what was answered last
    while readiness.check(database).storage == "ok":
        pass
    assert readiness.check(database).storage == fault
    with database() as session:
        assert ("object_storage", fault) in [(each.kind, each.detail) for each in status.status(session).attention]
    configure(files="")
    assert readiness.check(database).storage == "ok"


@on_sqlite
def test_requests_are_told_to_come_again_while_the_storage_is_away(
    database: sessionmaker[Session], dataset: Callable[..., str], machine: Callable[[str], None], bucket: Any
) -> None:
    dataset()
    _done(database, TRAIN)
    machine("second")
    bucket.spoil = lambda _method, _path: "expired"
    asked = len(bucket.requests)
    with pytest.raises(Unavailable, match="answered ExpiredToken"):
        ModelCache(database, 1 << 30).get(("default", "m", None, None), rows_suffice=True)
    assert len(bucket.requests) == asked + 1  # and not as often as there are ways to read a version
    with database() as session:
        with pytest.raises(Unavailable, match="cannot be read: The object storage answered ExpiredToken"):
            load_version(session, models.version(session, "m"))
        with pytest.raises(Unavailable, match="cannot be read"):
            archives.make(session, "m", 1)
    assert [each.state for each in doctor.examine(hashes=False) if each.part == "object storage"] == ["fault"]
