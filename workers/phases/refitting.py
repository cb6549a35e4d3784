"""The measured model trained once more, on all rows: what it was measured on is not lost to the served one."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import InvalidInput
from app.features.base import FitError
from app.jobs.schemas import TrainRequest
from app.store import tables
from app.store.db import reading
from solvers.core.base import Handles, Solver, State, Step
from solvers.core.certain_training import certified_model
from solvers.core.model import Model
from solvers.core.problem import Problem, ProblemError
from solvers.numerics.lazy_arrays import Parts, part_of
from workers.phases.certain_rows import until_certain
from workers.phases.driving import Outcome, Reached, Run, drive
from workers.phases.preparation import Prepared, all_rows, places
from workers.phases.scoring import require_finite
from workers.running.job_context import JobContext, TimeUp

PHASE = "refitting"
SETTING = "on all rows"
LOST = "workers were lost in the training on all rows"
OUT_OF_TIME = "the job's time limit ended the training on all rows"
_log = structlog.get_logger("polymargin.worker")


class Refit(NamedTuple):
    """A training on all rows: what it was trained on, its end, and its model."""

    prepared: Prepared
    outcome: Outcome
    model: Model


class NotRefit(NamedTuple):
    """Why the measured model is served itself."""

    reason: str


def is_due(prepared: Prepared, request: TrainRequest) -> bool:
    """Whether rows were held out that the user has not marked as test rows, and the request wants them trained on."""
    return request.refit and prepared.split is not None and len(prepared.rows.test) > 0


def was_lost(context: JobContext) -> bool:
    """Whether workers were lost until one attempt is left, the last of them in the training on all rows.

    To be asked before the job has said what it does.
    """
    if not context.is_last_attempt:
        return False

    def phase(session: Session) -> str | None:
        with reading(session):
            progress = session.scalars(select(tables.Job.progress).where(tables.Job.id == context.lease.job_id)).one()
        return (progress or {}).get("phase")

    return context.read(phase) == PHASE


def first_share(solver: Solver[Any]) -> float:
    """An estimate of how much of the work is done once the measured model is trained."""
    if solver.chooses:
        return 0.8
    return 0.6 if solver.starts_warm else 0.45


def refit(
    run: Run,
    solver: Solver[Any],
    prepared: Prepared,
    request: TrainRequest,
    measured: Outcome,
    start: State | None = None,
) -> Refit | NotRefit:
    """Train on all rows, from what the measured model leaves to begin from.

    Parameters
    ----------
    solver : Solver
    prepared : Prepared
        Of the measured model.
    measured : Outcome
        The end of its training.
    start : mapping of str to array, optional
        A state of this training to go on from.

    Returns
    -------
    Refit or NotRefit
        The latter where time or memory did not suffice, or all rows cannot be trained on: the measured model is not
        lost with it.
    """
    context = run.context
    try:
        context.phase(PHASE, at_once=False)
        every = all_rows(prepared, request, solver)
        again, begin = solver.on_all_rows(prepared.problem, measured.state, every.problem, places(every, prepared))
        driven = until_certain(again, every.rows_to_answer, request)
        stage = _Again(driven, begin, measured)
        with run.second_stage():
            outcome = drive(run, stage, every.problem, measured.reached.point, start)
        if run.stopped and not outcome.reached.converged:
            return NotRefit(OUT_OF_TIME)
        model = certified_model(again, every.problem, part_of(outcome.state, "again"), *outcome.bounds)
        require_finite(model)
        return Refit(every, outcome, model)
    except TimeUp:
        context.let_finish()
        run.stopped = True
        return NotRefit(OUT_OF_TIME)
    except MemoryError:
        reason = "the training on all rows takes more memory than a job may have"
    except (ProblemError, FitError, InvalidInput) as error:
        reason = f"the training on all rows failed: {error}"
    _log.warning("not_refitted", job_id=context.lease.job_id, reason=reason)
    return NotRefit(reason)


def measured_outcome(state: State | None) -> Outcome | None:
    """The end of the measured model's training, from a state of the training on all rows; None of other states."""
    saved = part_of(state, "reached") if state is not None else {}
    if not saved:
        return None
    assert state is not None
    return Outcome(Reached(**json.loads(bytes(saved["json"]))), part_of(state, "measured"))


class _Again(Solver[Any]):
    """A solver whose states have the measured model's beside its own."""

    name = "all_rows"
    handles = Handles()

    def __init__(self, solver: Solver[Any], start: State | None, measured: Outcome) -> None:
        super().__init__(solver.params, seed=solver.seed, threads=solver.threads)
        self.handles = solver.handles  # type: ignore[misc]
        self._solver, self._start, self._measured = solver, start, measured

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        saved = json.dumps(asdict(self._measured.reached)).encode()
        kept: dict[str, State] = {
            "reached": {"json": np.frombuffer(saved, np.uint8)},
            "measured": self._measured.state,
        }
        for step in self._solver.steps(problem, self._start if state is None else part_of(state, "again")):
            setting = f"{step.setting}, {SETTING}" if step.setting else SETTING
            all_of_it = Parts({**kept, "again": step.state})
            yield replace(step, state=all_of_it, setting=setting, right=None)

    def model(self, problem: Problem, state: State) -> Model:
        return self._solver.model(problem, part_of(state, "again"))
