"""Trials: the settings of a tuning are trained on some rows, and measured on others."""

from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from app.errors import Conflict
from app.schemas.jobs.tuning import TrialRequest, TuneRequest
from app.services.engine import trial_jobs
from app.services.jobs import tunings
from app.store.db import writing
from app.store.files import files
from solvers.core.base import Solver
from solvers.registry import SOLVERS, make
from workers.job_kinds.trial_measures import measured
from workers.job_kinds.trial_rows import TrialRows, trial_rows
from workers.phases.driving import Run, drive
from workers.running.failing import budget_over
from workers.running.job_context import JobContext, TimeUp


def run_trial(context: JobContext) -> None:
    """Train and measure fold by fold, and end the job with the measures.

    Folds that an earlier attempt has measured are not trained again. The budget of the tuning ends the training; what
    it has reached is measured, and trials that wait are cancelled.
    """
    parent = str(context.lease.parent_id)
    asked = TrialRequest.model_validate(context.lease.request)
    request = context.read(lambda session: tunings.request_of(session, parent))
    if request is None:
        raise Conflict("the tuning of this trial is over")
    try:
        # linear algebra would otherwise take all processors
        with threadpool_limits(request.threads):
            stopped = _Trial(context, request, asked).run()
    except TimeUp:
        _cancel_others(context, parent)
        context.end("cancelled", budget_over())
        stopped = False
    if stopped:
        _cancel_others(context, parent)
    files().delete(f"jobs/{context.lease.job_id}")


def _cancel_others(context: JobContext, parent: str) -> None:
    def cancel(session: Any) -> None:
        with writing(session):
            trial_jobs.cancel_waiting(session, parent, budget_over())

    context.read(cancel)


class _Chosen(NamedTuple):
    """The solver of a trial, and whether it is trained to its own end."""

    solver: Solver[Any]
    whole: bool


class _Trial:
    """One trial at work."""

    def __init__(self, context: JobContext, request: TuneRequest, asked: TrialRequest) -> None:
        self._context, self._request, self._asked = context, request, asked

    def run(self) -> bool:
        """Whether the budget has ended it before its time."""
        context, chosen = self._context, self._solver()
        data = trial_rows(context, self._request, self._asked.text)
        folds = context.read(lambda session: tunings.measured_folds(session, context.lease.job_id))
        run = Run(context, files(), len(data.splits))
        resumed = run.resume()
        for at in range(len(folds), len(data.splits)):
            fold = data.fold(at, context, kernel_values=chosen.solver.takes_kernel_values)
            start = resumed.state if resumed is not None and resumed.reached.point == at else None
            context.phase("training", at_once=False, point=at)
            outcome = drive(run, chosen.solver, fold.problem, at, start)
            context.phase("measuring", at_once=False, fraction=(at + 1) / len(data.splits), eta_seconds=None)
            try:
                model = chosen.solver.model(fold.problem, outcome.state)
            except ValueError:
                if run.stopped:  # there is no model yet
                    raise TimeUp from None
                raise
            reached = outcome.reached
            reported: dict[str, Any] = {"epochs": reached.epoch, "gap": reached.gap, "converged": reached.converged}
            reported["measures"] = measured(model, fold, data.corpus, data.tree, data.labels)
            folds.append({**reported, "n_rows": len(fold.rows.test)})
            result = self._result(data, folds, run, chosen)
            last = run.stopped or at == len(data.splits) - 1
            (context.succeed if last else context.publish)(lambda _, result=result: result)  # type: ignore[misc]
            if last:
                break
        return run.stopped

    def _solver(self) -> _Chosen:
        asked, request = self._asked, self._request
        fields = SOLVERS[asked.solver].Params.model_fields if asked.solver in SOLVERS else {}
        params = dict(asked.params)
        if "tol" in fields:
            params.setdefault("tol", request.trial_tol)
        whole = asked.max_epochs is None or "max_epochs" not in fields
        if asked.max_epochs is not None and not whole:
            own = params.get("max_epochs", fields["max_epochs"].default)
            whole = isinstance(own, int) and own <= asked.max_epochs
            params["max_epochs"] = own if whole else asked.max_epochs
        return _Chosen(make(asked.solver, params, seed=request.seed, threads=request.threads), whole)

    def _result(self, data: TrialRows, folds: list[dict[str, Any]], run: Run, chosen: _Chosen) -> dict[str, Any]:
        """What the trial has shown so far: of folds the means over their rows."""
        weights = [fold["n_rows"] for fold in folds]
        names = [name for name in folds[0]["measures"] if all(name in fold["measures"] for fold in folds)]
        gaps = [fold["gap"] for fold in folds]
        converged = all(fold["converged"] for fold in folds)
        found: dict[str, Any] = {
            "measures": {
                name: float(np.average([fold["measures"][name] for fold in folds], weights=weights)) for name in names
            },
            "folds": folds,
            "seconds": run.seconds,
            "epochs": sum(fold["epochs"] for fold in folds),
            "gap": None if None in gaps else max(gaps),
            "converged": converged,
            "complete": converged or chosen.whole,
            "dataset_sha256": data.dataset.sha256,
            "held_out": data.held_out.model_dump(mode="json"),
        }
        return {**found, "stopped": "budget"} if run.stopped else found
