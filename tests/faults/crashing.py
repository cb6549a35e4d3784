"""Run by a test: a service's work is interrupted at each of its boundaries, and taken up again from what is there.

A boundary is the moment before every change of a file or folder, and the moments before and after every fsync and
commit (on PostgreSQL before and after every commit). What a process that is killed there leaves is what others see
there: the files, and the rows that are committed. So at each boundary these are copied, and a child does with the copy
what workers would do next, and looks at all that is there; where nothing has changed since the boundary before, there
is nothing new to take up. Prints one line of JSON for each boundary.
"""

import json
import os
import sys
from pathlib import Path

template, folder, every, part = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
# of the work, and of its copy; on SQLite there are none
url, url_of_copy = sys.argv[5:] or ("", "")
os.environ |= {
    "POLYMARGIN_HOME": str(folder / "home"),
    "POLYMARGIN_DATABASE_URL": url,
    "POLYMARGIN_REDIS_URL": f"unix://{folder}/no-redis.sock",
    # so that the order of commits is that of the work
    "POLYMARGIN_HEARTBEAT_SECONDS": "1000",
    "POLYMARGIN_LEASE_SECONDS": "3600",
    "POLYMARGIN_CHECKPOINT_SECONDS": "0",
    "POLYMARGIN_MAX_ATTEMPTS": "9",
}

import gc  # noqa: E402 - what is above decides what it finds
import hashlib  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import traceback  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

from crash_work import bits, found_wrong, take_up, work  # noqa: E402
from sqlalchemy import Engine, create_engine, delete, insert, select  # noqa: E402
from sqlalchemy.engine.default import DefaultDialect  # noqa: E402

sys.path.append(str(Path(__file__).parents[1]))
from statements import share_statements  # noqa: E402

from app import logs  # noqa: E402
from app.config import settings  # noqa: E402
from app.store.db import dispose  # noqa: E402
from app.store.tables import Table  # noqa: E402

Rows = dict[str, list[dict[str, Any]]]
# of Python's audit events: what changes files and folders, and where these are named
CHANGES = {
    "os.mkdir": (0,), "os.rename": (0, 1), "os.remove": (0,), "os.rmdir": (0,), "os.link": (1,), "os.truncate": (0,),
}  # fmt: skip
# beside the home of the work, and its backups
COPY = "taken"


class Boundaries:
    """Takes up what is there at each boundary of the work."""

    def __init__(self) -> None:
        self._acknowledged: list[str] = []
        self._n = 0
        self._n_different = 0
        self._last = ""
        self._on = False

    def pass_all(self) -> None:
        """Do the work from the beginning, and stop at each boundary."""
        begin_anew()
        sys.addaudithook(self._hear)
        if not url:
            os.fsync = self._around("fsync", os.fsync)  # type: ignore[assignment]
        DefaultDialect.do_commit = self._around("commit", DefaultDialect.do_commit)  # type: ignore[method-assign]
        self._on = True
        work(self._acknowledged.append)
        self._pass("nothing")
        self._on = False

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._on or url:
            return  # files are the same, whatever the database
        if event == "open":
            path, _, flags = arguments
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and str(path).startswith(str(folder)):
                self._pass("open")
        elif event in CHANGES and any(str(arguments[at]).startswith(str(folder)) for at in CHANGES[event]):
            self._pass(event)

    def _around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def heard(*arguments: Any, **options: Any) -> Any:
            self._pass(f"before {name}")
            result = function(*arguments, **options)
            self._pass(f"after {name}")
            return result

        return heard

    def _pass(self, what: str) -> None:
        if not self._on:
            return
        self._on = False
        try:
            self._n += 1
            rows = committed() if url else {}
            digest = digest_of(rows, self._acknowledged)
            if digest == self._last:
                return
            self._last = digest
            self._n_different += 1
            if self._n_different % every == part:
                print(json.dumps({"at": self._n, "before": what, **taken_up(rows, self._acknowledged)}), flush=True)
        finally:
            self._on = True


def taken_up(rows: Rows, acknowledged: list[str]) -> dict[str, Any]:
    """What comes of a copy of what is there."""
    place, result = folder / COPY, folder / "result"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    # by a process of its own: one that closes a file of SQLite's loses its locks of it
    subprocess.run(["cp", "-a", *present(), place], check=True)
    result.unlink(missing_ok=True)

    def go_on() -> None:
        os.fsync = lambda _: None  # the machine stays on
        os.environ["POLYMARGIN_HOME"] = str(place / "home")
        if url:
            os.environ["POLYMARGIN_DATABASE_URL"] = url_of_copy
            fill(url_of_copy, rows)
        settings.cache_clear()
        take_up()
        result.write_text(json.dumps({"wrong": found_wrong(acknowledged), "bits": bits()}))

    if in_child(go_on) != 0:
        return {"wrong": ["it could not be taken up"], "bits": None}
    return dict(json.loads(result.read_text()))


def present() -> list[Path]:
    """The home of the work, and its backups."""
    return sorted(path for path in folder.iterdir() if path.name not in (COPY, "result"))


def digest_of(rows: Rows, acknowledged: list[str]) -> str:
    """A digest that changes with the rows; SQLite rebuilds its index of the log when it is opened after a crash."""
    digest = hashlib.sha256(repr((rows, acknowledged)).encode())
    for top in present():
        for path in sorted(top.rglob("*")):
            if path.suffix != ".db-shm":
                digest.update(str(path).encode() + b"\0")
                digest.update(hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b"folder")
    return digest.hexdigest()


def committed() -> Rows:
    """All rows of PostgreSQL that others than the one at work can see."""
    with ENGINE.connect().execution_options(isolation_level="REPEATABLE READ") as rows:
        return {
            table.name: sorted((row._asdict() for row in rows.execute(select(table))), key=repr)
            for table in Table.metadata.sorted_tables
        }


def fill(target: str, rows: Rows) -> None:
    """Put the rows in the place of those of a database of PostgreSQL."""
    engine = _engine(target)
    with engine.begin() as into:
        for table in reversed(Table.metadata.sorted_tables):
            into.execute(delete(table))
        for table in Table.metadata.sorted_tables:
            if rows.get(table.name):
                into.execute(insert(table), rows[table.name])
    engine.dispose()


def begin_anew() -> None:
    """An empty home, and an empty database."""
    dispose()
    for path in present():
        shutil.rmtree(path)
    settings().home.mkdir(parents=True)
    if url:
        fill(url, {})
    else:
        shutil.copy(template, settings().home / "polymargin.db")


def in_child(do: Callable[[], None]) -> int:
    """The exit status of a child that does it."""
    pid = os.fork()
    if pid == 0:
        try:
            do()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _engine(url: str) -> Engine:
    return create_engine(url.replace("postgresql://", "postgresql+psycopg://"))


def main() -> None:
    logs.configure("error")
    # children find compiled functions and statements in memory
    share_statements()
    gc.disable()
    begin_anew()
    work(lambda _: None)
    print(json.dumps({"at": 0, "wrong": found_wrong([]), "bits": bits()}), flush=True)
    Boundaries().pass_all()


ENGINE = _engine(url) if url else None
main()
