"""Run by a test: a service's work is killed at each of its boundaries, one after the other, and taken up again.

A boundary is the moment before and the moment after every fsync, rename and commit. For each one a child does the work
from the beginning, exits hard there, and leaves its home to a second child, which does what workers would do next and
then looks at all that is there. Prints one line of JSON for each boundary.
"""

import hashlib
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

template, folder, every = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
os.environ |= {
    "POLYMARGIN_HOME": str(folder / "home"),
    "POLYMARGIN_DATABASE_URL": "",
    "POLYMARGIN_REDIS_URL": f"unix://{folder}/no-redis.sock",
    # so that the order of commits is that of the work
    "POLYMARGIN_HEARTBEAT_SECONDS": "1000",
    "POLYMARGIN_LEASE_SECONDS": "3600",
    "POLYMARGIN_CHECKPOINT_SECONDS": "0",
    "POLYMARGIN_MAX_ATTEMPTS": "9",
}

from sqlalchemy import select, update  # noqa: E402 - what is above decides what it finds
from sqlalchemy.engine.default import DefaultDialect  # noqa: E402

from app import logs  # noqa: E402
from app.config import settings  # noqa: E402
from app.errors import Conflict, NotFound  # noqa: E402
from app.schemas.datasets import NewDataset  # noqa: E402
from app.schemas.jobs import TrainRequest  # noqa: E402
from app.services import datasets, jobs, models, sweeping  # noqa: E402
from app.store import tables  # noqa: E402
from app.store.db import db_now, dispose, sessions  # noqa: E402
from app.store.files import files  # noqa: E402
from solvers.core.stored_models import load_model  # noqa: E402
from workers.tasks import run  # noqa: E402

ROWS = b"".join(b"%s %d:1 %d:0.5\n" % (b"abc"[i % 3 : i % 3 + 1], i % 3 + 1, i % 5 + 4) for i in range(30))
TRAIN = TrainRequest(dataset="d", model="m", solver="weston_watkins", params={"max_epochs": 3, "tol": 1e-12})
CRASHED = 9


def work(acknowledge: Callable[[str], None]) -> None:
    """Upload, import, train and promote; a second call does what is left."""
    with sessions()() as session:
        try:
            upload = files().upload()
            upload.write(ROWS)
            upload.finish()
            acknowledge(datasets.register(session, NewDataset(name="d", format="svmlight"), upload).id)
        except Conflict:
            pass
        _run_all()
        try:
            version = models.version(session, "m")
        except NotFound:
            acknowledge(jobs.submit(session, TRAIN).id)
            _run_all()
            version = models.version(session, "m")
        models.set_alias(session, "m", "production", version.version)


def take_up() -> None:
    """What workers do once the lease of who was killed has run out."""
    with sessions()() as session:
        session.execute(update(tables.Job).where(tables.Job.lease_until.is_not(None)).values(lease_until=db_now() - 1))
        session.commit()
        sweeping.sweep(session)
    _run_all()
    work(lambda _: None)
    for path in files().root.rglob("*"):
        os.utime(path, (0, 0))  # an hour has gone by
    with sessions()() as session:
        sweeping.tidy(session, files())


def found_wrong(acknowledged: list[str]) -> list[str]:
    """What is not as it should be."""
    wrong, store = [], files()
    with sessions()() as session:
        rows = {row.id: row for row in session.scalars(select(tables.Job))}
        data = list(session.scalars(select(tables.Dataset)))
        versions = list(session.scalars(select(tables.ModelVersion)))
        aliases = session.execute(select(tables.Alias.version_id)).all()
    wrong += [
        f"{id} was acknowledged and is gone" for id in acknowledged if id not in {*rows, *(row.id for row in data)}
    ]
    wrong += [f"job {row.kind} is {row.state}: {row.error}" for row in rows.values() if row.state != "succeeded"]
    if len({version.job_id for version in versions}) != len(versions) or len(versions) != 1:
        wrong.append(f"{len(versions)} versions of {len({version.job_id for version in versions})} jobs")
    if [row.version_id for row in aliases] != [version.id for version in versions]:
        wrong.append("the alias points elsewhere")
    for row in data:
        try:
            store.check(str(row.path))
        except (OSError, ValueError) as error:
            wrong.append(f"dataset: {error}")
        if hashlib.sha256(store.path(f"datasets/{row.id}/source").read_bytes()).hexdigest() != row.sha256:
            wrong.append("the source is not what was sent")
    for version in versions:
        load_model(store.path(version.path) / "model", verify=True)
        store.check(f"{version.path}/features")
    named = {f"datasets/{row.id}/{name}" for row in data for name in ("source", str(row.path).rsplit("/", 1)[1])}
    named |= {f"{version.path}/{name}" for version in versions for name in ("model", "features")}
    there = {
        str(path.relative_to(store.root))
        for path in [*store.root.glob("*/*/*"), *(each for each in store.root.glob("*/*") if each.is_file())]
    }
    wrong += [f"{path} is left" for path in sorted(there - named)]
    wrong += [f"{path} is not there" for path in sorted(named - there)]
    wrong += [f"{path} is temporary" for path in store.root.rglob(".*")]
    return wrong


def bits() -> str:
    """The model's arrays."""
    with sessions()() as session:
        model, _ = load_model(models.artefact(session, models.version(session, "m").id) / "model")
    digest = hashlib.sha256()
    for name, array in sorted(model.arrays().items()):
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()


def _run_all() -> None:
    while True:
        with sessions()() as session:
            queued = session.scalars(select(tables.Job.id).where(tables.Job.state == "queued")).all()
        if not queued:
            return
        for id in queued:
            run(id)


class Boundaries:
    """Counts them, and exits at one."""

    def __init__(self, last: int | None) -> None:
        self.n = 0
        self._last = last

    def install(self) -> None:
        """Count from now on."""
        os.fsync = self._around("fsync", os.fsync)  # type: ignore[assignment]
        os.rename = self._around("rename", os.rename)
        os.replace = self._around("replace", os.replace)
        DefaultDialect.do_commit = self._around("commit", DefaultDialect.do_commit)  # type: ignore[method-assign]

    def _around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self._pass(f"before {name}")
            result = function(*arguments, **options)
            self._pass(f"after {name}")
            return result

        return counted

    def _pass(self, what: str) -> None:
        self.n += 1
        if self.n == self._last:
            (folder / "where").write_text(what)
            os._exit(CRASHED)


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


def crash_at(last: int | None) -> dict[str, Any]:
    """What came of it."""
    shutil.rmtree(settings().home, ignore_errors=True)
    settings().home.mkdir(parents=True)
    shutil.copy(template, settings().home / "polymargin.db")
    for name in ("acknowledged", "result", "where"):
        (folder / name).unlink(missing_ok=True)
    (folder / "acknowledged").touch()

    def acknowledge(id: str) -> None:
        with open(folder / "acknowledged", "a") as file:
            file.write(f"{id}\n")

    def until_then() -> None:
        Boundaries(last).install()
        work(acknowledge)

    def afterwards() -> None:
        take_up()
        wrong = found_wrong((folder / "acknowledged").read_text().split())
        (folder / "result").write_text(json.dumps({"wrong": wrong, "bits": bits()}))

    status = in_child(until_then)
    if status not in (0, CRASHED):
        return {"at": last, "status": status, "wrong": ["the work failed by itself"]}
    if in_child(afterwards) != 0:
        return {"at": last, "status": status, "wrong": ["it could not be taken up"]}
    where = (folder / "where").read_text() if status == CRASHED else "nowhere"
    return {"at": last, "status": status, "where": where, **json.loads((folder / "result").read_text())}


def main() -> None:
    logs.configure("error")
    # children find the compiled functions in memory
    print(json.dumps(crash_at(None)), flush=True)
    settings().home.mkdir(parents=True, exist_ok=True)
    work(lambda _: None)
    dispose()
    at = 1
    while True:
        result = crash_at(at)
        print(json.dumps(result), flush=True)
        if result["status"] != CRASHED:
            return
        at += every


main()
