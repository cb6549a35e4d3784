"""Training jobs: a dataset and a solver become a model version with its measures, or one for each C of a path."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from threadpoolctl import threadpool_limits

from app.schemas.jobs.jobs import TrainRequest, stored_request
from app.services.models import versions
from app.store.files import files
from solvers.core.base import Solver, State
from solvers.core.path import ascending, follow
from solvers.registry import make
from workers.phases.driving import Run, drive
from workers.phases.preparation import prepare
from workers.phases.publishing import Publisher, Tuned
from workers.running.job_context import JobContext
from workers.sharding.sharded import train_sharded


def train(context: JobContext) -> None:
    """Train, measure, save, and end the job together with the model's new version, the last one of a path."""
    train_as(context, stored_request(context.lease.request))


def train_as(context: JobContext, request: TrainRequest, tuned: Tuned | None = None) -> None:
    """As :func:`train`, by a request that is not the job's own where a tuning has chosen it."""
    lease, store = context.lease, files()
    solver = make(request.solver, request.params, seed=request.seed, threads=request.threads)
    # linear algebra would otherwise take all processors, and spin where another job has them
    with threadpool_limits(request.threads):
        if lease.shards is not None:
            train_sharded(context, store, request, solver)
        else:
            prepared = prepare(context, lease.job_id, lease.dataset_id, store, request)
            publisher = Publisher(context, store, request, prepared, tuned)
            machines = [solver] if request.path is None else ascending(solver, request.path)
            _follow(machines, publisher)
    store.delete(f"jobs/{lease.job_id}")


def _follow(machines: Sequence[Any], publisher: Publisher) -> None:
    """Train for one C after the other, and publish a version for each; the last one ends the job.

    A version is published once: one that an earlier attempt has published, later than its last checkpoint, is trained
    again, as the next C begins from there, and passed over.
    """
    context, problem = publisher.context, publisher.prepared.problem
    published = context.read(lambda session: versions.of_job(session, context.lease.job_id))
    run = Run(context, publisher.store, len(machines))
    resumed = run.resume()

    def train(point: int, machine: Solver[Any], start: State | None) -> State | None:
        context.phase("training", at_once=False, point=point)
        outcome = drive(run, machine, problem, point, start)
        last = run.stopped or point == len(machines) - 1
        if last or point not in published:
            publisher.store.delete(publisher.folder(outcome.reached))
            make = partial(machine.model, problem, outcome.state)
            finish = publisher.finish(
                machine.params, outcome.reached, make, stopped=run.stopped, state=outcome.state, right=outcome.right
            )
            (context.succeed if last else context.publish)(finish)
        return None if last else outcome.state

    former = publisher.prepared.former
    if resumed is None:
        start = None if former is None else former.start(machines[0], problem, publisher.prepared.rows.train)
        follow(machines, problem, train, start=start)
    else:
        follow(machines, problem, train, first=resumed.reached.point, start=resumed.state)
