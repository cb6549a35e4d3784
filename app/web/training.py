"""Asking for a model, and asking a model."""

from typing import Annotated

from fastapi import Query, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.api.auth import EDITOR, VIEWER
from app.api.parameters import Db
from app.api.solvers import list_solvers
from app.schemas.models import Model
from app.schemas.names import NAME_PATTERN
from app.services import datasets, hierarchies, models
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()

MOST_OFFERED = 1000
_Named = Annotated[str | None, Query(pattern=NAME_PATTERN)]


@router.get("/train", dependencies=[EDITOR])
def show_train(request: Request, session: Db, dataset: _Named = None) -> Response:
    """The form for a training job: a dataset and a name are enough."""
    ready = [each for each in datasets.page(session, MOST_OFFERED).items if each.state == "ready"]
    chosen = next((each for each in ready if dataset in (each.id, each.name)), ready[0] if ready else None)
    name = chosen.name if chosen else "papers"
    body = {"kind": "train", "dataset": name, "model": name, "solver": "auto"}
    return render(
        request,
        "train.html",
        datasets=ready,
        chosen=chosen,
        hierarchies=hierarchies.page(session, MOST_OFFERED).items,
        solvers=list_solvers().items,
        call=Call("/jobs", f"client.train({name!r}, {name!r})", "POST", body),
    )


@router.get("/playground", dependencies=[VIEWER])
def show_playground(request: Request, session: Db, model: _Named = None) -> Response:
    """A model to be asked about texts of one's own."""
    found = [each for each in models.page(session, MOST_OFFERED).items if each.latest is not None]
    chosen = next((each for each in found if model in (each.id, each.name)), found[0] if found else None)
    name = chosen.name if chosen else "papers"
    body: dict[str, object] = {"instances": [{"text": "..."}], "top_k": 5}
    python = f"client.predict({name!r}, ['...'], top_k=5)"
    return render(
        request,
        "playground.html",
        models=found,
        chosen=chosen,
        kind=_kind(session, chosen),
        example_of=chosen.latest.dataset if chosen and chosen.latest else None,
        call=Call(f"/models/{name}/predict", python, "POST", body),
    )


def _kind(session: Session, model: Model | None) -> str:
    """Whether the latest version was trained on texts or on features; texts where that is not known any more."""
    id = None if model is None or model.latest is None else model.latest.dataset
    return "text" if id is None else datasets.get(session, id).kind or "text"
