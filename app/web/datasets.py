"""Datasets: uploading one, and what is in it."""

from typing import Annotated, get_args

from fastapi import Query, Request
from starlette.responses import Response

from app.api.access.auth import VIEWER
from app.api.common.parameters import Db, PageToken, Ref
from app.schemas.datasets.datasets import DatasetFormat
from app.services.datasets import dataset_rows, datasets
from app.services.pictures.spread import intervals, overlaps, spreads
from app.web.import_fields import import_fields
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()

_FORMATS = [("", "by its content"), *((name, name) for name in get_args(DatasetFormat))]
PAGE_SIZE, N_ROWS, N_CLASSES = 50, 20, 1000


@router.get("/datasets", dependencies=[VIEWER])
def list_datasets(request: Request, session: Db, page_token: PageToken = None) -> Response:
    """All datasets, and the form to upload another."""
    page = datasets.page(session, PAGE_SIZE, page_token)
    call = Call(f"/datasets?page_size={PAGE_SIZE}", f"client.datasets.list({PAGE_SIZE})")
    return render(request, "datasets.html", page=page, formats=_FORMATS, fields=import_fields(), call=call)


@router.get("/datasets/{ref}", dependencies=[VIEWER])
def show_dataset(
    request: Request, session: Db, ref: Ref, offset: Annotated[int, Query(ge=0, lt=2**63)] = 0
) -> Response:
    """One dataset: its numbers, its classes and some of its rows, or the faults of its file."""
    dataset = datasets.get(session, ref)
    ready = dataset.state == "ready"
    statistics = dataset_rows.statistics(session, ref, 0, N_CLASSES) if ready else None
    rows = dataset_rows.rows(session, ref, offset, N_ROWS) if ready else None
    call = Call(f"/datasets/{dataset.name}", f"client.datasets.get({dataset.name!r})")
    if ready:
        python = f"client.datasets.statistics({dataset.name!r})"
        call = Call(f"/datasets/{dataset.name}/statistics", python)
    return render(
        request,
        "dataset.html",
        dataset=dataset,
        statistics=statistics,
        rows=rows,
        offset=offset,
        n_rows=N_ROWS,
        spreads=spreads(dataset.kind, statistics) if statistics else [],
        overlaps=overlaps(statistics) if statistics else [],
        intervals=intervals,
        call=call,
    )
