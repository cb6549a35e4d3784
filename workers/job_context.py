"""The context of a running job, its only way to the database: progress, checkpoints, heartbeats, and the end."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from sqlalchemy.orm import Session

from app.services import job_queue, leases
from app.services.leases import Checkpoint, HeldState, Lease
from app.store import tables
from app.store.db import sessions
from app.store.queue import GENERAL
from workers import draining
from workers.lease_heartbeat import LeaseHeartbeat

_STEP_SECONDS = 0.25


class Cancelled(Exception):  # asked for, not an error
    """Somebody asked for the job to be cancelled."""


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
        self._at_once = False
        self._steps: list[dict[str, Any]] = []
        self._progress: dict[str, Any] | None = None
        self._flushed_at = -math.inf

    def check(self, *, drain: bool = True) -> None:
        """Between two pieces of work: raise Fenced, Cancelled or (unless not ``drain``) Drained, if it is time."""
        super().check()
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

    def note(self, **progress: Any) -> None:
        """Note how far the work has come; it is written at once, or, if notes come fast, with a later one."""
        self._progress = {**(self._progress or {}), **progress}
        if time.monotonic() - self._flushed_at >= _STEP_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write all that was noted."""
        steps, progress = self._steps, self._progress
        self._note_state(self.write(lambda session: leases.record(session, self.lease, steps, progress)))
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
        elif at_once and draining.requested():
            self._give_back()
            self._fenced.set()

    def _note_state(self, state: HeldState) -> None:
        if state == "cancelling":
            self._cancel.set()

    def _cancel_now(self, session: Session) -> None:
        with leases.fenced(session, self.lease):
            leases.end(session, self.lease, "cancelled")

    def _give_back(self, at_once: bool = True) -> None:
        if self.write(lambda session: leases.give_back(session, self.lease)) == "queued" and at_once:
            self._announce()

    def _announce(self) -> None:
        with sessions()() as session:
            job = session.get(tables.Job, self.lease.job_id)
            job_queue.notify(session, self.lease.job_id, job.queue if job else GENERAL)
