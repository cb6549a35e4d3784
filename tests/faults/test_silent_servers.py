"""Servers that stop or lose their connections, and an API that has to end while it is at work."""

import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from invariants import broken
from sqlalchemy import make_url
from sqlalchemy.orm import Session, sessionmaker
from warm_parent import Forked, fork_api

from app.access import keys
from app.config import settings
from app.jobs import service as jobs
from app.jobs.schemas import Job
from workers.tasks import run

Until = Callable[[str, Callable[[Job], bool]], Job]

pytestmark = pytest.mark.slow
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@on_sqlite
def test_jobs_run_and_are_taken_though_redis_stands_still(
    workers: Any, redis_server: Any, database: sessionmaker[Session], long_job: Callable[..., str], until: Until
) -> None:
    workers.start()
    running = long_job()
    until(running, lambda job: job.state == "running" and job.progress is not None and job.progress.epoch > 0)
    with redis_server.frozen():
        waiting = long_job("waiting", max_epochs=3)
        with database() as session:
            assert jobs.get(session, waiting).state == "queued"
        assert until(running, lambda job: job.state == "succeeded").attempt == 1
    assert until(waiting, lambda job: job.state == "succeeded").attempt == 1
    assert broken(database, [running, waiting]) == []


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_job_survives_that_all_connections_to_its_database_are_cut_again_and_again(
    workers: Any, database: sessionmaker[Session], postgres_server: str, long_job: Callable[..., str], until: Until
) -> None:
    workers.start()
    job_id = long_job()
    until(job_id, lambda job: job.state == "running" and job.progress is not None and job.progress.epoch > 0)
    name = make_url(settings().sqlalchemy_url).database
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        for _ in range(5):
            admin.execute(cut, [name])
            time.sleep(0.3)
    database.kw["bind"].dispose()
    until(job_id, lambda job: job.state == "succeeded")
    assert broken(database, [job_id]) == []


@on_sqlite
def test_an_upload_that_comes_in_when_the_api_is_told_to_end_is_answered_and_kept(
    database: sessionmaker[Session], home: Any
) -> None:
    with database() as session:
        secret = keys.create(session, "root", "admin").secret
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    api = fork_api(port)
    try:
        content = b"a 1:1\nb 2:1\n" * 1000
        with _connected(port, api) as connection:
            head = "POST /api/v1/datasets?name=d&format=svmlight HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            head += f"Authorization: Bearer {secret}\r\n"
            connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content[:100])
            time.sleep(1)
            os.kill(api.pid, signal.SIGTERM)
            time.sleep(1)
            connection.sendall(content[100:])
            answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        assert answer.startswith("HTTP/1.1 202"), answer
        assert api.wait(120) in (0, -signal.SIGTERM)
    finally:
        api.kill()
        api.wait()
    job = answer.partition('"job":"')[2][:32]
    run(job)
    assert broken(database, [job]) == []


def _connected(port: int, api: Forked) -> socket.socket:
    deadline = time.monotonic() + 300
    while True:
        assert api.poll() is None, "the API has ended"
        assert time.monotonic() < deadline, "the API does not answer"
        try:
            return socket.create_connection(("127.0.0.1", port), 300)
        except ConnectionRefusedError:
            time.sleep(0.1)
