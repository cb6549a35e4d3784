"""The evaluations that a comparison of two versions needs, queued where they are not there yet."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets import versions as dataset_versions
from app.errors import InvalidInput, Item
from app.evaluations.comparisons import Side, version_of
from app.evaluations.schemas import ComparisonRequest, EvaluateRequest, Part
from app.jobs import service as jobs
from app.jobs import shown as shown_jobs
from app.jobs import wakeups as job_queue
from app.jobs.schemas import Job
from app.store import tables
from app.store.db import writing
from app.store.lookup import by_id, by_ref

_ACTIVE = ("queued", "running")


def evaluate_both(session: Session, model: str, request: ComparisonRequest) -> list[Job]:
    """Queue what is missing: both versions evaluated on the same rows, which neither was trained on.

    Where both were trained on one dataset these are its rows as the later one has them. They are measured along the
    label tree of the later version that has one. What is evaluated or queued already is not queued again.

    Raises
    ------
    NotFound
        No such model, version, alias or dataset.
    Conflict
        The dataset is not ready.
    TooMany
        The workspace has as many jobs as it may have.
    InvalidInput
        The dataset to measure on is ambiguous, or the two cannot be measured on it.
    """
    with writing(session):
        sides = Side(model, request.a), Side(request.other or model, request.b)
        versions = [version_of(session, side) for side in sides]
        dataset = _dataset(session, request, versions)
        dataset_versions.require_ready(dataset)
        rows = dataset_versions.resolve_version(session, dataset, _number(dataset, versions))
        part = request.part or _part(rows, versions)
        trees = [each for each in versions if each.hierarchy_id is not None]
        tree = max(trees, key=lambda each: each.created_at).hierarchy_id if trees else None
        queued = []
        for version in {each.id: each for each in versions}.values():
            evaluation = EvaluateRequest(
                kind="evaluate",
                model=by_id(session, tables.Model, version.model_id).name,
                version=version.number,
                dataset=dataset.name,
                dataset_version=rows.number,
                part=part,
                hierarchy=tree,
            )
            if not _is_measured(session, version, rows, part, tree):
                queued.append(_active(session, dataset, evaluation) or jobs.enqueue(session, evaluation))
        shown = [shown_jobs.one(session, row) for row in queued]
    for row in queued:
        job_queue.notify(session, row.id, row.queue)
    return shown


def _dataset(session: Session, request: ComparisonRequest, versions: list[tables.ModelVersion]) -> tables.Dataset:
    if request.dataset is not None:
        return by_ref(session, tables.Dataset, request.dataset, lock=True)
    first, second = (version.dataset_id for version in versions)
    if first is None or first != second:
        detail = "the versions were trained on different datasets, or on one that was deleted; name a dataset"
        raise InvalidInput("dataset is ambiguous", [Item(detail, "/dataset")])
    return by_ref(session, tables.Dataset, first, lock=True)


def _number(dataset: tables.Dataset, versions: list[tables.ModelVersion]) -> int:
    """The latest version of the dataset that one of both was trained on; else the newest."""
    trained = [each.request.get("dataset_version") or 1 for each in versions if each.dataset_id == dataset.id]
    return max(trained, default=dataset.version)


def _part(rows: tables.DatasetVersion, versions: list[tables.ModelVersion]) -> Part:
    """Test rows, where the dataset or the training of one of both has any."""
    held_out = any(
        each.dataset_id == rows.dataset_id and float(each.request.get("test_fraction", 0.0)) > 0 for each in versions
    )
    return "test" if rows.n_train < rows.n_rows or held_out else "all"


def _is_measured(
    session: Session, version: tables.ModelVersion, rows: tables.DatasetVersion, part: Part, tree: str | None
) -> bool:
    E, H = tables.Evaluation, tables.Hierarchy
    sha256 = None if tree is None else session.scalars(select(H.sha256).where(H.id == tree)).one_or_none()
    query = select(E.id).where(
        E.version_id == version.id,
        E.dataset_id == rows.dataset_id,
        E.dataset_sha256 == rows.sha256,
        E.part == part,
        E.hierarchy_sha256.is_(None) if sha256 is None else E.hierarchy_sha256 == sha256,
    )
    return session.scalars(query.limit(1)).first() is not None


def _active(session: Session, dataset: tables.Dataset, request: EvaluateRequest) -> tables.Job | None:
    J = tables.Job
    query = select(J).where(J.kind == "evaluate", J.dataset_id == dataset.id, J.state.in_(_ACTIVE))
    identity = _identity(request.model_dump(mode="json"))
    return next((row for row in session.scalars(query) if _identity(row.request) == identity), None)


def _identity(request: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(request.get(name) for name in ("model", "version", "dataset_version", "part", "hierarchy"))
