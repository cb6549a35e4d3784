"""The heartbeat of a lease: a thread renews it, and whoever has lost it learns so before it writes anything more."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

import structlog
from sqlalchemy.orm import Session

from app.config import settings
from app.services.engine.leases import Fenced
from app.store.db import DATABASE_AWAY, sessions
from app.store.scope import Scope, confine

T = TypeVar("T")

_BACKOFF_SECONDS = 1.0
_BEAT_ENDS_SECONDS = 5.0
_log = structlog.get_logger("polymargin.worker")


class LeaseHeartbeat(ABC):
    """Holds a lease and beats for it while the ``with`` block runs.

    Every method raises Fenced once the lease is lost, or once this process has been unable to write for so long that
    it must suppose so. A database that is away for less than that is waited for.

    Parameters
    ----------
    job_id : str
    attempt : int
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
