"""A disk of PostgreSQL's own that is full: what it cannot keep is refused, what it has acknowledged is there later."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from invariants import broken

from app.access import keys
from app.jobs import queue as queue_order
from app.jobs import service as jobs
from app.jobs.schemas import FINAL_STATES
from app.main import create_app
from app.operation import sweep as sweeping
from app.store import db, migrate
from app.store.queue import GENERAL
from workers.tasks import run

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

API = "/api/v1"
ROWS = b"a 1:1\nb 2:1\na 1:2\nb 2:2\n"
SIZE = "96m"
MOUNT = 'mount -t tmpfs -o size="$0",mode=700,uid="$1",gid="$2" none "$3" && shift 3 && exec "$@"'
# the server may not run as root, which alone may mount
USER = "nobody"


class SmallServer:
    """A PostgreSQL whose data, and log of changes, may lie on a small file system of its own.

    Only the server sees that file system; it is written to by way of the server's process.
    """

    def __init__(self, folder: Path, programs: Path, log_is_there: bool) -> None:
        user = pwd.getpwnam(USER)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        small, log = folder / "small", folder / "log"
        small.mkdir()
        log.mkdir(mode=0o700)
        os.chown(log, user.pw_uid, user.pw_gid)
        initdb = f'"{programs}/initdb" -D "$0/data" -U postgres -A trust --no-sync --wal-segsize=1'
        initdb += "" if log_is_there else f' --waldir="{log}/wal"'
        options = f"-h 127.0.0.1 -p {port} -k '' -c fsync=off -c max_wal_size=4MB -c min_wal_size=2MB"
        start = f'{initdb} >/dev/null && exec "{programs}/postgres" -D "$0/data" {options}'
        as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        mounted = ["unshare", "--mount", "sh", "-c", MOUNT, SIZE, str(user.pw_uid), str(user.pw_gid), str(small)]
        self._process = subprocess.Popen(
            [*mounted, *as_user, "sh", "-c", start, str(small)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )
        self._ballast = Path(f"/proc/{self._process.pid}/root{small}/ballast")
        self.url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        self.until_it_answers()

    def until_it_answers(self) -> None:
        deadline = time.monotonic() + 300
        while True:
            assert self._process.poll() is None, "the server has ended"
            assert time.monotonic() < deadline, "the server does not answer"
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.url).close()
                return
            time.sleep(0.1)

    def fill(self) -> None:
        """Leave no room at all."""
        with open(self._ballast, "ab", buffering=0) as file:
            for block in (1 << 20, 4096, 1):
                with contextlib.suppress(OSError):
                    while file.write(b"\0" * block) == block:
                        pass

    def clear(self) -> None:
        """Have room again."""
        self._ballast.unlink()

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()


def _programs() -> Path | None:
    found = shutil.which("initdb")
    paths = [Path(found)] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    return next((path.resolve().parent for path in paths), None)


def _may_mount() -> bool:
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    return bool(shutil.which("setpriv")) and subprocess.run(probe, capture_output=True, check=False).returncode == 0


@pytest.fixture
def small_server(request: pytest.FixtureRequest, configure: Callable[..., None]) -> Iterator[SmallServer]:
    """A PostgreSQL on a small file system, named by the settings; its log of changes lies there, too, or elsewhere."""
    programs = _programs()
    if programs is None or os.geteuid() != 0 or not _may_mount():
        pytest.skip("no PostgreSQL server can be started here, or no file system can be mounted")
    # not below pytest's folder, which is its user's alone
    with tempfile.TemporaryDirectory(prefix="polymargin-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = SmallServer(folder, programs, request.param)
        try:
            configure(database_url=server.url, lease_seconds=2, heartbeat_seconds=0.3)
            migrate.upgrade(server.url.replace("postgresql://", "postgresql+psycopg://"))
            yield server
        finally:
            db.dispose()
            server.end()


def _until_refused(ask: Callable[[int], Any]) -> list[str]:
    """Ask until there is no room; the ids of what was accepted before."""
    accepted: list[str] = []
    for number in range(5000):
        answer = ask(number)
        assert "x-request-id" in answer.headers
        if answer.status_code >= 400:
            assert answer.status_code in (503, 507), answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            return accepted
        accepted.append(answer.json()["id"])
    raise AssertionError("there was room for all")


@pytest.mark.slow
@pytest.mark.parametrize("small_server", [False, True], indirect=True, ids=["data", "data and log"])
def test_what_a_full_postgresql_has_acknowledged_is_kept_and_the_rest_is_refused(small_server: SmallServer) -> None:
    with db.sessions()() as session:
        secret = keys.create(session, "root", "admin").secret
    headers = {"Authorization": f"Bearer {secret}"}
    with TestClient(create_app(), base_url="http://127.0.0.1", headers=headers) as client:
        made = client.post(f"{API}/datasets?name=old&format=svmlight", content=ROWS).json()
        run(made["job"])
        request = {"dataset": "old", "model": "m", "solver": "weston_watkins", "tags": {"long": "x" * 200}}
        waiting = client.post(f"{API}/jobs", json=request).json()["id"]
        small_server.fill()
        accepted = _until_refused(lambda _: client.post(f"{API}/jobs", json=request))
        keys_made = _until_refused(lambda n: client.post(f"{API}/keys", json={"name": f"k{n}", "role": "viewer"}))
        for answer in (
            client.post(f"{API}/datasets?name=new&format=svmlight", content=ROWS),
            client.post(f"{API}/hierarchies?name=tree&format=paths", content=b"a\nb\n"),
            client.post(f"{API}/jobs/{waiting}/cancel"),
            client.get(f"{API}/jobs"),
        ):
            assert answer.status_code in (200, 201, 202, 503, 507), answer.text
        # a worker takes the next job while there is no room, and is given some in the middle of it
        worker = threading.Thread(target=run, args=(waiting,))
        worker.start()
        time.sleep(1)
        small_server.clear()
        worker.join()
        small_server.until_it_answers()
        assert client.post(f"{API}/keys", json={"name": "again", "role": "viewer"}).status_code == 201
        kept = {key["id"] for key in client.get(f"{API}/keys?page_size=1000").json()["items"]}
        assert set(keys_made) <= kept
    _work_off()
    assert broken(db.sessions(), [made["job"], waiting, *accepted]) == []


def _work_off() -> None:
    """Run all that is queued; what a worker lost is taken again."""
    deadline = time.monotonic() + 300
    while True:
        with db.sessions()() as session:
            sweeping.sweep(session)
            queued = queue_order.in_order(session, GENERAL)
            held = [job for job in jobs.page(session, 1000).items if job.state not in FINAL_STATES]
        if not held:
            return
        assert time.monotonic() < deadline, [job.state for job in held]
        if queued:
            run(queued[0])
        else:
            time.sleep(0.2)
