"""Asking for a model, and asking a model."""

from typing import Annotated, Any, get_args

from fastapi import Query, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.api.access.auth import EDITOR, VIEWER
from app.api.common.parameters import Db
from app.api.jobs.solvers import list_solvers
from app.schemas.common.names import NAME_PATTERN
from app.schemas.datasets.tables import ColumnRecipe
from app.schemas.datasets.texts import STOP_LANGUAGES, Stemmer
from app.schemas.models.models import Model, ModelVersion
from app.services.datasets import datasets
from app.services.hierarchies import hierarchies
from app.services.models import models, warm_starts
from app.services.predictions import explanations
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()

MOST_OFFERED = 1000
# fields of a request that the form has
_FILLED = ("solver", "params", "seed", "threads", "test_fraction", "text", "columns")
_Named = Annotated[str | None, Query(pattern=NAME_PATTERN)]


@router.get("/train", dependencies=[EDITOR])
def show_train(
    request: Request,
    session: Db,
    dataset: _Named = None,
    model: _Named = None,
    version: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
) -> Response:
    """The form for a training job: a dataset and a name are enough; a version of a model fills it as it was trained."""
    ready = [each for each in datasets.page(session, MOST_OFFERED).items if each.state == "ready"]
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


@router.get("/playground", dependencies=[VIEWER])
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
        kind=_kind(session, chosen),
        unexplained=""
        if chosen is None
        else explanations.unexplained(request.app.state.models, request.state.key.workspace, chosen.id, version),
        example_of=chosen.latest.dataset if chosen and chosen.latest else None,
        call=Call(f"/models/{name}/predict", python, "POST", body),
    )


def _kind(session: Session, model: Model | None) -> str:
    """Whether the latest version was trained on texts or on features; texts where that is not known any more."""
    id = None if model is None or model.latest is None else model.latest.dataset
    return "text" if id is None else datasets.get(session, id).kind or "text"


def _again(session: Session, version: ModelVersion, dataset: str) -> dict[str, Any]:
    """What the form begins with: how the version was trained and, where it can be begun from, the version itself."""
    before = {name: version.request[name] for name in _FILLED if version.request.get(name) is not None}
    if version.hierarchy is not None:
        before["hierarchy"] = hierarchies.get(session, version.hierarchy).name
    begins = version.dataset == dataset and version.request.get("path") is None
    if begins and warm_starts.keeps_duals(session, version.model, version.version):
        before |= {"warm_start": f"{version.model}@{version.version}", "keep_duals": True}
    return before
