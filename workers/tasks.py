"""The one task: a message is a job's id, and all else is asked of the database."""

import os
import socket
import time
from collections.abc import Callable, Mapping

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError

from app.errors import InvalidInput, PolymarginError
from app.features.base import FitError
from app.services import leases
from app.services.leases import Fenced
from app.store.db import sessions
from solvers.problem import ProblemError
from solvers.registry import ParamsError, UnknownSolverError
from workers import draining
from workers.importing import import_dataset
from workers.journal import Cancelled, Drained, Journal
from workers.training import train

WORK: Mapping[str, Callable[[Journal], None]] = {"import": import_dataset, "train": train}

_log = structlog.get_logger("polymargin.worker")


def run(job_id: str) -> None:
    """Take the job if it is still to be had, and bring it to an end; raises nothing that the job can explain."""
    if draining.requested():
        return  # the job stays queued, and a sweep rings for it
    claimed_at = time.monotonic()
    try:
        with sessions()() as session:
            lease = leases.claim(session, job_id, f"{socket.gethostname()}:{os.getpid()}")
    except (OperationalError, InterfaceError) as error:
        _log.warning("claim_failed", job_id=job_id, error=type(error).__name__)
        return
    if lease is None:
        _log.info("job_taken", job_id=job_id)
        return
    log = _log.bind(job_id=job_id, attempt=lease.attempt)
    log.info("job_started", kind=lease.kind)
    try:
        with Journal(lease, claimed_at) as journal:
            outcome = _work(journal)
        log.info("job_ended", outcome=outcome)
    except Fenced:
        log.warning("job_lost")


def _work(journal: Journal) -> str:
    try:
        WORK[journal.lease.kind](journal)
    except Fenced:
        raise
    except Drained:
        journal.give_back()
        return "given back"
    except Cancelled:
        journal.end("cancelled")
        return "cancelled"
    except PolymarginError as error:
        journal.end("failed", error.document())
        return error.code
    except (FitError, ProblemError, ParamsError, UnknownSolverError) as error:
        journal.end("failed", InvalidInput(str(error)).document())
        return InvalidInput.code
    except MemoryError:
        journal.end("failed", _document("out_of_memory", "Memory ran out", "the worker has not enough memory for it"))
        return "out of memory"
    except OSError as error:
        _log.exception("files_failed", job_id=journal.lease.job_id)
        detail = f"a file could not be read or written: {error.strerror or type(error).__name__}"
        journal.end("failed", _document("files", "The data folder failed", detail))
        return "files"
    except Exception as error:
        # The message may quote the data: it goes to the log alone.
        _log.exception("job_crashed", job_id=journal.lease.job_id, error=type(error).__name__)
        detail = f"see the worker's log for job {journal.lease.job_id}"
        journal.end("failed", _document("internal", "Internal error", detail))
        return "crashed"
    return "succeeded"


def _document(code: str, title: str, detail: str) -> dict[str, object]:
    return {
        "type": f"urn:polymargin:problem:{code}",
        "title": title,
        "status": 500,
        "code": code,
        "detail": detail,
        "errors": [],
    }
