"""Redis only carries notifications: what it loses is sent again."""

import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.jobs import service as jobs
from app.jobs import slots
from app.jobs.schemas import Job
from app.store import queue

Until = Callable[[str, Callable[[Job], bool]], Job]

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def test_a_flushed_redis_loses_nothing(
    workers: Any, redis_server: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    ids = [long_job(f"m{i}", max_epochs=3) for i in range(5)]
    with redis_server.client() as client:
        assert client.llen("general") >= 5
        client.flushall()
    workers.start()
    for id in ids:
        assert until(id, lambda job: job.state == "succeeded").attempt == 1


@pytest.mark.slow
def test_jobs_submitted_while_redis_is_away_run_once_it_is_back(
    workers: Any, redis_server: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    workers.start()
    until(long_job("before", max_epochs=3), lambda job: job.state == "succeeded")
    redis_server.stop()
    ids = [long_job(f"m{i}", max_epochs=3) for i in range(2)]
    with database() as session:
        assert {jobs.get(session, id).state for id in ids} == {"queued"}
    redis_server.start()
    for id in ids:
        assert until(id, lambda job: job.state == "succeeded").attempt == 1


@pytest.mark.slow
def test_messages_are_taken_again_after_losses_amid_many(
    workers: Any, redis_server: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    workers.start()
    ended = long_job("before", max_epochs=3)
    until(ended, lambda job: job.state == "succeeded")
    for turn in range(12):
        enough = Event()
        thread = Thread(target=_notify_until, args=(enough, ended))
        thread.start()
        time.sleep(0.3 + 0.017 * turn)  # messages come and go all the while
        redis_server.stop()
        enough.set()
        thread.join()
        redis_server.start()
        assert until(long_job(f"m{turn}", max_epochs=1), lambda job: job.state == "succeeded").attempt == 1


def _notify_until(enough: Event, job_id: str) -> None:
    while not enough.is_set():
        queue.notify_worker(job_id, queue.GENERAL)


@pytest.mark.slow
def test_a_running_job_does_not_notice_that_redis_is_gone(
    workers: Any, redis_server: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    workers.start()
    job_id = long_job()
    until(job_id, lambda job: job.state == "running")
    redis_server.stop()
    assert until(job_id, lambda job: job.state == "succeeded").attempt == 1


@pytest.mark.slow
def test_a_worker_may_start_before_redis(
    workers: Any, redis_server: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    redis_server.stop()
    workers.start()
    job_id = long_job(max_epochs=3)
    deadline = time.monotonic() + 600
    alive: dict[str, int] = {}
    while not alive:
        assert time.monotonic() < deadline, "the worker does not report itself"
        with database() as session:
            alive = slots.processes_alive(session)
    assert alive == {"general": 1}
    redis_server.start()
    until(job_id, lambda job: job.state == "succeeded")
