"""Versions that are made of others: both answer the same rows, and the new one is added with what that showed."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sqlalchemy.orm import Session, undefer

from app.errors import InvalidInput
from app.models import service as models
from app.models import versions
from app.models.warm_starts import saved_split
from app.predictions import answer_reference
from app.store import tables
from app.store.disk_space import writing_to
from app.store.files import Files
from app.version import VERSION
from solvers.metrics.evaluation import Evaluation
from solvers.metrics.hierarchical import name_at_level
from solvers.metrics.outcomes import Outcomes
from workers.phases import warm_starts as splits
from workers.phases.evaluated_rows import CHUNK_BYTES, MOST_ROWS, EvaluatedRows
from workers.running.job_context import JobContext

RESAMPLES, CONFIDENCE = 10_000, 0.95
# facts that a version has from its source unless it says otherwise
_SAME = (
    "dataset_id", "dataset_sha256", "hierarchy_id", "hierarchy_sha256", "solver", "params", "seed", "request",
    "n_classes", "n_features", "n_train", "epochs", "converged", "seconds", "refit", "columns",
)  # fmt: skip


def new_folder(context: JobContext, store: Files) -> str:
    """The folder of the version that the job adds, empty."""
    path = f"models/{context.lease.job_id}.{context.lease.attempt}"
    store.delete(path)
    return path


def source_of(context: JobContext, data: EvaluatedRows) -> tables.ModelVersion:
    """The row of the version that another is made of; raises InvalidInput where it is gone."""
    whole = [undefer(tables.ModelVersion.columns)]
    source = context.read(
        lambda session: session.get(tables.ModelVersion, data.loaded.version.id, options=whole, populate_existing=True)
    )
    if source is None:
        raise InvalidInput("the version was deleted")
    return source


def write_model(
    context: JobContext,
    store: Files,
    path: str,
    data: EvaluatedRows,
    source: tables.ModelVersion,
    features_sha256: str,
    changes: Mapping[str, Any],
) -> str:
    """Write the model of ``data`` beside its features; return the SHA-256 of its manifest.

    Parameters
    ----------
    data : EvaluatedRows
        With the new model, loaded as the measured or the served one of its source.
    changes : mapping
        Of the lineage, in place of the source's.
    """
    measured, model = data.loaded.measured, data.loaded.model
    split = saved_split(store, source.path)
    if split is not None and not measured:
        splits.save_split(store, path, split)
    of = folder_of(source, measured=measured)
    details = store.manifest(f"{of}/model")["details"]
    details.pop("duals_sha256", None)
    n = min(len(data.rows), answer_reference.MOST_ROWS)
    sample = np.unique(np.linspace(0, len(data.rows) - 1, n).astype(np.int64))
    expected = answer_reference.answer_reference(model, data.matrix_of(sample))
    lineage = {
        **details,
        "job": context.lease.job_id,
        "code_version": VERSION,
        "features_sha256": features_sha256,
        answer_reference.KEPT: None if expected is None else expected.kept(),
        **changes,
    }
    with writing_to(store.path(path) / "model", model.nbytes):
        sha256 = model.save(store.path(path) / "model", lineage)
    store.publish(f"{path}/model")
    return sha256


def folder_of(source: tables.ModelVersion, *, measured: bool) -> str:
    """The files of a version, or those of its measured model."""
    return f"{source.path}/{versions.MEASURED}" if measured else source.path


def outcomes_of(context: JobContext, before: EvaluatedRows, after: EvaluatedRows) -> tuple[Outcomes, Outcomes]:
    """What the models of both answer to the same rows."""
    sides = (before, after)
    evaluations = [
        Evaluation(side.labels, side.truth, model.names_sets, model.ranks_own, model.costs)
        for side, model in ((side, side.loaded.model) for side in sides)
    ]
    n_rows, width = len(sides[0].rows), max(max(len(side.loaded.model.classes), side.labels.n) for side in sides)
    step = max(1, min(MOST_ROWS, CHUNK_BYTES // (8 * width)))
    context.phase("scoring", at_once=False)
    for begin in range(0, n_rows, step):
        context.check()
        end, X, features = min(begin + step, n_rows), None, None
        for side, evaluation in zip(sides, evaluations, strict=True):
            if X is None or side.loaded.features is not features:
                X, features = side.matrix(begin, end), side.loaded.features
            evaluation.add(side.loaded.model.ranking(X))
        context.note(fraction=end / n_rows)
    first, second = (
        Outcomes(each, side.inverse, n_training=side.n_own) for side, each in zip(sides, evaluations, strict=True)
    )
    return first, second


def agreement(before: Outcomes, after: Outcomes, renamed: Callable[[str], str] = str) -> float:
    """The share of rows of which both name the same label first; ``renamed`` gives the later name of an earlier one."""
    first, second = (
        [each.labels.names[label] for label in each.evaluation.predicted.tolist()] for each in (before, after)
    )
    return float(np.mean([renamed(one) == other for one, other in zip(first, second, strict=True)]))


def adding(
    context: JobContext,
    store: Files,
    source: tables.ModelVersion,
    model: str,
    path: str,
    sha256: str,
    metrics: Mapping[str, Mapping[str, float]],
    changes: Mapping[str, Any],
) -> Callable[[Session], dict[str, Any]]:
    """A function that adds the version in the transaction that ends the job; it has no certificate of its own."""
    facts = versions.Facts(
        **{fact: getattr(source, fact) for fact in _SAME}
        | {
            "job_id": context.lease.job_id,
            "code_version": VERSION,
            "primal": None,
            "dual": None,
            "gap": None,
            "violation": None,
            "path": path,
            "sha256": sha256,
            "size_bytes": sum(store.sizes(path).values()),
            **changes,
        }
    )

    def add(session: Session) -> dict[str, Any]:
        number = versions.add(session, model, facts, metrics)
        return {"model": model, "version": number, "versions": [number]}

    return add


def metrics_of(
    context: JobContext, source: tables.ModelVersion, dataset_sha256: str, part: str, outcomes: Outcomes
) -> dict[str, dict[str, float]]:
    """The source's measures computed again, where they are of the same rows."""
    before = context.read(lambda session: models.stored_metrics(session, source.id))
    if dataset_sha256 != source.dataset_sha256 or part not in before:
        return {}
    known = before[part]
    found = {name_at_level(each.name, each.level): each.value for each in outcomes.measures(0, CONFIDENCE, 0)}
    # the error of always predicting one label depends only on the rows
    kept = {name: known[name] for name in known if name == "majority_error"}
    return {part: {name: value for name, value in found.items() if name in known} | kept}
