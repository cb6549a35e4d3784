"""Evaluation jobs: a version predicts the rows of a dataset, and is measured."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import structlog
from sqlalchemy.orm import Session
from threadpoolctl import threadpool_limits

from app.config import settings
from app.errors import InvalidInput
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluateRequest, Measure
from app.jobs.leases import Checkpoint
from app.store.files import Files, files
from app.version import VERSION
from solvers.metrics.evaluation import Evaluation
from solvers.metrics.outcomes import Outcomes
from workers.phases.driving import VERSIONS, require_same_version
from workers.phases.evaluated_rows import CHUNK_BYTES, MOST_ROWS, EvaluatedRows, evaluated_rows, job_tree
from workers.running.job_context import Drained, JobContext

# confused pairs that are kept of each level
MOST_PAIRS = 1000
_TIMED_ROWS, _TIMED_BATCHES = 256, 3
# rows that it is most wrong about
MOST_MISTAKES = 1000
# of the time of an evaluation; the rest is for intervals
_SCORING = 0.8
_NAMED = 5
_log = structlog.get_logger("polymargin.worker")


def evaluate(context: JobContext) -> None:
    """Score the rows in blocks, measure, and end the job together with the new evaluation."""
    store = files()
    request = EvaluateRequest.model_validate(context.lease.request)
    with threadpool_limits(1):
        context.phase("loading")
        data = evaluated_rows(context, store, request, job_tree(context))
        evaluation = _Scoring(context, store, data).run()
        context.phase("measuring", at_once=False, fraction=_SCORING)
        outcomes = Outcomes(evaluation, data.inverse, n_training=data.n_own)

        def between(share: float) -> None:
            context.check(drain=False)
            context.note(fraction=_SCORING + (1 - _SCORING) * share)

        reported = outcomes.measures(request.resamples, request.confidence, request.seed, between)
        context.phase("saving", at_once=False)
        context.succeed(
            _keep(context, store, request, data, outcomes, [Measure(**each._asdict()) for each in reported])
        )
    store.delete(f"jobs/{context.lease.job_id}")


class _Scoring:
    """A version's predictions for all rows; resumes from the last checkpoint."""

    def __init__(self, context: JobContext, store: Files, data: EvaluatedRows) -> None:
        self._context, self._store, self._data = context, store, data
        self._folder = f"jobs/{context.lease.job_id}"
        self._saved_at = time.monotonic()

    def run(self) -> Evaluation:
        """Score what is left."""
        data, model = self._data, self._data.loaded.model
        evaluation = self._resumed()
        width = max(len(model.classes), data.labels.n)
        step = max(1, min(MOST_ROWS, CHUNK_BYTES // (8 * width)))
        self._context.phase("scoring", at_once=False, fraction=_SCORING * evaluation.done / evaluation.n_rows)
        while evaluation.done < evaluation.n_rows:
            self._pause(evaluation)
            X = data.matrix(evaluation.done, min(evaluation.done + step, evaluation.n_rows))
            if X.shape[1] != model.n_features:
                raise InvalidInput(f"the rows have {X.shape[1]} features; the model expects {model.n_features}")
            evaluation.add(model.ranking(X))
            self._context.note(fraction=_SCORING * evaluation.done / evaluation.n_rows)
        return evaluation

    def _resumed(self) -> Evaluation:
        data = self._data
        model = data.loaded.model
        evaluation = Evaluation(data.labels, data.truth, model.names_sets, model.ranks_own, model.costs)
        checkpoint = self._context.last_checkpoint()
        if checkpoint is not None:
            try:
                arrays, manifest = self._store.load_arrays(checkpoint.path, mmap=False, sha256=checkpoint.sha256)
                require_same_version(manifest)
                evaluation.resume(arrays)
            except (OSError, ValueError) as error:
                _log.warning("checkpoint_unusable", job_id=self._context.lease.job_id, reason=str(error))
                self._context.drop_checkpoint()
        return evaluation

    def _pause(self, evaluation: Evaluation) -> None:
        try:
            self._context.check()
        except Drained:
            self._save(evaluation)
            raise
        if time.monotonic() - self._saved_at >= settings().checkpoint_seconds:
            self._save(evaluation)

    def _save(self, evaluation: Evaluation) -> None:
        attempt, done = self._context.lease.attempt, evaluation.done
        path = f"{self._folder}/{attempt}-{done}"
        try:
            sha256 = self._store.save_arrays(path, evaluation.state(), VERSIONS)
            before = self._context.checkpoint(Checkpoint(attempt, done, 0.0, path, sha256))
            if before is not None:
                self._store.delete(before)
        except OSError:  # without space on the disk the job continues, and would start again after a crash
            _log.exception("checkpoint_not_written", job_id=self._context.lease.job_id)
        self._saved_at = time.monotonic()


def _keep(
    context: JobContext,
    store: Files,
    request: EvaluateRequest,
    data: EvaluatedRows,
    outcomes: Outcomes,
    reported: list[Measure],
) -> Callable[[Session], dict[str, Any]]:
    """Write the measures by row; return a function that adds the rest in the transaction that ends the job."""
    lease, labels, version = context.lease, data.labels, data.loaded.version
    path = f"evaluations/{lease.job_id}.{lease.attempt}"
    store.delete(path)
    manifest: dict[str, Any] = {
        "dataset_sha256": data.dataset.sha256,
        "version_sha256": version.sha256,
        "request": lease.request,
        evaluations.NODES: None if labels.tree is None else labels.tree.sha256,
    }
    manifest[evaluations.MISTAKES] = _mistakes(data, outcomes)
    rows_sha256 = store.save_arrays(path, {"rows": data.rows, **outcomes.by_row()}, manifest)
    unknown = labels.names[labels.n_known :]
    propensities = {"a": request.propensity_a, "b": request.propensity_b, "n_rows": data.n_train}
    facts = evaluations.Facts(
        id=lease.job_id,
        version_id=version.id,
        dataset_id=lease.dataset_id,
        dataset_sha256=data.dataset.sha256,
        hierarchy_sha256=data.tree_sha256,
        part=request.part or "all",
        n_rows=len(data.rows),
        n_labels=labels.n,
        unknown_rows=data.n_unknown,
        unknown_labels=len(unknown),
        unknown_named=list(unknown[:_NAMED]),
        resamples=request.resamples,
        confidence=request.confidence,
        seed=request.seed,
        propensities=None if data.inverse is None else propensities,
        reliability=_bins(outcomes),
        path=path,
        rows_sha256=rows_sha256,
        code_version=VERSION,
        microseconds_per_row=_microseconds_per_row(data),
        measured=data.measured,
    )
    table, pairs = _label_rows(outcomes), _pair_rows(outcomes)

    def finish(session: Session) -> dict[str, Any]:
        evaluations.add(session, facts, reported, table, pairs)
        return {
            "model": version.model,
            "version": version.version,
            "dataset": lease.dataset_id,
            "evaluation": lease.job_id,
        }

    return finish


def _microseconds_per_row(data: EvaluatedRows) -> float | None:
    """Time to predict a row, without its features: the best of a few batches, as other jobs share the machine."""
    X = data.matrix(0, min(len(data.rows), _TIMED_ROWS))
    if X.shape[0] == 0:
        return None
    seconds = []
    for _ in range(_TIMED_BATCHES):
        began = time.perf_counter()
        data.loaded.model.top_rows(X)
        seconds.append(time.perf_counter() - began)
    return 1e6 * min(seconds) / X.shape[0]


def _mistakes(data: EvaluatedRows, outcomes: Outcomes) -> list[dict[str, Any]]:
    """The rows with the largest errors, as the manifest of the measures by row stores them."""
    evaluation, names = outcomes.evaluation, outcomes.labels.names
    reported, one = evaluation.probabilities, outcomes.answers_one
    named = None if one else evaluation.named()
    found = []
    for at in outcomes.mistakes(MOST_MISTAKES).tolist():
        answered = [int(evaluation.predicted[at])] if named is None else named[at].indices.tolist()
        each: dict[str, Any] = {"row": int(data.rows[at]), "answered": [names[label] for label in answered]}
        if reported is not None:
            each |= {
                "probability": float(reported.of_predicted[at]),
                "probability_of_true": float(reported.of_true[at]),
            }
        elif one and np.isfinite(evaluation.leads[at]):
            each["lead"] = float(evaluation.leads[at])
        found.append(each)
    return found


def _bins(outcomes: Outcomes) -> list[dict[str, Any]] | None:
    found = outcomes.calibration()
    if found is None:
        return None
    edges, reported = found[1].edges.tolist(), found[1]
    columns = zip(
        edges,
        edges[1:],
        reported.n_rows.tolist(),
        reported.confidence.tolist(),
        reported.accuracy.tolist(),
        strict=False,
    )
    return [
        {
            "low": low,
            "high": high,
            "n_rows": n_rows,
            "confidence": confidence if n_rows else None,
            "accuracy": accuracy if n_rows else None,
        }
        for low, high, n_rows, confidence, accuracy in columns
    ]


def _label_rows(outcomes: Outcomes) -> list[dict[str, Any]]:
    labels, table = outcomes.labels, outcomes.table()
    levels = (
        [0] * labels.n if labels.tree is None else [*labels.tree.level.tolist(), *[0] * (labels.n - labels.n_known)]
    )
    f1 = table.f1.tolist()
    counts = zip(table.true.tolist(), table.named.tolist(), table.common.tolist(), strict=True)
    return [
        {
            "number": number,
            "label": labels.names[number],
            "level": levels[number],
            "known": number < labels.n_known,
            "support": support,
            "named": named,
            "common": common,
            "f1": f1[number],
        }
        for number, (support, named, common) in enumerate(counts)
        if support or named
    ]


def _pair_rows(outcomes: Outcomes) -> list[dict[str, Any]]:
    names = outcomes.labels.names
    return [
        {"level": level, "place": place, "true": names[true], "predicted": names[predicted], "n_rows": n_rows}
        for level, pairs in outcomes.confusions(MOST_PAIRS)
        for place, (true, predicted, n_rows) in enumerate(
            zip(pairs.true.tolist(), pairs.predicted.tolist(), pairs.n_rows.tolist(), strict=True), 1
        )
    ]
