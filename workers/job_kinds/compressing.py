"""Jobs that compress: a version gets a smaller copy, whose answers are compared with its own on held-out rows."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from sqlalchemy.orm import Session
from threadpoolctl import threadpool_limits

from app.errors import InvalidInput
from app.evaluations.schemas import McNemar
from app.jobs import compression
from app.jobs.request_schemas import CompressRequest, CopyOf
from app.models import service as models
from app.models import versions
from app.models.rows import matrix
from app.predictions import answer_reference
from app.predictions.model_cache import LoadedModel, load_version
from app.store import tables
from app.store.files import MANIFEST, Files, files
from app.version import VERSION
from solvers.core.model import Model
from solvers.core.stored_models import load_model
from solvers.metrics.comparison import mcnemar, paired_bootstrap
from solvers.metrics.evaluation import Evaluation
from solvers.metrics.outcomes import Outcomes
from solvers.numerics.array_types import AnyFloats
from workers.job_kinds.evaluating import CHUNK_BYTES, MOST_ROWS
from workers.phases import warm_starts as splits
from workers.phases.evaluated_rows import EvaluatedRows, evaluated_rows
from workers.running.job_context import JobContext

RESAMPLES, CONFIDENCE = 10_000, 0.95


class Pruning:
    """Sets weights to zero by a share or a magnitude, array by array, and counts.

    Attributes
    ----------
    weights : int
        That were not zero.
    pruned : int
        That have become zero.
    """

    def __init__(self, share: float | None, below: float | None) -> None:
        self._share, self._below = share, below
        self.weights = self.pruned = 0

    def __call__(self, W: AnyFloats) -> AnyFloats:
        """The same weights with some at zero; of equal ones at the border of a share none."""
        size = np.abs(W)
        nonzero = size > 0
        n, below = int(nonzero.sum()), self._below
        self.weights += n
        if self._share is not None and n > 0:
            place = int(self._share * n)
            below = float(np.partition(size[nonzero], place)[place])
        if below is None:
            return W
        goes = size < below
        self.pruned += int((goes & nonzero).sum())
        return np.where(goes, W.dtype.type(0), W)


def compress(context: JobContext) -> None:
    """Make the copy, write it, read it back, measure it, and add it as a version."""
    store, request = files(), CompressRequest.model_validate(context.lease.request)
    with threadpool_limits(1):
        context.phase("loading")
        data = evaluated_rows(context, store, compression.measuring(request))
        source = context.read(lambda session: session.get(tables.ModelVersion, data.loaded.version.id))
        if source is None:
            raise InvalidInput("the version was deleted")
        path = f"models/{context.lease.job_id}.{context.lease.attempt}"
        store.delete(path)
        loaded = data.loaded
        if loaded.measured:
            # the loss is that of the measured model, which has not seen the rows; both get a smaller copy
            served = context.read(lambda session: load_version(session, loaded.version))
            beside = f"{path}/{versions.MEASURED}"
            _write(context, store, data, source, loaded, _smaller(loaded, request)[0], beside)
            measured, _ = load_model(store.path(beside) / "model", verify=True)
        else:
            served = loaded
        made, pruning = _smaller(served, request)
        sha256 = _write(context, store, data, source, served, made, path)
        copy, _ = load_model(store.path(path) / "model", verify=True)
        outcomes = _measured(context, data, measured if loaded.measured else copy)
        context.phase("saving", at_once=False)
        summary = _summary(request, source, data, pruning, outcomes, (served.model.nbytes, copy.nbytes))
        context.succeed(_adding(context, store, data, source, outcomes[1], summary, path, sha256))


def _smaller(loaded: LoadedModel, request: CompressRequest) -> tuple[Model, Pruning]:
    """A smaller copy, and what was pruned; raises InvalidInput if the model cannot be compressed."""
    pruning = Pruning(request.prune_share, request.prune_below)
    try:
        return loaded.model.smaller(pruning, request.float16), pruning
    except ValueError as error:
        raise InvalidInput(f"the version cannot be compressed: {error}") from error


def _write(
    context: JobContext,
    store: Files,
    data: EvaluatedRows,
    source: tables.ModelVersion,
    loaded: LoadedModel,
    made: Model,
    path: str,
) -> str:
    """The copy's files beside the features of what was ``loaded``; returns the SHA-256 of the model's manifest."""
    of = f"{source.path}/{versions.MEASURED}" if loaded.measured else source.path
    features = f"{of}/features"
    arrays, manifest = store.load_arrays(features)
    manifest.pop("arrays")
    features_sha256 = store.save_arrays(f"{path}/features", {}, manifest, dict.fromkeys(arrays, features))
    split = splits.saved_split(store.path(source.path))
    if split is not None and not loaded.measured:
        splits.save_split(store, path, split)
    details = json.loads((store.path(of) / "model" / MANIFEST).read_bytes())["details"]
    details.pop("duals_sha256", None)
    expected = _reference(data, loaded, made)
    lineage = {
        **details,
        "job": context.lease.job_id,
        "code_version": VERSION,
        "features_sha256": features_sha256,
        "copy_of": {"version": source.number, "version_sha256": source.sha256, "request": context.lease.request},
        answer_reference.KEPT: None if expected is None else expected.kept(),
    }
    made.record = loaded.model.record
    return made.save(store.path(path) / "model", lineage)


def _reference(data: EvaluatedRows, loaded: LoadedModel, made: Model) -> answer_reference.AnswerReference | None:
    n = min(len(data.rows), answer_reference.MOST_ROWS)
    sample = np.unique(np.linspace(0, len(data.rows) - 1, n).astype(np.int64))
    return answer_reference.answer_reference(made, matrix(data.corpus, loaded.features, data.rows[sample]))


def _measured(context: JobContext, data: EvaluatedRows, copy: Model) -> tuple[Outcomes, Outcomes]:
    """Predictions of the source and of its copy for the rows."""
    pair = [
        (model, Evaluation(data.labels, data.truth, model.names_sets, model.ranks_own))
        for model in (data.loaded.model, copy)
    ]
    n_rows = len(data.rows)
    step = max(1, min(MOST_ROWS, CHUNK_BYTES // (8 * max(len(copy.classes), data.labels.n))))
    context.phase("scoring", at_once=False)
    for begin in range(0, n_rows, step):
        context.check()
        X = data.matrix(begin, min(begin + step, n_rows))
        for model, evaluation in pair:
            evaluation.add(model.ranking(X))
        context.note(fraction=min(begin + step, n_rows) / n_rows)
    first, second = (Outcomes(evaluation, data.inverse) for _, evaluation in pair)
    return first, second


def _summary(
    request: CompressRequest,
    source: tables.ModelVersion,
    data: EvaluatedRows,
    pruning: Pruning,
    outcomes: tuple[Outcomes, Outcomes],
    memory: tuple[int, int],
) -> CopyOf:
    before, after = (each.by_row()["error"] for each in outcomes)
    of_source, of_copy = (each.evaluation.predicted for each in outcomes)
    loss = paired_bootstrap(after, before, resamples=RESAMPLES, confidence=CONFIDENCE, seed=0)
    assert request.part is not None
    return CopyOf(
        version=source.number,
        version_sha256=source.sha256,
        float16=request.float16,
        prune_share=request.prune_share,
        prune_below=request.prune_below,
        weights=pruning.weights,
        pruned=pruning.pruned,
        gap=source.gap,
        size_bytes=source.size_bytes,
        memory_bytes_source=memory[0],
        memory_bytes=memory[1],
        dataset_sha256=data.dataset.sha256,
        part=request.part,
        n_rows=len(data.rows),
        agreement=float(np.mean(of_source == of_copy)),
        error_source=float(np.mean(before, dtype=np.float64)),
        error=float(np.mean(after, dtype=np.float64)),
        loss_low=loss.low,
        loss_high=loss.high,
        mcnemar=McNemar.model_validate(mcnemar(before == 0, after == 0)._asdict()),
    )


_SAME = (
    "dataset_id", "dataset_sha256", "hierarchy_id", "hierarchy_sha256", "solver", "params", "seed", "request",
    "n_classes", "n_features", "n_train", "epochs", "converged", "seconds", "refit",
)  # fmt: skip


def _adding(
    context: JobContext,
    store: Files,
    data: EvaluatedRows,
    source: tables.ModelVersion,
    measured: Outcomes,
    summary: CopyOf,
    path: str,
    sha256: str,
) -> Callable[[Session], dict[str, Any]]:
    """A function that adds the version in the transaction that ends the job; a copy has no certificate of its own."""
    name = data.loaded.version.model
    size = sum(file.stat().st_size for file in store.path(path).rglob("*") if file.is_file())
    facts = versions.Facts(
        job_id=context.lease.job_id,
        code_version=VERSION,
        primal=None,
        dual=None,
        gap=None,
        violation=None,
        path=path,
        sha256=sha256,
        size_bytes=size,
        copy_of=summary.model_dump(mode="json"),
        **{fact: getattr(source, fact) for fact in _SAME},
    )
    before = context.read(lambda session: models.stored_metrics(session, source.id))
    metrics: dict[str, dict[str, float]] = {}
    if summary.dataset_sha256 == source.dataset_sha256 and summary.part in before:
        found = {
            f"{each.name}_{each.level}" if each.level else each.name: each.value
            for each in measured.measures(0, CONFIDENCE, 0)
        }
        # the source's measures, computed again; the error of always predicting one label depends only on the rows
        known = before[summary.part]
        metrics[summary.part] = {name: value for name, value in found.items() if name in known}
        metrics[summary.part] |= {name: known[name] for name in known if name == "majority_error"}

    def add(session: Session) -> dict[str, Any]:
        number = versions.add(session, name, facts, metrics)
        return {"model": name, "version": number, "versions": [number]}

    return add
