"""Jobs that compress: a version gets a smaller copy, whose answers are compared with its own on held-out rows."""

from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from app.errors import InvalidInput
from app.evaluations.schemas import McNemar
from app.jobs import version_requests
from app.jobs.request_schemas import CompressRequest, CopyOf
from app.models import versions
from app.predictions.model_cache import LoadedModel, load_version
from app.store import tables
from app.store.files import Files, files
from solvers.core.model import Model
from solvers.core.stored_models import load_model
from solvers.metrics.comparison import mcnemar, paired_bootstrap
from solvers.metrics.outcomes import Outcomes
from solvers.numerics.array_types import AnyFloats
from workers.phases import deriving
from workers.phases.evaluated_rows import EvaluatedRows, evaluated_rows, job_tree
from workers.running.job_context import JobContext


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
        data = evaluated_rows(context, store, version_requests.measuring(request), job_tree(context))
        source = deriving.source_of(context, data)
        path, loaded = deriving.new_folder(context, store), data.loaded
        if loaded.measured:
            # the loss is that of the measured model, which has not seen the rows; both get a smaller copy
            served = context.read(lambda session: load_version(session, loaded.version))
            beside = f"{path}/{versions.MEASURED}"
            _write(context, store, data, source, _smaller(loaded, request)[0], beside)
            measured, _ = load_model(store.local(f"{beside}/model"), verify=True)
        else:
            served = loaded
        made, pruning = _smaller(served, request)
        sha256 = _write(context, store, replace(data, loaded=served), source, made, path)
        copy, _ = load_model(store.local(f"{path}/model"), verify=True)
        answers = replace(data, loaded=replace(loaded, model=measured if loaded.measured else copy))
        outcomes = deriving.outcomes_of(context, data, answers)
        context.phase("saving", at_once=False)
        summary = _summary(request, source, data, pruning, outcomes, (served.model.nbytes, copy.nbytes))
        metrics = deriving.metrics_of(context, source, summary.dataset_sha256, summary.part, outcomes[1])
        changes = {"copy_of": summary.model_dump(mode="json")}
        name = loaded.version.model
        context.succeed(deriving.adding(context, store, source, name, path, sha256, metrics, changes))


def _smaller(loaded: LoadedModel, request: CompressRequest) -> tuple[Model, Pruning]:
    """A smaller copy, and what was pruned; raises InvalidInput if the model cannot be compressed."""
    pruning = Pruning(request.prune_share, request.prune_below)
    try:
        return loaded.model.smaller(pruning, request.float16), pruning
    except ValueError as error:
        raise InvalidInput(f"the version cannot be compressed: {error}") from error


def _write(
    context: JobContext, store: Files, data: EvaluatedRows, source: tables.ModelVersion, made: Model, path: str
) -> str:
    """The copy's files beside the features of what ``data`` loaded; returns the SHA-256 of the model's manifest."""
    loaded = data.loaded
    features = f"{deriving.folder_of(source, measured=loaded.measured)}/features"
    arrays, manifest = store.load_arrays(features)
    manifest.pop("arrays")
    features_sha256 = store.save_arrays(f"{path}/features", {}, manifest, dict.fromkeys(arrays, features))
    made.record = loaded.model.record
    made.costs = loaded.model.costs
    changes = {"copy_of": {"version": source.number, "version_sha256": source.sha256, "request": context.lease.request}}
    copied = replace(data, loaded=replace(loaded, model=made))
    return deriving.write_model(context, store, path, copied, source, features_sha256, changes)


def _summary(
    request: CompressRequest,
    source: tables.ModelVersion,
    data: EvaluatedRows,
    pruning: Pruning,
    outcomes: tuple[Outcomes, Outcomes],
    memory: tuple[int, int],
) -> CopyOf:
    before, after = (each.by_row()["error"] for each in outcomes)
    loss = paired_bootstrap(after, before, resamples=deriving.RESAMPLES, confidence=deriving.CONFIDENCE, seed=0)
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
        agreement=deriving.agreement(*outcomes),
        error_source=float(np.mean(before, dtype=np.float64)),
        error=float(np.mean(after, dtype=np.float64)),
        loss_low=loss.low,
        loss_high=loss.high,
        mcnemar=McNemar.model_validate(mcnemar(before == 0, after == 0)._asdict()),
    )
