"""The engine's promises: who holds a job, and that nobody else can write to it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import structlog
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.orm import Session

from app.config import settings
from app.jobs import logs as job_logs
from app.jobs import slots
from app.jobs import trials as trial_jobs
from app.jobs.ends import fail_import, unreadable, worker_lost
from app.jobs.slots import Fenced
from app.store import tables
from app.store.db import db_now, reading, writing
from app.store.failures import is_passing
from app.store.scope import Scope

J = tables.Job
log = structlog.get_logger("polymargin.engine")
HeldState = Literal["running", "cancelling"]
MOST_REASON = 255
STOPPED = "its worker was stopped"
HELD_STATES: tuple[HeldState, ...] = ("running", "cancelling")


@dataclass(frozen=True)
class Lease:
    """The right to write to a job: valid while the job's attempt is this one; ``shards`` are those it has slots for,
    and ``scope`` says whose the job is, and all that it makes; ``seconds_left`` are those of its time limit, or of its
    tuning's, which is ``parent_id``; ``trace`` names the span of the request that made it; ``losses`` counts the
    workers that it has lost.
    """

    job_id: str
    attempt: int
    kind: str
    dataset_id: str | None
    request: dict[str, Any]
    scope: Scope
    shards: int | None = None
    seconds_left: float | None = None
    parent_id: str | None = None
    trace: str | None = None
    losses: int = 0


@dataclass(frozen=True)
class Checkpoint:
    """A state from which a job can go on: the steps up to ``step`` were done, in ``seconds`` of training."""

    attempt: int
    step: int
    seconds: float
    path: str
    sha256: str


def claim(session: Session, job_id: str, worker: str) -> Lease | None:
    """Take a queued job, or return None where it is not queued (any more).

    Steps that came after the last checkpoint go in the same transaction: this attempt makes them again. A job in
    shards takes its slots there, too; while they are not free it stays queued. So does a tuning while its trials are
    not over.
    """
    return claim_first(session, iter([job_id]), worker)


def claim_first(session: Session, job_ids: Iterator[str], worker: str) -> Lease | None:
    """As :func:`claim` the first of the jobs that is to be had: others may be faster, or slots lack.

    Once a job has lacked slots, those that would lack them, too, are passed over without a try.
    """
    lacked = False
    while (job_id := next(job_ids, None)) is not None:
        try:
            lease = _claim(session, job_id, worker)
        except _HasTrials:
            continue
        except _NoSlots:
            _note_waiting(session, job_id)
            if not lacked:
                lacked, job_ids = True, slots.fitting(session, job_ids)
            continue
        except Exception as error:
            if is_passing(error):
                raise
            _set_aside(session, job_id, error)  # else every worker would fail at it forever, and claim no other job
            continue
        if lease is not None:
            return lease
    return None


def _set_aside(session: Session, job_id: str, error: Exception) -> None:
    """Fail a queued job whose row cannot be claimed, and report why."""
    log.error("job_unreadable", job_id=job_id, error=type(error).__name__, reason=str(error)[:200])
    with writing(session):
        session.execute(
            update(J)
            .where(J.id == job_id, J.state == "queued")
            .values(state="failed", finished_at=db_now(), notified_at=None, error=unreadable())
            .execution_options(synchronize_session=False)
        )
        fail_import(session, [job_id], "The import's request cannot be read.")


def _note_waiting(session: Session, job_id: str) -> None:
    with writing(session):
        waiting = {"epoch": 0, "fraction": 0.0, "phase": "waiting"}
        session.execute(
            update(J)
            .where(J.id == job_id, J.state == "queued")
            .values(progress=waiting)
            .execution_options(synchronize_session=False)
        )


class _NoSlots(Exception):  # a reason to roll back, not an error
    pass


class _HasTrials(Exception):  # as the above
    pass


def _claim(session: Session, job_id: str, worker: str) -> Lease | None:
    with writing(session):
        statement = (
            update(J)
            .where(J.id == job_id, J.state == "queued")
            .values(
                state="running",
                attempt=J.attempt + 1,
                worker=worker,
                lease_until=db_now() + settings().lease_seconds,
                started_at=func.coalesce(J.started_at, db_now()),
                error=None,
            )
            .returning(
                J.attempt,
                J.kind,
                J.dataset_id,
                J.request,
                J.workspace,
                J.owner,
                J.parent_id,
                J.trace,
                J.losses,
                (J.started_at + J.time_limit - db_now()).label("left"),
            )
        )
        row = session.execute(statement.execution_options(synchronize_session=False)).one_or_none()
        if row is None:
            return None
        # Asked after the row is locked: trials are added by who holds it alone.
        if row.kind == "tune" and trial_jobs.has_unfinished(session, job_id):
            raise _HasTrials
        left = row.left if row.parent_id is None else trial_jobs.seconds_left(session, row.parent_id)
        size = row.request.get("shards")
        if size is not None:
            size = slots.reserve(session, job_id, row.attempt, size)
            if size is None:
                raise _NoSlots
        reached = select(tables.Checkpoint.step).where(tables.Checkpoint.job_id == job_id).scalar_subquery()
        session.execute(
            delete(tables.Step)
            .where(tables.Step.job_id == job_id, tables.Step.number > func.coalesce(reached, -1))
            .execution_options(synchronize_session=False)
        )
        scope = Scope(row.workspace, row.owner)
        return Lease(
            job_id, row.attempt, row.kind, row.dataset_id, row.request, scope, size, left, row.parent_id, row.trace,
            row.losses,
        )  # fmt: skip


@contextmanager
def fenced(session: Session, lease: Lease) -> Iterator[HeldState]:
    """A transaction in which the job is surely this worker's; it extends the lease and yields the job's state.

    Raises
    ------
    Fenced
        The job was given to another, or has ended.
    """
    with writing(session):
        # Writing the row locks it: until the commit no sweep, cancel or claim can come between.
        state = session.scalars(
            _mine(lease).values(lease_until=db_now() + settings().lease_seconds).returning(J.state)
        ).one_or_none()
        if state is None:
            raise Fenced(f"job {lease.job_id} is not held by attempt {lease.attempt}")
        yield state


def heartbeat(session: Session, lease: Lease) -> HeldState:
    """Extend the lease; the state says whether the job is to be cancelled. Raises Fenced."""
    with fenced(session, lease) as state:
        return state


def record(
    session: Session,
    lease: Lease,
    steps: Sequence[dict[str, Any]],
    progress: dict[str, Any] | None,
    lines: Sequence[job_logs.Line] = (),
) -> HeldState:
    """Add points of the convergence curve (columns of ``steps`` but the job's id and attempt), and lines of the log.

    Raises Fenced.
    """
    with fenced(session, lease) as state:
        if steps:
            numbers = [step["number"] for step in steps]
            # Written before, by a commit whose answer was lost: write it again.
            session.execute(
                delete(tables.Step)
                .where(tables.Step.job_id == lease.job_id, tables.Step.number.in_(numbers))
                .execution_options(synchronize_session=False)
            )
            session.execute(
                insert(tables.Step), [{**step, "job_id": lease.job_id, "attempt": lease.attempt} for step in steps]
            )
        if progress is not None:
            session.execute(_mine(lease).values(progress=progress))
        job_logs.write(session, lease.job_id, lease.attempt, lines)
        return state


def save_checkpoint(session: Session, lease: Lease, checkpoint: Checkpoint) -> str | None:
    """Make ``checkpoint``, whose files are durable already, the job's one; return the path of the one before it."""
    with fenced(session, lease):
        old = session.get(tables.Checkpoint, lease.job_id, populate_existing=True)
        before = old.path if old else None
        session.merge(
            tables.Checkpoint(
                job_id=lease.job_id,
                attempt=checkpoint.attempt,
                step=checkpoint.step,
                seconds=checkpoint.seconds,
                path=checkpoint.path,
                sha256=checkpoint.sha256,
            )
        )
        return before if before != checkpoint.path else None


def last_checkpoint(session: Session, lease: Lease) -> Checkpoint | None:
    """The state to go on from, if there is one."""
    with reading(session):
        row = session.get(tables.Checkpoint, lease.job_id, populate_existing=True)
        return None if row is None else Checkpoint(row.attempt, row.step, row.seconds, row.path, row.sha256)


def drop_checkpoint(session: Session, lease: Lease) -> None:
    """Forget a checkpoint that cannot be read, and every step made so far. Raises Fenced."""
    with fenced(session, lease):
        for table in (tables.Checkpoint, tables.Step):
            session.execute(
                delete(table).where(table.job_id == lease.job_id).execution_options(synchronize_session=False)
            )


def end(
    session: Session,
    lease: Lease,
    state: Literal["succeeded", "failed", "cancelled"],
    *,
    result: dict[str, Any] | None = None,
    error: dict[str, Any] | None = None,
) -> None:
    """End the job, in the transaction of the caller's :func:`fenced` block."""
    values: dict[str, Any] = {"state": state, "lease_until": None, "finished_at": db_now(), "error": error}
    if result is not None:
        values["result"] = result
    if session.execute(_mine(lease).values(**values)).rowcount != 1:  # type: ignore[attr-defined]
        raise Fenced(f"job {lease.job_id} is not held by attempt {lease.attempt}")
    slots.release(session, [lease.job_id])
    if lease.kind == "import" and state != "succeeded":
        fail_import(session, [lease.job_id], f"The import was {state}.", error)


def set_result(session: Session, lease: Lease, result: dict[str, Any]) -> None:
    """Say what the job has made so far, in the transaction of the caller's :func:`fenced` block."""
    session.execute(_mine(lease).values(result=result))


def wait_for_trials(session: Session, lease: Lease, progress: dict[str, Any]) -> None:
    """Queue a tuning until its trials are over, in the transaction of the caller's :func:`fenced` block."""
    free = {"state": "queued", "lease_until": None, "worker": None, "notified_at": None, "progress": progress}
    session.execute(_mine(lease).values(**free))


def note_wait(session: Session, lease: Lease, reason: str) -> None:
    """Say why the job waits, and will be queued again. Raises Fenced."""
    with fenced(session, lease):
        session.execute(_mine(lease).values(queued_again=reason))


def give_back(session: Session, lease: Lease, reason: str = STOPPED) -> Literal["queued", "cancelled"]:
    """Let another worker go on with the job at once; that is no loss. Raises Fenced.

    A job that was being cancelled is cancelled instead.
    """
    with fenced(session, lease) as state:
        if state == "cancelling":
            end(session, lease, "cancelled")
            return "cancelled"
        _queue_again(session, lease, reason)
        return "queued"


def lose(session: Session, lease: Lease) -> Literal["queued", "cancelled", "failed"]:
    """As :func:`give_back` for a job that has lost a part of its workers, which counts; after too many it fails."""
    with fenced(session, lease) as state:
        if state == "cancelling":
            end(session, lease, "cancelled")
            return "cancelled"
        losses = session.scalars(_mine(lease).values(losses=J.losses + 1).returning(J.losses)).one()
        if losses >= settings().max_attempts:
            end(session, lease, "failed", error=worker_lost(losses))
            return "failed"
        _queue_again(session, lease, f"it has lost some of its workers ({losses} of {settings().max_attempts})")
        return "queued"


def _queue_again(session: Session, lease: Lease, reason: str) -> None:
    free = {"state": "queued", "lease_until": None, "worker": None, "notified_at": db_now(), "queued_again": reason}
    session.execute(_mine(lease).values(**free))
    slots.release(session, [lease.job_id])
    job_logs.note(session, lease.job_id, lease.attempt, "info", "queued_again", reason=reason)


def _mine(lease: Lease) -> Any:
    return (
        update(J)
        .where(J.id == lease.job_id, J.attempt == lease.attempt, J.state.in_(HELD_STATES))
        .execution_options(synchronize_session=False)
    )
