"""The first page: what goes on, and the way to a first prediction."""

from fastapi import Request
from starlette.responses import Response

from app.api.auth import VIEWER
from app.api.parameters import Db
from app.services import datasets
from app.services.status import status
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()


@router.get("/", dependencies=[VIEWER])
def show_overview(request: Request, session: Db) -> Response:
    """Running jobs with their curves, queues, room, and what wants attention."""
    found = status(session)
    waiting = [*found.queued, *(running.job for running in found.running)]
    named = datasets.names(session, (job.dataset for job in waiting))
    return render(request, "overview.html", status=found, datasets=named, call=Call("/status", "client.status()"))
