"""Routes for jobs."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from app.api.access.auth import EDITOR, VIEWER
from app.api.common.bodies import JsonBody, KindBody
from app.api.common.parameters import Db, Id, Once, PageSize, PageToken, opened
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.api.common.queued import queue_once
from app.api.jobs.events import MEDIA_TYPE, follow
from app.schemas.common.pages import Page
from app.schemas.evaluations import EvaluateRequest
from app.schemas.jobs.compression import CompressRequest
from app.schemas.jobs.jobs import Job, JobKind, JobLog, JobPatch, JobRequest, JobState, JobSteps, TrainRequest
from app.schemas.jobs.plans import JobPlan
from app.schemas.jobs.tuning import Trial, TuneRequest
from app.schemas.predictions.batch_predictions import BatchPredictRequest
from app.services.engine import job_logs, job_steps
from app.services.jobs import jobs, plans, tunings

router = APIRouter(prefix=f"{V1}/jobs", tags=["jobs"])

_train = JsonBody(TrainRequest)
_patch = JsonBody(JobPatch)
_any = KindBody(
    TrainRequest,
    {
        "tune": TuneRequest,
        "evaluate": EvaluateRequest,
        "predict": BatchPredictRequest,
        "compress": CompressRequest,
    },
)


@router.post(
    "",
    status_code=202,
    dependencies=[EDITOR],
    openapi_extra=_any.schema,
    responses=responses(400, 401, 403, 404, 409, 413, 415, 422, 507),
)
def submit_job(session: Db, response: Response, token: Once, body: Annotated[JobRequest, Depends(_any)]) -> Job:
    """Submit a job: `train` gives its model a new version when it has succeeded, `tune` the best of many, `evaluate`
    measures a version, `predict` lets one answer to a dataset, and `compress` gives one a smaller copy."""
    asked = "jobs", body.model_dump_json()
    return queue_once(session, response, token, asked, lambda: jobs.submit(session, body))


@router.post(
    "/plan",
    dependencies=[VIEWER],
    openapi_extra=_train.schema,
    responses=responses(400, 401, 403, 404, 409, 413, 415, 422, 507),
)
def plan_job(session: Db, body: Annotated[TrainRequest, Depends(_train)]) -> JobPlan:
    """What a training job would take: its shards, its memory, and how long earlier ones took; nothing is queued."""
    return plans.plan(session, body)


@router.get("", dependencies=[VIEWER], responses=responses(401, 422))
def list_jobs(
    session: Db,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    state: JobState | None = None,
    tag: Annotated[
        str | None, Query(max_length=400, description="Only jobs with this tag: its name, or NAME=VALUE.")
    ] = None,
    kind: Annotated[JobKind | None, Query(description="Only jobs of this kind.")] = None,
) -> Page[Job]:
    """Jobs but trials, newest first."""
    return jobs.page(session, page_size, page_token, state, tag, kind)


@router.get("/{id}", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_job(session: Db, id: Id) -> Job:
    """A job: its state, its progress, and what it made or why it failed."""
    return jobs.get(session, id)


@router.patch(
    "/{id}",
    dependencies=[EDITOR],
    openapi_extra=_patch.schema,
    responses=responses(400, 401, 403, 404, 409, 413, 415, 422, 507),
)
def change_job(session: Db, id: Id, body: Annotated[JobPatch, Depends(_patch)]) -> Job:
    """Change a job's tags, and the priority of one that is queued."""
    return jobs.change(session, id, body)


@router.post("/{id}/cancel", dependencies=[EDITOR], responses=responses(401, 403, 404, 409, 422, 507))
def cancel_job(session: Db, id: Id) -> Job:
    """Cancel a job; one that runs stops at its next step."""
    return jobs.cancel(session, id)


@router.post("/{id}/retry", dependencies=[EDITOR], responses=responses(401, 403, 404, 409, 422, 507))
def retry_job(session: Db, id: Id) -> Job:
    """Queue a failed or cancelled job again; it goes on from its last checkpoint."""
    return jobs.retry(session, id)


@router.get("/{id}/steps", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_steps(
    session: Db,
    id: Id,
    after: Annotated[int, Query(ge=-1, lt=2**31, description="Only steps with a larger number.")] = -1,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> JobSteps:
    """The convergence curve of a job."""
    return job_steps.steps(session, id, after, limit)


@router.get("/{id}/trials", dependencies=[VIEWER], responses=responses(401, 404, 409, 422))
def list_trials(session: Db, id: Id, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Trial]:
    """The leaderboard of a tuning: the best trials first, then those without a measure, then earlier rounds."""
    return tunings.trials(session, id, page_size, page_token)


@router.get("/{id}/log", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_log(
    session: Db,
    id: Id,
    after: Annotated[
        str | None, Query(pattern="^[0-9a-f]{32}$", description="Only lines after the one with this id.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> JobLog:
    """What workers have noted of a job, oldest first; the newest thousand lines are kept."""
    return job_logs.read(session, id, after, limit)


@router.get(
    "/{id}/events",
    dependencies=[VIEWER],
    response_class=StreamingResponse,
    responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}, **responses(401, 404, 422)},
)
async def follow_job(
    request: Request,
    id: Id,
    last_event_id: Annotated[int, Header(ge=-1, lt=2**31, description="The last step's number that was seen.")] = -1,
) -> Response:
    """Server-sent events until the job is over: `step` (its id is the step's number) and `state`, the job as it is."""
    await run_in_threadpool(_must_exist, request, id)
    events = follow(request, partial(opened, request), id, last_event_id)
    return StreamingResponse(events, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})


def _must_exist(request: Request, id: str) -> None:
    with opened(request) as session:
        jobs.get(session, id)
