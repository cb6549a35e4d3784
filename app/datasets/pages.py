"""Pages of datasets, and the upload form."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from app.access.authentication import VIEWER
from app.datasets import rows as dataset_rows
from app.datasets import service as datasets
from app.datasets.formats import EXTENSIONS, FORMATS
from app.datasets.import_options import formats_of
from app.datasets.schemas import ImportOptions
from app.figures.distribution_charts import intervals, overlaps, spreads
from app.http.parameters import Db, PageToken, Ref
from app.models import service as models
from app.web.rendering import Call, render
from app.web.routing import pages


@dataclass(frozen=True)
class ImportField:
    """One form field: its option, label, description, formats and input type."""

    name: str
    label: str
    hint: str
    formats: str
    kind: str
    choices: tuple[tuple[str, str], ...]
    placeholder: str


def import_fields() -> dict[str, ImportField]:
    """All options by name. An empty value means the default, which is not sent."""
    properties = ImportOptions.model_json_schema()["properties"]
    return {name: _field(name, schema) for name, schema in properties.items()}


def _field(name: str, schema: dict[str, Any]) -> ImportField:
    # of an option that may be left out, what it is where it is given
    given = {**next((each for each in schema.get("anyOf", []) if each["type"] != "null"), {}), **schema}
    kind = {"array": "lines", "boolean": "choice"}.get(given["type"], "choice" if "enum" in given else "line")
    default = given["default"]
    choices: list[tuple[str, str]] = []
    if given["type"] == "boolean":
        choices = [("", _yes(default)), (str(not default).lower(), _yes(not default))]
    elif kind == "choice":
        choices = [("", default or "default"), *((each, each) for each in given["enum"] if each != default)]
    formats = " ".join(sorted(formats_of(name)))
    placeholder = default if kind == "line" and default else ""
    label = name.replace("_", " ").capitalize()
    return ImportField(name, label, given["description"], formats, kind, tuple(choices), placeholder)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


router = pages()

_FORMATS = [
    ("", "by its content"),
    *((each.name, each.title) for each in sorted(FORMATS.values(), key=lambda each: each.title.casefold())),
]
PAGE_SIZE, N_ROWS, N_CLASSES, MOST_OFFERED = 50, 20, 1000, 1000


@router.get("/datasets", dependencies=[VIEWER])
def list_datasets(request: Request, session: Db, page_token: PageToken = None, old_failures: bool = False) -> Response:
    """All datasets, with the upload form."""
    page = datasets.page(session, PAGE_SIZE, page_token, old_failures)
    n_folded = 0 if old_failures else datasets.n_folded(session)
    call = Call(f"/datasets?page_size={PAGE_SIZE}", f"client.datasets.list({PAGE_SIZE})")
    given: dict[str, Any] = {"formats": _FORMATS, "extensions": EXTENSIONS, "fields": import_fields(), "call": call}
    return render(request, "datasets.html", page=page, n_folded=n_folded, **given)


@router.get("/datasets/{ref}", dependencies=[VIEWER])
def show_dataset(
    request: Request, session: Db, ref: Ref, offset: Annotated[int, Query(ge=0, lt=2**63)] = 0
) -> Response:
    """One dataset: its counts, classes and some rows, or the faults of its file."""
    dataset = datasets.get(session, ref)
    ready = dataset.state == "ready"
    statistics = dataset_rows.statistics(session, ref, 0, N_CLASSES) if ready else None
    rows = dataset_rows.rows(session, ref, offset, N_ROWS) if ready else None
    # only editors start jobs with models; those trained on these rows come first
    offers = ready and request.state.key.role in ("editor", "admin")
    trained = [each for each in models.page(session, MOST_OFFERED).items if each.latest is not None] if offers else []
    trained.sort(key=lambda each: each.latest is None or each.latest.dataset != dataset.id)
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
        text_columns=[each.name for each in (statistics and statistics.columns) or [] if each.role == "text"],
        spreads=spreads(dataset.kind, statistics) if statistics else [],
        overlaps=overlaps(statistics) if statistics else [],
        intervals=intervals,
        extensions=EXTENSIONS,
        models=trained,
        call=call,
    )
