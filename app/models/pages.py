"""Pages of models: versions, aliases, evaluations and comparisons."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import ValidationError
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.access.authentication import VIEWER
from app.datasets import service as datasets
from app.datasets.formats import EXTENSIONS
from app.datasets.pages import import_fields
from app.errors import NotFound
from app.evaluations import bands, comparisons
from app.evaluations import service as evaluations
from app.evaluations.comparisons import Side
from app.evaluations.schemas import ConfusedPair, Evaluation
from app.evaluations.service import LabelOrder
from app.hierarchies import nodes as hierarchy_nodes
from app.hierarchies import service as hierarchies
from app.hierarchies.label_facts import display_name
from app.http.parameters import Db, Number, PageToken, Ref
from app.jobs.schemas import stored_request
from app.models import aliases
from app.models import service as models
from app.models.schemas import ModelVersion, Selection
from app.predictions import answers, explanations, inspection
from app.rules import feedback
from app.rules import service as rules
from app.schemas import NAME_PATTERN
from app.web.rendering import Call, languages, render
from app.web.routing import pages

router = pages()

PAGE_SIZE, N_LABELS, N_PAIRS, N_FEEDBACK = 50, 50, 30, 20
_Version = Annotated[str | None, Query(pattern=NAME_PATTERN)]


@router.get("/models", dependencies=[VIEWER])
def list_models(request: Request, session: Db, page_token: PageToken = None) -> Response:
    """List all models with their latest versions."""
    page = models.page(session, PAGE_SIZE, page_token)
    call = Call(f"/models?page_size={PAGE_SIZE}", f"client.models.list({PAGE_SIZE})")
    of_sets = _of_sets(each.latest for each in page.items if each.latest)
    return render(request, "models.html", page=page, of_sets=of_sets, call=call)


@router.get("/models/{ref}", dependencies=[VIEWER])
def show_model(request: Request, session: Db, ref: Ref, page_token: PageToken = None) -> Response:
    """Show one model with its versions and aliases."""
    model = models.get(session, ref)
    versions = models.version_page(session, ref, PAGE_SIZE, page_token)
    call = Call(f"/models/{model.name}", f"client.models.get({model.name!r})")
    reported = feedback.page(session, ref, N_FEEDBACK, None, True)
    again = rules.of_model(session, model.id)
    newest = versions if page_token is None else models.version_page(session, ref, PAGE_SIZE)
    unconverged = {each.version: each.unconverged for each in newest.items if each.unconverged is not None}
    measured = [version for version in versions.items if "test" in version.metrics]
    rows = {version.version: _test_rows(_trained(session, ref, version)) for version in measured}
    # files are coded by the version that programs use, if there is one
    in_use = {alias.name: alias.version for alias in model.aliases}
    coding = in_use.get("production", model.versions[0] if model.versions else 0)
    workspace = request.state.key.workspace
    return render(
        request,
        "model.html",
        model=model,
        coding=coding,
        versions=versions,
        of_sets=_of_sets(versions.items),
        unconverged=unconverged,
        movable={alias.name for alias in model.aliases if aliases.may_move(session, alias.name)},
        newest_measured=measured[0].version if measured else None,
        elsewhere={number for number, drawn in rows.items() if drawn != rows[measured[0].version]},
        feedback=reported,
        rules=again,
        extensions=EXTENSIONS,
        encoding=import_fields()["encoding"],
        decimal=import_fields()["decimal"],
        has_probabilities=coding > 0
        and inspection.has_thresholds(request.app.state.models, workspace, model.id, coding),
        are_sets=coding > 0 and answers.are_sets(request.app.state.models, workspace, model.id, coding),
        call=call,
    )


@router.get("/models/{ref}/versions/{number}", dependencies=[VIEWER])
def show_version(
    request: Request,
    session: Db,
    ref: Ref,
    number: Number,
    evaluation: Annotated[str | None, Query(pattern=NAME_PATTERN)] = None,
    order: Annotated[LabelOrder, Query()] = "f1",
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
) -> Response:
    """Show one version: origin, evaluation and errors."""
    model, version = models.get(session, ref), models.version(session, ref, number)
    measured = evaluations.page(session, 100, model=model.name, version=number).items
    chosen = _chosen(measured, evaluation)
    name = model.name
    selection = models.selection(session, ref, number)
    confused = evaluations.confusions(session, chosen.id, None, N_PAIRS) if chosen else None
    pairs = confused.pairs if confused else []
    labels = evaluations.labels(session, chosen.id, offset, N_LABELS, None, order) if chosen else None
    names = {each.label: each.names for each in confused.labels} if confused else {}
    names |= {each.label: each.names for each in labels.labels} if labels else {}
    return render(
        request,
        "version.html",
        model=model,
        version=version,
        evaluations=measured,
        chosen=chosen,
        parted=bands.parted(chosen.measures) if chosen else None,
        band_columns=bands.COLUMNS,
        labels=labels,
        called=_called(request, names),
        hierarchy=None if version.hierarchy is None else hierarchies.get(session, version.hierarchy),
        pairs=pairs,
        levels=_levels(chosen, pairs),
        selection=selection,
        editions=_editions(session, version, selection),
        tells_probabilities=inspection.has_thresholds(
            request.app.state.models, request.state.key.workspace, model.id, number
        ),
        weighs=explanations.weighs_features(request.app.state.models, request.state.key.workspace, model.id, number),
        coded=inspection.is_coded(request.app.state.models, request.state.key.workspace, model.id, number),
        order=order,
        offset=offset,
        n_labels=N_LABELS,
        datasets=datasets.names(session, [version.dataset, *(each.dataset for each in measured)]),
        call=_source(session, name, number, chosen),
    )


@router.get("/models/{ref}/compare", dependencies=[VIEWER])
def compare_versions(request: Request, session: Db, ref: Ref, a: _Version = None, b: _Version = None) -> Response:
    """Compare two versions on their common evaluation rows."""
    model = models.get(session, ref)
    comparison, missing, names = None, None, {}
    if a is not None and b is not None:
        try:
            comparison = comparisons.compare(session, Side(ref, a), Side(ref, b), None, None, 0.95, 0)
            of = models.version(session, ref, comparison.b.version).hierarchy
            names = hierarchy_nodes.names_of(session, of, [each.label for each in comparison.labels])
        except NotFound as error:
            missing = error.detail
    newest = [str(number) for number in model.versions[:2]] or ["1"]
    first, second = a or newest[-1], b or newest[0]
    call = Call(
        f"/models/{model.name}/compare?a={first}&b={second}", f"client.compare({model.name!r}, {first!r}, {second!r})"
    )
    context: dict[str, Any] = {
        "comparison": comparison,
        "missing": missing,
        "called": _called(request, names),
        "call": call,
    }
    return render(request, "compare.html", model=model, a=first, b=second, **context)


def _called(request: Request, names: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """What labels are called in the languages of the browser, of those that have names."""
    wanted = languages(request)
    found = {label: display_name(each, *wanted) for label, each in names.items()}
    return {label: name for label, name in found.items() if name is not None}


def _of_sets(versions: Iterable[ModelVersion]) -> bool:
    """Return whether a version was measured on sets of labels."""
    return any("symmetric_difference" in version.metrics.get("test", {}) for version in versions)


def _editions(session: Session, version: ModelVersion, selection: Selection) -> list[str]:
    """Return the names of the hierarchies that a version may adopt: those with concepts of its own, if it has one."""
    if version.copy_of is not None or "subjects" not in {version.solver, *(each.solver for each in selection.members)}:
        return []
    if version.hierarchy is None:
        return [each.name for each in hierarchies.page(session).items]
    return hierarchy_nodes.sharing(session, version.hierarchy)


def _trained(session: Session, ref: str, version: ModelVersion) -> ModelVersion:
    """Return the version whose training drew the test rows: the source of copies and of adopted editions."""
    while version.origin is None and (of := version.copy_of or version.edition_of) is not None:
        try:
            version = models.version(session, ref, of.version)
        except NotFound:  # deleted
            break
    return version


def _test_rows(version: ModelVersion) -> tuple[object, ...]:
    """Return what determines the test rows of a version."""
    try:
        asked = stored_request(version.request)
    except ValidationError:  # of another service, or another release
        return (version.dataset_sha256, version.id)
    if asked.refit and version.refit is None:
        return (version.dataset_sha256,)  # the dataset's own split
    drawn = asked.test_fraction, asked.seed, asked.stratify, asked.warm_start
    return (version.dataset_sha256, version.hierarchy_sha256, *drawn)


def _chosen(measured: list[Evaluation], id: str | None) -> Evaluation | None:
    if id is not None and all(each.id != id for each in measured):
        raise NotFound("This version has no such evaluation.")
    return next((each for each in measured if id in (None, each.id)), None)


def _levels(chosen: Evaluation | None, pairs: list[ConfusedPair]) -> list[int]:
    """Those that labels are confused at: sets along a tree have none that is all labels."""
    if chosen is None or not pairs:
        return []
    return sorted({measure.level for measure in chosen.measures if measure.level >= pairs[0].level})


def _source(_session: Session, name: str, number: int, chosen: Evaluation | None) -> Call:
    if chosen is None:
        return Call(f"/models/{name}/versions/{number}", f"client.models.version({name!r}, {number})")
    return Call(f"/evaluations/{chosen.id}", f"client.evaluations.get({chosen.id!r})")
