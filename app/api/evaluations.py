"""Routes for evaluations, and for the comparison of versions by them."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.api.access.auth import VIEWER
from app.api.common.parameters import Db, Id, PageSize, PageToken, Ref
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.schemas.common.names import NAME_PATTERN
from app.schemas.common.pages import Page
from app.schemas.evaluations import Comparison, ConfusedPairs, EvaluatedLabels, Evaluation, Mistakes, Part
from app.services.evaluations import comparisons, evaluations, mistakes
from app.services.evaluations.comparisons import Side
from app.services.evaluations.evaluations import LabelOrder

router = APIRouter(prefix=f"{V1}", tags=["evaluations"])

_Named = Annotated[str | None, Query(pattern=NAME_PATTERN, description="Id or name.")]
_Level = Annotated[
    int | None,
    Query(ge=0, le=1000, description="Only of this level of the label tree; 0: what is on none. By default all."),
]
_VERSION = Query(pattern=NAME_PATTERN, description="Number of a version, or an alias.")


@router.get("/evaluations", dependencies=[VIEWER], responses=responses(400, 401, 404, 422))
def list_evaluations(
    session: Db,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    model: _Named = None,
    version: Annotated[int | None, Query(ge=1, lt=2**31, description="Of the model.")] = None,
    dataset: _Named = None,
) -> Page[Evaluation]:
    """Evaluations, newest first; of one model, version or dataset where these are named."""
    return evaluations.page(session, page_size, page_token, model=model, version=version, dataset=dataset)


@router.get("/evaluations/{id}", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_evaluation(session: Db, id: Id) -> Evaluation:
    """One evaluation: its measures with their intervals, and what they can be traced to."""
    return evaluations.get(session, id)


@router.get("/evaluations/{id}/labels", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_evaluated_labels(
    session: Db,
    id: Id,
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    level: _Level = None,
    order: Annotated[LabelOrder, Query(description="With - the largest first.")] = "f1",
) -> EvaluatedLabels:
    """Precision, recall, F1 and support of each label that some row has or is given."""
    return evaluations.labels(session, id, offset, limit, level, order)


@router.get("/evaluations/{id}/confusions", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_confusions(
    session: Db, id: Id, level: _Level = None, limit: Annotated[int, Query(ge=1, le=1000)] = 50
) -> ConfusedPairs:
    """The pairs of labels that are confused most often, level by level."""
    return evaluations.confusions(session, id, level, limit)


@router.get("/evaluations/{id}/mistakes", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_mistakes(
    session: Db,
    id: Id,
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Mistakes:
    """The rows that the version is most wrong about; often it is the label that is wrong, and can be corrected."""
    return mistakes.mistakes(session, id, offset, limit)


@router.get("/models/{ref}/compare", dependencies=[VIEWER], responses=responses(401, 404, 422, 503))
def compare_versions(
    session: Db,
    ref: Ref,
    a: Annotated[str, _VERSION],
    b: Annotated[str, _VERSION],
    other: Annotated[str | None, Query(pattern=NAME_PATTERN, description="Model of b, where it is another.")] = None,
    dataset: _Named = None,
    part: Annotated[Part | None, Query(description="By default that of the newest evaluations.")] = None,
    confidence: Annotated[float, Query(gt=0, lt=1)] = 0.95,
    seed: Annotated[int, Query(ge=0, lt=2**31, description="Of the bootstrap.")] = 0,
) -> Comparison:
    """Paired tests between two versions: McNemar's, and a bootstrap of each measure.

    They are of the newest evaluations of both on the same part of one dataset and along the same label tree, and of the
    rows that are in both. Where there are none, 404 says which is missing: a job of kind `evaluate` makes it.
    """
    return comparisons.compare(session, Side(ref, a), Side(other or ref, b), dataset, part, confidence, seed)
