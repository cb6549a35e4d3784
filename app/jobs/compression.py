"""Requests for smaller copies of versions, resolved once and checked before they run."""

from sqlalchemy.orm import Session

from app.errors import Conflict, InvalidInput, Item
from app.evaluations.requests import ResolvedEvaluation, resolve_evaluation
from app.evaluations.schemas import EvaluateRequest
from app.jobs.request_schemas import CompressRequest
from app.models import service as models
from app.store import tables
from app.store.lookup import by_id


def measuring(request: CompressRequest) -> EvaluateRequest:
    """The evaluation that chooses the rows on which a resolved request measures the loss."""
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
    name = by_id(session, tables.Model, version.model_id).name
    if version.copy_of is not None:
        raise Conflict(f"version {version.number} is itself a smaller copy; copy its original version")
    named = {"model": name, "version": version.number, "alias": None}
    if request.dataset is None:
        if version.dataset_id is None:
            detail = "the version's dataset does not exist any more; name a dataset to measure the loss on"
            raise InvalidInput("the loss of accuracy cannot be measured", [Item(detail, "/dataset")])
        number = request.dataset_version or version.request.get("dataset_version") or 1
        named |= {"dataset": version.dataset_id, "dataset_version": number}
    request = request.model_copy(update=named)
    resolved = resolve_evaluation(session, measuring(request))
    measured_on = {"dataset_version": resolved.request.dataset_version, "part": resolved.request.part}
    return resolved, request.model_copy(update=measured_on)
