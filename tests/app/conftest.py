"""Fixtures for what talks to a service."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import TestClient, bearer
from canned import Canned, serve, status_of
from fastapi import FastAPI
from working import SPARSE, TABLE, TEXTS, Home, living_in, run, trained

from app.access import keys
from app.config import Settings, settings
from app.hierarchies import examples
from app.jobs import queue as queue_order
from app.main import create_app
from app.remote import transport
from app.store.db import sessions
from app.store.queue import GENERAL


@pytest.fixture
def canned(monkeypatch: pytest.MonkeyPatch) -> Iterator[Canned]:
    """A service of canned answers; the environment names it, and nothing is waited for between attempts."""
    service = Canned()
    server = serve(service)
    monkeypatch.setenv("POLYMARGIN_URL", service.url)
    monkeypatch.setenv("POLYMARGIN_API_KEY", "pm_secret")
    monkeypatch.setattr("time.sleep", lambda _: None)
    yield service
    server.shutdown()
    server.server_close()


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """``command("jobs", "list")`` runs a command line; gives its status, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = status_of(monkeypatch, *arguments)
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


@pytest.fixture(scope="session")
def empty_home(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with an empty SQLite database and a key of each role, made once and copied for every test."""
    folder = tmp_path_factory.mktemp("empty")
    with living_in(folder):
        shutil.copy(sqlite_template, folder / "polymargin.db")
        with sessions()() as session:
            roles: Any = ("viewer", "clerk", "editor", "admin")
            return folder, {role: keys.create(session, f"the-{role}", role).secret for role in roles}


@pytest.fixture(scope="session")
def trained_home(empty_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the models letters (sparse), foods (texts) and shapes (named features)."""
    folder = tmp_path_factory.mktemp("trained")
    shutil.copytree(empty_home[0], folder, dirs_exist_ok=True)
    with living_in(folder), TestClient(create_app(), headers=bearer(empty_home[1]["admin"])) as client:
        trained(client, "letters", SPARSE, "svmlight")
        trained(client, "foods", TEXTS, "jsonl")
        trained(client, "shapes", TABLE, "csv")
    return folder


@pytest.fixture
def config(home: Path, configure: Callable[..., None], empty_home: Home) -> Settings:
    """Settings of a home with an empty SQLite database."""
    shutil.copytree(empty_home[0], home)
    configure(log_level="error", failed_keys_per_minute=0)
    return settings()


@pytest.fixture(autouse=True)
def small_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example in a moment: importing every module of three libraries takes seconds."""

    def write(corpus: Path) -> None:
        corpus.write_bytes(TEXTS)

    monkeypatch.setattr(examples, "_write", write)


@pytest.fixture
def secrets(empty_home: Home, config: Settings) -> dict[str, str]:
    """One key of each role."""
    return empty_home[1]


@pytest.fixture(scope="session")
def description() -> dict[str, Any]:
    """What an application says of its API, once one has: it takes half a second, and all of them say the same."""
    return {}


@pytest.fixture
def app(config: Settings, description: dict[str, Any]) -> Iterator[FastAPI]:
    app = create_app(config)
    app.openapi_schema = description or None
    yield app
    description.update(app.openapi_schema or {})


@pytest.fixture
def client(app: FastAPI, secrets: dict[str, str]) -> Iterator[TestClient]:
    """A client with an administrator's key."""
    with TestClient(app, headers=bearer(secrets["admin"])) as client:
        yield client


@pytest.fixture
def models(trained_home: Path, config: Settings, client: TestClient) -> TestClient:
    """A client of a service that has the models letters, foods and shapes."""
    shutil.copytree(trained_home, config.home, dirs_exist_ok=True)
    return client


@pytest.fixture
def wired(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's service is the application in this process, and its worker each moment of waiting."""

    def http(*, base_url: str, headers: dict[str, str], timeout: float, verify: object) -> TestClient:
        return TestClient(app, base_url=base_url, headers=headers)

    def work(_seconds: float) -> None:
        with sessions()() as session:
            waiting = queue_order.in_order(session, GENERAL)
        for job in waiting:
            run(job)

    monkeypatch.setattr(transport.httpx, "Client", http)
    monkeypatch.setattr("time.sleep", work)
