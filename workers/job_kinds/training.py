"""Training jobs: a dataset and a solver become a model version with its measures, or one for each C of a path."""

from typing import Any

import structlog
from threadpoolctl import threadpool_limits

from app.jobs.schemas import TrainRequest, stored_request
from app.models import versions
from app.store.files import Files, files
from solvers.core.base import Solver, State
from solvers.core.certain_training import certified_model
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.registry import make
from solvers.selection.whole_path import WholePath
from workers.phases import refitting
from workers.phases.certain_rows import until_certain
from workers.phases.driving import Outcome, Run, drive
from workers.phases.preparation import Prepared, prepare
from workers.phases.publishing import Publisher, Tuned
from workers.running.job_context import JobContext, TimeUp
from workers.sharding.sharded import train_sharded

_log = structlog.get_logger("polymargin.worker")


def train(context: JobContext) -> None:
    """Train, measure, save, and end the job together with the model's new version, the last one of a path."""
    train_as(context, stored_request(context.lease.request))


def train_as(context: JobContext, request: TrainRequest, tuned: Tuned | None = None) -> None:
    """As :func:`train`, with the request that a tuning has chosen in place of the job's own."""
    lease, store = context.lease, files()
    solver = make(request.solver, request.params, seed=request.seed, threads=request.threads)
    # linear algebra would otherwise take all processors, and spin where another job has them
    with threadpool_limits(request.threads):
        if lease.shards is not None:
            train_sharded(context, store, request, solver)
        else:
            _train(context, store, request, solver, tuned)
    store.delete(f"jobs/{lease.job_id}")


def _train(context: JobContext, store: Files, request: TrainRequest, solver: Solver[Any], tuned: Tuned | None) -> None:
    """Train for one C after the other, and publish a version for each; the last one ends the job.

    Where rows are held out by the request alone, the model is trained again on all rows after it was measured, unless
    that training has lost workers before.

    A version is published once: one that an earlier attempt has published, later than its last checkpoint, is trained
    again, as the next C begins from there, and passed over.
    """
    lost = refitting.was_lost(context)
    prepared = prepare(context, context.lease, store, request, solver)
    problem = prepared.problem
    publisher = Publisher(context, store, request, prepared, tuned)
    machines = [_over_c(solver, request)] if request.path is None else solver.at_each(request.path)
    published = context.read(lambda session: versions.of_job(session, context.lease.job_id))
    due = refitting.is_due(prepared, request)
    run = Run(context, store, len(machines), refitting.first_share(solver) if due else 1.0)
    point, state = _beginning(run, prepared, machines[0])
    while True:
        machine = machines[point]
        # a state of the training on all rows has the measured model's in it
        outcome, of_all_rows = refitting.measured_outcome(state), state
        if outcome is None:
            context.phase("training", at_once=False, point=point)
            driven = until_certain(machine, prepared.rows_to_answer, request)
            outcome, of_all_rows = drive(run, driven, problem, point, state), None
        stopped, last = run.stopped, run.stopped or point == len(machines) - 1
        model, measured = None, None
        refit: refitting.Refit | refitting.NotRefit | None = None
        if last or point not in published:
            store.delete(publisher.folder(outcome.reached))
            twice = due and not stopped
            done = (point + (0.5 if twice else 1.0)) / len(machines)
            context.phase("testing", at_once=False, fraction=done, eta_seconds=None)
            model = _model(context, machine, problem, outcome, stopped=stopped)
            measured = publisher.measured(model, machine.chosen(outcome.state), outcome, keep=twice)
        if due and (stopped or lost):
            refit = refitting.NotRefit(refitting.OUT_OF_TIME if stopped else refitting.LOST)
        elif due:
            # this takes as much memory once more: the measured model and the states before are not held meanwhile
            outcome, model, state = run.set_aside(outcome), None, None
            again = _as_far(machine, request, outcome)
            refit = refitting.refit(run, again, prepared, request, outcome, of_all_rows)
            last = last or run.stopped
        if measured is not None:
            context.phase("saving", at_once=False)
            if not isinstance(refit, refitting.Refit) and model is None:
                model = _model(context, machine, problem, outcome)
            version = publisher.written(measured, outcome, model, refit, stopped=stopped)
            if last:
                context.succeed(version.add)
            else:
                context.publish(version.add)
        if last:
            return
        point += 1
        state = machines[point].rescaled(problem, outcome.state, machine.params.C)


def _beginning(run: Run, prepared: Prepared, machine: Solver[Any]) -> tuple[int, State | None]:
    """The point of the path to begin at, and the state to begin it from; None: from nothing."""
    resumed = run.resume()
    if resumed is None:
        former = prepared.former
        return 0, None if former is None else former.start(machine, prepared.problem, prepared.rows.train)
    state: State | None = None
    if run.context.is_last_attempt and refitting.measured_outcome(resumed.state) is None:
        # the part of the work under way may have ended the workers that were lost
        state = machine.without_current(prepared.problem, resumed.state)
        if state is not None:
            _log.warning("part_left_out", job_id=run.context.lease.job_id, losses=run.context.lease.losses)
    return resumed.reached.point, resumed.state if state is None else state


def _over_c(solver: Solver[Any], request: TrainRequest) -> Solver[Any]:
    """What trains where the request names no values of C: for every C of a range, where it says so."""
    if request.every_c is None:
        return solver
    asked = request.every_c
    return WholePath(solver, eps=asked.eps, low=asked.low, high=asked.high, fraction=asked.fraction)


def _as_far(machine: Solver[Any], request: TrainRequest, outcome: Outcome) -> Solver[Any]:
    """What trains on all rows: to the gap at which the answers to rows held out were certain."""
    gap = outcome.reached.gap
    if request.until_certain is None or request.certain_rows is not None or gap is None or gap <= machine.params.tol:
        return machine
    return machine.at_tol(gap)


def _model(
    context: JobContext, machine: Solver[Any], problem: Problem, outcome: Outcome, *, stopped: bool = False
) -> Model:
    """The model of a training's end; logs the trials that its search left out.

    Raises
    ------
    TimeUp
        The training was stopped before there was a model.
    """
    try:
        model = certified_model(machine, problem, outcome.state, *outcome.bounds)
    except ValueError:
        if stopped:
            raise TimeUp from None
        raise
    for left in model.record.get("left_out", []):
        _log.warning("trial_left_out", job_id=context.lease.job_id, **left)
    return model
