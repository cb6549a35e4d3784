"""The first page: what goes on, and the way to a first prediction."""

from fastapi import Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.access.authentication import VIEWER
from app.datasets import service as datasets
from app.errors import NotFound
from app.hierarchies import examples
from app.http.parameters import Db
from app.jobs import service as jobs
from app.models import service as models
from app.operation.schemas import Status
from app.operation.status import status
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()


@router.get("/", dependencies=[VIEWER])
def show_overview(request: Request, session: Db) -> Response:
    """Running jobs with their curves, queues, room, and what wants attention."""
    found = status(session)
    waiting = [*found.queued, *(running.job for running in found.running)]
    ids = [fault.id for fault in found.attention if fault.kind == "job_failed" and fault.id is not None]
    failed = jobs.several(session, ids) if ids else {}
    named = datasets.names(session, (job.dataset for job in (*waiting, *failed.values())))
    return render(
        request,
        "overview.html",
        failed=failed,
        status=found,
        tour=_tour(session, found),
        datasets=named,
        call=Call("/status", "client.status()"),
    )


def _tour(session: Session, found: Status) -> dict[str, str] | None:
    """How far the way to a first prediction has been gone, step by step; None where others have begun."""
    if found.n_datasets > 1 or found.n_models > 1:
        return None
    try:
        dataset = datasets.get(session, examples.NAME) if found.n_datasets else None
    except NotFound:
        return None
    ready = dataset is not None and dataset.state == "ready"
    try:
        trained = bool(models.get(session, examples.NAME).versions)
    except NotFound:
        trained = False
    jobs = [job.id for job in (*(each.job for each in found.running), *found.queued) if job.kind == "train"]
    return {
        "data": "done" if ready else "wait" if dataset is not None else "now",
        "train": "done" if trained or jobs else "now" if ready else "later",
        "watch": "done" if trained else "now" if jobs else "later",
        "ask": "now" if trained else "later",
        "job": jobs[0] if jobs else "",
        "import": dataset.job or "" if dataset is not None else "",
    }
