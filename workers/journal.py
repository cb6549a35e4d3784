"""A running job's only way to the database: progress, checkpoints, signs of life, and the end."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Literal, TypeVar

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.orm import Session

from app.config import settings
from app.services import doorbell, leases
from app.services.leases import Checkpoint, Fenced, Held, Lease
from app.store import tables
from app.store.db import sessions
from app.store.queue import GENERAL
from workers import draining

T = TypeVar("T")

_STEP_SECONDS = 0.25
_BACKOFF_SECONDS = 1.0
_BEAT_ENDS_SECONDS = 5.0
_log = structlog.get_logger("polymargin.worker")


class Cancelled(Exception):  # a wish, not a fault
    """Somebody asked for the job to be cancelled."""


class Drained(Exception):  # a wish, not a fault
    """The worker shall end: the job is to be given back."""


class Journal:
    """Writes for one lease; a thread beats for it while the ``with`` block runs.

    Every method raises Fenced once the job is another's, or once this worker has been unable to write for so long
    that it must suppose so. A database that is away for less than that is waited for.

    Parameters
    ----------
    lease : Lease
    claimed_at : float
        ``time.monotonic()`` before the claim was sent.
    """

    def __init__(self, lease: Lease, claimed_at: float) -> None:
        self.lease = lease
        self._lock = threading.Lock()
        self._deadline = claimed_at + settings().lease_seconds
        self._fenced = threading.Event()
        self._cancel = threading.Event()
        self._stop = threading.Event()
        self._at_once = False
        self._steps: list[dict[str, Any]] = []
        self._progress: dict[str, Any] | None = None
        self._flushed_at = -math.inf
        self._thread = threading.Thread(target=self._beat, name=f"heartbeat-{lease.job_id}", daemon=True)

    def __enter__(self) -> "Journal":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        # A heartbeat that hangs in a dead connection must not hold up the next job; it can do no harm later.
        self._thread.join(_BEAT_ENDS_SECONDS)

    def check(self, *, drain: bool = True) -> None:
        """Between two pieces of work: raise Fenced, Cancelled or (unless not ``drain``) Drained, if it is time."""
        if self._fenced.is_set() or time.monotonic() >= self._deadline:
            raise self._fence()
        if self._cancel.is_set():
            raise Cancelled
        if drain and draining.requested():
            raise Drained

    def phase(self, name: str, *, at_once: bool = True, **progress: Any) -> None:
        """Say what is being done now.

        ``at_once`` says that nothing would be lost if the job were given back or cancelled in the middle of it: then
        the heartbeat does so, and the work, which cannot be interrupted, meets Fenced at its end. Otherwise a worker
        that shall end carries on with this phase.
        """
        self.check(drain=at_once)
        with self._lock:
            self._at_once = at_once
        self._progress = {"epoch": 0, "fraction": 0.0, **(self._progress or {}), **progress, "phase": name}
        self.flush()

    def step(self, step: Mapping[str, Any], progress: Mapping[str, Any]) -> None:
        """Note a step; it is written at once or, if steps come fast, with the following ones."""
        self._steps.append(dict(step))
        self._progress = {**(self._progress or {}), **progress}
        if time.monotonic() - self._flushed_at >= _STEP_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write all that was noted."""
        steps, progress = self._steps, self._progress
        self._heard(self.write(lambda session: leases.record(session, self.lease, steps, progress)))
        self._steps = []
        self._flushed_at = time.monotonic()

    def checkpoint(self, checkpoint: Checkpoint) -> str | None:
        """Make a checkpoint, whose files are durable, the one to go on from; return the former one's path."""
        self.flush()
        return self.write(lambda session: leases.save_checkpoint(session, self.lease, checkpoint))

    def last_checkpoint(self) -> Checkpoint | None:
        """The state to go on from."""
        return self.read(lambda session: leases.last_checkpoint(session, self.lease))

    def drop_checkpoint(self) -> None:
        """Forget an unreadable checkpoint."""
        self.write(lambda session: leases.drop_checkpoint(session, self.lease))

    def publish(self, finish: Callable[[Session], dict[str, Any]]) -> None:
        """Keep a part of what the job makes: what ``finish`` writes and the result so far, in one transaction."""

        def operation(session: Session) -> None:
            with leases.fenced(session, self.lease):
                leases.set_result(session, self.lease, finish(session))

        self.flush()
        self.write(operation)

    def succeed(self, finish: Callable[[Session], dict[str, Any]]) -> None:
        """End the job: what ``finish`` writes, the result that it returns and the state, in one transaction."""

        def operation(session: Session) -> None:
            with leases.fenced(session, self.lease):
                leases.end(session, self.lease, "succeeded", result=finish(session))

        self.flush()
        self.write(operation)

    def end(self, state: Literal["failed", "cancelled"], error: dict[str, Any] | None = None) -> None:
        """End the job without a result."""

        def operation(session: Session) -> None:
            with leases.fenced(session, self.lease):
                leases.end(session, self.lease, state, error=error)

        self.flush()
        self.write(operation)

    def give_back(self) -> None:
        """Let another worker go on at once."""
        self.flush()
        self._give_back()

    def write(self, operation: Callable[[Session], T]) -> T:
        """Run a transaction that extends the lease; while the database is away, try again."""
        started, result = self._try(operation)
        with self._lock:
            self._deadline = max(self._deadline, started + settings().lease_seconds)
        return result

    def read(self, operation: Callable[[Session], T]) -> T:
        """Run a transaction that only reads; while the database is away, try again."""
        return self._try(operation)[1]

    def _try(self, operation: Callable[[Session], T]) -> tuple[float, T]:
        while True:
            if self._fenced.is_set():
                raise self._fence()
            # The lease ends this long after the statement reached the database, so count from before it was sent.
            started = time.monotonic()
            try:
                with sessions()() as session:
                    return started, operation(session)
            except Fenced:
                self._fenced.set()
                raise
            except (OperationalError, InterfaceError) as error:
                if time.monotonic() >= self._deadline:
                    raise self._fence() from error
                _log.warning("database_away", job_id=self.lease.job_id, error=type(error).__name__)
                time.sleep(min(_BACKOFF_SECONDS, settings().heartbeat_seconds))

    def _beat(self) -> None:
        try:
            while not self._stop.wait(settings().heartbeat_seconds):
                self._heard(self.write(lambda session: leases.heartbeat(session, self.lease)))
                with self._lock:
                    at_once = self._at_once
                if at_once and self._cancel.is_set():
                    self.write(self._cancel_now)
                    self._fenced.set()
                elif at_once and draining.requested():
                    self._give_back()
                    self._fenced.set()
        except Fenced:
            _log.warning("fenced", job_id=self.lease.job_id, attempt=self.lease.attempt)

    def _heard(self, state: Held) -> None:
        if state == "cancelling":
            self._cancel.set()

    def _cancel_now(self, session: Session) -> None:
        with leases.fenced(session, self.lease):
            leases.end(session, self.lease, "cancelled")

    def _give_back(self) -> None:
        if self.write(lambda session: leases.give_back(session, self.lease)) == "queued":
            with sessions()() as session:
                job = session.get(tables.Job, self.lease.job_id)
                doorbell.announce(session, self.lease.job_id, job.queue if job else GENERAL)

    def _fence(self) -> Fenced:
        self._fenced.set()
        return Fenced(f"attempt {self.lease.attempt} lost job {self.lease.job_id}")
