"""Jobs: the list, and each one as it goes on."""

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from app.api.access.auth import VIEWER
from app.api.common.parameters import Db, Id, PageToken
from app.schemas.jobs.jobs import FINAL_STATES, JobState
from app.services.datasets import datasets
from app.services.jobs import jobs
from app.services.operation.readiness import count_by_state
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()

PAGE_SIZE = 50
STATES: tuple[JobState, ...] = ("running", "queued", "succeeded", "failed", "cancelling", "cancelled")


@router.get("/jobs", dependencies=[VIEWER])
def list_jobs(
    request: Request, session: Db, state: Annotated[JobState | None, Query()] = None, page_token: PageToken = None
) -> Response:
    """All jobs, or those of one state."""
    page = jobs.page(session, PAGE_SIZE, page_token, state)
    asked = f"?page_size={PAGE_SIZE}" + (f"&state={state}" if state else "")
    return render(
        request,
        "jobs.html",
        page=page,
        wanted=state,
        states=STATES,
        n_jobs=count_by_state(session),
        datasets=datasets.names(session, (job.dataset for job in page.items)),
        call=Call(f"/jobs{asked}", f"client.jobs.list({PAGE_SIZE}{f', state={state!r}' if state else ''})"),
    )


@router.get("/jobs/{id}", dependencies=[VIEWER])
def show_job(request: Request, session: Db, id: Id) -> Response:
    """One job: its curve, its trials, its log, and what it made."""
    job = jobs.get(session, id)
    return render(
        request,
        "job.html",
        job=job,
        final=job.state in FINAL_STATES,
        datasets=datasets.names(session, [job.dataset]),
        call=Call(f"/jobs/{id}/steps", f"client.jobs.get({id!r}).steps()"),
    )
