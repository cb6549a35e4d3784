"""The context of a running job, its only way to the database: progress, checkpoints, heartbeats, and the end."""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app import logs, tracing
from app.schemas.jobs.tuning import TrialRequest
from app.services.engine import job_logs, job_queue, leases
from app.services.engine.leases import Checkpoint, HeldState, Lease
from app.services.jobs import tunings
from app.store import tables
from app.store.db import sessions, writing
from app.store.queue import GENERAL
from workers.running import draining
from workers.running.failing import out_of_time
from workers.running.lease_heartbeat import LeaseHeartbeat

_STEP_SECONDS = 0.25
_log = structlog.get_logger("polymargin.worker")


class Cancelled(Exception):  # asked for, not an error
    """Somebody asked for the job to be cancelled."""


class TimeUp(Exception):  # asked for, not an error
    """The job's time limit is over."""


class LeftToTrials(Exception):  # no error
    """The job is a tuning that waits for its trials."""


class Drained(Exception):  # asked for, not an error
    """The worker shall end: the job is to be given back."""


class JobContext(LeaseHeartbeat):
    """Writes for one lease on a job; every method raises Fenced as :class:`LeaseHeartbeat` has it.

    Parameters
    ----------
    lease : Lease
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
        self._steps: list[dict[str, Any]] = []
        self._progress: dict[str, Any] | None = None
        self._flushed_at = -math.inf
        self._phase_span: Any = None

    def check(self, *, drain: bool = True) -> None:
        """Between two pieces of work: raise Fenced, Cancelled, TimeUp or, if ``drain``, Drained, if it is time."""
        super().check()
        if self._cancel.is_set():
            raise Cancelled
        if time.monotonic() >= self._ends_at:
            raise TimeUp
        if drain and draining.requested():
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
        """The time limit has ended the work; what there is of it may be finished."""
        self._ends_at = math.inf

    def phase(self, name: str, *, at_once: bool = True, **progress: Any) -> None:
        """Say what is being done now.

        ``at_once`` says that nothing would be lost if the job were given back or cancelled in the middle of it: then
        the heartbeat does so, and the work, which cannot be interrupted, meets Fenced at its end. Otherwise a worker
        that shall end carries on with this phase.
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

    def step(self, step: Mapping[str, Any], progress: Mapping[str, Any]) -> None:
        """Note a step; it is written at once or, if steps come fast, with the following ones."""
        self._steps.append(dict(step))
        self._progress = {**(self._progress or {}), **progress}
        if time.monotonic() - self._flushed_at >= _STEP_SECONDS:
            self.flush()

    def note(self, **progress: Any) -> None:
        """Note how far the work has come; it is written at once, or, if notes come fast, with a later one."""
        self._progress = {**(self._progress or {}), **progress}
        if time.monotonic() - self._flushed_at >= _STEP_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write all that was noted."""
        steps, progress, lines = self._steps, self._progress, self._taken_lines()
        self._note_state(self.write(lambda session: leases.record(session, self.lease, steps, progress, lines)))
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

    def give_back(self, *, at_once: bool = True) -> None:
        """Let another worker go on, at once or when a sweep notifies one."""
        self.flush()
        self._give_back(at_once)

    def leave_to(self, trials: Sequence[TrialRequest]) -> None:
        """Leave the work of a tuning to trials; it is claimed again once they are over."""
        self.flush()
        ids = self.write(lambda session: tunings.park(session, self.lease, trials))
        self._fenced.set()
        with sessions()() as session:
            job = session.get(tables.Job, self.lease.job_id)
            for id in ids:
                job_queue.notify(session, id, job.queue if job else GENERAL)

    def lose(self) -> None:
        """Let others go on, as a part of the workers is lost; a job that loses too many fails."""
        self.flush()
        if self.write(lambda session: leases.lose(session, self.lease)) == "queued":
            self._announce()

    def _beat(self) -> None:
        self._note_state(self.write(lambda session: leases.heartbeat(session, self.lease)))
        with self._lock:
            at_once = self._at_once
        if at_once and self._cancel.is_set():
            self.write(self._cancel_now)
            self._fenced.set()
        elif at_once and time.monotonic() >= self._ends_at:
            self.write(self._fail_now)
            self._fenced.set()
        elif at_once and draining.requested():
            self._give_back()
            self._fenced.set()

    def _end_phase_span(self) -> None:
        if self._phase_span is not None:
            self._phase_span.end()
        self._phase_span = None

    def _note_state(self, state: HeldState) -> None:
        if state == "cancelling":
            self._cancel.set()

    def _cancel_now(self, session: Session) -> None:
        with leases.fenced(session, self.lease):
            leases.end(session, self.lease, "cancelled")

    def _fail_now(self, session: Session) -> None:
        with leases.fenced(session, self.lease):
            leases.end(session, self.lease, "failed", error=out_of_time())

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

    def _give_back(self, at_once: bool = True) -> None:
        if self.write(lambda session: leases.give_back(session, self.lease)) == "queued" and at_once:
            self._announce()

    def _announce(self) -> None:
        with sessions()() as session:
            job = session.get(tables.Job, self.lease.job_id)
            job_queue.notify(session, self.lease.job_id, job.queue if job else GENERAL)
