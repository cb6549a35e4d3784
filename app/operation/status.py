"""What goes on in the service now, in one look."""

import shutil
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.config import settings
from app.datasets import service as datasets
from app.jobs import shown as shown_jobs
from app.jobs import slots
from app.jobs import trials as trial_jobs
from app.operation.readiness import count_by_state
from app.operation.schemas import Attention, CurvePoint, Queue, Room, RunningJob, Status
from app.store import tables
from app.store.db import db_now, reading
from app.store.queue import GENERAL
from app.store.storage_state import STATE
from app.version import VERSION
from solvers.core.memory import machine_bytes

MOST_JOBS, MOST_STEPS, MOST_FAULTS = 20, 200, 10
_LATELY_SECONDS = 86400.0
_LEAST_FREE = 0.05
_MEMORY = Path("/proc/meminfo")
_RUNNING = ("running", "cancelling")


def status(session: Session) -> Status:
    """Jobs, workers, room and faults as they are now; of the session's workspace, where they belong to one."""
    with reading(session):
        queues, disk = _queues(session), _disk()
        running, queued = _jobs(session, *_RUNNING), _jobs(session, "queued")
        return Status(
            version=VERSION,
            jobs=dict(count_by_state(session)),
            running=[RunningJob(job=job, curve=_curve(session, job.id)) for job in shown_jobs.every(session, running)],
            queued=shown_jobs.every(session, queued),
            queues=queues,
            disk=disk,
            memory=Room(total_bytes=machine_bytes(), free_bytes=_free_memory()),
            n_datasets=_number(session, tables.Dataset) - datasets.n_folded(session),
            n_hierarchies=_number(session, tables.Hierarchy),
            n_models=_number(session, tables.Model),
            attention=[*_shortages(queues, disk), *_failures(session)],
        )


def _jobs(session: Session, *states: str) -> list[tables.Job]:
    query = select(tables.Job).where(trial_jobs.in_state(*states)).order_by(tables.Job.id.desc())
    return list(session.scalars(query.limit(MOST_JOBS)))


def _curve(session: Session, job_id: str) -> list[CurvePoint]:
    S = tables.Step
    query = select(S.seconds, S.gap, S.primal).where(S.job_id == job_id).order_by(S.number.desc()).limit(MOST_STEPS)
    rows = session.execute(query).all()
    return [CurvePoint(seconds=row.seconds, gap=row.gap, primal=row.primal) for row in reversed(rows)]


def _queues(session: Session) -> list[Queue]:
    J, S = tables.Job, tables.Slot
    alive = slots.processes_alive(session)
    by_state = select(J.queue, J.state, func.count().label("n"))
    by_state = by_state.where(J.state.in_((*_RUNNING, "queued")), ~trial_jobs.parked())
    busy: dict[str, int] = {}
    waiting: dict[str, int] = {}
    for row in session.execute(by_state.group_by(J.queue, J.state)):
        counts = waiting if row.state == "queued" else busy
        counts[row.queue] = counts.get(row.queue, 0) + row.n
    held = select(S.queue, func.count(S.job_id).label("n")).where(S.lease_until >= db_now()).group_by(S.queue)
    busy |= {row.queue: row.n for row in session.execute(held)}
    names = sorted({GENERAL, *alive, *waiting, *busy}, key=lambda name: (name != GENERAL, len(name), name))
    return [
        Queue(name=name, processes=alive.get(name, 0), busy=busy.get(name, 0), waiting=waiting.get(name, 0))
        for name in names
    ]


def _disk() -> Room:
    found = shutil.disk_usage(settings().home)
    return Room(total_bytes=found.total, free_bytes=found.free)


def _free_memory() -> int:
    """Bytes that a new program could have; 0 if the system does not report them."""
    try:
        lines = _MEMORY.read_text().splitlines()
    except OSError:
        return 0
    kilobytes = next((int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), 0)
    return min(kilobytes << 10, machine_bytes())


def _number(session: Session, table: type[tables.Table]) -> int:
    return session.scalar(select(func.count()).select_from(table)) or 0


def _shortages(queues: list[Queue], disk: Room) -> list[Attention]:
    found = [
        Attention(kind="no_workers", detail=f"No worker of the queue {queue.name} has been active recently.")
        for queue in queues
        if not queue.processes and (queue.name == GENERAL or queue.waiting)
    ]
    if disk.free_bytes < _LEAST_FREE * disk.total_bytes:
        share = disk.free_bytes / disk.total_bytes
        found.append(Attention(kind="disk_full", detail=f"Only {share:.1%} of the data folder's disk is free."))
    fault = STATE.fault()
    if fault is not None:
        found.append(Attention(kind="object_storage", detail=fault))
    return found


def _failures(session: Session) -> list[Attention]:
    J, D = tables.Job, tables.Dataset
    failed = select(J).where(
        J.state == "failed", J.kind != "import", J.parent_id.is_(None), J.finished_at > db_now() - _LATELY_SECONDS
    )
    rows = session.scalars(failed.order_by(J.id.desc()).limit(MOST_FAULTS))
    found = [
        (row.id, Attention(kind="job_failed", detail=_detail(row.error), id=row.id, name=row.request.get("model")))
        for row in rows
    ]
    broken = select(D).where(D.state == "failed", D.created_at > db_now() - _LATELY_SECONDS)
    for dataset in session.scalars(broken.order_by(D.id.desc()).limit(MOST_FAULTS)):
        fault = Attention(kind="dataset_failed", detail=_detail(dataset.error), id=dataset.id, name=dataset.name)
        found.append((dataset.id, fault))
    return [fault for _, fault in sorted(found, key=lambda pair: pair[0], reverse=True)[:MOST_FAULTS]]


def _detail(error: dict[str, object] | None) -> str:
    return str((error or {}).get("detail", "It failed."))
