"""Routes of jobs and solvers."""

import inspect
import sys
from dataclasses import asdict
from functools import lru_cache, partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from app.access.authentication import CLERK, VIEWER, authorize
from app.curation.schemas import SuggestRowsRequest, WrongLabelsRequest
from app.errors import InvalidInput, Malformed, NotFound
from app.evaluations.schemas import EvaluateRequest
from app.http.bodies import Body, KindBody, parse_object
from app.http.parameters import V1, Db, Id, Once, PageSize, PageToken, Ref, opened, point_to
from app.http.problems import responses
from app.jobs import logs as job_logs
from app.jobs import plans, tunings
from app.jobs import service as jobs
from app.jobs.events import MEDIA_TYPE, follow
from app.jobs.plan_schemas import JobPlan
from app.jobs.request_schemas import AdoptRequest, CompressRequest, Trial, TuneRequest
from app.jobs.schemas import (
    Handles,
    Job,
    JobKind,
    JobLog,
    JobPatch,
    JobRequest,
    JobState,
    JobSteps,
    SolverInfo,
    SolverList,
    TrainRequest,
)
from app.predictions import batch_predictions
from app.predictions.schemas import BatchPredictRequest, PredictionPlan
from app.schemas import Page
from app.store import tables
from app.store.idempotency import fingerprint, idempotent
from solvers.core.base import Solver
from solvers.registry import SOLVERS, UnknownSolverError, find

router = APIRouter(prefix=f"{V1}/jobs", tags=["jobs"])

_planned = KindBody(TrainRequest, {"predict": BatchPredictRequest})
_any = KindBody(
    TrainRequest,
    {
        "tune": TuneRequest,
        "evaluate": EvaluateRequest,
        "predict": BatchPredictRequest,
        "compress": CompressRequest,
        "adopt": AdoptRequest,
        "suggest_rows": SuggestRowsRequest,
        "wrong_labels": WrongLabelsRequest,
    },
)


async def _role_of_kind(request: Request) -> None:
    """Refuse viewers with the role that the kind of their job needs, which is a clerk's for predictions only."""
    if (await authorize(request, "viewer")).role == "viewer":
        try:
            kind = (await run_in_threadpool(parse_object, await request.body())).get("kind")
        except (InvalidInput, Malformed):
            kind = None
        await authorize(request, "clerk" if kind == "predict" else "editor")


@router.post("", status_code=202, dependencies=[Depends(_role_of_kind), CLERK], responses=responses(404, 409))
def submit_job(session: Db, response: Response, token: Once, body: Annotated[JobRequest, Depends(_any)]) -> Job:
    """Submit a job: `train` trains a new version of a model, `tune` trains the best of many settings, `evaluate`
    measures a version, `predict` predicts the rows of a dataset, `compress` makes a smaller copy of a version, `adopt`
    adopts an edition of a vocabulary, `suggest_rows` selects rows to label, and `wrong_labels` finds labels that are
    probably wrong."""
    with idempotent(session, token, fingerprint("jobs", body.model_dump_json()), tables.Job) as before:
        job = jobs.get(session, before) if before else jobs.submit(session, body)
    point_to(response, f"{V1}/jobs/{job.id}", before)
    return job


@router.post("/plan", dependencies=[VIEWER], responses=responses(403, 404, 409, 507))
def plan_job(
    session: Db, request: Request, body: Annotated[TrainRequest | BatchPredictRequest, Depends(_planned)]
) -> JobPlan | PredictionPlan:
    """Estimate a job; nothing is queued. For a training: shards, memory and the time of earlier jobs. For a prediction
    with a threshold or a precision: the number of rows with a sure label, and the number of correct ones among them."""
    if isinstance(body, BatchPredictRequest):
        return batch_predictions.plan(session, request.app.state.models, body)
    return plans.plan(session, body)


@router.get("", dependencies=[VIEWER])
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
    """List jobs without trials, newest first."""
    return jobs.page(session, page_size, page_token, state, tag, kind)


@router.get("/{id}", dependencies=[VIEWER])
def get_job(session: Db, id: Id) -> Job:
    """Get a job with its state, progress, and result or error."""
    return jobs.get(session, id)


@router.patch("/{id}", dependencies=[CLERK], responses=responses(409))
def change_job(session: Db, id: Id, body: Body[JobPatch]) -> Job:
    """Change a job's tags, or the priority of a queued job."""
    return jobs.change(session, id, body)


@router.post("/{id}/cancel", dependencies=[CLERK], responses=responses(409))
def cancel_job(session: Db, id: Id) -> Job:
    """Cancel a job; a running job stops at its next step."""
    return jobs.cancel(session, id)


@router.post("/{id}/retry", dependencies=[CLERK], responses=responses(409))
def retry_job(session: Db, id: Id) -> Job:
    """Retry a failed or cancelled job from its last checkpoint."""
    return jobs.retry(session, id)


@router.get("/{id}/steps", dependencies=[VIEWER])
def get_steps(
    session: Db,
    id: Id,
    after: Annotated[int, Query(ge=-1, lt=2**31, description="Only steps with a larger number.")] = -1,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> JobSteps:
    """Get the convergence curve of a job."""
    return job_logs.steps(session, id, after, limit)


@router.get("/{id}/trials", dependencies=[VIEWER], responses=responses(409))
def list_trials(session: Db, id: Id, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Trial]:
    """Get the leaderboard of a tuning: the best trials first, then trials without a measure, then earlier rounds."""
    return tunings.trials(session, id, page_size, page_token)


@router.get("/{id}/log", dependencies=[VIEWER])
def get_log(
    session: Db,
    id: Id,
    after: Annotated[str | None, Query(pattern="^[0-9a-f]{32}$", description="Only lines after this id.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> JobLog:
    """Get the log of a job, oldest first; the newest thousand lines are kept."""
    return job_logs.read(session, id, after, limit)


@router.get(
    "/{id}/events",
    dependencies=[VIEWER],
    response_class=StreamingResponse,
    responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}},
)
async def follow_job(
    request: Request,
    id: Id,
    last_event_id: Annotated[
        int, Header(ge=-1, lt=2**31, description="Number of the last step that the client received.")
    ] = -1,
) -> Response:
    """Stream server-sent events until the job ends: `step` (the id is the step number) and `state` (the job)."""
    await run_in_threadpool(_must_exist, request, id)
    events = follow(request, partial(opened, request), id, last_event_id)
    return StreamingResponse(events, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})


def _must_exist(request: Request, id: str) -> None:
    with opened(request) as session:
        jobs.get(session, id)


solvers_router = APIRouter(prefix=f"{V1}/solvers", tags=["solvers"])


@solvers_router.get("", dependencies=[VIEWER])
def list_solvers() -> SolverList:
    """List all training methods with the JSON schemas of their parameters."""
    return SolverList(items=[_info(solver) for _, solver in sorted(SOLVERS.items())])


@solvers_router.get("/{name}", dependencies=[VIEWER])
def get_solver(name: Ref) -> SolverInfo:
    """Get a training method by name."""
    try:
        return _info(find(name))
    except UnknownSolverError as error:
        raise NotFound(str(error)) from None


@lru_cache
def _mathml(formula: str) -> str:
    # imported here: every process of the API would wait for its tables of symbols
    from latex2mathml.converter import convert

    return str(convert(formula, display="block"))


def _info(solver: type[Solver[Any]]) -> SolverInfo:
    return SolverInfo(
        name=solver.name,
        title=solver.title,
        summary=inspect.getdoc(sys.modules[solver.__module__]) or solver.title,
        formula=solver.formula or None,
        mathml=_mathml(solver.formula) if solver.formula else None,
        paper=solver.paper,
        handles=Handles(**asdict(solver.handles)),
        params_schema=solver.Params.model_json_schema(),
    )
