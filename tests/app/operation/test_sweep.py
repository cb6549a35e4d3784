"""The sweep: what was lost is put right, once."""

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from app.datasets import service as datasets
from app.datasets.schemas import NewDataset
from app.jobs import leases
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.operation import sweep as sweeping
from app.operation.sweep import Swept, sweep
from app.store import tables
from app.store.db import db_now, writing
from app.store.files import files

NOTHING = Swept()


@pytest.fixture
def job_id(database: sessionmaker[Session], dataset: Callable[..., str]) -> str:
    dataset()
    with database() as session:
        return jobs.submit(session, TrainRequest(solver="weston_watkins", dataset="digits", model="m")).id


def _lose(session: Session, job_id: str) -> None:
    assert leases.claim(session, job_id, "me") is not None
    _set(session, job_id, lease_until=db_now() - 1)


def _set(session: Session, job_id: str, **values: Any) -> None:
    with writing(session):
        session.execute(update(tables.Job).where(tables.Job.id == job_id).values(**values))


def test_a_job_within_its_lease_is_left_alone(session: Session, job_id: str) -> None:
    leases.claim(session, job_id, "me")
    assert sweep(session) == NOTHING
    assert jobs.get(session, job_id).state == "running"


def test_a_lost_job_is_queued_again_once(session: Session, job_id: str) -> None:
    _lose(session, job_id)
    assert sweep(session).requeued == [job_id]
    assert sweep(session) == NOTHING
    assert jobs.get(session, job_id).state == "queued"


def test_a_job_that_is_lost_too_often_fails_and_may_be_retried(session: Session, job_id: str) -> None:
    for _ in range(2):
        _lose(session, job_id)
        assert sweep(session).requeued == [job_id]
    _lose(session, job_id)
    assert sweep(session).failed == [job_id]
    job = jobs.get(session, job_id)
    assert job.state == "failed"
    assert job.error is not None
    assert (job.error.code, "went silent 3 times" in job.error.detail) == ("worker_lost", True)
    assert jobs.retry(session, job_id).state == "queued"
    _lose(session, job_id)
    assert sweep(session).requeued == [job_id]


def test_a_lost_job_that_was_being_cancelled_is_cancelled(session: Session, job_id: str) -> None:
    leases.claim(session, job_id, "me")
    jobs.cancel(session, job_id)
    _set(session, job_id, lease_until=db_now() - 1)
    assert sweep(session).cancelled == [job_id]
    assert jobs.get(session, job_id).finished_at is not None


def test_a_lost_import_fails_its_dataset_too(database: sessionmaker[Session], session: Session) -> None:
    upload = files().upload()
    upload.write(b"a 1:1\nb 1:2\n")
    shown = datasets.register(session, NewDataset(name="d", format="svmlight"), upload)
    assert shown.job is not None
    for _ in range(3):
        _lose(session, shown.job)
        sweep(session)
    shown = datasets.get(session, "d")
    assert shown.state == "failed"
    assert shown.error is not None
    assert jobs.retry(session, shown.job or "").state == "queued"
    assert datasets.get(session, "d").state == "importing"


def test_a_queued_job_is_rung_again_only_when_it_was_not_heard_of(
    session: Session, job_id: str, redis_server: Any
) -> None:
    assert sweep(session).notified == [job_id]  # it was submitted while Redis was away
    assert sweep(session) == NOTHING
    _set(session, job_id, notified_at=db_now() - 100)
    assert sweep(session) == NOTHING, "its message still waits"
    with redis_server.client() as client:
        client.flushall()
    assert sweep(session).notified == [job_id]
    with redis_server.client() as client:
        assert client.llen("general") == 1


def test_two_sweeps_at_once_ring_once(database: sessionmaker[Session], job_id: str, redis_server: Any) -> None:
    barrier, notified = threading.Barrier(4), []

    def run() -> None:
        with database() as session:
            barrier.wait()
            notified.extend(sweep(session).notified)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert notified == [job_id]


def test_without_redis_a_sweep_still_queues_lost_jobs(session: Session, job_id: str) -> None:
    _lose(session, job_id)
    swept = sweep(session)
    assert (swept.requeued, swept.notified) == ([job_id], [])
    assert session.scalars(select(tables.Job.notified_at).where(tables.Job.id == job_id)).one() is None


def test_files_that_no_row_names_are_removed_and_no_others(session: Session, job_id: str) -> None:
    store = files()
    dataset_id = jobs.get(session, job_id).dataset
    lease = leases.claim(session, job_id, "me")
    assert lease is not None
    kept = [f"datasets/{dataset_id}", f"models/{job_id}.1", f"jobs/{job_id}", "datasets/new"]
    orphans = ["datasets/gone", f"models/{job_id}.0", "models/gone.1", "jobs/gone"]
    for path in kept[1:] + orphans:
        store.path(path).mkdir(parents=True)
    upload = store.upload()
    upload.write(b"x")
    stale = store.path("incoming/stale")
    stale.write_bytes(b"")
    for old in (store.path("datasets/gone"), stale):
        os.utime(old, (0, 0))
    assert sorted(sweeping.tidy(session, store)) == sorted([*orphans, "incoming/stale"])
    assert all(store.path(path).exists() for path in kept)
    assert not any(store.path(path).exists() for path in orphans)
    upload.abort()


def test_what_a_process_that_has_died_received_is_removed_within_minutes(session: Session) -> None:
    store = files()
    received = store.upload("default")
    abandoned = store.path("incoming/0@default")
    abandoned.write_bytes(b"x")
    for path in (received.path, abandoned):
        ago = path.stat().st_mtime - 120
        os.utime(path, (ago, ago))
    assert sweeping.tidy(session, store) == ["incoming/0@default"]
    received.abort()


def test_a_cancelled_jobs_checkpoint_is_kept_for_a_while(
    session: Session, job_id: str, configure: Callable[..., None]
) -> None:
    store = files()
    store.path(f"jobs/{job_id}").mkdir(parents=True)
    jobs.cancel(session, job_id)
    assert sweeping.tidy(session, store) == []
    configure(keep_checkpoints_seconds=0)
    assert sweeping.tidy(session, store) == [f"jobs/{job_id}"]
