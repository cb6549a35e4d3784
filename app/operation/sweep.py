"""The sweep: any worker, at any time, puts right what was lost; running it twice changes nothing more.

It also reports what uses disk space and will be removed.
"""

import re
import shutil
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session

from app.config import settings
from app.datasets import append_sources
from app.jobs import logs as job_logs
from app.jobs import slots
from app.jobs import trials as trial_jobs
from app.jobs.ends import fail_import, worker_lost
from app.jobs.schemas import FINAL_STATES
from app.models import deletions
from app.models.schemas import DeletedVersion, OrphanedFile, Storage
from app.predictions import batch_predictions
from app.store import partial_uploads, tables
from app.store.db import db_now, reading, writing
from app.store.failures import isolated
from app.store.files import Files, is_abandoned
from app.store.queue import clear, n_waiting, notify_worker
from app.store.scope import scope_of

J = tables.Job
_ORPHAN_SECONDS = 3600.0
# age in seconds of an unlocked file before it is removed: a new file may not be locked yet
_ABANDONED_SECONDS = 60.0
# what is uploaded: its row may be about to be written
_CHECKPOINT = re.compile(r"\d+-\d+-\d+")
_KEPT_YOUNG = ("datasets/", "models/import-")


@dataclass
class Swept:
    """What a sweep did: ids of jobs."""

    requeued: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    notified: list[str] = field(default_factory=list)


def sweep(session: Session) -> Swept:
    """Take jobs from workers silent for longer than their lease, and notify workers of jobs that none has taken."""
    swept = expire(session)
    swept.notified = notify(session)
    clear_deserted(session)
    return swept


def expire(session: Session) -> Swept:
    """Take jobs from workers silent for longer than their lease, each in a transaction of its own."""
    swept = Swept()
    with reading(session):
        ids = session.scalars(select(J.id).where(_expired()).order_by(J.id)).all()
    for id in ids:
        with isolated(session, "job_not_expired", job_id=id):
            with writing(session):
                state = _expire(session, id)
            if state is not None:
                {"queued": swept.requeued, "failed": swept.failed, "cancelled": swept.cancelled}[state].append(id)
    return swept


def notify(session: Session) -> list[str]:
    """Notify workers of jobs that none has taken; return the jobs' ids."""
    notified: list[str] = []
    stale = or_(J.notified_at.is_(None), J.notified_at < db_now() - settings().notify_again_seconds)
    with reading(session):
        unheard = session.execute(
            select(J.id, J.queue).where(J.state == "queued", stale, ~trial_jobs.waits()).order_by(J.id).limit(1000)
        ).all()
        if not unheard:
            return notified
        n_queued = select(J.queue, func.count()).where(J.state == "queued", ~trial_jobs.waits()).group_by(J.queue)
        queued = {queue: int(n) for queue, n in session.execute(n_queued)}
    missing = {}
    for queue in {queue for _, queue in unheard}:
        messages = n_waiting(queue)
        if messages is None:
            return notified  # Redis is away: the next sweep notifies
        # Busy workers leave messages waiting; more of them would only pile up.
        missing[queue] = queued.get(queue, 0) - messages
    for id, queue in unheard:
        if missing[queue] <= 0:
            continue
        with writing(session):
            mine = session.execute(
                update(J)
                .where(J.id == id, J.state == "queued", stale)
                .values(notified_at=db_now())
                .execution_options(synchronize_session=False)
            )
        if mine.rowcount != 1:  # type: ignore[attr-defined]  # another sweep was faster
            continue
        if not notify_worker(id, queue):
            with writing(session):
                _set(session, id, notified_at=None)
            return notified
        missing[queue] -= 1
        notified.append(id)
    return notified


def clear_deserted(session: Session) -> None:
    """Remove the messages to pools that are gone, as nobody would read them; one that comes back is notified again."""
    for queue in slots.deserted(session):
        if not clear(queue):
            return  # Redis is away: the next sweep asks again
        slots.withdraw(session, queue)


def tidy(session: Session, files: Files) -> list[str]:
    """Remove files that no row names, as a crash leaves them; return their paths."""
    gone = orphans(session, files)
    for path in gone:
        files.delete(path)
    if files.working is not files:
        for path in orphans(session, files.working):
            files.working.delete(path)
    return gone


def orphans(session: Session, files: Files) -> list[str]:
    """Paths of files that no row names, and that no row is about to name; the session must see all workspaces."""
    assert scope_of(session) is None, "what other workspaces name would be taken for an orphan"
    found = []
    for folder, named in (
        ("models", _models),
        ("evaluations", _evaluations),
        ("jobs", _jobs),
        (batch_predictions.FOLDER, _predictions),
        ("datasets", _datasets),
    ):
        present = files.names(folder)
        if present:
            with reading(session):
                kept = named(session, present)
            found += [f"{folder}/{name}" for name in present if name not in kept]
    found += _former_checkpoints(session, files)
    with reading(session):
        found += append_sources.orphans(session, files)
    now = files.now()
    incoming = [f"incoming/{name}" for name in files.names("incoming")]
    found += [path for path in incoming if _is_stale(files, path, now)]
    forgotten = now - settings().upload_seconds
    found += partial_uploads.unused_since(files, forgotten)
    young = {path for path in found if path.startswith(_KEPT_YOUNG) and _age(files, path, now) < _ORPHAN_SECONDS}
    return [path for path in found if path not in young]


def _expired() -> ColumnElement[bool]:
    return and_(J.state.in_(("running", "cancelling")), J.lease_until < db_now())


def _expire(session: Session, id: str) -> str | None:
    """Take a job from its silent worker; its new state, or None where the worker or another sweep was faster."""
    lost = select(J.state, J.losses, J.attempt).where(J.id == id, _expired()).with_for_update(skip_locked=True)
    row = session.execute(lost).one_or_none()
    if row is None:
        return None
    most, losses = settings().max_attempts, row.losses + 1
    over: dict[str, Any] = {"lease_until": None, "losses": losses}
    if row.state == "cancelling":
        state = "cancelled"
        _set(session, id, state=state, finished_at=db_now(), **over)
        fail_import(session, [id], "The import was cancelled.")
    elif losses >= most:
        state = "failed"
        _set(session, id, state=state, finished_at=db_now(), error=worker_lost(losses), **over)
        fail_import(session, [id], "The import lost too many workers.")
    else:
        state, reason = "queued", f"its worker went silent ({losses} of {most})"
        _set(session, id, state=state, worker=None, notified_at=None, queued_again=reason, **over)
        job_logs.note(session, id, row.attempt, "warning", "queued_again", reason=reason)
    slots.release(session, [id])
    return state


def _set(session: Session, id: str, **values: Any) -> None:
    session.execute(update(J).where(J.id == id).values(**values).execution_options(synchronize_session=False))


def _models(session: Session, present: list[str]) -> set[str]:
    # Folders are called <job id>.<attempt>, and .<point> in a path: one is needed while a version names it or its
    # attempt is at work. In this order: a job that succeeds between the two queries is found by the second.
    held = session.execute(select(J.id, J.attempt).where(J.state.in_(("running", "cancelling")))).all()
    versions = {path.removeprefix("models/") for path in session.scalars(select(tables.ModelVersion.path))}
    at_work = {f"{id}.{attempt}" for id, attempt in held}
    return versions | {name for name in present if ".".join(name.split(".")[:2]) in at_work}


def _evaluations(session: Session, present: list[str]) -> set[str]:
    # Called <job id>.<attempt>; as with models.
    held = session.execute(select(J.id, J.attempt).where(J.state.in_(("running", "cancelling")))).all()
    made = {path.removeprefix("evaluations/") for path in session.scalars(select(tables.Evaluation.path))}
    return made | ({f"{id}.{attempt}" for id, attempt in held} & set(present))


def _jobs(session: Session, _present: list[str]) -> set[str]:
    recent = or_(
        J.state.not_in(sorted(FINAL_STATES)),
        (J.state != "succeeded") & (J.finished_at > db_now() - settings().keep_checkpoints_seconds),
    )
    return set(session.scalars(select(J.id).where(recent)))


def _former_checkpoints(session: Session, files: Files) -> list[str]:
    """Checkpoints of jobs that have ended other than the one to go on from: an attempt has died while it wrote them."""
    written: dict[str, list[str]] = {}
    for path in files.names("jobs", depth=2):
        job, _, name = path.partition("/")
        if _CHECKPOINT.fullmatch(name.lstrip(".").split(".")[0]):
            written.setdefault(job, []).append(name)
    if not written:
        return []
    with reading(session):
        last = {
            row.job_id: row.path for row in session.execute(select(tables.Checkpoint.job_id, tables.Checkpoint.path))
        }
        ended = set(session.scalars(select(J.id).where(J.state.in_(sorted(FINAL_STATES)))))
    paths = [f"jobs/{id}/{name}" for id, names in written.items() if id in ended for name in names]
    return [path for path in paths if path != last.get(path.split("/")[1])]


def _predictions(session: Session, present: list[str]) -> set[str]:
    # called <job id>.<format>
    recent = or_(
        J.state.not_in(sorted(FINAL_STATES)),
        (J.state == "succeeded") & (J.finished_at > db_now() - settings().keep_predictions_seconds),
    )
    kept = set(session.scalars(select(J.id).where(J.kind.in_(batch_predictions.KINDS), recent)))
    return {name for name in present if name.lstrip(".").split(".")[0] in kept}


def _datasets(session: Session, _present: list[str]) -> set[str]:
    return set(session.scalars(select(tables.Dataset.id)))


def _is_stale(files: Files, path: str, now: float) -> bool:
    """Whether nobody receives the file any more. Without a workspace it is a link, which nobody locks, to a piece."""
    try:
        age = _age(files, path, now)
        return age > _ORPHAN_SECONDS or ("@" in path and age > _ABANDONED_SECONDS and is_abandoned(files.path(path)))
    except FileNotFoundError:
        return False


def _age(files: Files, path: str, now: float) -> float:
    try:
        return now - files.modified(path)
    except FileNotFoundError:
        return 0.0


def report(session: Session, files: Files) -> Storage:
    """What the next collection removes."""
    due, restorable = deletions.deleted(session, due=True), deletions.deleted(session, due=False)
    return _reported(files, due, restorable, _orphans(session, files), collected=False)


def collect(session: Session, files: Files, deleted: bool = False) -> Storage:
    """Remove versions whose time is over and files that no row names; with ``deleted`` all deleted versions.

    The space of a version is reported as such, not again among the files.
    """
    versions = deletions.deleted(session, due=True) + (deletions.deleted(session, due=False) if deleted else [])
    found = _orphans(session, files)
    deletions.purge(session, at_once=deleted)
    tidy(session, files)
    return _reported(files, versions, deletions.deleted(session, due=False), found, collected=True)


def _orphans(session: Session, files: Files) -> list[OrphanedFile]:
    paths = orphans(session, files)
    return [OrphanedFile(path=path, size_bytes=sum(files.sizes(path).values())) for path in paths]


def _reported(
    files: Files,
    versions: list[DeletedVersion],
    restorable: list[DeletedVersion],
    orphans: list[OrphanedFile],
    *,
    collected: bool,
) -> Storage:
    files.root.mkdir(parents=True, exist_ok=True)
    return Storage(
        collected=collected,
        versions=versions,
        restorable=restorable,
        orphans=orphans,
        size_bytes=sum(each.size_bytes for each in versions) + sum(each.size_bytes for each in orphans),
        free_bytes=shutil.disk_usage(files.root).free,
    )
