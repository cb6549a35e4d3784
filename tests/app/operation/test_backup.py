"""A backup of a running service is restored into another one that gives the same answers, on either database."""

import errno
import fcntl
import json
import os
import re
import shutil
import socket
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.orm import Session, sessionmaker

from app.config import settings
from app.datasets import service as datasets
from app.jobs import leases
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.models import service as models
from app.operation import doctor, embedded
from app.operation.backup import backup, restore
from app.operation.database_copies import BackupError
from app.operation.supervisor import SupervisorError
from app.predictions import service as predictions
from app.predictions.model_cache import ModelCache
from app.store import db, tables
from app.store.db import writing
from app.store.files import Files, files
from app.store.scope import DEFAULT
from workers.tasks import run

ASKED = {"instances": [[0.5, 1.0, -0.5, 0.0, 2.0], [1.0, 0.0, 0.0, 0.0, 0.0]], "top_k": 3}


# what happens once the rows are copied, which is the same whatever the database was
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def _quiet(_line: str) -> None:
    pass


def _submit(database: sessionmaker[Session], model: str = "m") -> str:
    with database() as session:
        return jobs.submit(session, TrainRequest(solver="weston_watkins", dataset="digits", model=model)).id


def _answer() -> Any:
    loaded = ModelCache(db.sessions(), 1 << 30).get((DEFAULT, "m", None, None))
    return predictions.predict(loaded, ASKED, 10)


@pytest.fixture
def service(database: sessionmaker[Session], dataset: Callable[..., str]) -> sessionmaker[Session]:
    """A service with a dataset, a model, and a job that a worker has begun."""
    dataset()
    run(_submit(database))
    waiting = _submit(database, "other")
    with database() as session:
        assert leases.claim(session, waiting, "worker-of-then") is not None
    settings().admin_key_file.write_text("pm_secret")
    return database


def _moved(configure: Callable[..., None], home: Path, url: str = "") -> None:
    db.dispose()
    configure(home=home, database_url=url)


@pytest.mark.parametrize("link", [False, True])
def test_what_was_there_is_there_again(
    link: bool, service: sessionmaker[Session], configure: Callable[..., None], tmp_path: Path
) -> None:
    before = _answer()
    umask = os.umask(0o022)
    reported = backup(tmp_path / "copy", link, _quiet)
    assert os.umask(umask) == 0o022, "what the process does beside the backup is as it was"
    made = [tmp_path / "copy", *(tmp_path / "copy").rglob("*")]
    assert {path.stat().st_mode & 0o077 for path in made if link is False or "files" not in path.parts} == {0}
    assert reported["rows"] == {"datasets": 1, "models": 1, "model_versions": 1, "jobs": 3}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    _moved(configure, tmp_path / "restored")
    restore(tmp_path / "copy", _quiet)
    assert _answer() == before
    assert settings().admin_key_file.read_text() == "pm_secret"
    assert (tmp_path / "restored").stat().st_mode & 0o077 == 0
    with db.sessions()() as session:
        assert datasets.get(session, "digits").state == "ready"
        (job,) = jobs.page(session, state="queued").items
        assert job.worker is None
    run(job.id)
    with db.sessions()() as session:
        assert jobs.get(session, job.id).state == "succeeded"
    assert {each.state for each in doctor.examine(hashes=True) if each.part in ("files", "database")} == {"ok"}


def test_a_backup_goes_into_an_empty_postgresql_and_into_no_other(
    service: sessionmaker[Session], configure: Callable[..., None], tmp_path: Path, postgres_url: str
) -> None:
    before = _answer()
    backup(tmp_path / "copy", False, _quiet)
    _moved(configure, tmp_path / "restored", postgres_url)
    restore(tmp_path / "copy", _quiet)
    assert _answer() == before
    assert not (tmp_path / "restored/polymargin.db").exists()
    _moved(configure, tmp_path / "again", postgres_url)
    with pytest.raises(BackupError, match="restore into an empty one"):
        restore(tmp_path / "copy", _quiet)


def test_a_restore_that_is_killed_is_begun_again_and_no_service_starts_before(
    service: sessionmaker[Session], configure: Callable[..., None], tmp_path: Path
) -> None:
    before = _answer()
    backup(tmp_path / "copy", False, _quiet)
    _moved(configure, tmp_path / "restored")
    restored = tmp_path / "restored"
    restored.mkdir()
    shutil.copyfile(tmp_path / "copy/polymargin.db", restored / "polymargin.db")
    settings().restoring_file.touch()  # as after a kill between the rows and the files
    with pytest.raises(SupervisorError, match="run polymargin restore again"):
        embedded.prepare()
    with settings().restoring_file.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(BackupError, match="another restore"):
            restore(tmp_path / "copy", _quiet)
    assert settings().restoring_file.exists()
    restore(tmp_path / "copy", _quiet)
    embedded.prepare()
    assert _answer() == before


def test_a_restore_that_fails_leaves_nothing(
    service: sessionmaker[Session], configure: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(tmp_path / "copy", False, _quiet)
    _moved(configure, tmp_path / "restored")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.operation.backup._transfer", full)
    with pytest.raises(OSError, match="No space left"):
        restore(tmp_path / "copy", _quiet)
    assert not [*(tmp_path / "restored").iterdir()]


def test_a_backup_of_no_service_is_refused_and_makes_nothing(configure: Callable[..., None], tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for home in (empty, tmp_path / "none"):
        _moved(configure, home)
        with pytest.raises(BackupError, match=rf"there is no database {home}/polymargin\.db"):
            backup(tmp_path / "copy", False, _quiet)
    assert not [*empty.iterdir()]
    _moved(configure, empty, "postgresql+psycopg://nobody@127.0.0.1:1/none")
    with pytest.raises(BackupError, match=r"the database \(POLYMARGIN_DATABASE_URL\) does not answer: .*refused"):
        backup(tmp_path / "copy", False, _quiet)
    for url in ("postgresql://nobody@127.0.0.1:port/none", "postgresql+unheard-of://127.0.0.1/none"):
        _moved(configure, empty, url)
        with pytest.raises(BackupError, match="POLYMARGIN_DATABASE_URL names no database: "):
            backup(tmp_path / "copy", False, _quiet)
        (finding,) = (each for each in doctor.examine(hashes=False) if each.part == "database")
        assert finding.state == "fault"
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def _rows_without_room(target: Path) -> None:
    with sqlite3.connect(target) as database:
        database.execute("PRAGMA max_page_count = 1")
        database.execute("CREATE TABLE t (x)")


def _file_without_room(source: Path, target: Path) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(source), None, str(target))


@pytest.mark.parametrize(
    ("module", "name", "stands_in"),
    [
        ("app.operation.backup", "snapshot", _rows_without_room),
        ("shutil", "copyfile", _file_without_room),
    ],
)
def test_a_backup_without_room_names_its_folder_and_how_much_is_free_there(
    service: sessionmaker[Session],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    module: str,
    name: str,
    stands_in: Callable[..., None],
) -> None:
    monkeypatch.setattr(f"{module}.{name}", stands_in)
    with pytest.raises(BackupError) as refused:
        backup(tmp_path / "copies/august", False, _quiet)
    said = r"has no room: [0-9.,]+ [MG]B are free there without the unfinished backup, which was removed"
    assert re.fullmatch(f"{tmp_path}/copies/august {said}", str(refused.value))
    assert not [*(tmp_path / "copies").iterdir()]


@on_sqlite
def test_a_backup_that_is_damaged_cut_off_or_of_a_later_version_is_refused(
    service: sessionmaker[Session], configure: Callable[..., None], tmp_path: Path
) -> None:
    backup(tmp_path / "copy", False, _quiet)
    with pytest.raises(BackupError, match="already exists"):
        backup(tmp_path / "copy", False, _quiet)
    with pytest.raises(BackupError, match="is not empty"):
        restore(tmp_path / "copy", _quiet)
    _moved(configure, tmp_path / "restored")
    contents = tmp_path / "copy/backup.json"
    text = contents.read_text()
    W = next((tmp_path / "copy").rglob("W.npy"))
    whole = W.read_bytes()
    W.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(BackupError, match="differs from what was written"):
        restore(tmp_path / "copy", _quiet)
    W.write_bytes(whole)
    contents.write_text(json.dumps(json.loads(text) | {"schema": "9999"}))
    with pytest.raises(BackupError, match="made by version"):
        restore(tmp_path / "copy", _quiet)
    contents.unlink()
    with pytest.raises(BackupError, match="not a complete backup"):
        restore(tmp_path / "copy", _quiet)
    assert not (tmp_path / "restored").exists()


def test_a_backup_under_load_is_consistent(
    service: sessionmaker[Session], configure: Callable[..., None], tmp_path: Path
) -> None:
    configure(checkpoint_seconds=0)
    stop = threading.Event()

    def train() -> None:
        while not stop.is_set():
            run(_submit(service))

    threads = [threading.Thread(target=train) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(3):
            backup(tmp_path / f"copy{number}", bool(number % 2), _quiet)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    with service() as session:
        made = models.get(session, "m").versions[0]
    for number in range(3):
        _moved(configure, tmp_path / f"restored{number}")
        restore(tmp_path / f"copy{number}", _quiet)
        found = [each for each in doctor.examine(hashes=True) if each.part in ("files", "database")]
        assert {each.state for each in found} == {"ok"}, found
        with db.sessions()() as session:
            assert models.get(session, "m").versions[0] <= made


def test_the_doctor_finds_what_is_wrong(service: sessionmaker[Session]) -> None:
    found = {each.part: each for each in doctor.examine(hashes=True)}
    assert {part for part, each in found.items() if each.state == "ok"} >= {"database", "files", "clock", "disk"}
    assert (found["queue"].state, found["workers"].state) == ("fault", "warning")
    with service() as session:
        path = files().path(models.version_row(session, "m").path)
    W = path / "model/W.npy"
    whole = W.read_bytes()
    os.chmod(W, 0o600)
    W.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert all(each.state == "ok" for each in doctor.examine(hashes=False) if each.part == "files")
    (fault,) = [each for each in doctor.examine(hashes=True) if each.part == "files"]
    assert "array W of" in fault.detail
    W.unlink()
    (fault,) = [each for each in doctor.examine(hashes=False) if each.part == "files"]
    assert "model m version 1: array W" in fault.detail
    with service() as session, writing(session):
        session.execute(update(tables.ModelVersion).values(path="models/none"))
    (fault,) = [each for each in doctor.examine(hashes=False) if each.part == "files"]
    assert "models/none is missing" in fault.detail


def test_the_doctor_looks_at_an_installation_that_is_not_there(home: Path) -> None:
    found = {each.part: each.state for each in doctor.examine(hashes=False)}
    assert found == {"data folder": "fault", "database": "fault", "queue": "fault"}


def test_the_doctor_asks_the_private_redis_where_there_is_one_and_no_other(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering: list[str | None] = [None]
    monkeypatch.setattr(doctor, "reachable", lambda url=None: url in answering)
    monkeypatch.delenv("POLYMARGIN_REDIS_URL")
    found = {each.part: each for each in doctor.examine(hashes=False)}["queue"]
    assert (found.state, "it may be another program's" in found.detail) == ("warning", True)
    (home / "run").mkdir(parents=True)
    monkeypatch.chdir(home / "run")  # the address of a socket may not be as long as a test's folder is
    with socket.socket(socket.AF_UNIX) as private:
        private.bind("redis.sock")
    found = {each.part: each for each in doctor.examine(hashes=False)}["queue"]
    assert (found.state, "does not answer: start polymargin up" in found.detail) == ("warning", True)
    answering.append(f"unix://{home}/run/redis.sock")
    found = {each.part: each for each in doctor.examine(hashes=False)}["queue"]
    assert (found.state, found.detail) == ("ok", "the private Redis of polymargin up answers")


def test_the_commands_tell_what_they_did_and_fail_with_a_reason(
    service: sessionmaker[Session],
    configure: Callable[..., None],
    tmp_path: Path,
    command: Callable[..., tuple[int, str, str]],
) -> None:
    def call(*arguments: str) -> tuple[int, dict[str, Any]]:
        status, out, _ = command(*arguments, "--json")
        return status, json.loads(out.splitlines()[-1])

    copy = str(tmp_path / "copy")
    assert call("backup", copy)[1]["rows"]["models"] == 1
    assert call("backup", copy)[0] == 1
    status, found = call("doctor", "--hashes")
    assert status == 1, "no Redis is there"
    assert ("files", "ok") in {(each["part"], each["state"]) for each in found["findings"]}
    _moved(configure, tmp_path / "restored")
    assert call("restore", copy)[1]["rows"]["models"] == 1
    status, found = call("restore", copy)
    assert "is not empty" in found["error"]["detail"]


@on_sqlite
@pytest.mark.parametrize("name", ["../../elsewhere", "files/../../elsewhere", "/elsewhere", "other/x", "files"])
def test_a_backup_writes_nowhere_but_into_the_data_folder(
    name: str, service: sessionmaker[Session], configure: Callable[..., None], tmp_path: Path
) -> None:
    backup(tmp_path / "copy", False, _quiet)
    _moved(configure, tmp_path / "restored")
    contents = tmp_path / "copy/backup.json"
    reported = json.loads(contents.read_text())
    reported["files"][name] = "0" * 64
    contents.write_text(json.dumps(reported))
    with pytest.raises(BackupError, match="not a file of a backup"):
        restore(tmp_path / "copy", _quiet)
    assert not (tmp_path / "restored").exists()


@on_sqlite
def test_nobody_is_signed_in_after_a_restore(
    service: sessionmaker[Session], configure: Callable[..., None], tmp_path: Path
) -> None:
    with service() as session, writing(session):
        session.add(tables.SignIn(digest="0" * 64, kind="session", key_id="0" * 32, expires_at=9e12))
    backup(tmp_path / "copy", False, _quiet)
    _moved(configure, tmp_path / "restored")
    restore(tmp_path / "copy", _quiet)
    with db.sessions()() as session:
        assert session.scalars(select(tables.SignIn)).all() == []


@on_sqlite
def test_a_restore_repairs_text_that_cannot_be_stored(
    service: sessionmaker[Session], configure: Callable[..., None], tmp_path: Path
) -> None:
    with service() as session, writing(session):
        session.execute(text("UPDATE jobs SET tags = :tags"), {"tags": r'{"a": "x\u0000"}'})
    backup(tmp_path / "copy", False, _quiet)
    _moved(configure, tmp_path / "restored")
    restore(tmp_path / "copy", _quiet)
    with db.sessions()() as session:
        assert [job.tags for job in session.scalars(select(tables.Job))] == [{"a": "x\ufffd"}] * 3


@on_sqlite
def test_a_file_that_folders_share_is_copied_once(
    service: sessionmaker[Session], configure: Callable[..., None], tmp_path: Path
) -> None:
    W = next(files().root.rglob("W.npy"))
    os.link(W, W.with_name("again.npy"))
    reported = backup(tmp_path / "copy", False, _quiet)
    _moved(configure, tmp_path / "restored")
    restore(tmp_path / "copy", _quiet)
    for home in (tmp_path / "copy", tmp_path / "restored"):
        copies = [next(home.rglob(name)) for name in ("W.npy", "again.npy")]
        assert copies[0].samefile(copies[1])
        assert copies[0].stat().st_ino != W.stat().st_ino
    apart = sum((tmp_path / "copy" / name).stat().st_size for name in _named(tmp_path / "copy"))
    assert reported["size_bytes"] == apart - W.stat().st_size


def _named(copy: Path) -> list[str]:
    return list(json.loads((copy / "backup.json").read_text())["files"])


def test_the_doctor_reports_settings_that_cannot_be_and_looks_no_further(configure: Callable[..., None]) -> None:
    configure(lease_seconds=2, heartbeat_seconds=5)
    (fault,) = doctor.examine(hashes=False)
    assert (fault.part, fault.state) == ("settings", "fault")
    assert "LEASE_SECONDS (2) must be at least 3 times POLYMARGIN_HEARTBEAT_SECONDS (5)" in fault.detail


def test_the_doctor_reports_a_folder_that_cannot_be_written_beside_its_other_findings(
    service: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(self: Files) -> float:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self.root))

    monkeypatch.setattr(Files, "now", read_only)
    found = {each.part: each for each in doctor.examine(hashes=False)}
    assert found["orphans"].state == "fault"
    assert found["orphans"].detail == f"{settings().files_folder}: Read-only file system"
    assert found["files"].state == "ok"
