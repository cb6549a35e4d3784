"""Workers that are alive, the slots that they offer, and the error of a worker that has lost its lease."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.config import settings
from app.jobs import job_requests
from app.jobs import trials as trial_jobs
from app.store import tables
from app.store.db import db_now, reading, writing
from app.store.queue import GENERAL


class Fenced(Exception):
    """What the lease was for is no longer this worker's: it must stop without writing anything more."""


S = tables.Slot
J = tables.Job
PREFIX = "shard-"
_SILENT_SWEEPS = 4.0
_LEAST_READ, _MOST_READ = 8, 1000


@dataclass(frozen=True)
class ShardLease:
    """The right to be one shard of a job: valid while the slot names this job, attempt, rank and worker."""

    job_id: str
    attempt: int
    rank: int
    size: int
    worker: str
    dataset_id: str
    request: dict[str, Any]


@dataclass(frozen=True)
class HeldSlot:
    """One slot of a gang: ``worker`` is who took it, None so far; ``lost`` says that its lease has run out."""

    rank: int
    queue: str
    worker: str | None
    lost: bool


def silence_seconds() -> float:
    """A worker unheard of for so long counts as gone."""
    return max(10.0, _SILENT_SWEEPS * settings().sweep_seconds)


def pools(session: Session) -> dict[str, int]:
    """Processes by queue, of the pools of shards heard of lately."""
    with reading(session):
        return _alive(session)


def offer(session: Session, queue: str) -> None:
    """Have as many slots of a pool as its workers have processes, in the caller's transaction."""
    if not queue.startswith(PREFIX):
        return
    n = _alive(session).get(queue, 0)
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    for number in range(n):
        session.execute(insert(S).values(queue=queue, number=number).on_conflict_do_nothing())
    session.execute(
        delete(S)
        .where(S.queue == queue, S.number >= n, S.job_id.is_(None))
        .execution_options(synchronize_session=False)
    )


def deserted(session: Session) -> list[str]:
    """Queues with slots, none of them held, whose workers are gone."""
    with reading(session):
        alive = _alive(session)
        unheld = select(S.queue).group_by(S.queue).having(func.count(S.job_id) == 0).order_by(S.queue)
        return [queue for queue in session.scalars(unheld) if queue not in alive]


def withdraw(session: Session, queue: str) -> None:
    """Forget the slots of a pool that is gone; it offers them again when it comes back."""
    with writing(session):
        session.execute(
            delete(S).where(S.queue == queue, S.job_id.is_(None)).execution_options(synchronize_session=False)
        )


def reserve(session: Session, job_id: str, attempt: int, size: int) -> int | None:
    """Take one slot in each of ``size`` pools, in the caller's transaction; None where that many are not free.

    A second attempt makes do with fewer pools, where fewer are left. Returns how many slots were taken.
    """
    alive = _alive(session)
    size = _needed(size, attempt, alive)
    free = _free_numbers(session, alive, lock=True)
    chosen = sorted(sorted(free, key=lambda queue: (-len(free[queue]), _order(queue)))[:size], key=_order)
    if len(chosen) < size:
        return None
    for rank, queue in enumerate(chosen):
        taken = session.execute(
            update(S)
            .where(S.queue == queue, S.number == free[queue][0], _free())
            .values(
                job_id=job_id, attempt=attempt, rank=rank, size=size, worker=None,
                lease_until=db_now() + settings().lease_seconds,
            )
            .execution_options(synchronize_session=False)
        )  # fmt: skip
        if taken.rowcount != 1:  # type: ignore[attr-defined]
            return None
    return size


def fitting(session: Session, job_ids: Iterator[str]) -> Iterator[str]:
    """Those of queued jobs that need no slots, or slots of no more pools than have one free; read some at a time."""
    n = _LEAST_READ
    while ids := list(islice(job_ids, n)):
        with reading(session):
            alive = _alive(session)
            n_free = len(_free_numbers(session, alive))
            found = {job.id: job for job in job_requests.requested(session, J.id.in_(ids))}
        for id in ids:
            size = found[id].request.get("shards") if id in found else None
            if size is None or _needed(size, found[id].attempt + 1, alive) <= n_free:
                yield id
        n = min(8 * n, _MOST_READ)


def held_slots(session: Session, job_id: str, attempt: int) -> list[HeldSlot]:
    """The slots of a gang, by rank."""
    with reading(session):
        rows = session.execute(
            select(S.rank, S.queue, S.worker, (S.lease_until < db_now()).label("lost"))
            .where(S.job_id == job_id, S.attempt == attempt)
            .order_by(S.rank)
        )
        return [HeldSlot(row.rank, row.queue, row.worker, bool(row.lost)) for row in rows]


def keep_waiting(session: Session, job_id: str, attempt: int) -> None:
    """Hold the slots that no shard has taken yet for another lease."""
    with writing(session):
        session.execute(
            update(S)
            .where(S.job_id == job_id, S.attempt == attempt, S.worker.is_(None))
            .values(lease_until=db_now() + settings().lease_seconds)
            .execution_options(synchronize_session=False)
        )


def claim(session: Session, job_id: str, rank: int, worker: str) -> ShardLease | None:
    """Take the slot that is reserved for that rank, or return None where it is taken or no longer there."""
    with writing(session):
        row = session.execute(
            update(S)
            .where(S.job_id == job_id, S.rank == rank, S.worker.is_(None), S.lease_until >= db_now())
            .values(worker=worker, lease_until=db_now() + settings().lease_seconds)
            .returning(S.attempt, S.size)
            .execution_options(synchronize_session=False)
        ).one_or_none()
        job = session.get(tables.Job, job_id, populate_existing=True)
        if row is None or job is None or job.dataset_id is None:
            return None
        return ShardLease(job_id, row.attempt, rank, row.size, worker, job.dataset_id, job.request)


def renew(session: Session, lease: ShardLease) -> None:
    """Extend the lease; raises Fenced."""
    with writing(session):
        renewed = session.execute(
            update(S)
            .where(_mine(lease))
            .values(lease_until=db_now() + settings().lease_seconds)
            .execution_options(synchronize_session=False)
        )
        if renewed.rowcount != 1:  # type: ignore[attr-defined]
            raise Fenced(f"shard {lease.rank} of job {lease.job_id} is not held by {lease.worker}")


def leave(session: Session, lease: ShardLease) -> None:
    """Give the slot back, if it is still this shard's."""
    with writing(session):
        _clear(session, _mine(lease))


def give_up(session: Session, job_id: str) -> None:
    """Give all slots of a job back whose shards have done their work."""
    with writing(session):
        release(session, [job_id])


def release(session: Session, job_ids: Sequence[str]) -> None:
    """Give all slots of jobs back, in the caller's transaction; the next sweep notifies workers of what is free.

    A message says that there is something to do, whichever job it names: one for each free slot is enough, as no more
    jobs can begin with them.
    """
    if not job_ids or not _clear(session, S.job_id.in_(job_ids)):
        return
    n_free = session.scalar(select(func.count()).select_from(S).where(_free())) or 0
    # Skipped where locked: a worker that claims such a job holds its row while it waits for the slots given back here.
    queued = (
        select(J.id)
        .where(J.queue == GENERAL, J.state == "queued", J.notified_at.is_not(None), ~trial_jobs.waits())
        .limit(n_free)
        .with_for_update(skip_locked=True)
    )
    session.execute(
        update(J)
        .where(J.id.in_(list(session.scalars(queued))))
        .values(notified_at=None)
        .execution_options(synchronize_session=False)
    )


def _clear(session: Session, which: Any) -> bool:
    cleared = session.execute(
        update(S)
        .where(which)
        .values(job_id=None, attempt=None, rank=None, size=None, worker=None, lease_until=None)
        .execution_options(synchronize_session=False)
    )
    return bool(cleared.rowcount)  # type: ignore[attr-defined]


def _free() -> Any:
    return or_(S.job_id.is_(None), S.lease_until < db_now())


def _free_numbers(session: Session, alive: dict[str, int], lock: bool = False) -> dict[str, list[int]]:
    """By queue the numbers of slots that can be taken; ``lock`` holds them to the end of the transaction."""
    query = select(S.queue, S.number).where(_free()).order_by(S.queue, S.number)
    free: dict[str, list[int]] = {}
    for queue, number in session.execute(query.with_for_update() if lock else query).all():
        if number < alive.get(queue, 0):
            free.setdefault(queue, []).append(number)
    return free


def _needed(size: int, attempt: int, alive: dict[str, int]) -> int:
    """Pools in which a job in ``size`` shards needs a slot."""
    return min(size, len(alive)) if attempt > 1 and alive else size


def _mine(lease: ShardLease) -> Any:
    return (
        (S.job_id == lease.job_id) & (S.attempt == lease.attempt) & (S.rank == lease.rank) & (S.worker == lease.worker)
    )


def _alive(session: Session) -> dict[str, int]:
    W = tables.Worker
    query = (
        select(W.queue, func.sum(W.processes))
        .where(W.seen_at > db_now() - silence_seconds(), W.queue.startswith(PREFIX))
        .group_by(W.queue)
    )
    found = {queue: int(processes) for queue, processes in session.execute(query)}
    return {queue: found[queue] for queue in sorted(found, key=_order)}


def _order(queue: str) -> tuple[int, str]:
    number = queue.removeprefix(PREFIX)
    return (int(number), queue) if number.isdigit() else (1 << 30, queue)


def report_worker(session: Session, worker: str, queue: str, processes: int) -> None:
    """Note that a worker lives, and forget those that have long been silent."""
    with writing(session):
        session.merge(tables.Worker(id=worker, queue=queue, processes=processes, seen_at=db_now()))
        session.flush()
        offer(session, queue)
        session.execute(
            delete(tables.Worker)
            .where(tables.Worker.seen_at < db_now() - 100 * silence_seconds())
            .execution_options(synchronize_session=False)
        )


def worker_ends(session: Session, worker: str) -> None:
    """Note that a worker has ended."""
    with writing(session):
        session.execute(delete(tables.Worker).where(tables.Worker.id == worker))


def processes_alive(session: Session) -> dict[str, int]:
    """Worker processes by queue, of the workers heard of lately."""
    query = (
        select(tables.Worker.queue, func.sum(tables.Worker.processes))
        .where(tables.Worker.seen_at > db_now() - silence_seconds())
        .group_by(tables.Worker.queue)
    )
    with reading(session):
        return {queue: int(processes) for queue, processes in session.execute(query)}
