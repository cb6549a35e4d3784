"""The task of a job: a message contains only its id; everything else is read from the database."""

import os
import socket
import time
from collections.abc import Callable, Mapping

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from app import tracing
from app.jobs import leases
from app.jobs import queue as queue_order
from app.jobs import trials as trial_jobs
from app.jobs import wakeups as job_queue
from app.jobs.slots import Fenced
from app.store import tables
from app.store.buckets import StorageAway
from app.store.db import DATABASE_AWAY, reading, sessions
from app.store.queue import GENERAL
from app.store.storage_state import storage_fault
from workers.job_kinds import trial_rows
from workers.job_kinds.adopting import adopt
from workers.job_kinds.appending import append_rows
from workers.job_kinds.compressing import compress
from workers.job_kinds.correcting import correct_labels
from workers.job_kinds.evaluating import evaluate
from workers.job_kinds.finding_wrong_labels import find_wrong_labels
from workers.job_kinds.importing import import_dataset
from workers.job_kinds.predicting import predict
from workers.job_kinds.suggesting import suggest_rows
from workers.job_kinds.training import train
from workers.job_kinds.tuning import run_trial, tune
from workers.running import compiling, job_memory, lanes
from workers.running.failing import explain, out_of_time
from workers.running.job_context import Cancelled, Drained, JobContext, LeftToTrials, TimeUp
from workers.sharding.gang import Failed, Lost, Waiting

WORK: Mapping[str, Callable[[JobContext], None]] = {
    "import": import_dataset,
    "append": append_rows,
    "correct": correct_labels,
    "train": train,
    "tune": tune,
    "trial": run_trial,
    "evaluate": evaluate,
    "predict": predict,
    "adopt": adopt,
    "compress": compress,
    "suggest_rows": suggest_rows,
    "wrong_labels": find_wrong_labels,
}

_log = structlog.get_logger("polymargin.worker")


def run(job_id: str) -> None:
    """Take the job that is next in the queue of this one, and bring it to an end; raises nothing that it can explain.

    A message says that there is something to do, not what: a job that was queued later may come first.
    """
    if lanes.drain_requested():
        return  # the job stays queued, and a sweep notifies another worker
    with lanes.slot() as slot:
        claimed_at = time.monotonic()
        try:
            with sessions()() as session:
                lease = _claim_next(session, job_id, imports_only=not slot.is_free)
        except DATABASE_AWAY as error:
            _log.warning("claim_failed", job_id=job_id, error=type(error).__name__)
            return
        if lease is None:
            _log.info("nothing_queued", job_id=job_id)
            return
        if lease.kind in lanes.LIGHT:
            slot.release()
        _run(lease, claimed_at)
    if lease.kind not in lanes.LIGHT:
        _announce_next(job_id)


def _run(lease: leases.Lease, claimed_at: float) -> None:
    log = _log.bind(job_id=lease.job_id, attempt=lease.attempt)
    with (
        tracing.job(lease.job_id, lease.kind, lease.attempt, lease.trace) as span,
        JobContext(lease, claimed_at) as context,
    ):
        log.info("job_started", kind=lease.kind)
        try:
            outcome = _work(context)
            log.info("job_ended", outcome=outcome)
        except Fenced:
            outcome = "lost"
            log.warning("job_lost")
        tracing.ended(span, outcome)
    if lease.parent_id is not None:
        _announce_end(lease.parent_id)


def _claim_next(session: Session, job_id: str, *, imports_only: bool = False) -> leases.Lease | None:
    J = tables.Job
    with reading(session):
        queue = session.scalars(select(J.queue).where(J.id == job_id)).one_or_none() or GENERAL
        light = select(J.id).where(J.queue == queue, J.state == "queued", J.kind.in_(lanes.LIGHT))
        imports = set(session.scalars(light)) if imports_only else set()
    if imports_only and not imports:
        return None
    order = queue_order.upcoming(session, queue)
    if imports_only:
        order = (id for id in order if id in imports)
    return leases.claim_first(session, order, f"{socket.gethostname()}:{os.getpid()}")


def _announce_next(job_id: str) -> None:
    """Notify a worker of the next job: its own message may have come while all slots were taken."""
    try:
        with sessions()() as session:
            with reading(session):
                queue = session.scalars(select(tables.Job.queue).where(tables.Job.id == job_id)).one_or_none()
            following = next(queue_order.upcoming(session, queue or GENERAL), None)
            if following is not None:
                job_queue.notify(session, following, queue or GENERAL)
    except DATABASE_AWAY as error:
        _log.warning("next_not_announced", job_id=job_id, error=type(error).__name__)


def _announce_end(parent_id: str) -> None:
    """Notify a worker of a tuning whose last trial this was; where that fails, a sweep does."""
    try:
        with sessions()() as session:
            with reading(session):
                job = session.get(tables.Job, parent_id)
                due = job is not None and job.state == "queued" and not trial_jobs.has_unfinished(session, parent_id)
            if job is not None and due:
                job_queue.notify(session, parent_id, job.queue)
    except DATABASE_AWAY as error:
        _log.warning("trial_not_announced", job_id=parent_id, error=type(error).__name__)


def _work(context: JobContext) -> str:
    if context.lease.kind != "trial":
        trial_rows.forget()
    try:
        try:
            with job_memory.bounded(), compiling.noticed(context.compiling):
                WORK[context.lease.kind](context)
        except StorageAway as error:
            reason = error.detail[: leases.MOST_REASON]
            context.wait_out(reason, storage_fault)
            context.give_back(reason)
            return "waiting"
    except Fenced:
        raise
    except Drained:
        context.give_back()
        return "given back"
    except LeftToTrials:
        return "left to trials"
    except Waiting:
        context.give_back(at_once=False)
        return "waiting"
    except Lost as error:
        _log.warning("shard_lost", job_id=context.lease.job_id, reason=str(error))
        context.lose()
        return "lost"
    except Cancelled:
        context.end("cancelled")
        return "cancelled"
    except TimeUp:
        context.end("failed", out_of_time())
        return "time_limit"
    except Failed as error:
        context.end("failed", error.document)
        return str(error.document["code"])
    except Exception as error:
        document = explain(error, context.lease.job_id)
        context.end("failed", document)
        return str(document["code"])
    return "succeeded"
