"""The task of a job: a message is its id, and all else is asked of the database."""

import os
import socket
import time
from collections.abc import Callable, Mapping

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.services import leases, queue_order
from app.services.leases import Fenced
from app.store import tables
from app.store.db import DATABASE_AWAY, reading, sessions
from app.store.queue import GENERAL
from workers import draining, job_memory
from workers.appending import append_rows
from workers.evaluating import evaluate
from workers.failing import explain, out_of_time
from workers.gang import Failed, Lost, Waiting
from workers.importing import import_dataset
from workers.job_context import Cancelled, Drained, JobContext, TimeUp
from workers.predicting import predict
from workers.training import train

WORK: Mapping[str, Callable[[JobContext], None]] = {
    "import": import_dataset,
    "append": append_rows,
    "train": train,
    "evaluate": evaluate,
    "predict": predict,
}

_log = structlog.get_logger("polymargin.worker")


def run(job_id: str) -> None:
    """Take the job that is next in the queue of this one, and bring it to an end; raises nothing that it can explain.

    A message says that there is something to do, not what: a job that was queued later may come first.
    """
    if draining.requested():
        return  # the job stays queued, and a sweep notifies another worker
    claimed_at = time.monotonic()
    try:
        with sessions()() as session:
            lease = _claim_next(session, job_id)
    except DATABASE_AWAY as error:
        _log.warning("claim_failed", job_id=job_id, error=type(error).__name__)
        return
    if lease is None:
        _log.info("nothing_queued", job_id=job_id)
        return
    log = _log.bind(job_id=lease.job_id, attempt=lease.attempt)
    with JobContext(lease, claimed_at) as context:
        log.info("job_started", kind=lease.kind)
        try:
            log.info("job_ended", outcome=_work(context))
        except Fenced:
            log.warning("job_lost")


def _claim_next(session: Session, job_id: str) -> leases.Lease | None:
    """The first job, in the queue's order, that is still to be had: others may be faster, or slots lack."""
    with reading(session):
        queue = session.scalars(select(tables.Job.queue).where(tables.Job.id == job_id)).one_or_none()
    for id in queue_order.in_order(session, queue or GENERAL):
        lease = leases.claim(session, id, f"{socket.gethostname()}:{os.getpid()}")
        if lease is not None:
            return lease
    return None


def _work(context: JobContext) -> str:
    try:
        with job_memory.bounded():
            WORK[context.lease.kind](context)
    except Fenced:
        raise
    except Drained:
        context.give_back()
        return "given back"
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
