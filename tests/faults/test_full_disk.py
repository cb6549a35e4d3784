"""A disk without room: what could not be stored is refused and leaves nothing behind, and what lives on goes on."""

import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import structlog
from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from app import logs
from app.config import settings
from app.datasets import service as datasets
from app.datasets.schemas import NewDataset
from app.store import tables
from app.store.failures import explained
from app.store.files import files
from workers import sweeper
from workers.running.job_context import LeaseHeartbeat

DRIVE = Path(__file__).with_name("filling.py")


class _FullDisk:
    """A standard error on a disk without room."""

    def __init__(self) -> None:
        self.n_refused = 0

    def write(self, text: str) -> int:
        self.n_refused += 1
        raise OSError(errno.ENOSPC, "No space left on device")

    def flush(self) -> None: ...


@pytest.fixture
def deaf_stderr(monkeypatch: pytest.MonkeyPatch) -> Iterator[_FullDisk]:
    """Logs go to a full disk, as they do in a service."""
    configured = structlog.get_config()
    full = _FullDisk()
    monkeypatch.setattr(logs, "sys", SimpleNamespace(stderr=full))
    logs.configure("info")
    yield full
    structlog.configure(**configured)


def test_a_line_that_cannot_be_written_is_lost_and_nothing_else(deaf_stderr: _FullDisk) -> None:
    log = structlog.get_logger()
    log.info("said")
    try:
        raise OSError(errno.ENOSPC, "full")
    except OSError:
        log.exception("said", value=object())
    assert deaf_stderr.n_refused == 2


def test_a_line_that_cannot_be_spelled_is_told_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    class Unspeakable:
        def __repr__(self) -> str:
            raise RuntimeError

    line = logs.render(None, "info", {"event": "said", "value": Unspeakable()})
    assert json.loads(line) == {"event": "said", "unreadable": "RuntimeError"}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_sweep_goes_on_after_rounds_that_fail_while_the_log_is_full(
    database: sessionmaker[Session],
    deaf_stderr: _FullDisk,
    configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure(sweep_seconds=0.001)
    rounds = threading.Semaphore(0)
    failures = iter([OSError(errno.ENOSPC, "full"), OperationalError("", {}, Exception("full")), RuntimeError()])

    def sweep(_session: Session) -> None:
        rounds.release()
        raise next(failures, RuntimeError())

    monkeypatch.setattr(sweeper, "_SWEEPS", (sweep,))
    end = sweeper.start("worker", "general", 1)
    try:
        for _ in range(6):
            assert rounds.acquire(timeout=60)
    finally:
        end()


def test_the_heartbeat_goes_on_after_one_that_fails(
    home: Path, configure: Callable[..., None], deaf_stderr: _FullDisk
) -> None:
    configure(heartbeat_seconds=0.001)
    beats = threading.Semaphore(0)

    class Heart(LeaseHeartbeat):
        def phase(self, name: str) -> None: ...

        def _beat(self) -> None:
            beats.release()
            raise OSError(errno.ENOSPC, "full")

    with Heart("job", 1, time.monotonic()):
        for _ in range(3):
            assert beats.acquire(timeout=60)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_dataset_that_the_database_has_no_room_for_leaves_no_folder(database: sessionmaker[Session]) -> None:
    with database() as session:
        n_pages = session.connection().exec_driver_sql("PRAGMA page_count").scalar()
        session.connection().exec_driver_sql(f"PRAGMA max_page_count = {n_pages}")
        session.commit()
        with pytest.raises(OperationalError) as caught:
            _register_until_full(session)
        failure = explained(caught.value)
        assert failure is not None
        assert failure.status == 507
        n_kept = session.scalars(select(func.count()).select_from(tables.Dataset)).one()
    assert len(list(settings().files_folder.glob("datasets/*"))) == n_kept
    assert list(settings().files_folder.glob("incoming/*")) == []


def _register_until_full(session: Session) -> None:
    for number in range(1000):
        upload = files().upload()
        upload.write(b"a 1:1\n")
        datasets.register(session, NewDataset(name=f"d{number}", format="svmlight"), upload)


def test_an_upload_that_finds_no_room_is_forgotten(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upload = files().upload()
    upload.write(b"some")
    assert upload._file is not None
    with open("/dev/full", "wb", buffering=0) as full:
        os.dup2(full.fileno(), upload._file.fileno())
    upload.abort()
    assert list(settings().files_folder.glob("incoming/*")) == []


def _may_mount() -> bool:
    probe = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not _may_mount(), reason="no file system can be mounted here")
def test_on_a_full_disk_every_write_answers_507_changes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    mounted = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs -o size=24m none "$0" && exec "$@"']
    done = subprocess.run([*mounted, str(tmp_path), sys.executable, str(DRIVE), str(tmp_path)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: status for name, status in found["statuses"].items() if status != [507, "storage_full"]} == {}
    assert found["before"] == found["after"]
    assert found["again"] == [202, 202, 201, 201]
