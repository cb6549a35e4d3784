"""The worker's main process sweeps: jobs of dead workers are given to living ones."""

import contextlib
import os
import threading
import time
from collections.abc import Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.access import audit as audit_pruning
from app.config import settings
from app.jobs import slots
from app.models import deletions
from app.operation import sweep as sweeping
from app.rules import stages as rule_stages
from app.store.db import sessions, shrink
from app.store.failures import is_passing
from app.store.files import files
from app.webhooks import deliveries as webhook_deliveries

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
    # receivers may be slow, and sweeps must not wait for them
    sending = threading.Thread(target=_send, args=(stop,), name="webhooks", daemon=True)
    sending.start()

    def end() -> None:
        stop.set()
        thread.join(_END_SECONDS)
        sending.join(_END_SECONDS)
        with contextlib.suppress(SQLAlchemyError), sessions()() as session:
            slots.worker_ends(session, worker)

    return end


def _run(worker: str, queue: str, processes: int, stop: threading.Event) -> None:
    tidied_at = time.monotonic()
    while not stop.is_set():
        # One round may fail; without any, a dead worker's jobs would wait forever.
        with contextlib.suppress(Exception):
            tidy_now = time.monotonic() - tidied_at > _TIDY_SECONDS
            if tidy_now:
                tidied_at = time.monotonic()
            _round(worker, queue, processes, tidy_now)
        stop.wait(settings().sweep_seconds)


def _send(stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            webhook_deliveries.deliver(sessions(), _no_fork)
        except Exception as error:
            if not is_passing(error):
                _log.exception("webhooks_failed")
        stop.wait(settings().sweep_seconds)


def _round(worker: str, queue: str, processes: int, tidy_now: bool) -> None:
    for act in (
        lambda session: slots.report_worker(session, worker, queue, processes),
        *_SWEEPS,
        *(_TIDYING if tidy_now else ()),
    ):
        try:
            with _no_fork, sessions()() as session:
                act(session)
        except Exception as error:
            if is_passing(error):
                log_away(error)
            else:  # of this step alone
                _log.exception("sweep_failed", step=getattr(act, "__name__", "report"))


def log_away(error: Exception) -> None:
    """Log that the database is unavailable, and why; the caller tries again."""
    reason = str(getattr(error, "orig", error))[:200]
    _log.warning("database_away", error=type(error).__name__, reason=reason)


def _expire(session: Session) -> None:
    swept = sweeping.expire(session)
    if swept.requeued or swept.failed or swept.cancelled:
        _log.warning("swept", requeued=swept.requeued, failed=swept.failed, cancelled=swept.cancelled)


def _follow_rules(session: Session) -> None:
    started = rule_stages.turn(session)
    if started:
        _log.info("rules_started", runs=started)


def _apply_retention(session: Session) -> None:
    if deleted := deletions.apply_retention(session):
        _log.info("versions_removed", deleted_by_retention=deleted, purged=[])


def _purge(session: Session) -> None:
    if purged := deletions.purge(session):
        _log.info("versions_removed", deleted_by_retention=[], purged=purged)


def _prune_audit(session: Session) -> None:
    forgotten = audit_pruning.prune(session)
    if forgotten:
        _log.info("audit_pruned", entries=forgotten)


def _tidy(session: Session) -> None:
    sweeping.tidy(session, files())


# each in a session of its own: what fails one of them holds up none of the others
_SWEEPS: tuple[Callable[[Session], object], ...] = (
    _expire,
    sweeping.notify,
    sweeping.clear_deserted,
    _follow_rules,
    webhook_deliveries.collect,
)
_TIDYING: tuple[Callable[[Session], object], ...] = (
    _apply_retention,
    _purge,
    _prune_audit,
    webhook_deliveries.forget,
    _tidy,
    shrink,
)
os.register_at_fork(before=_no_fork.acquire, after_in_parent=_no_fork.release, after_in_child=_no_fork.release)
