"""Tunings: other jobs run the trials, round by round; then the best settings are trained on all rows.

A trial trains the settings of a tuning on some rows, and measures them on others.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from app.errors import Conflict, InvalidInput
from app.hierarchies.version_labels import VersionLabels
from app.jobs import trials as trial_jobs
from app.jobs import tunings
from app.jobs.request_schemas import TrialRequest, TuneRequest
from app.jobs.tuning_space import settings_of, training_of
from app.store.corpus import Corpus
from app.store.db import writing
from app.store.files import files
from solvers.core.base import Solver
from solvers.core.cost_params import CostParams
from solvers.core.model import Model
from solvers.labels.costs import Costs
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.calibration import log_losses
from solvers.metrics.evaluation import Evaluation, Labels, Truth
from solvers.metrics.outcomes import Outcomes
from solvers.registry import SOLVERS, make
from solvers.selection.halving import next_round, ranked
from solvers.selection.held_out import MOST_SCORES
from solvers.selection.pooling import fit_temperature
from workers.job_kinds.training import train_as
from workers.job_kinds.trial_rows import Fold, TrialRows, trial_rows
from workers.phases.driving import Run, drive
from workers.phases.evaluated_rows import labelled, labels_of
from workers.phases.publishing import Tuned
from workers.running.failing import budget_over
from workers.running.job_context import JobContext, LeftToTrials, TimeUp

CHUNK_BYTES = 64 << 20


def measured(
    model: Model, fold: Fold, corpus: Corpus, tree: Taxonomy | None, known: VersionLabels, costs: Costs | None = None
) -> dict[str, float]:
    """All measures of the rows held out by name, as evaluations have them; ``accuracy`` is 1 less ``error``.

    For models without probabilities ``log_loss`` is that of the softmax of their scores at the best temperature.
    ``costs``, among the model's classes, are those of its own training by default.
    """
    X, rows = fold.data.read_by(model).X_test, fold.rows.test
    labels, truth, _ = labelled(corpus, rows, labels_of(model, tree), known)
    evaluation = Evaluation(labels, truth, model.names_sets, model.ranks_own, costs or model.costs)
    ranks_classes = truth.single is not None and not model.names_sets
    width = max(1, len(model.classes))
    step, every = max(1, CHUNK_BYTES // (8 * width)), -(-len(rows) * width // MOST_SCORES)
    scores: list[NDArray[np.float32]] = []
    while evaluation.done < evaluation.n_rows:
        begin = evaluation.done
        ranking = model.ranking(X[begin : begin + step])
        evaluation.add(ranking)
        if ranks_classes and not ranking.tells_probabilities:
            scores.append(ranking.values[-begin % every :: every].astype(np.float32))
    found = {each.name: each.value for each in Outcomes(evaluation).measures(0) if each.level == 0}
    found["accuracy"] = 1.0 - found["error"]
    if scores:
        loss = _log_loss(np.concatenate(scores), labels, truth, every)
        if loss is not None:
            found["log_loss"] = loss
    return found


def _log_loss(scores: NDArray[np.float32], labels: Labels, truth: Truth, every: int) -> float | None:
    """The log loss; a label that is no class of the model has probability 0. None if scores are infinite."""
    assert truth.single is not None
    class_of = np.full(labels.n, -1)
    class_of[labels.class_labels] = np.arange(len(labels.class_labels))
    y = class_of[truth.single[::every]]
    known = y >= 0
    if not known.any() or not np.isfinite(scores).all():
        return None
    unknown = float(log_losses(np.zeros(1))[0])
    inside = fit_temperature(np.ascontiguousarray(scores[known]), y[known].astype(np.int32)).log_loss
    return float((known.sum() * inside + (~known).sum() * unknown) / len(y))


def run_trial(context: JobContext) -> None:
    """Train and measure fold by fold, and end the job with the measures.

    Folds that an earlier attempt has measured are not trained again. The budget of the tuning ends the training; what
    it has reached is measured, and trials that wait are cancelled.
    """
    parent = str(context.lease.parent_id)
    asked = TrialRequest.model_validate(context.lease.request)
    request = context.read(lambda session: tunings.load_request(session, parent))
    if request is None:
        raise Conflict("the tuning of this trial has ended")
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
        self._costs = CostParams.model_validate({"costs": request.costs, "other_cost": request.other_cost})

    def run(self) -> bool:
        """Whether the budget ended it early."""
        context, chosen = self._context, self._solver()
        data = trial_rows(context, self._request, self._asked.text)
        folds = context.read(lambda session: tunings.measured_folds(session, context.lease.job_id))
        run = Run(context, files(), len(data.splits))
        resumed = run.resume()
        for at in range(len(folds), len(data.splits)):
            fold = data.fold(at, context, chosen.solver)
            start = resumed.state if resumed is not None and resumed.reached.point == at else None
            context.phase("training", at_once=False, point=at)
            outcome = drive(run, chosen.solver, fold.problem, at, start)
            context.phase("measuring", at_once=False, fraction=(at + 1) / len(data.splits), eta_seconds=None)
            try:
                model = chosen.solver.bare_model(fold.problem, outcome.state)
            except ValueError:
                if run.stopped:  # there is no model yet
                    raise TimeUp from None
                raise
            reached = outcome.reached
            reported: dict[str, Any] = {"epochs": reached.epoch, "gap": reached.gap, "converged": reached.converged}
            costs = self._costs.costs_among(model.classes, data.tree)
            reported["measures"] = measured(model, fold, data.corpus, data.tree, data.labels, costs)
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
        """Measures of the trial so far: for folds, the means over their rows."""
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
    # requests of earlier versions served the measured model
    request = TuneRequest.model_validate({"refit": False, **lease.request})
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
            raise Conflict("the budget ended before a trial was measured; start the job again with a larger budget")
        raise InvalidInput("no trial could be measured", reasons)
    winner = best[0]
    reported = context.read(lambda session: tunings.trial_lineage(session, lease.job_id, winner.number, winner.rung))
    lineage = {**reported, "job": lease.job_id, "measure": measure, "trials": len(results)}
    result = {"trial": winner.number, "measures": reported["measures"]}
    train_as(context, training_of(request, every[winner.number]), Tuned(result, lineage))
