"""Requests that go on while a part of the service ends or restarts: what was accepted is done, nothing is a 500."""

import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from invariants import broken
from sqlalchemy.orm import Session, sessionmaker
from warm_parent import Forked, fork_api

from app.access import keys
from app.config import settings
from app.datasets import service as datasets
from app.datasets.schemas import NewDataset
from app.jobs import service as jobs
from app.jobs.schemas import FINAL_STATES
from app.operation import sweep as sweeping
from app.store import db, migrate
from app.store.files import files
from workers.tasks import run

SECONDS = 600.0
# no worker is lost so soon, also where all of them wait for the processor
LEASE_SECONDS = 30.0
# longer than a lease, and than all that looks at connections
REDIS_AWAY_SECONDS = LEASE_SECONDS + 5.0
MOST_JOBS = 40

pytestmark = pytest.mark.slow


class Storm:
    """Threads that ask an API again and again, half of them for jobs, until they are stopped."""

    def __init__(self, port: int, secret: str) -> None:
        self.statuses: Counter[int] = Counter()
        self.accepted: list[str] = []
        self.unanswered = 0
        self.without_retry: list[str] = []
        self._ending = threading.Event()
        self._url = f"http://127.0.0.1:{port}/api/v1"
        self._headers = {"Authorization": f"Bearer {secret}"}
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(6)]

    def __enter__(self) -> "Storm":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def until(self, condition: Callable[["Storm"], bool]) -> None:
        """Wait for a condition of what was answered so far."""
        deadline = time.monotonic() + SECONDS
        while not condition(self):
            assert time.monotonic() < deadline, self.statuses
            time.sleep(0.02)

    def _ask(self, number: int) -> None:
        request = {"dataset": "digits", "model": f"m{number}", "solver": "weston_watkins", "params": {"max_epochs": 2}}
        with httpx.Client(headers=self._headers, timeout=60) as client:
            while not self._ending.is_set():
                # few enough to be worked off
                asks_for_job = number % 2 == 0 and len(self.accepted) < MOST_JOBS
                try:
                    if asks_for_job:
                        answer = client.post(f"{self._url}/jobs", json=request)
                    else:
                        answer = client.get(f"{self._url}/jobs?page_size=5")
                except httpx.ConnectError:
                    time.sleep(0.05)
                    continue
                except httpx.TransportError:
                    self.unanswered += 1
                    continue
                self.statuses[answer.status_code] += 1
                if answer.status_code == 202:
                    self.accepted.append(answer.json()["id"])
                elif answer.status_code == 503 and "retry-after" not in answer.headers:
                    self.without_retry.append(answer.text)
                time.sleep(0.01)


@contextmanager
def _api() -> Iterator[tuple[int, Forked]]:
    """An API of its own, which answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    api = fork_api(port)
    try:
        deadline = time.monotonic() + SECONDS
        while True:
            assert api.poll() is None, "the API has ended"
            assert time.monotonic() < deadline, "the API does not answer"
            try:
                httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60)
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield port, api
    finally:
        api.kill()
        api.wait()


class PostgresServer:
    """A PostgreSQL of its own on a unix socket, which may be stopped at once and started again."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._run("initdb", "-D", str(folder / "data"), "-U", "postgres", "-A", "trust")
        self.url = f"postgresql://postgres@/postgres?host={folder}"

    def start(self) -> None:
        """Start, and wait until it answers."""
        options = f"-k {self._folder} -c listen_addresses="
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-w", "-o", options, "-l", f"{self._folder}/log", "start")
        psycopg.connect(self.url).close()

    def stop(self) -> None:
        """End all of it without a farewell; it recovers from its log when it starts."""
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-w", "-m", "immediate", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, user=self._user, cwd="/")


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that a test may stop."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("initdb")
    programs = found[0] if found else Path(on_path).resolve().parent if on_path else None
    if programs is None:
        pytest.skip("no PostgreSQL is installed here")
    # in no folder of pytest's: those are closed to the user that it runs as
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    server = PostgresServer(programs, folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


def test_a_postgresql_that_dies_and_comes_back_under_a_storm_loses_no_accepted_job(
    own_postgres: PostgresServer, workers: Any, configure: Callable[..., None]
) -> None:
    configure(database_url=own_postgres.url)
    migrate.upgrade(settings().sqlalchemy_url)
    database = db.sessions()
    upload = files().upload()
    upload.write("".join(f"class{row % 3} 1:{row} {row % 3 + 2}:1\n" for row in range(60)).encode())
    with database() as session:
        job = datasets.register(session, NewDataset(name="digits", format="svmlight"), upload).job
    assert job is not None
    run(job)
    with database() as session:
        secret = keys.create(session, "root", "admin").secret
    workers.start()
    with _api() as (port, _):
        with Storm(port, secret) as storm:
            for n in (10, 20):
                storm.until(lambda storm, n=n: len(storm.accepted) >= n)  # type: ignore[misc]
                refused = storm.statuses[503]
                own_postgres.stop()
                storm.until(lambda storm, refused=refused: storm.statuses[503] > refused + 5)  # type: ignore[misc]
                own_postgres.start()
            storm.until(lambda storm: len(storm.accepted) >= 30)
        assert set(storm.statuses) == {200, 202, 503}
        assert storm.unanswered == 0
        assert storm.without_retry == []
    _await_all(database, storm.accepted)
    with database() as session:
        # of attempts that have lost their job while they saved
        sweeping.tidy(session, files())
    assert broken(database, storm.accepted) == []


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_api_that_is_told_to_end_under_a_storm_answers_all_that_it_took(
    workers: Any, database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    with database() as session:
        secret = keys.create(session, "root", "admin").secret
    workers.start()
    with _api() as (port, api), Storm(port, secret) as storm:
        storm.until(lambda storm: len(storm.accepted) >= 10)
        os.kill(api.pid, signal.SIGTERM)
        assert api.wait(120) in (0, -signal.SIGTERM)
    assert set(storm.statuses) <= {200, 202, 503}
    assert storm.without_retry == []
    _await_all(database, storm.accepted)
    with database() as session:
        n_jobs = session.connection().exec_driver_sql("SELECT count(*) FROM jobs WHERE kind = 'train'").scalar_one()
    # a request on an idle connection may meet its end: then it was not answered, and not taken either
    assert n_jobs == len(storm.accepted)
    assert broken(database, storm.accepted) == []


def _await_all(database: sessionmaker[Session], ids: list[str]) -> None:
    deadline = time.monotonic() + SECONDS
    for id in ids:
        while True:
            with database() as session:
                state = jobs.get(session, id).state
            if state in FINAL_STATES:
                break
            assert time.monotonic() < deadline, f"{id} is still {state}"
            time.sleep(0.05)
        assert state == "succeeded", id


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("how", ["flushed", "frozen", "away"])
def test_a_redis_that_fails_under_a_storm_refuses_nothing_and_loses_no_job(
    how: str,
    workers: Any,
    redis_server: Any,
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    configure: Callable[..., None],
) -> None:
    configure(lease_seconds=LEASE_SECONDS)
    dataset()
    with database() as session:
        secret = keys.create(session, "root", "admin").secret
    workers.start()
    with _api() as (port, _):
        with Storm(port, secret) as storm:
            storm.until(lambda storm: len(storm.accepted) >= 5)
            if how == "flushed":
                with redis_server.client() as client:
                    for n in (10, 15, 20):
                        client.flushall()
                        storm.until(lambda storm, n=n: len(storm.accepted) >= n)  # type: ignore[misc]
            elif how == "frozen":
                with redis_server.frozen():
                    storm.until(lambda storm: len(storm.accepted) >= 12)
            else:
                redis_server.stop()
                time.sleep(REDIS_AWAY_SECONDS)
                storm.until(lambda storm: len(storm.accepted) >= 12)
                redis_server.start()
            storm.until(lambda storm: len(storm.accepted) >= MOST_JOBS)
        assert set(storm.statuses) == {200, 202}
        assert storm.unanswered == 0
    _await_all(database, storm.accepted)
    with database() as session:
        assert {jobs.get(session, id).attempt for id in storm.accepted} == {1}
    assert broken(database, storm.accepted) == []


def test_object_storage_that_fails_under_a_storm_loses_no_job(
    workers: Any,
    database: sessionmaker[Session],
    bucket: Any,
    dataset: Callable[..., str],
    configure: Callable[..., None],
) -> None:
    configure(lease_seconds=LEASE_SECONDS)
    dataset()
    with database() as session:
        secret = keys.create(session, "root", "admin").secret
    workers.start()
    faults = itertools.cycle(["busy", None, "truncated", None, "slow", None])
    with _api() as (port, _):
        with Storm(port, secret) as storm:
            storm.until(lambda storm: len(storm.accepted) >= 5)
            bucket.spoil = lambda _method, _path: next(faults)
            storm.until(lambda storm: len(storm.accepted) >= 15)
            asked = len(bucket.requests)
            bucket.spoil = lambda _method, _path: "expired"
            storm.until(lambda storm: len(storm.accepted) >= 25 and len(bucket.requests) > asked + 5)
            bucket.spoil = lambda _method, _path: None
            storm.until(lambda storm: len(storm.accepted) >= MOST_JOBS)
        assert set(storm.statuses) <= {200, 202, 503}
        assert storm.unanswered == 0
        assert storm.without_retry == []
    _await_all(database, storm.accepted)
    with database() as session:
        sweeping.tidy(session, files())
    assert broken(database, storm.accepted) == []
