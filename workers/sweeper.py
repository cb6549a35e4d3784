"""The worker's main process sweeps: jobs of dead workers are given to living ones."""

import contextlib
import os
import threading
import time
from collections.abc import Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.config import settings
from app.services.access import audit_pruning
from app.services.engine import live_workers
from app.services.models import deletions
from app.services.operation.sweeping import sweep, tidy
from app.services.rules import rule_stages
from app.store.db import sessions, shrink
from app.store.files import files

_TIDY_SECONDS = 600.0
_END_SECONDS = 5.0
_log = structlog.get_logger("polymargin.sweeper")
# A fork while this thread is inside the database driver would copy locks that nobody opens again.
_no_fork = threading.Lock()


def start(worker: str, queue: str, processes: int) -> Callable[[], None]:
    """Sweep and report in a thread; calling what is returned ends that."""
    stop = threading.Event()
    thread = threading.Thread(target=_run, args=(worker, queue, processes, stop), name="sweeper", daemon=True)
    thread.start()

    def end() -> None:
        stop.set()
        thread.join(_END_SECONDS)
        with contextlib.suppress(SQLAlchemyError), sessions()() as session:
            live_workers.leave(session, worker)

    return end


def _run(worker: str, queue: str, processes: int, stop: threading.Event) -> None:
    tidied_at = time.monotonic()
    while not stop.is_set():
        # One round may fail; without any, a dead worker's jobs would wait for ever.
        with contextlib.suppress(Exception):
            tidy_now = time.monotonic() - tidied_at > _TIDY_SECONDS
            if tidy_now:
                tidied_at = time.monotonic()
            _round(worker, queue, processes, tidy_now)
        stop.wait(settings().sweep_seconds)


def _round(worker: str, queue: str, processes: int, tidy_now: bool) -> None:
    for act in (
        lambda session: live_workers.report(session, worker, queue, processes),
        _sweep,
        _follow_rules,
        *([_tidy] if tidy_now else []),
    ):
        try:
            with _no_fork, sessions()() as session:
                act(session)
        except SQLAlchemyError as error:
            _log.warning("database_away", error=type(error).__name__, reason=str(getattr(error, "orig", error))[:200])
        except Exception:
            _log.exception("sweep_failed")


def _sweep(session: Session) -> None:
    swept = sweep(session)
    if swept.requeued or swept.failed or swept.cancelled:
        _log.warning("swept", requeued=swept.requeued, failed=swept.failed, cancelled=swept.cancelled)


def _follow_rules(session: Session) -> None:
    started = rule_stages.turn(session)
    if started:
        _log.info("rules_started", runs=started)


def _tidy(session: Session) -> None:
    deleted, purged = deletions.apply_retention(session), deletions.purge(session)
    if deleted or purged:
        _log.info("versions_removed", deleted_by_retention=deleted, purged=purged)
    forgotten = audit_pruning.prune(session)
    if forgotten:
        _log.info("audit_pruned", entries=forgotten)
    tidy(session, files())
    shrink(session)


os.register_at_fork(before=_no_fork.acquire, after_in_parent=_no_fork.release, after_in_child=_no_fork.release)
