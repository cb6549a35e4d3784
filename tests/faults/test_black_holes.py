"""Connections that take what is sent and never answer: whoever waits on one gives it up."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from black_hole import BlackHole
from invariants import broken
from sqlalchemy import make_url
from sqlalchemy.orm import Session, sessionmaker

from app.config import settings
from app.schemas.jobs import Job
from app.services import jobs, sweeping
from app.store.files import files

Until = Callable[[str, Callable[[Job], bool]], Job]

pytestmark = pytest.mark.slow


@pytest.fixture
def holes() -> Iterator[Callable[..., BlackHole]]:
    """``holes(server)`` makes a way to a server, which ends with the test."""
    with contextlib.ExitStack() as ends:

        def make(server: Any) -> BlackHole:
            hole = BlackHole(server)
            ends.callback(hole.end)
            return hole

        yield make


def _at_work(job: Job) -> bool:
    assert job.state in {"queued", "running"}, job.error
    return job.progress is not None and job.progress.epoch > 0


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_worker_whose_connections_to_redis_are_dead_without_a_word_makes_new_ones(
    redis_server: Any,
    workers: Any,
    configure: Callable[..., None],
    holes: Callable[..., BlackHole],
    database: sessionmaker[Session],
    long_job: Callable[..., str],
    until: Until,
) -> None:
    hole = holes(str(redis_server.socket))
    # a lease that no busy machine lets run out
    configure(redis_url=f"redis://127.0.0.1:{hole.port}/0", lease_seconds=60)
    workers.start()
    running = long_job()
    until(running, _at_work)
    hole.swallow()
    waiting = long_job("waiting", max_epochs=3)
    with database() as session:
        assert jobs.get(session, waiting).state == "queued"
    assert until(running, lambda job: job.state == "succeeded").attempt == 1
    hole.heal()
    assert until(waiting, lambda job: job.state == "succeeded").attempt == 1
    assert broken(database, [running, waiting]) == []


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_job_whose_connections_to_its_database_swallow_all_for_longer_than_its_lease_ends_once(
    workers: Any,
    configure: Callable[..., None],
    holes: Callable[..., BlackHole],
    database: sessionmaker[Session],
    long_job: Callable[..., str],
    until: Until,
) -> None:
    direct = make_url(settings().sqlalchemy_url)
    host = direct.query.get("host", direct.host)
    port = direct.port or 5432
    hole = holes(f"{host}/.s.PGSQL.{port}" if str(host).startswith("/") else (host, port))
    through = direct.set(host="127.0.0.1", port=hole.port, query={}).render_as_string(hide_password=False)
    configure(database_url=through)
    workers.start()
    configure(database_url=direct.render_as_string(hide_password=False))
    job_id = long_job()
    until(job_id, _at_work)
    hole.swallow()
    # a second worker, whose own way is good, sees the lease run out, and takes the job
    workers.start()
    assert until(job_id, lambda job: job.state == "succeeded").attempt > 1
    # the first wakes: it finds that the job is no longer its own
    hole.heal(hang_up=True)
    workers.end()
    workers.start()
    next_id = long_job("next", max_epochs=3)
    until(next_id, lambda job: job.state == "succeeded")
    # the first may have saved its work when the second had ended, which a worker tidies away from time to time
    with database() as session:
        sweeping.tidy(session, files())
    assert broken(database, [job_id, next_id]) == []
