"""Pull a plug anywhere: nothing acknowledged is lost, and the job ends the same."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session, sessionmaker
from stopping import stop_between_transactions

from app.config import settings
from app.jobs import logs as job_logs
from app.jobs import service as jobs
from app.jobs.schemas import Job
from app.models import service as models
from app.store import tables
from app.store.files import files
from solvers.core.stored_models import load_model
from workers.tasks import run

Until = Callable[[str, Callable[[Job], bool]], Job]


on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
_uninterrupted: list[Any] = []


def _has_checkpoint(database: sessionmaker[Session]) -> Callable[[Job], bool]:
    def condition(job: Job) -> bool:
        assert job.state in {"queued", "running"}, f"{job.state}: {job.error}"
        with database() as session:
            return job.state == "running" and session.get(tables.Checkpoint, job.id) is not None

    return condition


def _pid(job: Job) -> int:
    assert job.worker is not None
    return int(job.worker.rsplit(":", 1)[1])


def _outcome(session: Session, model: str) -> Any:
    version = models.version(session, model)
    loaded, _ = load_model(files().local(f"{models.folder(session, version.id)}/model"), verify=True)
    steps = job_logs.steps(session, version.job, limit=10000).steps
    return (
        {name: array.tobytes() for name, array in loaded.arrays().items()},
        (version.primal, version.dual, version.epochs, version.metrics),
        [(step.number, step.epoch, step.primal, step.dual) for step in steps],
    )


def _same_as_uninterrupted(database: sessionmaker[Session], long_job: Callable[..., str], until: Until) -> None:
    if not _uninterrupted:
        job_id = long_job("uninterrupted")
        run(job_id)
        # a worker of the test may have been first
        until(job_id, lambda job: job.state == "succeeded")
        with database() as session:
            _uninterrupted.append(_outcome(session, "uninterrupted"))
    with database() as session:
        arrays, facts, curve = _outcome(session, "m")
    assert (arrays, facts) == _uninterrupted[0][:2]
    assert curve == _uninterrupted[0][2]


def test_a_job_whose_process_is_killed_ends_the_same(
    workers: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    workers.start()
    job_id = long_job()
    job = until(job_id, _has_checkpoint(database))
    os.kill(_pid(job), signal.SIGKILL)
    job = until(job_id, lambda job: job.state == "succeeded")
    assert job.attempt == 2
    _same_as_uninterrupted(database, long_job, until)


@pytest.mark.slow
def test_a_path_killed_after_a_version_has_each_version_once_and_the_same(
    workers: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    path = [50.0, 100.0]
    run(long_job("whole", 300, path))
    workers.start()
    job_id = long_job("m", 300, path)
    job = until(job_id, lambda job: job.result is not None)
    assert job.state == "running"
    os.kill(_pid(job), signal.SIGKILL)
    job = until(job_id, lambda job: job.state == "succeeded")
    assert job.attempt == 2
    assert job.result is not None
    assert job.result.versions == [1, 2]
    with database() as session:
        for version, other in zip(models.versions(session, "m"), models.versions(session, "whole"), strict=True):
            assert (version.point, version.params["C"]) == (other.point, other.params["C"])
            assert (version.primal, version.dual, version.epochs) == (other.primal, other.dual, other.epochs)
            loaded, same = (
                load_model(files().path(models.folder(session, each.id)) / "model", verify=True)[0]
                for each in (version, other)
            )
            for name, array in loaded.arrays().items():
                assert array.tobytes() == same.arrays()[name].tobytes()


@pytest.mark.slow
@on_sqlite
def test_a_job_along_a_tree_whose_process_is_killed_ends_the_same(
    workers: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    run(long_job("whole", 150, solver="orthogonal_transfer"))
    workers.start()
    job_id = long_job("m", 150, solver="orthogonal_transfer")
    job = until(job_id, _has_checkpoint(database))
    os.kill(_pid(job), signal.SIGKILL)
    job = until(job_id, lambda job: job.state == "succeeded")
    assert job.attempt == 2
    with database() as session:
        assert _outcome(session, "m") == _outcome(session, "whole")


@pytest.mark.slow
@on_sqlite
def test_a_machine_that_is_lost_with_its_disk_is_replaced_where_files_are_in_a_bucket(
    workers: Any,
    bucket: Any,
    configure: Callable[..., None],
    database: sessionmaker[Session],
    long_job: Callable[..., str],
    until: Until,
    tmp_path: Path,
) -> None:
    configure(cache=tmp_path / "lost")
    workers.start()
    job_id = long_job()
    until(job_id, _has_checkpoint(database))
    workers.end()
    shutil.rmtree(tmp_path / "lost")
    configure(cache=tmp_path / "new")
    workers.start()
    job = until(job_id, lambda job: job.state == "succeeded")
    assert job.attempt == 2
    assert "checkpoint_unusable" not in workers.log()
    _same_as_uninterrupted(database, long_job, until)


@pytest.mark.slow
@on_sqlite
def test_a_job_whose_main_process_is_killed_goes_to_another_worker(
    workers: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    first = workers.start()
    job_id = long_job()
    orphan = _pid(until(job_id, _has_checkpoint(database)))
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    deadline = time.monotonic() + 600
    while _lives(orphan):
        assert time.monotonic() < deadline, "the orphan lives on"
        time.sleep(0.05)
    workers.start()
    job = until(job_id, lambda job: job.state == "succeeded")
    assert job.attempt == 2
    _same_as_uninterrupted(database, long_job, until)


@pytest.mark.slow
@on_sqlite
def test_processes_that_run_jobs_give_way_to_others(
    workers: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    main = workers.start()
    job = until(long_job(max_epochs=10**6), lambda job: job.state == "running")
    own, of_main = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (_pid(job), main.pid))
    assert own == min(19, of_main + settings().worker_niceness)
    assert settings().worker_niceness > 0


@pytest.mark.slow
def test_a_worker_that_is_told_to_end_gives_its_job_back_without_loss(
    workers: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    first = workers.start()
    job_id = long_job()
    until(job_id, _has_checkpoint(database))
    os.kill(first.pid, signal.SIGTERM)
    assert first.wait(60) == 0
    with database() as session:
        row = session.get(tables.Job, job_id)
        assert row is not None
        assert (row.state, row.losses, row.worker, row.lease_until) == ("queued", 0, None, None)
        reached = session.get(tables.Checkpoint, job_id)
        assert reached is not None
        assert job_logs.steps(session, job_id, limit=10000).steps[-1].number == reached.step
    workers.start()
    until(job_id, lambda job: job.state == "succeeded")
    _same_as_uninterrupted(database, long_job, until)


@pytest.mark.slow
def test_a_process_that_slept_through_its_lease_changes_nothing(
    workers: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    workers.start()
    job_id = long_job()
    sleeper = _pid(until(job_id, _has_checkpoint(database)))
    stop_between_transactions(sleeper, database)
    workers.start()
    until(job_id, lambda job: job.state == "running" and job.attempt == 2)
    os.kill(sleeper, signal.SIGCONT)
    job = until(job_id, lambda job: job.state == "succeeded")
    assert job.attempt == 2
    with database() as session:
        assert [version.version for version in models.versions(session, "m")] == [1]
    _same_as_uninterrupted(database, long_job, until)


@pytest.mark.slow
@on_sqlite
def test_a_job_that_loses_every_worker_fails_with_a_clear_error(
    workers: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    workers.start()
    job_id = long_job(max_epochs=10**6)
    for attempt in (1, 2, 3):
        job = until(job_id, lambda job, attempt=attempt: job.state == "running" and job.attempt == attempt)  # type: ignore[misc]
        os.kill(_pid(job), signal.SIGKILL)
    job = until(job_id, lambda job: job.state == "failed")
    assert job.error is not None
    assert job.error.code == "worker_lost"


@pytest.mark.slow
@on_sqlite
def test_a_running_job_is_cancelled(
    workers: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    workers.start()
    job_id = long_job(max_epochs=10**6)
    until(job_id, _has_checkpoint(database))
    with database() as session:
        assert jobs.cancel(session, job_id).state == "cancelling"
    job = until(job_id, lambda job: job.state == "cancelled")
    assert job.finished_at is not None
    following = long_job("next", max_epochs=5)
    until(following, lambda job: job.state == "succeeded")


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
