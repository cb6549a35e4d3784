"""Drives a solver's steps for one job: records them, makes checkpoints, and goes on from the last one."""

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import structlog
from numpy.typing import NDArray

from app.config import settings
from app.services.leases import Checkpoint
from app.store.files import Files
from solvers.base import Solver, Step
from solvers.problem import Problem
from solvers.version import VERSION
from workers.journal import Drained, Journal
from workers.pace import Pace

# A checkpoint may take a tenth of the time at most, however large the state is.
_CHECKPOINT_SHARE = 0.1
_log = structlog.get_logger("polymargin.worker")


@dataclass(frozen=True)
class Reached:
    """Where training stands: the last step without its arrays, its number, and the time it took to get there."""

    number: int
    epoch: int
    primal: float | None
    dual: float | None
    gap: float | None
    violation: float | None
    converged: bool
    seconds: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """The end of training."""

    reached: Reached
    state: Mapping[str, NDArray[Any]]


def drive(journal: Journal, solver: Solver[Any], problem: Problem, store: Files) -> Outcome:
    """Train to the end; every step is in the database when this returns.

    Raises
    ------
    Drained
        The worker shall end; what was reached is kept as a checkpoint.
    Cancelled, Fenced
        As the journal says.
    """
    run = _Run(journal, solver, store)
    resumed = run.resume()
    outcome = resumed
    started = time.monotonic()
    for step in solver.steps(problem, None if resumed is None else resumed.state):
        run.seconds += time.monotonic() - started
        outcome = Outcome(run.note(step), step.state)
        if not step.converged:
            try:
                journal.check()
            except Drained:
                run.try_to_save(outcome)
                raise
            if run.checkpoint_due():
                run.try_to_save(outcome)
        started = time.monotonic()
    journal.flush()
    if outcome is None:
        raise RuntimeError(f"solver {solver.name} ended without a step")
    return outcome


class _Run:
    def __init__(self, journal: Journal, solver: Solver[Any], store: Files) -> None:
        self.seconds = 0.0
        self._number = -1
        self._journal = journal
        self._store = store
        self._folder = f"jobs/{journal.lease.job_id}"
        self._pace = Pace(getattr(solver.params, "tol", None), getattr(solver.params, "max_epochs", None))
        self._saved_at = time.monotonic()
        self._saving_took = 0.0

    def resume(self) -> Outcome | None:
        """Load the last checkpoint, or forget it if its files are not what this version has written."""
        checkpoint = self._journal.last_checkpoint()
        if checkpoint is None:
            return None
        try:
            arrays, manifest = self._store.load_arrays(checkpoint.path, mmap=False, sha256=checkpoint.sha256)
            if manifest["code_version"] != VERSION:
                raise ValueError(f"version {manifest['code_version']} wrote it; this is {VERSION}")
        except (OSError, ValueError):
            _log.exception("checkpoint_unusable", job_id=self._journal.lease.job_id)
            self._journal.drop_checkpoint()
            return None
        reached = Reached(**manifest["reached"])
        self._number, self.seconds = reached.number, reached.seconds
        self._remove_others(checkpoint.path)
        return Outcome(reached, arrays)

    def note(self, step: Step) -> Reached:
        """Record a step."""
        self._number += 1
        reached = Reached(
            number=self._number,
            epoch=step.epoch,
            primal=_known(step.primal),
            dual=_known(step.dual),
            gap=_known(step.gap),
            violation=_known(step.violation),
            converged=step.converged,
            seconds=self.seconds,
        )
        fraction, eta = self._pace.step(step.epoch, step.gap, self.seconds)
        row = asdict(reached)
        del row["converged"]
        progress = {"epoch": step.epoch, "fraction": fraction, "eta_seconds": eta}
        if reached.gap is not None:
            progress["gap"] = reached.gap
        self._journal.step(row, progress)
        return reached

    def checkpoint_due(self) -> bool:
        """Whether enough time has passed since the last checkpoint."""
        wait = max(settings().checkpoint_seconds, self._saving_took / _CHECKPOINT_SHARE)
        return time.monotonic() - self._saved_at >= wait

    def try_to_save(self, outcome: Outcome) -> None:
        """As :meth:`save`; without room on the disk training goes on, and would resume from an older checkpoint."""
        try:
            self.save(outcome)
        except OSError:
            _log.exception("checkpoint_not_written", job_id=self._journal.lease.job_id)
            self._saved_at = time.monotonic()

    def save(self, outcome: Outcome) -> None:
        """Make ``outcome`` the checkpoint: files first, then the row, then the older files go."""
        started = time.monotonic()
        attempt, reached = self._journal.lease.attempt, outcome.reached
        path = f"{self._folder}/{attempt}-{reached.number}"
        sha256 = self._store.save_arrays(path, outcome.state, {"reached": asdict(reached), "code_version": VERSION})
        before = self._journal.checkpoint(Checkpoint(attempt, reached.number, reached.seconds, path, sha256))
        if before is not None:
            self._store.delete(before)
        self._saved_at = time.monotonic()
        self._saving_took = self._saved_at - started

    def _remove_others(self, path: str) -> None:
        # Left behind by an attempt that died between its files and its row.
        for other in self._store.path(self._folder).iterdir():
            if f"{self._folder}/{other.name}" != path:
                self._store.delete(f"{self._folder}/{other.name}")


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
