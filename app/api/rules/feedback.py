"""Routes for feedback: the right labels of what a model has answered, and rows made of them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from app.api.access.auth import EDITOR, VIEWER
from app.api.common.bodies import JsonBody
from app.api.common.parameters import Db, Id, Once, PageSize, PageToken, Ref, point_to
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.api.common.queued import queue_once
from app.schemas.common.pages import Page
from app.schemas.jobs.jobs import Job
from app.schemas.rules.feedback import Feedback, FeedbackRequest, FeedbackRowsRequest
from app.services.common.idempotency import fingerprint, once
from app.services.predictions.model_cache import ModelCache
from app.services.rules import feedback
from app.services.rules.feedback_rows import append_feedback
from app.store import tables

router = APIRouter(prefix=f"{V1}/models/{{ref}}/feedback", tags=["predictions"])

_body, _rows = JsonBody(FeedbackRequest), JsonBody(FeedbackRowsRequest)


@router.post(
    "",
    status_code=201,
    dependencies=[EDITOR],
    openapi_extra=_body.schema,
    responses=responses(400, 401, 403, 404, 409, 413, 415, 422, 503, 507),
)
def report_feedback(
    request: Request,
    response: Response,
    session: Db,
    token: Once,
    ref: Ref,
    body: Annotated[FeedbackRequest, Depends(_body)],
) -> Feedback:
    """Tell the right labels of an instance; they are kept until rows are made of them, and afterwards."""
    cache: ModelCache = request.app.state.models
    loaded = cache.get((request.state.key.workspace, ref, body.version, None))
    reported, replayed = once(
        session,
        token,
        fingerprint("feedback", ref, body.model_dump_json(warnings=False)),
        tables.Feedback,
        lambda: feedback.report(session, loaded, body),
        lambda session, id: feedback.get(session, ref, id),
    )
    point_to(response, f"{V1}/models/{ref}/feedback/{reported.id}", replayed)
    return reported


@router.post(
    "/rows",
    status_code=202,
    dependencies=[EDITOR],
    openapi_extra=_rows.schema,
    responses=responses(400, 401, 403, 404, 409, 413, 415, 422, 507),
)
def append_feedback_rows(
    response: Response, session: Db, token: Once, ref: Ref, body: Annotated[FeedbackRowsRequest, Depends(_rows)]
) -> Job:
    """Append what waits of the feedback to a dataset; the job makes its next version."""
    asked = "feedback rows", ref, body.model_dump_json()
    return queue_once(session, response, token, asked, lambda: append_feedback(session, ref, body))


@router.get("", dependencies=[VIEWER], responses=responses(401, 404, 422))
def list_feedback(
    session: Db,
    ref: Ref,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    waiting: Annotated[bool | None, Query(description="Only what no rows were made of, or only the rest.")] = None,
) -> Page[Feedback]:
    """What was reported of a model, newest first."""
    return feedback.page(session, ref, page_size, page_token, waiting)


@router.get("/{id}", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_feedback(session: Db, ref: Ref, id: Id) -> Feedback:
    """One report."""
    return feedback.get(session, ref, id)


@router.delete("/{id}", status_code=204, dependencies=[EDITOR], responses=responses(401, 403, 404, 409, 422, 507))
def delete_feedback(session: Db, ref: Ref, id: Id) -> None:
    """Delete a report; a row that was made of it stays in its dataset."""
    feedback.remove(session, ref, id)
