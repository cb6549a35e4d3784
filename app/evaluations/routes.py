"""Routes for evaluations, and for the comparison of versions by them."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.access.authentication import EDITOR, VIEWER
from app.evaluations import comparisons, service
from app.evaluations import service as evaluations
from app.evaluations.comparisons import Side
from app.evaluations.schemas import (
    Comparison,
    ComparisonRequest,
    ConfusedPairs,
    EvaluatedLabels,
    Evaluation,
    Mistakes,
    Part,
)
from app.evaluations.service import LabelOrder
from app.http.bodies import Body
from app.http.parameters import V1, Db, Id, PageSize, PageToken, Ref
from app.http.problems import responses
from app.jobs import comparing
from app.jobs.schemas import ComparisonJobs
from app.schemas import NAME_PATTERN, Page

router = APIRouter(prefix=f"{V1}", tags=["evaluations"])

_Named = Annotated[str | None, Query(pattern=NAME_PATTERN, description="Id or name.")]
_Level = Annotated[
    int | None,
    Query(
        ge=0,
        le=1000,
        description="Only this level of the label tree; 0 selects labels without a level. Default: all levels.",
    ),
]
_VERSION = Query(pattern=NAME_PATTERN, description="Version number or alias.")


@router.get("/evaluations", dependencies=[VIEWER], responses=responses(404))
def list_evaluations(
    session: Db,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    model: _Named = None,
    version: Annotated[int | None, Query(ge=1, lt=2**31, description="Version of the model.")] = None,
    dataset: _Named = None,
) -> Page[Evaluation]:
    """List evaluations, newest first, optionally of one model, version or dataset."""
    return evaluations.page(session, page_size, page_token, model=model, version=version, dataset=dataset)


@router.get("/evaluations/{id}", dependencies=[VIEWER])
def get_evaluation(session: Db, id: Id) -> Evaluation:
    """Get an evaluation: measures with intervals, and its provenance."""
    return evaluations.get(session, id)


@router.get("/evaluations/{id}/labels", dependencies=[VIEWER])
def get_evaluated_labels(
    session: Db,
    id: Id,
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    level: _Level = None,
    order: Annotated[
        LabelOrder, Query(description="Sort order; a - before the name sorts in descending order.")
    ] = "f1",
) -> EvaluatedLabels:
    """Get precision, recall, F1 and support of each true or predicted label."""
    return evaluations.labels(session, id, offset, limit, level, order)


@router.get("/evaluations/{id}/confusions", dependencies=[VIEWER])
def get_confusions(
    session: Db, id: Id, level: _Level = None, limit: Annotated[int, Query(ge=1, le=1000)] = 50
) -> ConfusedPairs:
    """List the most confused pairs of labels, by level."""
    return evaluations.confusions(session, id, level, limit)


@router.get("/evaluations/{id}/mistakes", dependencies=[VIEWER])
def get_mistakes(
    session: Db,
    id: Id,
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Mistakes:
    """List the largest errors of the version. Wrong labels among them can be corrected."""
    return service.mistakes(session, id, offset, limit)


@router.get("/models/{ref}/compare", dependencies=[VIEWER])
def compare_versions(
    session: Db,
    ref: Ref,
    a: Annotated[str, _VERSION],
    b: Annotated[str, _VERSION],
    other: Annotated[
        str | None, Query(pattern=NAME_PATTERN, description="Model of b, if it is a different model.")
    ] = None,
    dataset: _Named = None,
    part: Annotated[Part | None, Query(description="Default: that of the newest evaluations.")] = None,
    confidence: Annotated[float, Query(gt=0, lt=1)] = 0.95,
    seed: Annotated[int, Query(ge=0, lt=2**31, description="Seed of the bootstrap.")] = 0,
) -> Comparison:
    """Compare two versions by paired tests: McNemar's test, and a bootstrap of each measure.

    The tests use the newest evaluations of both versions on the same part of one dataset and along the same label tree,
    and only the rows that are in both. Without such evaluations the response is 404. A POST to the same path queues
    them.
    """
    return comparisons.compare(session, Side(ref, a), Side(other or ref, b), dataset, part, confidence, seed)


@router.post("/models/{ref}/compare", status_code=202, dependencies=[EDITOR], responses=responses(409))
def evaluate_versions(session: Db, ref: Ref, body: Body[ComparisonRequest]) -> ComparisonJobs:
    """Queue the missing evaluations for a comparison of two versions, on rows that neither was trained on.

    A repeated request queues nothing twice. The GET returns the comparison once the jobs have succeeded.
    """
    return ComparisonJobs(jobs=comparing.evaluate_both(session, ref, body))
