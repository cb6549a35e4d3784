"""A database that is away for a while: the worker waits, or gives the job up."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url
from sqlalchemy.orm import Session, sessionmaker

from app.access import keys
from app.config import settings
from app.jobs.schemas import Job
from app.main import create_app
from app.models import service as models
from app.store import tables

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

Until = Callable[[str, Callable[[Job], bool]], Job]


class Gate:
    """Closes and opens one database of a PostgreSQL server."""

    def __init__(self, server: str, name: str) -> None:
        self._admin = psycopg.connect(server, autocommit=True)
        self._name = name

    def close(self) -> None:
        """End all connections, and take no new ones."""
        self._admin.execute(f'ALTER DATABASE "{self._name}" ALLOW_CONNECTIONS false')
        self._admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [self._name])

    def open(self) -> None:
        """Take connections again."""
        self._admin.execute(f'ALTER DATABASE "{self._name}" ALLOW_CONNECTIONS true')

    def end(self) -> None:
        """Leave the server."""
        self._admin.close()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("lease_seconds", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_a_job_survives_its_database_being_away_for_less_and_for_more_than_its_lease(
    lease_seconds: int,
    workers: Any,
    database: sessionmaker[Session],
    postgres_server: str,
    configure: Callable[..., None],
    long_job: Callable[..., str],
    until: Until,
) -> None:
    configure(lease_seconds=lease_seconds)
    workers.start()
    job_id = long_job()
    until(job_id, lambda job: job.state == "running" and job.progress is not None and job.progress.epoch > 0)
    name = make_url(settings().sqlalchemy_url).database
    gate = Gate(postgres_server, str(name))
    try:
        gate.close()
        noticed, deadline = time.monotonic(), time.monotonic() + 600
        while "database_away" not in workers.log() or time.monotonic() < noticed + 2.5:
            assert time.monotonic() < deadline, "the worker does not notice"
            time.sleep(0.05)
        gate.open()
    finally:
        gate.end()
    job = until(job_id, lambda job: job.state == "succeeded")
    assert job.attempt == (2 if lease_seconds == 2 else 1)
    with database() as session:
        assert [version.version for version in models.versions(session, "m")] == [1]
        row = session.get(tables.Job, job_id)
        assert row is not None
        assert row.losses == job.attempt - 1


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_while_its_database_is_away_the_api_answers_503_and_when_to_come_again(
    database: sessionmaker[Session], postgres_server: str
) -> None:
    with database() as session:
        secret = keys.create(session, "root", "admin").secret
    name = make_url(settings().sqlalchemy_url).database
    gate = Gate(postgres_server, str(name))
    with TestClient(create_app(), base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {secret}"}) as client:
        assert client.get("/api/v1/datasets").status_code == 200
        try:
            gate.close()
            answers = [
                client.get("/api/v1/datasets"),
                client.get("/api/v1/models/m"),
                client.post("/api/v1/keys", json={"name": "new", "role": "viewer"}),
                client.post("/api/v1/datasets?name=d&format=svmlight", content=b"a 1:1\n"),
                client.get("/metrics"),
            ]
        finally:
            gate.open()
            gate.end()
        assert [(answer.status_code, answer.headers.get("retry-after")) for answer in answers] == [(503, "5")] * 5
        assert client.get("/api/v1/datasets").status_code == 200
