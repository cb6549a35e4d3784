"""The context of a running job, its only way to the database: progress, checkpoints, heartbeats, and the end.

A thread renews the lease on the job, and a worker that has lost it stops before its next write.
"""

import contextlib
import itertools
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app import logs, tracing
from app.config import settings
from app.jobs import leases, tunings
from app.jobs import logs as job_logs
from app.jobs import wakeups as job_queue
from app.jobs.leases import Checkpoint, HeldState, Lease
from app.jobs.request_schemas import TrialRequest
from app.jobs.slots import Fenced
from app.store import tables
from app.store.db import DATABASE_AWAY, sessions, writing
from app.store.queue import GENERAL
from app.store.scope import Scope, confine
from workers.running import lanes
from workers.running.failing import out_of_time

T = TypeVar("T")

_log = structlog.get_logger("polymargin.worker")
_BACKOFF_SECONDS = 1.0
_BEAT_ENDS_SECONDS = 5.0


class LeaseHeartbeat(ABC):
    """Holds a lease and beats for it while the ``with`` block runs.

    Every method raises Fenced once the lease is lost, or once this process has been unable to write for so long that
    it must suppose so. A database that is away for less than that is waited for.

    Parameters
    ----------
    claimed_at : float
        ``time.monotonic()`` before the claim was sent.
    scope : Scope, optional
        What its transactions see: names mean things of the job's workspace.
    """

    def __init__(self, job_id: str, attempt: int, claimed_at: float, scope: Scope | None = None) -> None:
        self._job_id, self._attempt, self._scope = job_id, attempt, scope
        self._lock = threading.Lock()
        self._deadline = claimed_at + settings().lease_seconds
        self._fenced = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat-{job_id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        # A heartbeat that hangs in a dead connection must not hold up the next job; it can do no harm later.
        self._thread.join(_BEAT_ENDS_SECONDS)

    def check(self) -> None:
        """Between two pieces of work: raise Fenced if it is time."""
        if self._fenced.is_set() or time.monotonic() >= self._deadline:
            raise self._fence()

    @abstractmethod
    def phase(self, name: str) -> None:
        """Say what is being done now."""

    def write(self, operation: Callable[[Session], T]) -> T:
        """Run a transaction that extends the lease; while the database is away, try again."""
        started, result = self._try(operation)
        with self._lock:
            self._deadline = max(self._deadline, started + settings().lease_seconds)
        return result

    def read(self, operation: Callable[[Session], T]) -> T:
        """Run a transaction that only reads; while the database is away, try again."""
        return self._try(operation)[1]

    @abstractmethod
    def _beat(self) -> None:
        """Renew the lease by :meth:`write`."""

    def _try(self, operation: Callable[[Session], T]) -> tuple[float, T]:
        while True:
            if self._fenced.is_set():
                raise self._fence()
            # The lease ends this long after the statement reached the database, so count from before it was sent.
            started = time.monotonic()
            try:
                with sessions()() as session:
                    if self._scope is not None:
                        confine(session, self._scope)
                    return started, operation(session)
            except Fenced:
                self._fenced.set()
                raise
            except DATABASE_AWAY as error:
                if time.monotonic() >= self._deadline:
                    raise self._fence() from error
                _log.warning("database_away", job_id=self._job_id, error=type(error).__name__)
                time.sleep(min(_BACKOFF_SECONDS, settings().heartbeat_seconds))

    def _run(self) -> None:
        while not self._stop.wait(settings().heartbeat_seconds):
            try:
                self._beat()
            except Fenced:
                _log.warning("fenced", job_id=self._job_id, attempt=self._attempt)
                return
            except Exception:
                # The next one may fare better; the lease lasts for several.
                _log.exception("heartbeat_failed", job_id=self._job_id)

    def _fence(self) -> Fenced:
        self._fenced.set()
        return Fenced(f"attempt {self._attempt} lost job {self._job_id}")


_TRAINING, _COMPILING = ("training", "refitting"), "compiling"
_STEP_SECONDS = 0.25
# the first and the longest pause while storage is away, and how soon a wish to stop is seen within one
_PAUSE_SECONDS, _MOST_PAUSE_SECONDS, _LOOK_SECONDS = 1.0, 60.0, 0.2
# how long a piece of work may keep a wish to stop waiting; then the heartbeat ends the lease in its stead
_CANCEL_SECONDS, _DRAIN_SECONDS = 10.0, 20.0


class Cancelled(Exception):  # asked for, not an error
    """A user asked to cancel the job."""


class TimeUp(Exception):  # asked for, not an error
    """The job has reached its time limit."""


class LeftToTrials(Exception):  # no error
    """The job is a tuning that waits for its trials."""


class Drained(Exception):  # asked for, not an error
    """The worker is ending: the job must be returned to the queue."""


def pauses(attempt: int) -> Iterator[float]:
    """Seconds between two looks at storage that is away, from a later attempt on longer at once."""
    for doublings in itertools.count(attempt - 1):
        yield min(_PAUSE_SECONDS * 2.0 ** min(doublings, 10), _MOST_PAUSE_SECONDS)


class JobContext(LeaseHeartbeat):
    """Writes for one lease on a job; every method raises Fenced as :class:`LeaseHeartbeat` has it.

    Parameters
    ----------
    claimed_at : float
        ``time.monotonic()`` before the claim was sent.
    """

    def __init__(self, lease: Lease, claimed_at: float) -> None:
        super().__init__(lease.job_id, lease.attempt, claimed_at, lease.scope)
        self.lease = lease
        self._cancel = threading.Event()
        self._ends_at = math.inf if lease.seconds_left is None else claimed_at + lease.seconds_left
        self._lines: list[dict[str, Any]] = []
        self._at_once = False
        self._asked_at: float | None = None
        self._steps: list[dict[str, Any]] = []
        self._progress: dict[str, Any] | None = None
        self._flushed_at = -math.inf
        self._phase_span: Any = None
        self._waits_in: str | None = None

    @property
    def is_last_attempt(self) -> bool:
        """Whether workers were lost, and one more would fail the job."""
        return 0 < self.lease.losses >= settings().max_attempts - 1

    def check(self, *, drain: bool = True) -> None:
        """Between two pieces of work: raise Fenced, Cancelled, TimeUp or, if ``drain``, Drained, if it is time."""
        super().check()
        if self._cancel.is_set():
            raise Cancelled
        if time.monotonic() >= self._ends_at:
            raise TimeUp
        if drain and lanes.drain_requested():
            raise Drained

    def __enter__(self) -> Self:
        logs.keep_log(self.lease.job_id, self._keep)
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._end_phase_span()
        logs.end_log(self.lease.job_id)
        # The last lines come after the end, or from a worker that has lost the job: they say by which attempt.
        with contextlib.suppress(SQLAlchemyError), sessions()() as session, writing(session):
            job_logs.write(session, self.lease.job_id, self.lease.attempt, self._taken_lines())

    def let_finish(self) -> None:
        """Lift the time limit, so that the work done so far can be published."""
        self._ends_at = math.inf

    def phase(self, name: str, *, at_once: bool = True, **progress: Any) -> None:
        """Say what is being done now.

        ``at_once`` says that nothing would be lost if the job were given back or cancelled in the middle of it: then
        the heartbeat does so, and the work, which cannot be interrupted, meets Fenced at its end. Otherwise the work
        has ten seconds if it is cancelled, and twenty if the worker is ending, to reach a point between two
        pieces of it, and to keep what it has. Then the heartbeat does the same, and a job that was given back goes on
        from its last checkpoint.
        """
        self.check(drain=at_once)
        with self._lock:
            self._at_once = at_once
        if name != (self._progress or {}).get("phase"):
            _log.info("phase", job_id=self.lease.job_id, attempt=self.lease.attempt, phase=name)
            self._end_phase_span()
            self._phase_span = tracing.phase(name)
        before = {key: value for key, value in (self._progress or {}).items() if key != "setting"}
        self._progress = {"epoch": 0, "fraction": 0.0, **before, **progress, "phase": name}
        self.flush()

    def compiling(self) -> None:
        """Loops of the training are being compiled: that is the phase until the next step."""
        phase = (self._progress or {}).get("phase")
        if phase in _TRAINING:
            self._waits_in = phase
            _log.info("phase", job_id=self.lease.job_id, attempt=self.lease.attempt, phase=_COMPILING)
            self._progress = {**(self._progress or {}), "phase": _COMPILING}
            self.flush()

    def step(self, step: Mapping[str, Any], progress: Mapping[str, Any]) -> None:
        """Record a step; it is written immediately or, if steps come fast, with the following ones."""
        self._steps.append(dict(step))
        self._progress = {**(self._progress or {}), **progress}
        if self._progress.get("phase") == _COMPILING:
            self._progress["phase"] = self._waits_in
            self._flushed_at = -math.inf
        if time.monotonic() - self._flushed_at >= _STEP_SECONDS:
            self.flush()

    def note(self, **progress: Any) -> None:
        """Record progress; it is written immediately or, if reports come fast, with a later one."""
        self._progress = {**(self._progress or {}), **progress}
        if time.monotonic() - self._flushed_at >= _STEP_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write all recorded steps and progress."""
        steps, progress, lines = self._steps, self._progress, self._taken_lines()
        self._note_state(self.write(lambda session: leases.record(session, self.lease, steps, progress, lines)))
        self._steps = []
        self._flushed_at = time.monotonic()

    def checkpoint(self, checkpoint: Checkpoint) -> str | None:
        """Make a checkpoint, whose files are durable, the one to resume from; return the previous one's path."""
        self.flush()
        return self.write(lambda session: leases.save_checkpoint(session, self.lease, checkpoint))

    def last_checkpoint(self) -> Checkpoint | None:
        """The state to resume from."""
        return self.read(lambda session: leases.last_checkpoint(session, self.lease))

    def drop_checkpoint(self) -> None:
        """Forget an unreadable checkpoint."""
        self.write(lambda session: leases.drop_checkpoint(session, self.lease))

    def publish(self, finish: Callable[[Session], dict[str, Any]]) -> None:
        """Publish a part of the result: what ``finish`` writes and the result so far, in one transaction."""
        self.flush()
        self._write_fenced(lambda session: leases.set_result(session, self.lease, finish(session)))

    def succeed(self, finish: Callable[[Session], dict[str, Any]]) -> None:
        """End the job: what ``finish`` writes, the result that it returns and the state, in one transaction."""
        self.flush()
        self._write_fenced(lambda session: leases.end(session, self.lease, "succeeded", result=finish(session)))

    def end(self, state: Literal["failed", "cancelled"], error: dict[str, Any] | None = None) -> None:
        """End the job without a result."""
        self.flush()
        self._end(state, error)

    def wait_out(self, reason: str, fault: Callable[[], str | None]) -> None:
        """Hold the job until ``fault``, which is asked after each of the :func:`pauses`, returns None.

        What ``fault`` does not see may still fail, so a further attempt begins with a longer pause.
        """
        self.phase("waiting")
        self.write(lambda session: leases.note_wait(session, self.lease, reason))
        _log.warning("storage_away", job_id=self.lease.job_id, reason=reason)
        for pause in pauses(self.lease.attempt):
            ends = time.monotonic() + pause
            while (left := ends - time.monotonic()) > 0:
                self.check()
                time.sleep(min(left, _LOOK_SECONDS))
            if fault() is None:
                break
        _log.info("storage_back", job_id=self.lease.job_id)

    def give_back(self, reason: str = leases.STOPPED, *, at_once: bool = True) -> None:
        """Return the job to the queue; another worker resumes it immediately or after a sweep."""
        self.flush()
        self._give_back(at_once, reason)

    def leave_to(self, trials: Sequence[TrialRequest]) -> None:
        """Wait for the trials of a tuning; the job is claimed again when they have ended."""
        self.flush()
        ids = self.write(lambda session: tunings.park(session, self.lease, trials))
        self._fenced.set()
        with sessions()() as session:
            job = session.get(tables.Job, self.lease.job_id)
            for id in ids:
                job_queue.notify(session, id, job.queue if job else GENERAL)

    def lose(self) -> None:
        """Return the job to the queue because workers were lost; a job that loses too many fails."""
        self.flush()
        if self.write(lambda session: leases.lose(session, self.lease)) == "queued":
            self._announce()

    def _beat(self) -> None:
        self._note_state(self.write(lambda session: leases.heartbeat(session, self.lease)))
        with self._lock:
            at_once = self._at_once
        stopping = self._cancel.is_set() or lanes.drain_requested()
        if not stopping:
            self._asked_at = None
        elif self._asked_at is None:
            self._asked_at = time.monotonic()
        waited = 0.0 if self._asked_at is None else time.monotonic() - self._asked_at
        if self._cancel.is_set() and (at_once or waited >= _CANCEL_SECONDS):
            self._end("cancelled")
            self._fenced.set()
        elif at_once and time.monotonic() >= self._ends_at:
            self._end("failed", out_of_time())
            self._fenced.set()
        elif lanes.drain_requested() and (at_once or waited >= _DRAIN_SECONDS):
            self._give_back()
            self._fenced.set()

    def _end_phase_span(self) -> None:
        if self._phase_span is not None:
            self._phase_span.end()
        self._phase_span = None

    def _note_state(self, state: HeldState) -> None:
        if state == "cancelling":
            self._cancel.set()

    def _end(self, state: Literal["failed", "cancelled"], error: dict[str, Any] | None = None) -> None:
        self._write_fenced(lambda session: leases.end(session, self.lease, state, error=error))

    def _write_fenced(self, change: Callable[[Session], None]) -> None:
        def operation(session: Session) -> None:
            with leases.fenced(session, self.lease):
                change(session)

        self.write(operation)

    def _keep(self, level: str, event: str, fields: dict[str, Any]) -> None:
        if level in ("debug", "notset"):
            return
        with self._lock:
            if len(self._lines) < job_logs.KEPT:
                self._lines.append(job_logs.line(level, event, fields))

    def _taken_lines(self) -> list[dict[str, Any]]:
        with self._lock:
            lines, self._lines = self._lines, []
        return lines

    def _give_back(self, at_once: bool = True, reason: str = leases.STOPPED) -> None:
        if self.write(lambda session: leases.give_back(session, self.lease, reason)) == "queued" and at_once:
            self._announce()

    def _announce(self) -> None:
        with sessions()() as session:
            job = session.get(tables.Job, self.lease.job_id)
            job_queue.notify(session, self.lease.job_id, job.queue if job else GENERAL)
