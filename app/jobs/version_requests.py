"""Requests for evaluations of versions, smaller copies and adopted editions, resolved and checked before they run."""

from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy.orm import Session

from app.datasets import versions as dataset_versions
from app.errors import Conflict, InvalidInput, Item
from app.evaluations.schemas import EvaluateRequest, Part
from app.jobs.request_schemas import AdoptRequest, CompressRequest
from app.models import row_kinds
from app.models import service as models
from app.store import tables
from app.store.lookup import by_id, by_ref


@dataclass(frozen=True, eq=False)
class ResolvedEvaluation:
    """What a request names.

    Attributes
    ----------
    hierarchy_id : str or None
        The label tree to measure along, where the request or the version's job names one that is still there.
    request : EvaluateRequest
        With version, dataset version and part resolved.
    """

    dataset: tables.Dataset
    version: tables.ModelVersion
    hierarchy_id: str | None
    request: EvaluateRequest


def resolve_evaluation(session: Session, request: EvaluateRequest) -> ResolvedEvaluation:
    """Find what a request names, hold it to the end of the transaction, and check it.

    Raises
    ------
    NotFound
        No such model, version, alias, dataset or hierarchy.
    Conflict
        The dataset is not ready.
    InvalidInput
        No row has a label; the dataset has no such part; or none is named, and the version's training rows are not
        known.
    """
    version = models.version_row(session, request.model, request.version, request.alias, lock=True)
    dataset = by_ref(session, tables.Dataset, request.dataset, lock=True)
    rows = dataset_versions.resolve_version(session, dataset, request.dataset_version)
    row_kinds.require_same(session, version, dataset, rows)
    if rows.statistics["n_classes"] == 0:
        raise InvalidInput("the dataset cannot be measured on", [Item("no row has a label", "/dataset")])
    hierarchy_id = version.hierarchy_id
    if request.hierarchy is not None:
        hierarchy_id = by_ref(session, tables.Hierarchy, request.hierarchy, lock=True).id
    part = _resolved_part(request, rows, version)
    named = {"version": version.number, "alias": None, "part": part, "dataset_version": rows.number}
    return ResolvedEvaluation(dataset, version, hierarchy_id, request.model_copy(update=named))


def _resolved_part(request: EvaluateRequest, rows: tables.DatasetVersion, version: tables.ModelVersion) -> Part:
    own = rows.n_train < rows.n_rows
    same = version.dataset_id == rows.dataset_id
    later = rows.number > (version.request.get("dataset_version") or 1)
    if request.part is None:
        of_job = same and (later or float(version.request.get("test_fraction", 0.0)) > 0)
        return "test" if own or of_job else "all"
    if request.part != "all" and not own and not same:
        detail = "the dataset has no split, and the version was trained on other rows; all its rows can be measured"
        raise InvalidInput("the dataset has no such part", [Item(detail, "/part")])
    return request.part


Derived = TypeVar("Derived", CompressRequest, AdoptRequest)


def measuring(request: CompressRequest | AdoptRequest) -> EvaluateRequest:
    """The evaluation that chooses the rows on which a resolved request compares both versions."""
    fields = {"model", "version", "dataset", "dataset_version", "part"}
    return EvaluateRequest(kind="evaluate", resamples=0, **request.model_dump(include=fields))


def resolve_compression(session: Session, request: CompressRequest) -> tuple[ResolvedEvaluation, CompressRequest]:
    """What a request names, held to the end of the transaction; the request with its names resolved.

    Raises
    ------
    NotFound
        No such model, version, alias or dataset.
    Conflict
        The version is a copy, its dataset was deleted and no other is named, or the dataset is not ready.
    InvalidInput
        The dataset has no such part.
    """
    version = models.version_row(session, request.model, request.version, request.alias, lock=True)
    if version.copy_of is not None:
        raise Conflict(f"version {version.number} is itself a smaller copy; copy its original version")
    return _resolved(session, version, request)


def resolve_adoption(session: Session, request: AdoptRequest) -> tuple[ResolvedEvaluation, str, AdoptRequest]:
    """As :func:`resolve_compression`, with the id of the edition to adopt.

    Raises
    ------
    NotFound
        No such model, version, alias, dataset or hierarchy.
    Conflict
        The version is a smaller copy or has that edition already, its dataset was deleted and no other is named, or the
        dataset is not ready.
    InvalidInput
        The version cannot read names of concepts, or the dataset has no such part.
    """
    version = models.version_row(session, request.model, request.version, request.alias, lock=True)
    hierarchy = by_ref(session, tables.Hierarchy, request.hierarchy, lock=True)
    if version.copy_of is not None:
        raise Conflict(f"version {version.number} is a smaller copy; adopt the edition by its original version")
    if version.solver not in ("subjects", "auto"):
        detail = f"{version.solver} does not find concepts by their names; train a version on the new edition"
        raise InvalidInput("the version cannot adopt an edition", [Item(detail, "/model")])
    if version.hierarchy_id == hierarchy.id:
        raise Conflict(f"version {version.number} already has the concepts of {hierarchy.name}")
    target, resolved = _resolved(session, version, request)
    return target, hierarchy.id, resolved


def _resolved(session: Session, version: tables.ModelVersion, request: Derived) -> tuple[ResolvedEvaluation, Derived]:
    name = by_id(session, tables.Model, version.model_id).name
    named = {"model": name, "version": version.number, "alias": None}
    if request.dataset is None:
        if version.dataset_id is None:
            detail = "the version's dataset does not exist any more; name a dataset on which to compare the versions"
            raise InvalidInput("the new version cannot be measured", [Item(detail, "/dataset")])
        number = request.dataset_version or version.request.get("dataset_version") or 1
        named |= {"dataset": version.dataset_id, "dataset_version": number}
    request = request.model_copy(update=named)
    resolved = resolve_evaluation(session, measuring(request))
    measured_on = {"dataset_version": resolved.request.dataset_version, "part": resolved.request.part}
    return resolved, request.model_copy(update=measured_on)
