"""What a request for an evaluation names, resolved once, and all that can be checked of it before it runs."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.datasets import versions as dataset_versions
from app.errors import InvalidInput, Item
from app.evaluations.schemas import EvaluateRequest, Part
from app.models import row_kinds
from app.models import service as models
from app.store import tables
from app.store.lookup import by_ref


@dataclass(frozen=True, eq=False)
class ResolvedEvaluation:
    """What a request names.

    Attributes
    ----------
    dataset : row
    version : row
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
    part = _part(request, rows, version)
    named = {"version": version.number, "alias": None, "part": part, "dataset_version": rows.number}
    return ResolvedEvaluation(dataset, version, hierarchy_id, request.model_copy(update=named))


def _part(request: EvaluateRequest, rows: tables.DatasetVersion, version: tables.ModelVersion) -> Part:
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
