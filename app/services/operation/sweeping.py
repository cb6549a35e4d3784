"""The sweep: any worker, at any time, puts right what was lost; running it twice changes nothing more."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from app.config import settings
from app.schemas.jobs.jobs import FINAL_STATES
from app.services.common import append_sources
from app.services.engine import job_logs, slots, trial_jobs
from app.services.engine.job_ends import fail_import, worker_lost
from app.services.predictions import batch_predictions
from app.store import partial_uploads, tables
from app.store.db import db_now, reading, writing
from app.store.files import Files
from app.store.partial_uploads import last_change
from app.store.queue import clear, n_waiting, notify_worker
from app.store.scope import scope_of

J = tables.Job
_ORPHAN_SECONDS = 3600.0
# what is uploaded: its row may be about to be written
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
    swept = Swept()
    _expire(session, swept)
    _notify(session, swept)
    _clear_deserted(session)
    return swept


def tidy(session: Session, files: Files) -> list[str]:
    """Remove files that no row names, as a crash leaves them; return their paths."""
    gone = orphans(session, files)
    for path in gone:
        files.delete(path)
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
        present = sorted(path.name for path in files.path(folder).glob("*"))
        if present:
            with reading(session):
                kept = named(session, present)
            found += [f"{folder}/{name}" for name in present if name not in kept]
    with reading(session):
        found += append_sources.orphans(session, files)
    # A file is written to while it comes in, and is moved away at its end.
    now = files.now()
    stale = [path for path in files.path("incoming").glob("*") if _age(path, now) > _ORPHAN_SECONDS]
    found += [f"incoming/{path.name}" for path in stale]
    forgotten = now - settings().upload_seconds
    uploads = files.path(partial_uploads.FOLDER).glob("*")
    found += [f"{partial_uploads.FOLDER}/{each.name}" for each in uploads if last_change(each) < forgotten]
    young = {path for path in found if path.startswith(_KEPT_YOUNG) and _age(files.path(path), now) < _ORPHAN_SECONDS}
    return [path for path in found if path not in young]


def _expire(session: Session, swept: Swept) -> None:
    with writing(session):
        expired = session.execute(
            select(J.id, J.state, J.losses, J.attempt)
            .where(J.state.in_(("running", "cancelling")), J.lease_until < db_now())
            .order_by(J.id)
            .with_for_update(skip_locked=True)
        ).all()
        for id, state, losses, attempt in expired:
            if state == "cancelling":
                swept.cancelled.append(id)
                _set(session, id, state="cancelled", lease_until=None, finished_at=db_now(), losses=losses + 1)
            elif losses + 1 >= settings().max_attempts:
                swept.failed.append(id)
                _set(
                    session, id, state="failed", lease_until=None, finished_at=db_now(), losses=losses + 1,
                    error=worker_lost(losses + 1),
                )  # fmt: skip
            else:
                swept.requeued.append(id)
                reason = f"its worker went silent ({losses + 1} of {settings().max_attempts})"
                _set(
                    session, id, state="queued", lease_until=None, worker=None, losses=losses + 1, notified_at=None,
                    queued_again=reason,
                )  # fmt: skip
                job_logs.note(session, id, attempt, "warning", "queued_again", reason=reason)
        slots.release(session, [*swept.cancelled, *swept.failed, *swept.requeued])
        if swept.cancelled:
            fail_import(session, swept.cancelled, "The import was cancelled.")
        if swept.failed:
            fail_import(session, swept.failed, "The import lost its worker too often.")


def _notify(session: Session, swept: Swept) -> None:
    stale = or_(J.notified_at.is_(None), J.notified_at < db_now() - settings().notify_again_seconds)
    with reading(session):
        unheard = session.execute(
            select(J.id, J.queue).where(J.state == "queued", stale, ~trial_jobs.waits()).order_by(J.id).limit(1000)
        ).all()
        if not unheard:
            return
        n_queued = select(J.queue, func.count()).where(J.state == "queued", ~trial_jobs.waits()).group_by(J.queue)
        queued = {queue: int(n) for queue, n in session.execute(n_queued)}
    missing = {}
    for queue in {queue for _, queue in unheard}:
        messages = n_waiting(queue)
        if messages is None:
            return  # Redis is away: the next sweep notifies
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
            return
        missing[queue] -= 1
        swept.notified.append(id)


def _clear_deserted(session: Session) -> None:
    # Nobody would ever read the messages to a pool that is gone. Should it come back, it is notified again.
    for queue in slots.deserted(session):
        if not clear(queue):
            return  # Redis is away: the next sweep asks again
        slots.withdraw(session, queue)


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


def _predictions(session: Session, present: list[str]) -> set[str]:
    # called <job id>.<format>
    recent = or_(
        J.state.not_in(sorted(FINAL_STATES)),
        (J.state == "succeeded") & (J.finished_at > db_now() - settings().keep_predictions_seconds),
    )
    kept = set(session.scalars(select(J.id).where(J.kind == "predict", recent)))
    return {name for name in present if name.lstrip(".").split(".")[0] in kept}


def _datasets(session: Session, _present: list[str]) -> set[str]:
    return set(session.scalars(select(tables.Dataset.id)))


def _age(path: Path, now: float) -> float:
    try:
        return now - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
