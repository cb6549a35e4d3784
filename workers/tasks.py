"""The task of a job: a message is its id, and all else is asked of the database."""

import os
import socket
import time
from collections.abc import Callable, Mapping

import structlog

from app.services import leases
from app.services.leases import Fenced
from app.store.db import DATABASE_AWAY, sessions
from workers import draining, job_memory
from workers.appending import append_rows
from workers.evaluating import evaluate
from workers.failing import explain
from workers.gang import Failed, Lost, Waiting
from workers.importing import import_dataset
from workers.job_context import Cancelled, Drained, JobContext
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
    """Take the job if it is still to be had, and bring it to an end; raises nothing that the job can explain."""
    if draining.requested():
        return  # the job stays queued, and a sweep notifies another worker
    claimed_at = time.monotonic()
    try:
        with sessions()() as session:
            lease = leases.claim(session, job_id, f"{socket.gethostname()}:{os.getpid()}")
    except DATABASE_AWAY as error:
        _log.warning("claim_failed", job_id=job_id, error=type(error).__name__)
        return
    if lease is None:
        _log.info("job_taken", job_id=job_id)
        return
    log = _log.bind(job_id=job_id, attempt=lease.attempt)
    log.info("job_started", kind=lease.kind)
    try:
        with JobContext(lease, claimed_at) as context:
            outcome = _work(context)
        log.info("job_ended", outcome=outcome)
    except Fenced:
        log.warning("job_lost")


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
    except Failed as error:
        context.end("failed", error.document)
        return str(error.document["code"])
    except Exception as error:
        document = explain(error, context.lease.job_id)
        context.end("failed", document)
        return str(document["code"])
    return "succeeded"
