"""Tunings: asking for one, and its leaderboard as trials come to their ends."""

from typing import Annotated, get_args

from fastapi import Query, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.access.authentication import VIEWER
from app.datasets import service as datasets
from app.datasets.schemas import Dataset
from app.errors import NotFound
from app.hierarchies import service as hierarchies
from app.http.parameters import Db, Id, PageToken
from app.jobs import service as jobs
from app.jobs.request_schemas import Measure
from app.jobs.routes import list_solvers
from app.jobs.schemas import FINAL_STATES
from app.schemas import NAME_PATTERN
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()

PAGE_SIZE = 20
MOST_OFFERED = 1000
# without parameters that must be given, and quick enough to be tried many times
_USUAL = ("one_vs_rest", "crammer_singer", "softmax")


@router.get("/tune", dependencies=[VIEWER])
def show_tune(
    request: Request,
    session: Db,
    dataset: Annotated[str | None, Query(pattern=NAME_PATTERN)] = None,
    page_token: PageToken = None,
) -> Response:
    """The form for a tuning, and those that there were."""
    page = jobs.page(session, PAGE_SIZE, page_token, kind="tune")
    ready = _ready(session)
    chosen = next((each for each in ready if dataset in (each.id, each.name)), ready[0] if ready else None)
    name = chosen.name if chosen else "papers"
    space = [{"solver": _USUAL[0], "grid": {"C": [0.1, 1, 10]}}]
    return render(
        request,
        "tune.html",
        page=page,
        datasets=ready,
        chosen=chosen,
        names=datasets.names(session, (job.dataset for job in page.items)),
        hierarchies=hierarchies.page(session, MOST_OFFERED).items,
        solvers=list_solvers().items,
        usual=_USUAL,
        measures=get_args(Measure),
        call=Call(
            "/jobs",
            f"client.tune({name!r}, {name!r}, {space!r})",
            "POST",
            {"kind": "tune", "dataset": name, "model": name, "space": space},
        ),
    )


@router.get("/tune/{id}", dependencies=[VIEWER])
def show_tuning(request: Request, session: Db, id: Id) -> Response:
    """One tuning: its leaderboard, the measure against time, and the settings side by side."""
    job = jobs.get(session, id)
    if job.kind != "tune":
        raise NotFound("There is no such tuning.")
    return render(
        request,
        "tuning.html",
        job=job,
        final=job.state in FINAL_STATES,
        names=datasets.names(session, [job.dataset]),
        call=Call(f"/jobs/{id}/trials", f"client.jobs.get({id!r}).trials()"),
    )


def _ready(session: Session) -> list[Dataset]:
    return [each for each in datasets.page(session, MOST_OFFERED).items if each.state == "ready" and each.n_classes]
