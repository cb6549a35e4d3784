"""Connections that take what is sent and never answer: those that wait on one give it up."""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from black_hole import BlackHole
from invariants import broken
from sqlalchemy import make_url
from sqlalchemy.orm import Session, sessionmaker

from app.access import keys
from app.config import settings
from app.jobs import service as jobs
from app.jobs.schemas import Job
from app.main import create_app
from app.operation import sweep as sweeping
from app.store import db
from app.store.files import files

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

Until = Callable[[str, Callable[[Job], bool]], Job]

pytestmark = pytest.mark.slow
on_postgresql = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


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


@pytest.fixture
def behind_a_hole(database: sessionmaker[Session], holes: Callable[..., BlackHole]) -> tuple[BlackHole, dict[str, str]]:
    """A way to the test's PostgreSQL, and the settings of a process that goes it."""
    direct = make_url(settings().sqlalchemy_url)
    host = direct.query.get("host", direct.host)
    port = direct.port or 5432
    hole = holes(f"{host}/.s.PGSQL.{port}" if str(host).startswith("/") else (host, port))
    through = direct.set(host="127.0.0.1", port=hole.port, query={}).render_as_string(hide_password=False)
    return hole, {"database_url": through}


@pytest.fixture
def working_behind_a_hole(
    behind_a_hole: tuple[BlackHole, dict[str, str]],
    workers: Any,
    configure: Callable[..., None],
    long_job: Callable[..., str],
    until: Until,
) -> Callable[..., tuple[BlackHole, str]]:
    """``working_behind_a_hole(lease_seconds=60)`` starts a worker with settings, and returns its way and its job."""

    def start(**values: object) -> tuple[BlackHole, str]:
        hole, through = behind_a_hole
        direct = settings().database_url
        configure(**through, **values)
        workers.start()
        configure(database_url=direct)
        job_id = long_job()
        until(job_id, _at_work)
        return hole, job_id

    return start


@on_postgresql
def test_a_job_whose_connections_to_its_database_swallow_all_for_longer_than_its_lease_ends_once(
    working_behind_a_hole: Callable[..., tuple[BlackHole, str]],
    workers: Any,
    database: sessionmaker[Session],
    long_job: Callable[..., str],
    until: Until,
) -> None:
    hole, job_id = working_behind_a_hole()
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


@on_postgresql
def test_a_worker_whose_connections_to_its_database_are_dead_without_a_word_makes_new_ones(
    working_behind_a_hole: Callable[..., tuple[BlackHole, str]],
    database: sessionmaker[Session],
    long_job: Callable[..., str],
    until: Until,
) -> None:
    # a lease that outlasts the connections, and that no busy machine lets run out
    hole, job_id = working_behind_a_hole(statement_seconds=5, lease_seconds=60)
    hole.swallow()
    hole.heal()
    assert until(job_id, lambda job: job.state == "succeeded").attempt == 1
    next_id = long_job("next", max_epochs=3)
    until(next_id, lambda job: job.state == "succeeded")
    assert broken(database, [job_id, next_id]) == []


@on_postgresql
def test_while_its_database_swallows_all_the_api_answers_503_and_when_to_come_again(
    behind_a_hole: tuple[BlackHole, dict[str, str]], configure: Callable[..., None], database: sessionmaker[Session]
) -> None:
    hole, through = behind_a_hole
    with database() as session:
        secret = keys.create(session, "root", "admin").secret
    configure(**through, statement_seconds=5)
    with TestClient(create_app(), base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {secret}"}) as client:
        assert client.get("/api/v1/datasets").status_code == 200
        hole.swallow()
        answers = [client.get("/api/v1/datasets"), client.post("/api/v1/keys", json={"name": "new", "role": "viewer"})]
        assert [(answer.status_code, answer.headers.get("retry-after")) for answer in answers] == [(503, "5")] * 2
        hole.heal()
        assert client.get("/api/v1/datasets").status_code == 200
    db.dispose()
