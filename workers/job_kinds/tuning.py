"""Tunings: trials are left to other jobs, round by round; then the best settings are trained on all rows."""

from app.errors import Conflict, InvalidInput
from app.schemas.jobs.tuning import TrialRequest, TuneRequest
from app.services.engine import trial_jobs
from app.services.jobs import tunings
from app.services.jobs.tuning_space import settings_of, training_of
from solvers.selection.halving import next_round, ranked
from workers.job_kinds.training import train_as
from workers.phases.publishing import Tuned
from workers.running.job_context import JobContext, LeftToTrials


def tune(context: JobContext) -> None:
    """Leave the next round to trials, or where none is left to be made, train the winner as any training does.

    What is next follows from the trials that are over alone, so that a worker that dies here loses nothing.

    Raises
    ------
    LeftToTrials
        The job waits for the end of its trials.
    InvalidInput
        No trial has come to a measure.
    """
    lease = context.lease
    request = TuneRequest.model_validate(lease.request)
    context.phase("choosing")
    every, measure = settings_of(request), str(request.measure)
    results = context.read(lambda session: tunings.results(session, lease.job_id, measure))
    budget = context.read(lambda session: trial_jobs.seconds_left(session, lease.job_id))
    over = budget is not None and budget <= 0
    due = None if over else next_round(len(every), results, request.halving, request.first_epochs)
    if due is not None:
        trials = [
            TrialRequest(
                number=number,
                rung=due.rung,
                solver=every[number].solver,
                params=every[number].params,
                text=every[number].text,
                max_epochs=due.max_epochs,
            )
            for number in due.numbers
        ]
        context.leave_to(trials)
        raise LeftToTrials
    best = ranked(results.values())
    if not best:
        reasons = context.read(lambda session: tunings.failures(session, lease.job_id))
        if over and not reasons:
            raise Conflict("the budget was over before a trial was measured; try the job again with a larger one")
        raise InvalidInput("no trial has come to a measure", reasons)
    winner = best[0]
    reported = context.read(lambda session: tunings.told_of(session, lease.job_id, winner.number, winner.rung))
    lineage = {**reported, "job": lease.job_id, "measure": measure, "trials": len(results)}
    result = {"trial": winner.number, "measures": reported["measures"]}
    train_as(context, training_of(request, every[winner.number]), Tuned(result, lineage))
