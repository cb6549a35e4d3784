"""Drives solvers' steps for one job: records them, makes checkpoints, and goes on from the last one."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from app.config import settings
from app.jobs.leases import Checkpoint
from app.store.files import Files
from app.version import VERSION
from solvers.core.base import STATE_FORMAT, Solver, Step, within_range
from solvers.core.problem import Problem
from solvers.numerics.lazy_arrays import Lazy
from workers.running.eta import EtaEstimate
from workers.running.job_context import Drained, JobContext, TimeUp

# A checkpoint may take a tenth of the time at most, however large the state is.
_CHECKPOINT_SHARE = 0.1
# a part of the work that took less is not worth a checkpoint of its own
_MILESTONE_SECONDS = 1.0
# a state of fewer bytes stays in memory
_SET_ASIDE_BYTES = 1 << 26
# what a checkpoint must have been written by to be resumed
VERSIONS = {"code_version": VERSION, "state_format": STATE_FORMAT}
_log = structlog.get_logger("polymargin.worker")


@dataclass(frozen=True)
class Reached:
    """The state of training: the last step without its arrays, its number, and the time it took to get there.

    ``point`` is the place in the job's path of Cs, which was begun after ``began`` seconds of training.
    """

    number: int
    epoch: int
    primal: float | None
    dual: float | None
    gap: float | None
    violation: float | None
    converged: bool
    seconds: float
    point: int = 0
    began: float = 0.0


@dataclass(frozen=True, eq=False)
class Outcome:
    """The end of training; ``right`` are the examples known to be predicted correctly, if a step reported them."""

    reached: Reached
    state: Mapping[str, NDArray[Any]]
    right: NDArray[np.bool_] | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """Primal and dual value of the last step; nan where it has not measured them."""
        primal, dual = self.reached.primal, self.reached.dual
        return math.nan if primal is None else primal, math.nan if dual is None else dual


def drive(
    run: "Run", solver: Solver[Any], problem: Problem, point: int = 0, start: Mapping[str, NDArray[Any]] | None = None
) -> Outcome:
    """Train to the end of one point of the job's path; every step is in the database when this returns.

    Parameters
    ----------
    run : Run
        Of the whole job.
    solver : Solver
    point : int
        0, or the place in the path.
    start : mapping of str to array, optional
        The state to begin from: that of the checkpoint, or what the point before leads to.

    Raises
    ------
    Drained
        The worker is ending; the state is saved as a checkpoint.
    Cancelled, Fenced
        As :class:`JobContext` has them.
    """
    outcome = run.begin(solver, point, start)
    started = time.monotonic()
    for step in within_range(solver.steps(problem, start), solver.handles.certified):
        run.seconds += time.monotonic() - started
        outcome = Outcome(run.note(step), step.state, step.right)
        if not step.converged and run.stops(outcome, milestone=step.milestone):
            break
        started = time.monotonic()
    run.context.flush()
    if outcome is None:
        raise RuntimeError(f"solver {solver.name} ended without a step")
    return outcome


class Run:
    """The training of one job, which may follow a path of several points.

    Parameters
    ----------
    first_share : float
        Of the work of each point, where it is trained a second time: an estimate.
    """

    def __init__(self, context: JobContext, store: Files, n_points: int = 1, first_share: float = 1.0) -> None:
        self.context = context
        self.seconds = 0.0
        self._reached: Reached | None = None
        self._point, self._began, self._n_points = 0, 0.0, n_points
        self._store = store
        self._folder = f"jobs/{context.lease.job_id}"
        self._eta = EtaEstimate(None, None)
        self._saved_at = time.monotonic()
        self._saving_took = 0.0
        self._afresh = False
        # where the stage begins, and what share of the point's work it is
        self._first_share, self._stage = first_share, (0.0, first_share)
        self.stopped = False

    @contextmanager
    def second_stage(self) -> Iterator[None]:
        """Meanwhile the point is trained a second time."""
        before, self._stage = self._stage, (self._first_share, 1.0 - self._first_share)
        try:
            yield
        finally:
            self._stage = before

    def resume(self) -> Outcome | None:
        """Load the last checkpoint, or start afresh if it is damaged, or written by another version of the program."""
        checkpoint = self.context.last_checkpoint()
        if checkpoint is None:
            return None
        try:
            arrays, manifest = self._load(checkpoint)
            require_same_version(manifest)
        except (OSError, ValueError) as error:
            self.start_afresh(str(error))
            return None
        reached = Reached(**manifest["reached"])
        self._reached, self.seconds = reached, reached.seconds
        _log.info("resumed", job_id=self.context.lease.job_id, epoch=reached.epoch, seconds=round(reached.seconds, 3))
        self._remove_others(checkpoint.path)
        return Outcome(reached, arrays)

    def set_aside(self, outcome: Outcome) -> Outcome:
        """Keep a large state in a file, from which its arrays are read when they are asked for.

        The memory of the state is free once nobody else has it.
        """
        if sum(np.asarray(array).nbytes for array in outcome.state.values()) < _SET_ASIDE_BYTES:
            return outcome
        path = f"{self._folder}/set_aside.{self.context.lease.attempt}.{outcome.reached.point}"
        store = self._store.working
        store.delete(path)
        store.save_arrays(path, outcome.state, {})

        def read(name: str) -> NDArray[Any]:
            return store.load_arrays(path)[0][name]

        return replace(outcome, state=Lazy({name: partial(read, name) for name in outcome.state}))

    def start_afresh(self, reason: str) -> None:
        """Forget the checkpoint and all steps; the first new one has the measure ``started_afresh``."""
        _log.warning("checkpoint_unusable", job_id=self.context.lease.job_id, reason=reason)
        self.context.drop_checkpoint()
        self._reached, self.seconds, self._afresh = None, 0.0, True

    def begin(self, solver: Solver[Any], point: int, start: Mapping[str, NDArray[Any]] | None) -> Outcome | None:
        """Begin a point, or go on with the one that was resumed; its progress, if it begins from a state."""
        before, self._point = self._reached, point
        fresh = before is None or before.point != point
        self._began = self.seconds if before is None or fresh else before.began
        self._eta = EtaEstimate(getattr(solver.params, "tol", None), getattr(solver.params, "max_epochs", None))
        if before is None or start is None:
            return None
        outcome = Outcome(replace(before, point=point, began=self._began), start)
        if fresh:
            self.pause(outcome)
        return outcome

    def pause(self, outcome: Outcome, *, milestone: bool = False) -> None:
        """Between two steps: end if requested, and make a checkpoint if one is due or this worker is to end.

        Raises
        ------
        Drained, Cancelled, TimeUp, Fenced
            As :class:`JobContext` has them.
        """
        try:
            self.context.check()
        except Drained:
            self.try_to_save(outcome)
            raise
        if self.checkpoint_due(milestone=milestone):
            self.try_to_save(outcome)

    def stops(self, outcome: Outcome, *, milestone: bool = False) -> bool:
        """As :meth:`pause`; whether the job's time limit ends the training here, with what has been reached."""
        try:
            self.pause(outcome, milestone=milestone)
        except TimeUp:
            if not outcome.state:
                # there is nothing yet that could be published
                raise
            _log.warning("time_limit", job_id=self.context.lease.job_id, epoch=outcome.reached.epoch)
            self.context.let_finish()
            self.stopped = True
        return self.stopped

    def note(self, step: Step) -> Reached:
        """Record a step."""
        reached = Reached(
            number=0 if self._reached is None else self._reached.number + 1,
            epoch=step.epoch,
            primal=_known(step.primal),
            dual=_known(step.dual),
            gap=_known(step.gap),
            violation=_known(step.violation),
            converged=step.converged,
            seconds=self.seconds,
            point=self._point,
            began=self._began,
        )
        self._reached = reached
        row = asdict(reached)
        del row["converged"], row["began"]
        row["measures"] = {name: value for name, value in step.measures.items() if math.isfinite(value)}
        row["setting"] = step.setting or None
        if self._afresh:
            row["measures"]["started_afresh"], self._afresh = 1.0, False
        progress: dict[str, Any] = {"epoch": step.epoch, "point": self._point, **self._progress(step)}
        if reached.gap is not None:
            progress["gap"] = reached.gap
        if step.setting:
            progress["setting"] = step.setting
        self.context.step(row, progress)
        return reached

    def _progress(self, step: Step) -> dict[str, float | None]:
        spent = self.seconds - self._began
        fraction, eta = self._eta.step(step.epoch, step.gap, spent, step.fraction)
        if eta is not None:
            # each of the points to come is taken to need as long as this one
            eta += (self._n_points - 1 - self._point) * (spent + eta)
        begins, share = self._stage
        return {"fraction": (self._point + begins + share * fraction) / self._n_points, "eta_seconds": eta}

    def checkpoint_due(self, *, milestone: bool = False) -> bool:
        """Whether enough time has passed since the last checkpoint; less is enough where a part of the work ended."""
        most = settings().checkpoint_seconds
        wait = max(min(most, _MILESTONE_SECONDS) if milestone else most, self._saving_took / _CHECKPOINT_SHARE)
        return time.monotonic() - self._saved_at >= wait

    def try_to_save(self, outcome: Outcome) -> None:
        """As :meth:`save`; without room on the disk training goes on, and would resume from an older checkpoint."""
        try:
            self.save(outcome)
        except OSError:
            _log.exception("checkpoint_not_written", job_id=self.context.lease.job_id)
            self._saved_at = time.monotonic()

    def save(self, outcome: Outcome) -> None:
        """Make ``outcome`` the checkpoint: files first, then the row, then the older files go."""
        started = time.monotonic()
        attempt, reached = self.context.lease.attempt, outcome.reached
        path = f"{self._folder}/{attempt}-{reached.number}-{reached.point}"
        sha256 = self._write(path, outcome, {"reached": asdict(reached), **VERSIONS})
        before = self.context.checkpoint(Checkpoint(attempt, reached.number, reached.seconds, path, sha256))
        if before is not None:
            self._store.delete(before)
        self._saved_at = time.monotonic()
        self._saving_took = self._saved_at - started
        took = round(self._saving_took, 3)
        _log.info("checkpoint_saved", job_id=self.context.lease.job_id, epoch=reached.epoch, seconds=took)

    def _load(self, checkpoint: Checkpoint) -> tuple[Mapping[str, NDArray[Any]], dict[str, Any]]:
        return self._store.load_arrays(checkpoint.path, mmap=False, sha256=checkpoint.sha256)

    def _write(self, path: str, outcome: Outcome, manifest: dict[str, Any]) -> str:
        return self._store.save_arrays(path, outcome.state, manifest)

    def _remove_others(self, path: str) -> None:
        # Left behind by an attempt that died between its files and its row.
        for other in self._store.names(self._folder):
            if f"{self._folder}/{other}" != path:
                self._store.delete(f"{self._folder}/{other}")


def require_same_version(manifest: Mapping[str, Any]) -> None:
    """Raise ValueError unless a checkpoint was written by this version of the program and of the solvers' states."""
    written = {name: manifest.get(name) for name in VERSIONS}
    if written != VERSIONS:
        raise ValueError(f"it was written by {written}; this is {VERSIONS}")


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
