"""Pages of jobs, the training form and the playground."""

from typing import Annotated, Any, get_args

from fastapi import Query, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.access.authentication import EDITOR, VIEWER
from app.datasets import service as datasets
from app.datasets.recipe_schemas import STOP_LANGUAGES, ColumnRecipe, Stemmer
from app.hierarchies import service as hierarchies
from app.http.parameters import Db, Id, PageToken
from app.jobs import service as jobs
from app.jobs.routes import list_solvers
from app.jobs.schemas import FINAL_STATES, JobState
from app.models import service as models
from app.models import warm_starts
from app.models.schemas import Model, ModelVersion
from app.operation.readiness import count_by_state
from app.predictions import explanations
from app.schemas import NAME_PATTERN
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()

PAGE_SIZE = 50
STATES: tuple[JobState, ...] = ("running", "queued", "succeeded", "failed", "cancelling", "cancelled")


@router.get("/jobs", dependencies=[VIEWER])
def list_jobs(
    request: Request, session: Db, state: Annotated[JobState | None, Query()] = None, page_token: PageToken = None
) -> Response:
    """List all jobs, or the jobs in one state."""
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
    """Show one job: convergence, trials, log and result."""
    job, principal = jobs.get(session, id), request.state.key
    own = principal.role == "clerk" and job.owner == principal.name and job.kind in ("predict", "import")
    return render(
        request,
        "job.html",
        job=job,
        final=job.state in FINAL_STATES,
        may_change=own or principal.role in ("editor", "admin"),
        # the kind of rows that the page lists
        listed=job.kind if job.state == "succeeded" and job.kind in ("wrong_labels", "suggest_rows") else None,
        datasets=datasets.names(session, [job.dataset]),
        call=Call(f"/jobs/{id}/steps", f"client.jobs.get({id!r}).steps()"),
    )


training_router = pages()

MOST_OFFERED = 1000
# fields of a request that the form has
_FILLED = ("solver", "params", "seed", "threads", "test_fraction", "text", "columns", "every_c")
_Named = Annotated[str | None, Query(pattern=NAME_PATTERN)]


@training_router.get("/train", dependencies=[EDITOR])
def show_train(
    request: Request,
    session: Db,
    dataset: _Named = None,
    model: _Named = None,
    version: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
) -> Response:
    """Show the training form; a model version fills it with that version's settings."""
    ready = [each for each in datasets.page(session, MOST_OFFERED).items if each.state == "ready" and each.n_classes]
    chosen = next((each for each in ready if dataset in (each.id, each.name)), ready[0] if ready else None)
    name = chosen.name if chosen else "papers"
    body = {"kind": "train", "dataset": name, "model": model or name, "solver": "auto"}
    again = None
    if model is not None and version is not None and chosen is not None:
        again = _again(session, models.version(session, model, version), chosen.id)
    return render(
        request,
        "train.html",
        datasets=ready,
        chosen=chosen,
        model=model or name,
        again=again,
        hierarchies=hierarchies.page(session, MOST_OFFERED).items,
        solvers=list_solvers().items,
        stemmers=get_args(Stemmer),
        stop_languages=STOP_LANGUAGES,
        scalings=get_args(ColumnRecipe.model_fields["scaling"].annotation),
        call=Call("/jobs", f"client.train({name!r}, {model or name!r})", "POST", body),
    )


@training_router.get("/playground", dependencies=[VIEWER])
def show_playground(
    request: Request,
    session: Db,
    model: _Named = None,
    version: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
    threshold: Annotated[float | None, Query(ge=0, le=1)] = None,
) -> Response:
    """A model to be asked about texts of one's own."""
    found = [each for each in models.page(session, MOST_OFFERED).items if each.latest is not None]
    chosen = next((each for each in found if model in (each.id, each.name)), found[0] if found else None)
    name = chosen.name if chosen else "papers"
    body: dict[str, object] = {"instances": [{"text": "..."}], "top_k": 5, "explain": 12}
    python = f"client.predict({name!r}, ['...'], top_k=5, explain=12)"
    return render(
        request,
        "playground.html",
        models=found,
        chosen=chosen,
        version=version,
        threshold=threshold,
        kind=_kind(session, chosen, version),
        unexplained=""
        if chosen is None
        else explanations.unexplained(request.app.state.models, request.state.key.workspace, chosen.id, version),
        example_of=chosen.latest.dataset if chosen and chosen.latest else None,
        call=Call(f"/models/{name}/predict", python, "POST", body),
    )


def _kind(session: Session, model: Model | None, number: int | None) -> str:
    """Return the kind of instances of a version, by default the latest; a table where text columns are read apart."""
    if model is None or model.latest is None:
        return "text"
    version = models.version(session, model.id, number) if number in model.versions else model.latest
    if version.id in models.of_texts(session, [version]):
        return "text"
    kind = "text" if version.dataset is None else datasets.get(session, version.dataset).kind
    return "table" if kind in (None, "text") else kind


def _again(session: Session, version: ModelVersion, dataset: str) -> dict[str, Any]:
    """Return the initial values of the form: the version's settings and, if possible, the version as the warm start."""
    before = {name: version.request[name] for name in _FILLED if version.request.get(name) is not None}
    if version.hierarchy is not None:
        before["hierarchy"] = hierarchies.get(session, version.hierarchy).name
    alone = version.request.get("path") is None and version.request.get("every_c") is None
    begins = version.dataset == dataset and alone
    if begins and warm_starts.keeps_duals(session, version.model, version.version):
        before |= {"warm_start": f"{version.model}@{version.version}", "keep_duals": True}
    return before
