"""The work that is interrupted at each of its boundaries, what takes it up again, and what must hold then."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import select, update

from app.config import settings
from app.datasets import service as datasets
from app.datasets.schemas import NewDataset
from app.errors import Conflict, NotFound
from app.exports import archive_imports, archives
from app.jobs import service as jobs
from app.jobs.request_schemas import Candidate, TuneRequest
from app.jobs.schemas import TrainRequest
from app.models import aliases
from app.models import service as models
from app.operation import doctor
from app.operation import sweep as sweeping
from app.operation.backup import backup, restore
from app.store import tables
from app.store.db import db_now, dispose, sessions
from app.store.files import files
from solvers.core.stored_models import load_model
from workers.tasks import run

ROWS = b"".join(b"%s %d:1 %d:0.5\n" % (b"abc"[i % 3 : i % 3 + 1], i % 3 + 1, i % 5 + 4) for i in range(30))
TRAIN = TrainRequest(dataset="d", model="m", solver="weston_watkins", params={"max_epochs": 3, "tol": 1e-12})
TUNE = TuneRequest(
    dataset="d",
    model="tuned",
    space=[Candidate(solver="weston_watkins", params={"max_epochs": 2}, grid={"C": [1.0, 0.1]})],
    folds=2,
)
MODELS = ("m", "tuned", "imported")


def work(acknowledge: Callable[[str], None]) -> None:
    """Upload, train, promote, tune, export, import the archive, and back up; a second call does what is left."""
    with sessions()() as session:
        try:
            upload = files().upload()
            upload.write(ROWS)
            upload.finish()
            acknowledge(datasets.register(session, NewDataset(name="d", format="svmlight"), upload).id)
        except Conflict:
            upload.abort()
        _run_all()
        try:
            version = models.version(session, "m")
        except NotFound:
            acknowledge(jobs.submit(session, TRAIN).id)
            _run_all()
            version = models.version(session, "m")
        aliases.set_alias(session, "m", "production", version.version)
        try:
            models.version(session, "tuned")
        except NotFound:
            acknowledge(jobs.submit(session, TUNE).id)
            _run_all()
        try:
            models.version(session, "imported")
        except NotFound:
            upload = files().upload()
            for block in archives.make(session, "m", version.version).blocks():
                upload.write(block)
            upload.finish()
            with archive_imports.unpacked(session, upload, lambda: None) as archive:
                acknowledge(archive_imports.register(session, archive, "imported").id)
    if not _backup().exists():
        backup(_backup(), False, lambda _: None)


def take_up() -> None:
    """What workers and users do once the lease of who was killed has run out."""
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
    """What is not as it should be, in the service and in its backup."""
    wrong, store = [], files()
    with sessions()() as session:
        rows = {row.id: row for row in session.scalars(select(tables.Job))}
        data = list(session.scalars(select(tables.Dataset)))
        versions = list(session.scalars(select(tables.ModelVersion)))
        aliases = session.execute(select(tables.Alias.version_id)).all()
    known = {*rows, *(row.id for row in data), *(version.id for version in versions)}
    wrong += [f"{id} was acknowledged and is gone" for id in acknowledged if id not in known]
    wrong += [f"job {row.kind} is {row.state}: {row.error}" for row in rows.values() if row.state != "succeeded"]
    trained = [version for version in versions if version.origin is None]
    if len(trained) != 2 or len(versions) != 3:
        wrong.append(f"{len(trained)} versions were trained, and {len(versions) - len(trained)} imported")
    promoted = [version.id for version in trained if rows[version.job_id].kind == "train"]
    if [row.version_id for row in aliases] != promoted:
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
    # of a version that was measured on rows held out and then trained on all of them
    optional = {f"{version.path}/{name}" for version in versions for name in ("measured", "split")}
    wrong += [f"{path} is left" for path in sorted(there - named - optional)]
    wrong += [f"{path} is not there" for path in sorted(named - there)]
    wrong += [f"{path} is temporary" for path in [*store.root.rglob(".*"), *_backup().parent.glob(".*")]]
    return wrong + _wrong_in_backup()


def bits() -> list[str]:
    """The arrays of the models that were trained, tuned and imported."""
    digests = []
    with sessions()() as session:
        for name in MODELS:
            model, _ = load_model(files().path(models.folder(session, models.version(session, name).id)) / "model")
            digest = hashlib.sha256()
            for key, array in sorted(model.arrays().items()):
                digest.update(key.encode() + array.tobytes())
            digests.append(digest.hexdigest())
    return digests


def _wrong_in_backup() -> list[str]:
    before = {name: os.environ[name] for name in ("POLYMARGIN_HOME", "POLYMARGIN_DATABASE_URL")}
    source = _backup()
    try:
        os.environ |= {"POLYMARGIN_HOME": str(source.with_name("restored")), "POLYMARGIN_DATABASE_URL": ""}
        settings.cache_clear()
        restore(source, lambda _: None)
        states = [each for each in doctor.examine(hashes=True) if each.part in ("files", "database")]
        with sessions()() as session:
            models.version(session, "imported")
        return [f"in the backup: {each}" for each in states if each.state != "ok"]
    finally:
        dispose()
        os.environ |= before
        settings.cache_clear()


def _backup() -> Path:
    return settings().home.parent / "backups" / "copy"


def _run_all() -> None:
    while True:
        with sessions()() as session:
            queued = session.scalars(select(tables.Job.id).where(tables.Job.state == "queued")).all()
        if not queued:
            return
        for id in queued:
            run(id)
